"""Tests between groups of brackets, and correlations between networks, for one pair or for many.

- The classical two-sample tests on one side of the brackets, as the papers use them.
- Permutation tests on brackets: exact if brackets are exchangeable, whatever the ties. Exchangeable
  must be the brackets, not only the radii: if equal radii get wider brackets in one group, as on a
  network that is harder to verify, groups of equal radii differ.
- Matrices of tests between all groups, laid out as in the per-class paper, and of Spearman's
  correlations between all networks: are the same inputs hard for each?

Many tests at once are corrected by Holm's procedure.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations as orders
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._npmle import innermost_intervals, turnbull_of
from radii.statistics._summaries import Side, side_of, side_values
from radii.statistics.reading._run import Array, Float64, joint_codes

if TYPE_CHECKING:
    import pandas as pd

    from radii.statistics._distribution import Distribution


EXACT_TEST_INPUTS = 200
"""Up to so many inputs of each group the exact distribution of the KS statistic is used."""
MOST_PERMUTED = 20_000_000
"""Numbers permuted at most; beyond, sums of scores are taken as normally distributed."""
EVERY_ORDER_INPUTS = 8
"""Up to so many inputs all orders are counted for the p-value of a correlation."""
RANDOM_ORDER_INPUTS = 30
"""Below so many it is from random orders: Student's t rejects too often there, up to 9 % at 5 %."""
RANDOM_ORDERS = 9999


def holm(p_values: npt.ArrayLike) -> Float64:
    """Adjusted p-values, in the shape of the raw ones. NaN is a test that was not made.

    Rejecting those at most alpha rejects any true hypothesis with probability at most alpha.
    """
    raw = np.asarray(p_values, np.float64)
    adjusted = np.full(raw.shape, np.nan)
    made = ~np.isnan(raw)
    values = raw[made]
    order = np.argsort(values)
    factors = len(values) - np.arange(len(values))
    grown = np.maximum.accumulate(values[order] * factors)
    placed = np.empty(len(values))
    placed[order] = np.minimum(grown, 1.0)
    adjusted[made] = placed
    return adjusted


@dataclass(frozen=True, slots=True)
class TestResult:
    """A statistic and its p-value; NaN with a `reason` where the test cannot be made.

    `left_out` counts the brackets of both samples that have no answer, and so no value to test.
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
        text = f"{self.test}: {self.statistic:.3g}, p = {self.p_value:.3g}"
        return text + (f" ({self.left_out} without an answer left out)" if self.left_out else "")


def ks_test(x: Float64, y: Float64) -> TestResult:
    """Kolmogorov and Smirnov: the largest distance of the empirical distributions.

    With ties, as on a grid, it rejects less often than its level says.
    """
    from scipy.special import kolmogorov
    from scipy.stats import ks_2samp

    name = "Kolmogorov-Smirnov"
    if max(len(x), len(y)) <= EXACT_TEST_INPUTS:
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


def by_permutation(
    welch: TestResult,
    mann_whitney: TestResult,
    x: Float64,
    y: Float64,
    *,
    permutations: int,
    seed: int,
) -> tuple[TestResult, TestResult]:
    """The two tests with p-values by permutation: exact if all inputs are drawn alike.

    Student's t and the normal distribution are too kind to samples of different sizes: of 10 and
    100 inputs, nine tenths of them with radius 0, Welch's t rejects in 37 % of cases, not in 5 %.
    """
    size, part = len(x) + len(y), len(x)
    if not (welch.is_made or mann_whitney.is_made) or permutations * size > MOST_PERMUTED:
        return welch, mann_whitney
    rng = np.random.default_rng(seed)
    _, ranks = np.unique(np.concatenate([x, y]), return_inverse=True)
    counts = np.bincount(ranks)
    mid_ranks = (np.cumsum(counts) - (counts - 1) / 2)[ranks]
    values = np.nan_to_num(np.concatenate([x, y]), posinf=0.0)
    values = values - values.mean()
    columns = np.stack([values, values**2, mid_ranks - mid_ranks.mean()], axis=1)
    is_first = np.arange(size) < part
    totals = columns.sum(axis=0)
    observed = _absolute_statistics(is_first[None] @ columns, totals, part, size)[:, 0]
    reached = np.zeros(2)
    for rows in _batches(permutations, size):
        groups = rng.permuted(np.broadcast_to(is_first, (rows, size)), axis=1)
        found = _absolute_statistics(groups @ columns, totals, part, size)
        reached += np.count_nonzero(found >= observed[:, None] * (1 - 1e-9) - 1e-12, axis=1)
    p_values = (1 + reached) / (1 + permutations)
    one, two = (
        replace(test, p_value=float(p)) if test.is_made else test
        for test, p in zip((welch, mann_whitney), p_values, strict=True)
    )
    return one, two


def _absolute_statistics(sums: Float64, totals: Float64, part: int, size: int) -> Float64:
    """|Welch's t| and |sum of ranks| of groups (rows) with sums of values, squares and ranks."""
    rest = size - part
    one, two = sums, totals - sums
    errors = np.zeros(len(sums))
    for group, count in ((one, part), (two, rest)):
        deviation = np.maximum(group[:, 1] - group[:, 0] ** 2 / count, 0.0)
        errors += deviation / (count * max(count - 1, 1))
    differences = np.abs(one[:, 0] / part - two[:, 0] / rest)
    smallest = 1e-15 * float(totals[1]) / size
    return np.stack([differences / np.sqrt(np.maximum(errors, smallest)), np.abs(sums[:, 2])])


