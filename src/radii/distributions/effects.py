"""How large a difference is: Cliff's delta and the difference of means, as intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions.columns import Float64
from radii.distributions.pairs import Pair

if TYPE_CHECKING:
    from radii.distributions.distribution import Distribution

__all__ = ["CliffsDelta", "MeanDifference", "cliffs_delta", "mean_difference"]


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
    """The first mean radius minus the second.

    `proven` compares the proven sides of brackets with an answer, with a confidence interval; NaN
    if there are none. Brackets leave the difference of the radii themselves between `least` and
    `most`, which are infinite without witnesses.
    """

    proven: float
    low: float
    high: float
    least: float
    most: float
    level: float


def cliffs_delta(pair: Pair, level: float = 0.95) -> CliffsDelta:
    """Bounds from brackets; confidence from the placements of each input among the others.

    Matched inputs are compared across the whole sample, with the covariance of their pairs.
    """
    a, b = pair.first, pair.second
    least, least_error = _delta(pair, _smallest(a), b.upper)
    most, most_error = _delta(pair, a.upper, _smallest(b))
    z = _normal_quantile(level)
    return CliffsDelta(
        least=least,
        most=most,
        low=max(-1.0, least - z * least_error),
        high=min(1.0, most + z * most_error),
        level=level,
    )


def mean_difference(pair: Pair, values: Pair | None, level: float = 0.95) -> MeanDifference:
    """`values` is the part of the pair that has values: see `Pair.solved`."""
    a, b = pair.first, pair.second
    least, most = a.lower.mean() - b.upper.mean(), a.upper.mean() - b.lower.mean()
    proven, margin = (math.nan, math.nan) if values is None else _proven_difference(values, level)
    return MeanDifference(
        proven, proven - margin, proven + margin, float(least), float(most), level
    )


def _proven_difference(pair: Pair, level: float) -> tuple[float, float]:
    """Of the means of the proven sides, and the half-width of its confidence interval."""
    from scipy.stats import t

    a, b = pair.first, pair.second
    difference = float(a.lower.mean() - b.lower.mean())
    if pair.is_matched:
        error, freedom = _error(a.lower - b.lower), len(a) - 1.0
    else:
        one, two = _error(a.lower) ** 2, _error(b.lower) ** 2
        error = float(np.sqrt(one + two))
        parts = one**2 / max(len(a) - 1, 1) + two**2 / max(len(b) - 1, 1)
        freedom = (one + two) ** 2 / parts if parts > 0 else 1.0
    return difference, float(t.ppf((1 + level) / 2, max(freedom, 1.0))) * error


def _smallest(distribution: Distribution) -> Float64:
    """The smallest distance each bracket allows: above its lower end, if it is not exact."""
    is_open = distribution.lower < distribution.upper
    return np.where(is_open, np.nextafter(distribution.lower, np.inf), distribution.lower)


def _delta(pair: Pair, first: Float64, second: Float64) -> tuple[float, float]:
    """Delta of two sets of values, and its standard error."""
    place_first, place_second = _placements(first, second), -_placements(second, first)
    delta = float(place_first.mean())
    if pair.is_matched:
        return delta, _error(place_first + place_second)
    return delta, float(np.sqrt(_error(place_first) ** 2 + _error(place_second) ** 2))


def _placements(values: Float64, others: Float64) -> Float64:
    """For each value the share of others below minus the share above."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left")
    above = len(others) - np.searchsorted(ordered, values, side="right")
    return (below - above) / len(others)


def _error(values: Float64) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))
