"""What the paper prints: Table 1, counts of significant differences, robust accuracies."""

from __future__ import annotations

from radii_papers._tables import paper_rows

NETWORKS = ("mnist-net", "mnist-net_256x4", "mnist_relu_4_1024")
"""The paper's three. The file of the last is public, not at hand; its one-to-any brackets are."""

CLASSES = tuple(range(10))
FROM_CLASS = 9
"""The class whose images were given targets."""

TARGETS = tuple(label for label in CLASSES if label != FROM_CLASS)

GRID = "0.001:0.8:0.002"
"""Of all radii in the paper."""

SIGNIFICANCE = 0.05

IMAGES_OF_CLASS = 100
"""Drawn at random from each class and split; which ones is not told."""

MARKED_EPS = (0.012, 0.04)

_TABLE_1 = """
0    0.998 0.990 100 100  0.996 0.988 100  99  0.994 0.993 100 100
1    0.997 0.988 100  99  0.995 0.991 100 100  1.000 0.997 100 100
2    0.996 0.982 100  96  0.987 0.969  99  95  0.906 0.893  81  94
3    0.993 0.975 100  99  0.981 0.971  97  98  0.994 0.992  98  99
4    0.996 0.968 100  95  0.993 0.978 100  98  0.941 0.931  99  93
5    0.997 0.975 100  95  0.993 0.981  98  97  0.967 0.948  91  93
6    0.998 0.978  99  97  0.997 0.982  99  98  0.914 0.906  92  85
7    0.997 0.984 100 100  0.996 0.977  99  99  0.987 0.978  99  98
8    0.995 0.971 100  96  0.989 0.967 100  95  0.816 0.829  83  83
9    0.993 0.968  97  98  0.981 0.959  96  95  0.915 0.908  86  90
all  0.996 0.996 996 975  0.991 0.990 988 974  0.945 0.941 929 935
"""

TABLE_1 = {
    (row, network): numbers[4 * place : 4 * place + 4]
    for (row,), numbers in paper_rows(_TABLE_1).items()
    for place, network in enumerate(NETWORKS)
}
"""By class (or `all`) and network: recall and images, each on training and on testing images."""

ROBUST_ACCURACIES = {"mnist-net": ("94.8", "40.4"), "mnist_relu_4_1024": ("93.9", "71.9")}
"""Section 4.1, in per cent at `MARKED_EPS`; on which images is not said."""

SPLITS_DIFFER = {"mnist-net": "1", "mnist-net_256x4": "4", "mnist_relu_4_1024": "2"}
"""Section 4.2: of ten classes, those whose training and testing images differ."""

TARGETS_DIFFER = {"mnist-net": "1", "mnist-net_256x4": "2", "mnist_relu_4_1024": "1"}
"""Section 4.3: of nine targets, those for which training and testing images differ."""

CURVES_OF_CLASSES = (2, 6)
"""Figures 3, 4 and 10."""

CURVES_OF_TARGETS = (2, 6)
"""Figures 6 and 12."""

POINTS_OF_TARGETS = (1, 6)
"""Figure 7."""

CLUSTERED_TARGET = 6
CLUSTERS = 3
"""Section 4.3: so many clusters in Figure 7b, for a reason that is left open."""