def censored_scores(lower: Float64, upper: Float64) -> Float64:
    """A score between -1 and 1 for each bracket: its expected rank under the pooled estimate.

    The generalised Wilcoxon score of interval-censored data: the chance to be above another input
    minus the chance to be below. Exact values get their centred mid-ranks.
    """
    pooled = turnbull_of(lower, upper)
    _, _, first, last = innermost_intervals(lower, upper)
    cumulated = np.concatenate([[0.0], np.cumsum(pooled.mass)])
    scores = cumulated[first] + cumulated[last + 1] - 1
    return np.asarray(scores - scores.mean())


def permuted_p_value(
    scores: Float64, is_first: Array, *, is_matched: bool, permutations: int, seed: int
) -> float:
    """Two-sided p-value of the first group's sum of scores.

    Unmatched groups exchange their members; matched ones (first half, second half, same order)
    exchange the two brackets of an input.
    """
    rng = np.random.default_rng(seed)
    if is_matched:
        half = len(scores) // 2
        values = scores[:half] - scores[half:]
        deviation = float(np.sqrt(np.sum(values**2)))
        observed = abs(float(values.sum()))
    else:
        size, part = len(scores), int(is_first.sum())
        spread = float(np.sum((scores - scores.mean()) ** 2))
        deviation = float(np.sqrt(spread * part * (size - part) / (size * max(size - 1, 1))))
        observed = abs(float(scores[is_first].sum() - part * scores.mean()))
    if deviation == 0:
        return 1.0
    if permutations * len(scores) > MOST_PERMUTED:
        return _normal_p_value(observed / deviation)
    reached = 0
    for rows in _batches(permutations, len(scores)):
        if is_matched:
            signs = rng.integers(0, 2, size=(rows, half)) * 2 - 1
            sums = signs @ values
        else:
            shuffled = rng.permuted(np.broadcast_to(scores, (rows, size)), axis=1)
            sums = shuffled[:, :part].sum(axis=1) - part * scores.mean()
        reached += int(np.count_nonzero(np.abs(sums) >= observed * (1 - 1e-9)))
    return (1 + reached) / (1 + permutations)


