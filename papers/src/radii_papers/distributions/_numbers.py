"""What the paper prints: its tables as numbers, beside which the study sets its own.

"Robustness Distributions in Neural Network Verification" (JAIR). A row begins with the names that
tell it; a lone dash is an empty cell. Names of networks are those of the paper's appendix.
"""

from __future__ import annotations

from radii_papers._tables import paper_rows

SIGNIFICANCE = 0.05
"""The level of every test of the paper."""

QUALITY = paper_rows(
    """
mnist_nn             Standard    0.757 True    True      4.938  0      0.002
mnist_nn             FGSM        0.910 False   False    31.461  0      0.003
mnist_nn             PGD         0.802 False   False    35.065  0      0.003
mnist_relu_4_1024    Standard    0.941 True    True     19.355  0      0.003
mnist_relu_4_1024    FGSM        0.978 False   False    36      0      0.003
mnist_relu_4_1024    PGD         0.782 True    False    31.169  0      0.003
cifar_7_1024         Standard    0.540 True    False    43.860  29.825 0.008
cifar_7_1024         FGSM        0.367 True    True     31.429  51.429 0.017
cifar_7_1024         PGD         0.510 False   False    29.787  61.702 0.023
gtsrb_6_256          Standard    0.800 False   False    25      0      0.005
gtsrb_6_256          FGSM        0.604 True    True     66.197  0      0.019
gtsrb_6_256          PGD         0.613 True    True     66.667  0      0.005
gtsrb_7_1024         Standard    0.794 False   False    62.921  0      0.010
gtsrb_7_1024         FGSM        0.586 True    False    75.757  0      0.028
gtsrb_7_1024         PGD         0.673 False   True     84.615  0      0.029
convSmall            Point       0.983 False   False    76.344  0      0.012
convSmall            DiffAI      0.997 True    False    73.196  0      0.006
convSmall            PGDK        0.990 True    True     98      0      0.037
convMedG             Point       0.986 False   False    78      0      0.016
convMedG             PGDK_w_0.1  0.991 False   False    98.881  0      0.053
convMedG             PGDK_w_0.3  0.998 False   False   100      0      0.036
conv_big             Standard    0.650 False   True     39.063  21.875 0.007
conv_big             FGSM        0.588 True    True     44.444  53.704 0.024
conv_big             PGD         0.593 True    True     50.943  47.170 0.046
resnet_4b            Standard    0.884 invalid invalid  12.162  18.919 0.004
resnet_4b            FGSM        0.668 True    True      3.333  59.524 0.027
gtsrb_cnn_deep_game  Standard    0.927 invalid invalid  85.416  0      0.016
gtsrb_cnn_deep_game  FGSM        0.857 invalid invalid  90.425  0      0.029
gtsrb_cnn_deep_game  PGD         0.793 invalid invalid 100      0      0.048
gtsrb_cnn_vnncomp23  Standard    0.947 invalid invalid  85.714  0      0.013
gtsrb_cnn_vnncomp23  FGSM        0.880 invalid invalid  95.745  3.614  0.031
""",
    names=2,
)
"""Tables 2 and 3: test accuracy; log-normality not rejected on training and on testing images;
critical terminations and unsolved instances in per cent, and the mean gap, on testing images."""

CONVENTIONAL = paper_rows(
    """
net          0.013 0.005 0.042 0.038 99  99 0.996 0.996
net_256x2    0.011 0.007 0.037 0.034 99 100 0.995 0.995
relu_6_100   0.007 0.009 0.065 0.063 96  98 0.969 0.968
relu_3_50    0.007 0.005 0.058 0.052 97  98 0.964 0.962
relu_4_1024  0.005 0.003 0.073 0.068 93  97 0.945 0.941
relu_9_100   0.005 0.009 0.064 0.057 96  95 0.957 0.956
relu_3_100   0.005 0.003 0.057 0.057 98  97 0.971 0.968
relu_9_200   0.003 0.003 0.072 0.067 95  97 0.957 0.956
net_256x4    0.001 0.011 0.072 0.067 98  99 0.991 0.990
net_256x6    0.001 0.001 0.071 0.064 97  98 0.997 0.978
relu_6_200   0.001 0.005 0.067 0.067 98  98 0.972 0.969
nn           0.001 0.001 0.030 0.027 80  76 0.745 0.757
"""
)
"""Table 5: lowest, mean, instances and accuracy, each on training and on testing images."""

