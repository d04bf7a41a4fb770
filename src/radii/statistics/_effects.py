"""How large a difference between two distributions is: Cliff's delta, and the difference of means.

The confidence of Cliff's delta rests on no assumption about the radii. With theta = (delta + 1) / 2
its estimate is a U-statistic, the mean over all ways of pairing the inputs up of means of k
independent values between 0 and 1: k is the size of the smaller sample, or half of that of matched
inputs. So by Hoeffding (1963, section 5) its expectation under any convex function is at most that
of B, the share of successes of k trials with chance theta. With convex functions max(x - a, 0)

    P(estimate >= t) <= min over a < t of E max(B - a, 0) / (t - a),

which is at most `miss` where t is above the mean of the largest `miss` of the values of B. Every
theta is refused for which the estimate is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.statistics._columns import Float64
from radii.statistics._pairs import Pair

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


LIMIT_HALVINGS = 40
"""Of the interval in which a limit lies: far beyond what is printed."""
ROUNDING = 1e-9
"""Of a mean that is computed: one that is 1 must not be taken for less than 1."""


@dataclass(frozen=True, slots=True)
class CliffsDelta:
    """The chance that an input of the first has a larger radius, minus that of a smaller one.

    Brackets leave it between `least` and `most`; `low` and `high` add the sampling error of both.
    """

    least: float
    most: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        return (
            f"Cliff's delta in [{self.least:.2f}, {self.most:.2f}] for these inputs, in "
            f"[{self.low:.2f}, {self.high:.2f}] with {100 * self.level:g} % confidence"
        )


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The first mean radius minus the second, of these inputs.

    `proven` compares the proven sides of brackets with an answer, and has a standard `error`; both
    are NaN if there are none. Brackets leave the difference of the radii themselves between `least`
    and `most`, which are infinite without witnesses. No interval with confidence goes with it: one
    input in a thousand may have a radius that decides the mean of all, and no sample excludes that.
    """

    proven: float
    error: float
    least: float
    most: float


def cliffs_delta(pair: Pair, level: float = 0.95) -> CliffsDelta:
    """Bounds from brackets, and limits for all inputs, which hold whatever their radii are.

    Matched inputs are compared across the whole sample; limits are from pairs of other inputs.
    """
    a, b = pair.first, pair.second
    trials = len(a) // 2 if pair.is_matched else min(len(a), len(b))
    miss = (1 - level) / 2
    least, from_others = _delta(pair, _smallest(a), b.upper)
    low = 2 * chance_limit((from_others + 1) / 2, trials, miss) - 1
    most, from_others = _delta(pair, a.upper, _smallest(b))
    high = 1 - 2 * chance_limit((1 - from_others) / 2, trials, miss)
    return CliffsDelta(
        least=least, most=most, low=min(low, least), high=max(high, most), level=level
    )


def chance_limit(estimate: float, trials: int, miss: float) -> float:
    """The largest chance theta that is refused: see the head of this file."""
    from scipy.special import gammaln

    low, high = 0.0, estimate
    if trials == 0 or estimate == 0:
        return 0.0
    counts = np.arange(trials, -1.0, -1.0)
    log_ways = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    for _ in range(LIMIT_HALVINGS):
        theta = (low + high) / 2
        log_chances = counts * math.log(theta) + (trials - counts) * math.log1p(-theta)
        if _mean_of_largest(counts, np.exp(log_ways + log_chances), miss) < estimate - ROUNDING:
            low = theta
        else:
            high = theta
    return low


def _mean_of_largest(counts: Float64, chances: Float64, miss: float) -> float:
    """The mean share of the largest counts that have a chance of `miss` together."""
    before = np.cumsum(chances) - chances
    weights = np.clip(miss - before, 0.0, chances)
    return float(weights @ counts / counts[0] / weights.sum())


def mean_difference(pair: Pair, values: Pair | None) -> MeanDifference:
    """`values` is the part of the pair that has values: see `Pair.solved`."""
    a, b = pair.first, pair.second
    least, most = a.lower.mean() - b.upper.mean(), a.upper.mean() - b.lower.mean()
    proven, error = (math.nan, math.nan) if values is None else _proven_difference(values)
    return MeanDifference(proven, error, float(least), float(most))


def _proven_difference(pair: Pair) -> tuple[float, float]:
    """Of the means of the proven sides, and its standard error."""
    a, b = pair.first, pair.second
    difference = float(a.lower.mean() - b.lower.mean())
    if pair.is_matched:
        return difference, _error(a.lower - b.lower)
    return difference, math.hypot(_error(a.lower), _error(b.lower))


def _smallest(distribution: Distribution) -> Float64:
    """The smallest distance each bracket allows: above its lower end, if it is not exact."""
    is_open = distribution.lower < distribution.upper
    return np.where(is_open, np.nextafter(distribution.lower, np.inf), distribution.lower)


def _delta(pair: Pair, first: Float64, second: Float64) -> tuple[float, float]:
    """Delta of two sets of values, and of matched ones without comparing an input with itself."""
    delta = float(_placements(first, second).mean())
    size = len(first)
    if not pair.is_matched or size < 2:
        return delta, delta
    of_itself = float(np.sign(np.subtract(*_ranks(first, second))).sum())
    return delta, (delta * size**2 - of_itself) / (size * (size - 1))


def _ranks(first: Float64, second: Float64) -> tuple[Float64, Float64]:
    """Finite numbers in the same order, so that infinite ones can be subtracted, too."""
    _, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    ranks = codes.astype(np.float64)
    return ranks[: len(first)], ranks[len(first) :]


def _placements(values: Float64, others: Float64) -> Float64:
    """For each value the share of others below minus the share above."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left")
    above = len(others) - np.searchsorted(ordered, values, side="right")
    return (below - above) / len(others)


def _error(values: Float64) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")
