"""Estimates of R and D: what a sample of inputs says of a population, with confidence.

A value may be known only as a bracket: g is 1 where robustness is proven and 0 where a witness
refutes it, and open in between. Low ends are then of the least values, high ends of the largest, so
a statement holds whatever the values within the brackets are; how much of its width comes from
sampling and how much from brackets is told apart.

`estimate_mean` takes any method and population. `share_estimate` and `mean_estimate` are its two
common cases for inputs drawn independently: the exact limits of Clopper and Pearson for a share,
and Chernoff's for a mean, which are never wider than Hoeffding's better known ones and much
narrower near 0 and 1. `robustness_curve` makes statements about every eps at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics import _limits as limits
from radii.statistics._classes import comparable_classes
from radii.statistics._confidence import robust_accuracy_band
from radii.statistics._distribution import Distribution
from radii.statistics._populations import Population, Range, Sample, checked_confidence

INDEPENDENT_INPUTS = Population("the data")

MOST_POINTS = 200
"""Of a curve for which nobody chose the eps; its band holds between them as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """With `confidence`, the population's mean is between `low` and `high`.

    `least` and `most` are the sample's means of the proven and of the not refuted values.
    """

    least: float
    most: float
    low: float
    high: float
    samples: int
    confidence: float
    method: str
    population: Population

    @property
    def value(self) -> float:
        """The sample's own mean; where values are brackets, as far as it is proven."""
        return self.least

    @property
    def bracket_width(self) -> float:
        """What deciding every value would remove."""
        return self.most - self.least

    @property
    def sampling_width(self) -> float:
        """What looking at more inputs would remove."""
        return (self.high - self.low) - self.bracket_width

    @property
    def error(self) -> float:
        """How far sampling moves either end, at most."""
        return max(self.least - self.low, self.high - self.most)

    def is_at_least(self, threshold: float) -> bool | None:
        """Is the mean at least this? None: with this confidence nothing can be said."""
        if self.low >= threshold:
            return True
        return False if self.high < threshold else None

    def row(self) -> dict[str, Any]:
        """For JSON: names are those of R, a share of inputs."""
        return {
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "samples": self.samples,
            "proven": self.least,
            "not_refuted": self.most,
            "sampling_width": self.sampling_width,
            "bracket_width": self.bracket_width,
            "method": self.method,
            "population": self.population.size,
            "statement": f"{self.population}: {self.population.sampling}",
        }

    def __str__(self) -> str:
        mean = f"{self.least:.4f}"
        if self.bracket_width > 0:
            mean = f"between {self.least:.4f} and {self.most:.4f}"
        return (
            f"[{self.low:.4f}, {self.high:.4f}] with {100 * self.confidence:g} % confidence for "
            f"{self.population}; of {self.samples} inputs the mean is {mean}. Width "
            f"{self.high - self.low:.4f}: sampling {self.sampling_width:.4f}, open brackets "
            f"{self.bracket_width:.4f} ({self.method}; {self.population.sampling})."
        )


def estimate_mean(
    lower: npt.ArrayLike,
    upper: npt.ArrayLike | None = None,
    *,
    population: Population,
    confidence: float = 0.95,
    method: str = "",
    values: Range | None = None,
) -> Estimate:
    """From the values of sampled inputs, or from brackets of them.

    The number of inputs must have been chosen before looking at values. `method` is by default
    `exact` for shares and `tightest` otherwise. Values outside their range raise.
    """
    span = values or Range()
    least, most = scaled_sides(lower, upper, span)
    miss = (1 - checked_confidence(confidence)) / 2
    below = Sample(least, population.size)
    above = Sample(most, population.size)
    name = method or default_method(below, above)
    way = limits.method(name)
    low, high = below.mean, above.mean
    if not below.is_whole:
        low, high = way.below(below, miss), 1 - way.below(above.mirrored(), miss)
        # The sampled values are certain: the others cannot move the mean further than this.
        low, high = max(low, _certain(below)), min(high, 1 - _certain(above.mirrored()))
    return Estimate(
        least=span.unscaled(below.mean),
        most=span.unscaled(above.mean),
        low=span.unscaled(min(low, below.mean)),
        high=span.unscaled(max(high, above.mean)),
        samples=len(below),
        confidence=confidence,
        method=name,
        population=population,
    )