SAMPLE_SIZES = paper_rows(
    """
relu_9_200  0.072 0.038 0.067 0.033 0.716
net_256x4   0.072 0.035 0.072 0.032 0.640
net_256x6   0.071 0.035 0.069 0.031 0.995
nn          0.030 0.022 0.028 0.024 0.81
net_256x2   0.037 0.015 0.039 0.017 0.296
"""
)
"""Table 6: mean and deviation with 100 images, the same with 400, and the p-value between them."""

CONVENTIONAL_HOURS = paper_rows(
    """
net          159 0.8
net_256x2     49 0.25
relu_6_100   430 2
relu_3_50    219 1
relu_4_1024  490 3
relu_9_100   448 2
relu_3_100   409 2
relu_9_200   491 3
net_256x4    550 3
nn            95 0.59
net_256x6    493 3
relu_6_200   450 2
total       4283 2
"""
)
"""Table 7 at k = 2: hours on the wall, of all images and of one."""

STATISTICS = paper_rows(
    """
mnist_nn            Standard   0.001 0.001  0.030 0.031  81  81  0  0 0.745 0.757
mnist_nn            FGSM       0.001 0.007  0.188 0.174  92  89  0  0 0.912 0.910
mnist_nn            PGD        0.017 0.007  0.270 0.268  84  77  0  0 0.799 0.802
mnist_relu_4_1024   Standard   0.005 0.005  0.073 0.073  93  93  0  0 0.945 0.941
mnist_relu_4_1024   FGSM       0.077 0.017  0.244 0.223  97 100  0  0 0.980 0.978
mnist_relu_4_1024   PGD        0.017 0.007  0.290 0.290  85  77  0  0 0.780 0.782
convSmall           Point      0.005 0.005  0.144 0.138  90  93  9  6 0.987 0.983
convSmall           DiffAI     0.079 0.025  0.155 0.149  98  99  0  0 0.981 0.977
convSmall           PGDK       0.117 0.019  0.156 0.159  92 100  7  0 0.995 0.990
convMedG            Point      0.013 0.047  0.127 0.127 100 100  0  0 0.996 0.986
convMedG            PGDK_w_0.1 0.071 0.059  0.135 0.133  97  84  3 16 0.999 0.991
convMedG            PGDK_w_0.3 0.059 0.137  0.279 0.288  96  98  3  1 0.995 0.988
cifar_7_1024        Standard   0.000 0.000  0.002 0.002  38  40 17 24 0.641 0.540
cifar_7_1024        FGSM       0.000 0.0078 0.025 0.036  18  17 18 14 0.362 0.367
cifar_7_1024        PGD        0.000 0.000  0.007 0.006  17  18 29 47 0.663 0.510
conv_big            Standard   0.000 0.000  0.000 0.000  63  49 14 35 0.975 0.650
conv_big            FGSM       0.000 0.0039 0.011 0.01   20  25 29 48 0.668 0.588
conv_big            PGD        0.000 0.000  0.010 0.010  18  19 25 41 0.654 0.593
resnet_4b           Standard   0.000 0.000  0.000 0.000  81  59 14 19 0.987 0.884
resnet_4b           FGSM       0.000 0.0039 0.013 0.017  13  17 25 23 0.441 0.668
gtsrb_6_256         Standard   0.000 0.000  0.009 0.008  98  84  0  0 0.989 0.800
gtsrb_6_256         FGSM       0.000 0.000  0.023 0.023  76  71  0  0 0.771 0.604
gtsrb_6_256         PGD        0.004 0.000  0.027 0.027  70  69  0  0 0.767 0.613
gtsrb_7_1024        Standard   0.000 0.000  0.007 0.007 100  89  0  0 0.982 0.794
gtsrb_7_1024        FGSM       0.000 0.000  0.015 0.014  72  66  0  0 0.776 0.586
gtsrb_7_1024        PGD        0.000 0.000  0.015 0.015  89  78  0  0 0.875 0.673
gtsrb_cnn_deep_game Standard   x     x      x     x     100  96  0  0 1.00  0.927
gtsrb_cnn_deep_game FGSM       x     x      x     x     100  94  0  0 0.979 0.857
gtsrb_cnn_deep_game PGD        x     x      x     x      96  86  0  0 0.952 0.793
gtsrb_cnn_vnncomp23 Standard   x     x      x     x      99  95  0  0 1.00  0.957
gtsrb_cnn_vnncomp23 FGSM       x     x      x     x     100  91  0  0 0.965 0.885
gtsrb_cnn_vnncomp23 PGD        x     x      x     x      91  79  0  0 0.901 0.724
""",
    names=2,
)
"""Tables 8, 9 and 10: lowest, mean, instances, errors and accuracy, each on training and testing
images. Errors are images without any answer; x where nothing is proven about any image."""