def permuted_sup_p_value(
    sides: tuple[Float64, ...],
    is_first: Array,
    *,
    is_matched: bool,
    permutations: int,
    seed: int,
) -> tuple[float, float]:
    """The largest distance between the groups' empirical curves on any side, and its p-value.

    Sees differences of shape that the sum of scores does not.
    """
    rng = np.random.default_rng(seed)
    size, part = len(is_first), int(is_first.sum())
    curves = [_curve(values) for values in sides]
    observed = float(_sup(curves, is_first[None], part)[0])
    reached, done = 0, 0
    for rows in _batches(min(permutations, max(199, MOST_PERMUTED // size)), size):
        if is_matched:
            swap = rng.random((rows, size // 2)) < 0.5
            groups = np.concatenate([swap, ~swap], axis=1)
        else:
            groups = rng.permuted(np.broadcast_to(is_first, (rows, size)), axis=1)
        reached += int(np.count_nonzero(_sup(curves, groups, part) >= observed - 1e-9))
        done += rows
    return observed, (1 + reached) / (1 + done)


def several_p_value(scores: Float64, groups: Array, *, permutations: int, seed: int) -> float:
    """Do several groups differ? Kruskal and Wallis' statistic of the scores, permuted."""
    _, codes = np.unique(groups, return_inverse=True)
    sizes = np.bincount(codes)
    if len(sizes) < 2:
        return 1.0

    def statistic(values: Float64) -> float:
        return float(np.sum(np.bincount(codes, values) ** 2 / sizes))

    rng = np.random.default_rng(seed)
    observed = statistic(scores)
    runs = min(permutations, max(199, MOST_PERMUTED // len(scores)))
    reached = sum(statistic(rng.permutation(scores)) >= observed - 1e-12 for _ in range(runs))
    return (1 + reached) / (1 + runs)


def _curve(values: Float64) -> tuple[Array, Array]:
    """The order of the values, and where runs of equal ones end."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True) & np.isfinite(ordered))
    return order, ends


def _sup(curves: list[tuple[Array, Array]], groups: Array, part: int) -> Float64:
    rest = groups.shape[1] - part
    largest = np.zeros(len(groups))
    for order, ends in curves:
        if not ends.size:
            continue
        in_first = np.cumsum(groups[:, order], axis=1)[:, ends]
        in_second = (ends + 1) - in_first
        gaps = np.abs(in_first / part - in_second / rest)
        largest = np.maximum(largest, gaps.max(axis=1))
    return largest


def _batches(rows: int, size: int) -> list[int]:
    most = max(1, 2_000_000 // size)
    return [most] * (rows // most) + ([rows % most] if rows % most else [])


def _normal_p_value(z: float) -> float:
    from scipy.special import ndtr

    return float(2 * ndtr(-z))


@dataclass(frozen=True, slots=True, eq=False)
class KsMatrix:
    """Kolmogorov-Smirnov statistics between groups; NaN where a group is absent.

    Below the diagonal groups of training inputs are compared, above it groups of testing inputs;
    the diagonal compares training with testing of one group. Inputs of no named split count as
    training. `adjusted` are Holm's p-values over all tests of the matrix. `left_out` counts the
    brackets of each group without any answer, which have no value to test.
    """

    by: str
    keys: tuple[Any, ...]
    statistics: Float64
    p_values: Float64
    adjusted: Float64
    left_out: tuple[int, ...]

    def differ(self, level: float = 0.05, *, is_adjusted: bool = True) -> Array:
        """Where the groups differ significantly."""
        return np.asarray((self.adjusted if is_adjusted else self.p_values) < level)

    def frame(self) -> pd.DataFrame:
        """The statistics as a table."""
        import pandas as pd

        return pd.DataFrame(self.statistics, index=list(self.keys), columns=list(self.keys))


def ks_matrix(distribution: Distribution, by: str = "class", side: Side = "lower") -> KsMatrix:
    """Compare groups by network, class, target or training, on correctly classified inputs.

    The test takes groups as independent. Targets of the same inputs, and networks on the same
    inputs, are not: for those `compare_all` has tests that know it.
    """
    right = distribution.correctly_classified()
    splits = right.group_by("split")
    testing = splits.get("test")
    training = right.select(right.column("split") != "test") if len(splits) > 1 else None
    if training is None:
        training, testing = (None, right) if testing is not None else (right, None)
    below = {} if training is None else _group_values(training, by, side)
    above = {} if testing is None else _group_values(testing, by, side)
    groups = right.group_by(by)
    keys = tuple(groups)
    if len(keys) < 2:
        raise DataError(f"there is only one {by}: nothing to compare")
    size = len(keys)
    statistics, p_values = np.full((size, size), math.nan), np.full((size, size), math.nan)
    for row in range(size):
        for column in range(size):
            if row == column:
                one, two = below.get(keys[row]), above.get(keys[row])
            else:
                values = below if row > column else above
                one, two = values.get(keys[row]), values.get(keys[column])
            if one is not None and two is not None:
                tested = ks_test(one, two)
                statistics[row, column] = tested.statistic
                p_values[row, column] = tested.p_value
    left_out = tuple(part.unsolved for part in groups.values())
    return KsMatrix(by, keys, statistics, p_values, holm(p_values), left_out)


def _group_values(distribution: Distribution, by: str, side: Side) -> dict[Any, Float64]:
    values = {key: side_values(part, side) for key, part in distribution.group_by(by).items()}
    return {key: numbers for key, numbers in values.items() if numbers.size}


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Between networks, on the inputs at which the property holds for both; NaN if undefined.

    `p_values` are raw and `adjusted` Holm's, over the pairs above the diagonal; both are symmetric
    with NaN on the diagonal. `inputs` counts what each pair shares. `left_out` counts for each
    network the brackets without any answer, which have no rank.
    """

    networks: tuple[str, ...]
    coefficients: Float64
    p_values: Float64
    adjusted: Float64
    inputs: Array
    left_out: tuple[int, ...]

    def frame(self) -> pd.DataFrame:
        """The coefficients as a table."""
        import pandas as pd

        return pd.DataFrame(self.coefficients, index=self.networks, columns=self.networks)

    @property
    def mean(self) -> float:
        """Of all defined pairs; NaN if there is none."""
        upper = self.coefficients[np.triu_indices(len(self.networks), 1)]
        known = upper[~np.isnan(upper)]
        return float(known.mean()) if known.size else math.nan


def spearman_matrix(distribution: Distribution, side: Side = "lower") -> Correlations:
    """Spearman's rank correlation of the radii's sides for each pair of networks."""
    names = distribution.networks
    if len(names) < 2:
        raise DataError("a correlation needs at least two networks")
    values = _aligned(distribution, side)
    size = len(names)
    coefficients, p_values = np.eye(size), np.full((size, size), np.nan)
    inputs = np.diag((~np.isnan(values)).sum(axis=1))
    for one in range(size):
        for two in range(one + 1, size):
            both = ~np.isnan(values[one]) & ~np.isnan(values[two])
            rho, p_value = _spearman(values[one][both], values[two][both])
            inputs[one, two] = inputs[two, one] = int(both.sum())
            coefficients[one, two] = coefficients[two, one] = rho
            p_values[one, two] = p_values[two, one] = p_value
    adjusted = np.full((size, size), np.nan)
    above = np.triu_indices(size, 1)
    adjusted[above] = holm(p_values[above])
    adjusted.T[above] = adjusted[above]
    left_out = tuple(part.unsolved for part in distribution.by_network().values())
    return Correlations(names, coefficients, p_values, adjusted, inputs, left_out)


def _aligned(distribution: Distribution, side: Side) -> Float64:
    """Networks as rows, inputs (with target and split) as columns; NaN where one is absent."""
    places = joint_codes(distribution.column(name) for name in ("input", "target", "split"))
    rows = {name: place for place, name in enumerate(distribution.networks)}
    row = np.array([rows[str(name)] for name in distribution.network])
    aligned = np.full((len(rows), int(places.max()) + 1), np.nan)
    has_value = distribution.holds & ~distribution.is_unsolved
    aligned[row[has_value], places[has_value]] = side_of(distribution, side)[has_value]
    return aligned


def _spearman(x: Float64, y: Float64) -> tuple[float, float]:
    """The correlation of the ranks, and its p-value by permutation, of many inputs by Student's t;
    NaN where undefined.
    """
    from scipy.stats import rankdata, t

    if len(x) < 3:
        return math.nan, math.nan
    ranks_x, ranks_y = rankdata(x) - (len(x) + 1) / 2, rankdata(y) - (len(y) + 1) / 2
    norm = math.sqrt(float(ranks_x @ ranks_x) * float(ranks_y @ ranks_y))
    if norm == 0:
        return math.nan, math.nan
    rho = max(-1.0, min(1.0, float(ranks_x @ ranks_y) / norm))
    if len(x) < RANDOM_ORDER_INPUTS:
        found = np.abs(ranks_y[_orders(len(x))] @ ranks_x)
        reached = np.count_nonzero(found >= (abs(rho) - 1e-9) * norm)
        return rho, reached / len(found)
    if abs(rho) == 1:
        return rho, 0.0
    freedom = len(x) - 2
    statistic = rho * math.sqrt(freedom / (1 - rho * rho))
    return rho, float(2 * t.sf(abs(statistic), freedom))


@lru_cache(maxsize=4)
def _orders(size: int) -> Array:
    """Orders of so many inputs, the given one first: all of them, or random ones."""
    if size <= EVERY_ORDER_INPUTS:
        return np.array(list(orders(range(size))))
    rng = np.random.default_rng(size)
    shuffled = rng.permuted(np.tile(np.arange(size), (RANDOM_ORDERS, 1)), axis=1)
    return np.concatenate([np.arange(size)[None], shuffled])
