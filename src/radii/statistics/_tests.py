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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._columns import Array, Float64, joint_codes
from radii.statistics._npmle import innermost_intervals, turnbull_of

if TYPE_CHECKING:
    import pandas as pd

    from radii.statistics._distribution import Distribution


Side = Literal["lower", "upper"]

EXACT_TEST_INPUTS = 200
"""Up to this many inputs of each group the exact distribution of the KS statistic is used."""
MOST_PERMUTED = 20_000_000
"""Numbers permuted at most; beyond, sums of scores are taken as normally distributed."""
BATCH_NUMBERS = 2_000_000
"""Numbers permuted at once: 16 MB an array."""
EVERY_ORDER_INPUTS = 8
"""Up to this many inputs all orders are counted for the p-value of a correlation."""
RANDOM_ORDER_INPUTS = 30
"""Below this many it is by random orders: Student's t rejects too often there, up to 9 % at 5 %."""
RANDOM_ORDERS = 9999


def side_values(distribution: Distribution, side: str) -> Float64:
    """One number for each bracket that has an answer; others have none, and are left out."""
    return side_of(distribution, side)[~distribution.is_unsolved]


def side_of(distribution: Distribution, side: str) -> Float64:
    """A side of every bracket."""
    if side not in ("lower", "upper"):
        raise DataError(f"a bracket's side is lower or upper, not '{side}'")
    return distribution.lower if side == "lower" else distribution.upper


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
    from scipy import stats

    method = "exact" if max(len(x), len(y)) <= EXACT_TEST_INPUTS else "asymp"
    with warnings.catch_warnings():
        # Where the exact count fails numerically, scipy falls back on the limit, and warns.
        warnings.simplefilter("ignore", RuntimeWarning)
        tested = stats.ks_2samp(x, y, method=method)
    return TestResult("Kolmogorov-Smirnov", float(tested.statistic), float(tested.pvalue))


def welch_test(x: Float64, y: Float64) -> TestResult:
    """Welch's t: do the means differ? Not made with infinite values or without any variation."""
    from scipy import stats

    name = "Welch's t"
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return TestResult(name, math.nan, math.nan, "an input has no witness, so no finite mean")
    if min(len(x), len(y)) < 2 or (np.ptp(x) == 0 and np.ptp(y) == 0):
        return TestResult(name, math.nan, math.nan, "the values do not vary")
    with warnings.catch_warnings():  # where one side is constant: its variance is 0, rightly
        warnings.simplefilter("ignore", RuntimeWarning)
        tested = stats.ttest_ind(x, y, equal_var=False)
    return TestResult(name, float(tested.statistic), float(tested.pvalue))


def mann_whitney_test(x: Float64, y: Float64) -> TestResult:
    """Mann and Whitney: is one side's value larger more often than smaller?"""
    from scipy import stats

    name = "Mann-Whitney"
    if np.ptp(np.nan_to_num(np.concatenate([x, y]), posinf=1e300)) == 0:
        return TestResult(name, math.nan, math.nan, "the values do not vary")
    # Only the order counts; ranks also take care of infinite values.
    tested = stats.mannwhitneyu(*_pooled_ranks(x, y), method="asymptotic")
    return TestResult(name, float(tested.statistic), float(tested.pvalue))


def _pooled_ranks(x: Float64, y: Float64) -> tuple[Float64, Float64]:
    from scipy import stats

    ranks = stats.rankdata(np.concatenate([x, y]))
    return ranks[: len(x)], ranks[len(x) :]