RUNNING_TIMES = paper_rows(
    """
mnist_nn            Standard    170.983    3    8  1.055 0.089
mnist_nn            FGSM        972.197  209    0  5.371 0.383
mnist_nn            PGD         758.036  178    2  4.708 0.340
mnist_relu_4_1024   Standard    931.710   40   54  5.009 0.409
mnist_relu_4_1024   FGSM       1639.122  548    1  8.320 0.560
mnist_relu_4_1024   PGD         924.545  227    1  5.707 0.415
convSmall           Point       537.199  484  627  2.699 0.224
convSmall           DiffAI      160.453  156  271  0.814 0.090
convSmall           PGDK       1956.685 1884 1791 10.138 0.421
convMedG            Point       722.142  656  867  3.611 0.259
convMedG            PGDK_w_0.1 2062.852 2004 2954 10.915 0.357
convMedG            PGDK_w_0.3 1618.928 1537 2136  8.135 0.346
cifar_7_1024        Standard    100.824   93 4223  0.847 0.021
cifar_7_1024        FGSM        109.764  101 3296  1.638 0.030
cifar_7_1024        PGD         231.360  219 7829  2.084 0.028
conv_big            Standard     77.299   61 5189  0.477 0.013
conv_big            FGSM        160.322  122 8084  1.314 0.019
conv_big            PGD         148.233  105 8602  1.235 0.017
resnet_4b           Standard     21.811    5 3728  0.126 0.005
resnet_4b           FGSM       1173.877  165 4944  2.201 0.033
gtsrb_6_256         Standard     79.161   70    0  0.435 0.062
gtsrb_6_256         FGSM        643.098  620    0  4.375 0.439
gtsrb_6_256         PGD         625.913  598    0  4.503 0.451
gtsrb_7_1024        Standard    300.614  291    0  1.591 0.204
gtsrb_7_1024        FGSM        907.038  900    0  6.573 0.554
gtsrb_7_1024        PGD        1179.660 1169    0  7.064 0.578
gtsrb_cnn_deep_game Standard      8.656    0  564  0.044 0.005
gtsrb_cnn_deep_game FGSM         13.497    0 1258  0.070 0.006
gtsrb_cnn_deep_game PGD          19.240    0 2108  0.106 0.007
gtsrb_cnn_vnncomp23 Standard      4.953    0  635  0.025 0.003
gtsrb_cnn_vnncomp23 FGSM          8.396    0 1566  0.044 0.004
gtsrb_cnn_vnncomp23 PGD           4.970    0  721  0.029 0.003
""",
    names=2,
)
"""Tables 11, 12 and 13: hours in all, time-outs, errors, hours of an image and of a query."""

RUNNING_TIME_TOTALS = paper_rows(
    """
fully-connected_MNIST 5436.432 1205     66
convolutional_MNIST   6028.259 6721   8646
CIFAR-10              2022.943  871 103369
GTSRB                 3795.196 3648   6852
"""
)
"""The totals that Tables 11 (two of them), 12 and 13 print: hours, time-outs, errors."""

