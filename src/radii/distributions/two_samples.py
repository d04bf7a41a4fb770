"""The classical two-sample tests on one side of the brackets, as the papers use them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from radii.distributions.columns import Float64

__all__ = ["TestResult", "ks_test", "mann_whitney_test", "welch_test"]

EXACT_UP_TO = 200


@dataclass(frozen=True, slots=True)
class TestResult:
    """A statistic and its p-value; NaN with a `reason` where the test cannot be made.

    `left_out` counts the brackets without any answer, of both samples, for which a test of values
    has none.
    """

    test: str
    statistic: float
    p_value: float
    reason: str = ""
    left_out: int = 0

    __test__ = False  # pytest would collect a class of this name

    @property
    def is_made(self) -> bool:
        return not math.isnan(self.p_value)

    def __str__(self) -> str:
        if not self.is_made:
            return f"{self.test}: not made, {self.reason}"
        told = f"{self.test}: {self.statistic:.3g}, p = {self.p_value:.3g}"
        return told + (f" ({self.left_out} without an answer left out)" if self.left_out else "")


def ks_test(x: Float64, y: Float64) -> TestResult:
    """Kolmogorov and Smirnov: the largest distance of the empirical distributions.

    With ties, as on a grid, it rejects less often than its level says.
    """
    from scipy.special import kolmogorov
    from scipy.stats import ks_2samp

    name = "Kolmogorov-Smirnov"
    if max(len(x), len(y)) <= EXACT_UP_TO:
        with warnings.catch_warnings():
            # Where the exact count fails numerically, scipy falls back on the limit, and warns.
            warnings.simplefilter("ignore", RuntimeWarning)
            tested = ks_2samp(x, y, method="exact")
        return TestResult(name, float(tested.statistic), float(tested.pvalue))
    x_sorted, y_sorted = np.sort(x), np.sort(y)
    values = np.concatenate([x_sorted, y_sorted])
    below_x = np.searchsorted(x_sorted, values, side="right") / len(x)
    below_y = np.searchsorted(y_sorted, values, side="right") / len(y)
    distance = float(np.max(np.abs(below_x - below_y)))
    size = len(x) * len(y) / (len(x) + len(y))
    return TestResult(name, distance, float(kolmogorov(math.sqrt(size) * distance)))


def welch_test(x: Float64, y: Float64) -> TestResult:
    """Welch's t: do the means differ? Not made with infinite values or without any variation."""
    from scipy.stats import ttest_ind

    name = "Welch's t"
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return TestResult(name, math.nan, math.nan, "an input has no witness, so no finite mean")
    if min(len(x), len(y)) < 2 or (np.ptp(x) == 0 and np.ptp(y) == 0):
        return TestResult(name, math.nan, math.nan, "the values do not vary")
    with warnings.catch_warnings():  # where one side is constant: its variance is 0, rightly
        warnings.simplefilter("ignore", RuntimeWarning)
        tested = ttest_ind(x, y, equal_var=False)
    return TestResult(name, float(tested.statistic), float(tested.pvalue))


def mann_whitney_test(x: Float64, y: Float64) -> TestResult:
    """Mann and Whitney: is one side's value larger more often than smaller?"""
    from scipy.stats import mannwhitneyu

    name = "Mann-Whitney"
    if np.ptp(np.nan_to_num(np.concatenate([x, y]), posinf=1e300)) == 0:
        return TestResult(name, math.nan, math.nan, "the values do not vary")
    # Only the order counts; ranks also take care of infinite values.
    _, ranks = np.unique(np.concatenate([x, y]), return_inverse=True)
    tested = mannwhitneyu(ranks[: len(x)], ranks[len(x) :], method="asymptotic")
    return TestResult(name, float(tested.statistic), float(tested.pvalue))