def permuted_p_value(
    statistic: Callable[..., Float64],
    samples: Sequence[Array],
    *,
    permutations: int,
    seed: int,
    is_matched: bool = False,
) -> float:
    """How often permuted samples have a statistic as large as these: (1 + reached) / (1 + all).

    Independent samples exchange their members, two matched ones the values of an input. All
    permutations are counted where they are no more than `permutations`.
    """
    from scipy import stats

    size = sum(map(len, samples))
    if (len(samples[0]) if is_matched else size) < 2:
        return 1.0
    ends = np.cumsum([len(sample) for sample in samples])[:-1]
    observed = float(statistic(*samples))

    def rounded(*permuted: Array, axis: int) -> Float64:
        """Sums in another order are off by rounding, and count as equal to what was observed."""
        parts = permuted if is_matched else np.split(permuted[0], ends, axis=axis)
        values = statistic(*parts)
        return np.where(np.isclose(values, observed, rtol=1e-9, atol=1e-12), observed, values)

    tested = stats.permutation_test(
        samples if is_matched else [np.concatenate(samples)],
        rounded,
        permutation_type="samples" if is_matched else "pairings",
        vectorized=True,
        n_resamples=permutations,
        batch=max(1, BATCH_NUMBERS // size),
        alternative="greater",
        rng=np.random.default_rng(seed),
    )
    return float(tested.pvalue)


def by_permutation(
    test: TestResult, x: Float64, y: Float64, *, permutations: int, seed: int
) -> TestResult:
    """Welch's or Mann and Whitney's test with a p-value by permutation: exact if all inputs are
    drawn alike.

    Student's t and the normal distribution are too kind to samples of different sizes: of 10 and
    100 inputs, nine tenths of them with radius 0, Welch's t rejects in 37 % of cases, not in 5 %.
    """
    if not test.is_made or permutations * (len(x) + len(y)) > MOST_PERMUTED:
        return test
    statistic, samples = _welch_size, (x, y)
    if test.test == "Mann-Whitney":
        statistic, samples = _location_size, _pooled_ranks(x, y)
    p_value = permuted_p_value(statistic, samples, permutations=permutations, seed=seed)
    return replace(test, p_value=p_value)


def _welch_size(x: Float64, y: Float64) -> Float64:
    """|t|, finite where permuted samples do not vary."""
    errors = sum(each.var(axis=-1) / max(each.shape[-1] - 1, 1) for each in (x, y))
    difference = np.abs(x.mean(axis=-1) - y.mean(axis=-1))
    smallest = 1e-15 * np.mean(np.concatenate([x, y], axis=-1) ** 2, axis=-1)
    return np.asarray(difference / np.sqrt(np.maximum(errors, smallest)))


def _location_size(x: Float64, y: Float64) -> Float64:
    return np.asarray(np.abs(x.mean(axis=-1) - y.mean(axis=-1)))


def censored_scores(lower: Float64, upper: Float64) -> Float64:
    """A score between -1 and 1 for each bracket: its expected rank under the pooled estimate.

    The generalised Wilcoxon score of interval-censored data (Fay and Shaw 2010): the chance to be
    above another input minus the chance to be below. Exact values get their centred mid-ranks.
    """
    pooled = turnbull_of(lower, upper)
    _, _, first, last = innermost_intervals(lower, upper)
    cumulated = np.concatenate([[0.0], np.cumsum(pooled.mass)])
    scores = cumulated[first] + cumulated[last + 1] - 1
    return np.asarray(scores - scores.mean())


def location_p_value(
    x: Float64, y: Float64, *, is_matched: bool, permutations: int, seed: int
) -> float:
    """Two-sided p-value of the difference of two groups' mean scores.

    Unmatched groups exchange their members; matched ones the two brackets of an input. Of very many
    inputs the difference is taken as normally distributed.
    """
    from scipy import stats

    size = len(x) + len(y)
    if permutations * size <= MOST_PERMUTED:
        return permuted_p_value(
            _location_size, (x, y), permutations=permutations, seed=seed, is_matched=is_matched
        )
    if is_matched:
        deviation, observed = float(np.sqrt(np.sum((x - y) ** 2))), abs(float(np.sum(x - y)))
    else:
        pooled = np.concatenate([x, y])
        spread = float(np.sum((pooled - pooled.mean()) ** 2))
        deviation = math.sqrt(spread * len(x) * len(y) / (size * max(size - 1, 1)))
        observed = abs(float(x.sum() - len(x) * pooled.mean()))
    return float(2 * stats.norm.sf(observed / deviation)) if deviation else 1.0


def curves_p_value(
    sides: tuple[Float64, ...], part: int, *, is_matched: bool, permutations: int, seed: int
) -> tuple[float, float]:
    """The largest distance between two groups' empirical curves on any side, and its p-value.

    The first `part` rows are of one group. Sees differences of shape that scores do not.
    """
    size = len(sides[0])
    curves = [_curve(values) for values in sides]

    def distance(*rows: Array) -> Float64:
        groups = np.zeros((*rows[0].shape[:-1], size), np.bool_)
        np.put_along_axis(groups, rows[0], True, axis=-1)
        return _sup(curves, groups, part)

    rows = np.arange(part), np.arange(part, size)
    p_value = permuted_p_value(
        distance,
        rows,
        permutations=min(permutations, max(199, MOST_PERMUTED // size)),
        seed=seed,
        is_matched=is_matched,
    )
    return float(distance(*rows)), p_value


def several_p_value(scores: Float64, groups: Array, *, permutations: int, seed: int) -> float:
    """Do several groups differ? Kruskal and Wallis' statistic of the scores, permuted."""
    samples = [scores[groups == group] for group in np.unique(groups)]
    if len(samples) < 2:
        return 1.0

    def statistic(*permuted: Float64) -> Float64:
        return np.asarray(sum(each.sum(axis=-1) ** 2 / each.shape[-1] for each in permuted))

    runs = min(permutations, max(199, MOST_PERMUTED // len(scores)))
    return permuted_p_value(statistic, samples, permutations=runs, seed=seed)


def _curve(values: Float64) -> tuple[Array, Array]:
    """The order of the values, and where runs of equal ones end."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True) & np.isfinite(ordered))
    return order, ends


def _sup(curves: list[tuple[Array, Array]], groups: Array, part: int) -> Float64:
    rest = groups.shape[-1] - part
    largest = np.zeros(groups.shape[:-1])
    for order, ends in curves:
        if ends.size:
            in_first = np.cumsum(groups[..., order], axis=-1)[..., ends]
            gaps = np.abs(in_first / part - ((ends + 1) - in_first) / rest)
            largest = np.maximum(largest, gaps.max(axis=-1))
    return largest


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
    from scipy import stats

    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan, math.nan
    tested = stats.spearmanr(x, y)
    if len(x) >= RANDOM_ORDER_INPUTS:
        return float(tested.statistic), float(tested.pvalue)
    ranks, centred = stats.rankdata(x), stats.rankdata(y) - (len(y) + 1) / 2
    count = math.factorial(len(x)) if len(x) <= EVERY_ORDER_INPUTS else RANDOM_ORDERS
    p_value = permuted_p_value(
        lambda order: np.abs(order @ centred),
        (ranks,),
        permutations=count,
        seed=len(x),
    )
    return float(tested.statistic), p_value