def scaled_sides(
    lower: npt.ArrayLike, upper: npt.ArrayLike | None, span: Range
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Both sides as parts of the range, one pair for each input."""
    least = span.scaled(lower)
    most = least if upper is None else span.scaled(upper)
    if least.ndim != 1 or least.shape != most.shape:
        raise DataError(
            f"lower and upper values need one number for each input, not arrays of shapes "
            f"{least.shape} and {most.shape}"
        )
    if (most < least).any():
        place = int(np.argmax(most < least))
        raise DataError(f"input {place} of the sample has a lower value above its upper one")
    return least, most


def default_method(below: Sample, above: Sample) -> str:
    """By the kind of the values, which is known before they are."""
    return "exact" if below.is_binary and above.is_binary else "tightest"


def _certain(sample: Sample) -> float:
    """The population's mean if all inputs that were not drawn had the value 0."""
    return 0.0 if sample.population is None else sample.mean * len(sample) / sample.population


def share_estimate(
    successes: int, trials: int, level: float = 0.95, *, most: int | None = None
) -> Estimate:
    """A share of independent inputs: `successes` at least and, where some are open, `most`."""
    places = np.arange(trials)
    return estimate_mean(
        (places < successes).astype(np.float64),
        (places < (successes if most is None else most)).astype(np.float64),
        population=INDEPENDENT_INPUTS,
        confidence=level,
        method="exact",
    )


def mean_estimate(values: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """The mean of one number per input, each between 0 and 1; it may be an estimate itself.

    That an input's number is estimated without bias from samples of its own only adds to the
    spread between inputs that is observed, so it needs no allowance of its own.
    """
    numbers = np.asarray(values, np.float64).ravel()
    if not numbers.size or not np.all((numbers >= 0) & (numbers <= 1)):
        raise DataError("a mean is of numbers between 0 and 1, at least one")
    return estimate_mean(
        numbers, population=INDEPENDENT_INPUTS, confidence=level, method="chernoff"
    )


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """R within eps: of the sample between `proven` and `not_refuted`, of all inputs between `low`
    and `high`. All points of a curve, and of all classes' curves, hold together.
    """

    eps: float
    label: int | None
    proven: float
    not_refuted: float
    low: float
    high: float


def robustness_curve(
    distribution: Distribution,
    confidence: float = 0.95,
    *,
    eps: npt.ArrayLike | None = None,
    by_class: bool = False,
) -> list[CurvePoint]:
    """The curve of one network, for inputs drawn independently (i.i.d. statement).

    By the inequality of Dvoretzky, Kiefer and Wolfowitz: the band holds at every eps at once,
    whichever are asked for. Classes share the miss. Without `eps`, it is evaluated where the
    sample's curve moves.
    """
    checked_confidence(confidence)
    if len(distribution.by_network()) > 1:
        raise DataError("a curve is of one network: take one at a time")
    at = _steps(distribution) if eps is None else np.atleast_1d(np.asarray(eps, np.float64))
    parts: list[tuple[int | None, Distribution]] = [(None, distribution)]
    if by_class:
        parts = [*comparable_classes(distribution).items()]
    each = 1 - (1 - confidence) / len(parts)
    points = []
    for label, part in parts:
        columns = (*part.shares(at), *robust_accuracy_band(part, each).at(at))
        rows = zip(at.tolist(), *(column.tolist() for column in columns), strict=True)
        points += [CurvePoint(value, label, *sides) for value, *sides in rows]
    return points


def _steps(distribution: Distribution) -> npt.NDArray[np.float64]:
    """Where the sample's curve moves, thinned out evenly where these are many."""
    ends = np.concatenate([distribution.lower, distribution.upper[np.isfinite(distribution.upper)]])
    steps: npt.NDArray[np.float64] = np.unique(np.append(ends, 0.0))
    if len(steps) > MOST_POINTS:
        steps = steps[np.linspace(0, len(steps) - 1, MOST_POINTS).round().astype(int)]
    return steps