ACCURACIES = paper_rows(
    """
convMedG            PGDK_w_0.1  99.9 99.2 40.6  0.5
convMedG            PGDK_w_0.3  99.5 98.8 95.9 93.0
convMedG            Point       99.6 98.6 10.8  0.0
convSmall           DiffAI      98.1 97.7 14.8  0.3
convSmall           PGDK        99.5 98.9 49.1  2.5
convSmall           Point       98.7 98.2 21.3  0.5
mnist_nn            FGSM        91.2 91.0 44.4  8.1
mnist_nn            PGD         79.9 80.2 62.3 51.9
mnist_nn            Standard    74.5 75.4  0.0  0.0
mnist_relu_4_1024   FGSM        98.0 97.8 64.7 15.4
mnist_relu_4_1024   PGD         78.0 78.2 68.0 63.2
mnist_relu_4_1024   Standard    94.5 93.8  0.1  0.0
cifar_7_1024        Standard    64.1 54.0 11.4  1.6
cifar_7_1024        FGSM        36.3 36.7 30.8 25.6
cifar_7_1024        PGD         66.4 51.0 37.6 26.4
conv_big            Standard    97.6 65.0  3.0  0.4
conv_big            FGSM        66.8 58.8 45.6 33.1
conv_big            PGD         65.5 59.3 47.2 35.7
resnet_18           Standard   100.0 88.4  0.4  0.0
resnet_18           FGSM        70.3 66.8 53.6 41.1
resnet_18           PGD         80.5 71.1 56.6 42.2
resnet_4b           Standard    98.7 74.5  0.0  0.0
resnet_4b           FGSM        44.2 43.9 35.7 29.3
resnet_4b           PGD         53.4 52.0 41.5 32.4
gtsrb_6_256         Standard    98.9 80.0 19.7  8.4
gtsrb_6_256         FGSM        77.1 60.4 45.1 32.7
gtsrb_6_256         PGD         76.7 61.3 47.9 35.9
gtsrb_7_1024        Standard    98.2 79.4 28.2 15.5
gtsrb_7_1024        FGSM        77.6 58.6 42.7 31.3
gtsrb_7_1024        PGD         87.5 67.3 52.3 38.5
gtsrb_cnn_deep_game Standard   100.0 92.7 26.6 12.9
gtsrb_cnn_deep_game FGSM        98.0 85.7 50.4 32.9
gtsrb_cnn_deep_game PGD         95.2 79.3 63.7 45.8
gtsrb_cnn_vnncomp23 Standard   100.0 95.7 21.7  5.3
gtsrb_cnn_vnncomp23 FGSM        96.5 88.5 64.1 42.5
gtsrb_cnn_vnncomp23 PGD         90.1 72.4 55.1 39.8
""",
    names=2,
)
"""Tables 14, 15 and 16, in per cent: accuracy on training and on testing images, and under PGD at
the smaller and the larger eps of `PGD_EPS`, over whole data sets."""

PGD_EPS = {"MNIST": (0.2, 0.3), "CIFAR-10": (4 / 255, 8 / 255), "GTSRB": (4 / 255, 8 / 255)}

ARCHITECTURES = paper_rows(
    """
net                 1K     669K 3 0
net_256x2           0.5K   269K 3 0
relu_6_100          0.5K   119K 6 0
relu_3_50           0.1K    42K 3 0
relu_4_1024         3K    2913K 4 0
relu_9_100          0.8K   150K 9 0
relu_3_100          0.2K    89K 3 0
relu_9_200          1.6K   440K 9 0
net_256x4           1K     400K 5 0
net_256x6           1.5K   532K 7 0
relu_6_200          1K     319K 6 0
nn                  512    269K 3 0
convSmall           5K      89K 2 3
convMedG            8K    1587K 2 3
cifar_7_1024        6K    8405K 7 0
resnet_4b           14K    123K 2 9
conv_big            62K   2466K 3 4
resnet_18           558K 11173K 1 17
gtsrb_6_256         1K    1060K 6 0
gtsrb_7_1024        6K    8438K 7 0
gtsrb_cnn_deep_game 221K  8438K 3 4
gtsrb_cnn_vnncomp23 260K  1775K 3 3
"""
)
"""Tables 17, 18 and 19: neurons, parameters, linear and convolutional layers."""

SIDES = paper_rows(
    """
mnist_nn            Standard   x     x     0.588 0.588
mnist_nn            FGSM       0.799 0.703 1.0   0.999
mnist_nn            PGD        0.893 0.820 0.999 0.997
mnist_relu_4_1024   Standard   0.723 0.727 0.957 0.991
mnist_relu_4_1024   FGSM       0.672 0.714 0.993 1.000
mnist_relu_4_1024   PGD        0.839 0.801 0.985 0.975
convSmall           Point      0.015 0.046 0.001 0.011
convSmall           DiffAI     0.173 0.204 0.356 0.276
convSmall           PGDK       0.000 0.000 0.000 0.000
convMedG            Point      0.001 0.001 0.000 0.000
convMedG            PGDK_w_0.1 0.000 0.000 0.000 0.000
convMedG            PGDK_w_0.3 0.000 0.000 0.000 0.000
cifar_7_1024        Standard   0.000 0.000 0.000 0.000
cifar_7_1024        FGSM       0.149 0.094 0.191 0.751
cifar_7_1024        PGD        0.000 0.000 0.000 0.000
conv_big            Standard   0.000 0.000 0.067 0.585
conv_big            FGSM       0.000 0.000 0.000 0.000
conv_big            PGD        0.000 0.000 0.000 0.000
resnet_4b           Standard   0.000 0.000 x     x
resnet_4b           FGSM       0.007 0.001 0.024 0.005
gtsrb_6_256         Standard   0.000 0.000 0.649 0.019
gtsrb_6_256         FGSM       0.000 0.000 0.000 0.072
gtsrb_6_256         PGD        0.000 0.000 0.000 0.007
gtsrb_7_1024        Standard   0.000 0.000 0.001 0.002
gtsrb_7_1024        FGSM       0.000 0.000 0.000 0.000
gtsrb_7_1024        PGD        0.000 0.000 0.000 0.000
gtsrb_cnn_deep_game Standard   0.000 0.000 x     x
gtsrb_cnn_deep_game FGSM       0.000 0.000 x     x
gtsrb_cnn_deep_game PGD        0.000 0.000 x     x
gtsrb_cnn_vnncomp23 Standard   0.000 0.000 x     x
gtsrb_cnn_vnncomp23 FGSM       0.000 0.000 x     x
gtsrb_cnn_vnncomp23 PGD        0.000 0.000 x     x
""",
    names=2,
)
"""Table 23: p-values between both sides, t-test and Kolmogorov-Smirnov, training and testing."""

