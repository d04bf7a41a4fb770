"""What the paper prints: constraint satisfaction (Table 1) and accuracy (Table 3), in per cent."""

from __future__ import annotations

from radii_papers._tables import paper_rows

EPS = 0.1
"""The radius of all training and of Table 1."""

SATISFACTION = paper_rows(
    """
    fashion CR 1.5 2.0 2.0 34.0
    fashion SR 0.5 1.0 65.8 100.0
    fashion LR 0.0 0.0 0.0 0.0
    gtsrb CR 0.5 1.0 3.0 4.5
    gtsrb SR 0.0 0.0 24.0 97.0
    gtsrb LR 0.0 0.0 0.0 0.0
    """,
    names=2,
)
"""Table 1 by data set and property; networks trained with nothing, SCR, SR and LR."""

ACCURACIES = paper_rows(
    """
    baseline 88.2 92.4
    uniform-once 88.6 92.8
    fgsm-once 88.8 94.5
    adversarial 85.1 83.5
    sr 88.2 93.3
    scr 88.1 91.9
    lr 86.6 93.1
    """
)
"""Table 3, networks of 100 units: Fashion-MNIST and GTSRB. Augmentation is taken to be made once:
only then is it more accurate than the baseline, as here."""

SAMPLED = {"SR": "100", "SCR": "98"}
"""Constraint accuracy as its Section 3 says it: all of SR, more than this of SCR."""

LARGEST_OF_BASELINE = 1.5
"""Per cent: what its verifier proves of a baseline network at most, as its introduction says."""