SPEARMAN = {"train": ("0.18", "0.55", "0.82"), "test": ("", "0.39", "")}
"""Section 4.5: the smallest, mean and largest coefficient between two networks."""

SPEARMAN_PAIR = (("relu_9_200", "relu_3_50"), {"train": "0.74", "test": "0.27"})
"""The pair that Section 4.5 gives as an example."""

INSTANCES = {"train": "1147", "test": "1154"}
CRITICAL_TERMINATIONS = ("61", "2301")
"""Section 3.2, of the twelve conventionally trained networks: how many, of how many instances."""

ROBUST_ACCURACIES = paper_rows("relu_4_1024 93 66\nnet 100 49")
"""Section 4.3, in per cent of the correctly classified training images, at 0.012 and 0.04."""

NOT_LOG_NORMAL = ("net_256x4",)
"""Section 4.4: the only one of the twelve whose log-normality the paper's test rejects."""

SEARCHES = paper_rows(
    """
1   8 7 74 12.68 10162 9781 0.10
2  11 4 19 11.78 12750 6717 0.17
4  17 7 31 18.33 19582 5574 1.07
8   - 15 54 28.51 27234 4433 1.46
16  - 4 54 22.46 15657 5878 0.19
"""
)
"""Table 1, for each k of k-binary search: theoretical maximum, fewest, most and mean queries of an
instance; mean seconds of the CPU and on the wall; mean time-outs."""

SEARCH_QUERIES = paper_rows(
    """
1  14547  119 5643   206 0.014
2  13516  191  131  1961 0.145
4  21025 1228  140  6499 0.309
8  32646 1677   86 15949 0.438
16 25761  217  205 12398 0.481
"""
)
"""Table 4, for each k: queries, time-outs, memory-outs, cancelled queries and their share."""

TRAINING_EPS = "8/255"
"""Section 5.1: of FGSM and PGD on CIFAR-10 and GTSRB."""

TRAINING_SETTINGS = paper_rows(
    """
cifar_7_1024        Standard 0.000090  8 0.280000 30
cifar_7_1024        FGSM     0.000910  8 0.300000 15
cifar_7_1024        PGD      0.000200  2 0.980000 50
conv_big            Standard 0.001600  9 0.570000 30
conv_big            FGSM     0.000390  5 0.720000 15
conv_big            PGD      0.000580  9 0.017000 50
resnet_4b           Standard 0.002000  8 0.210000 30
resnet_4b           FGSM     0.010520  3 0.510000 15
resnet_4b           PGD      0.001490  8 0.041000 50
gtsrb_6_256         Standard 0.001630  4 0.630000 50
gtsrb_6_256         FGSM     0.001430  3 0.877000 20
gtsrb_6_256         PGD      0.001510  8 0.270000 50
gtsrb_7_1024        Standard 0.000960 10 0.980000 50
gtsrb_7_1024        FGSM     0.000660 10 0.467000 20
gtsrb_7_1024        PGD      0.000690 10 0.540000 50
gtsrb_cnn_deep_game Standard 0.001200  9 0.030000 50
gtsrb_cnn_deep_game FGSM     0.000747  9 0.864000 20
gtsrb_cnn_deep_game PGD      0.000680 10 0.082800 50
gtsrb_cnn_vnncomp23 Standard 0.000921  9 0.047629 50
gtsrb_cnn_vnncomp23 FGSM     0.000777  7 0.666632 20
gtsrb_cnn_vnncomp23 PGD      0.001032  9 0.101743 50
""",
    names=2,
)
"""Tables 21 and 22: learning rate, epochs between its steps, the factor of a step, and epochs."""
