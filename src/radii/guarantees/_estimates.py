"""Estimates of R and D: what a sample of inputs says of a population, with confidence.

A value may be known only as a bracket: g is 1 where robustness is proven and 0 where a witness
refutes it, and open in between. Low ends are then of the least values, high ends of the largest, so
a statement holds whatever the values within the brackets are; how much of its width comes from
sampling and how much from brackets is told apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.guarantees import _limits as limits
from radii.guarantees._populations import Population, Range, Sample, checked_confidence


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

    def __str__(self) -> str:
        seen = f"{self.least:.4f}"
        if self.bracket_width > 0:
            seen = f"between {self.least:.4f} and {self.most:.4f}"
        return (
            f"[{self.low:.4f}, {self.high:.4f}] with {100 * self.confidence:g} % confidence for "
            f"{self.population}; of {self.samples} inputs the mean is {seen}. Width "
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
        # What was seen is certain: the others cannot take the mean further than this.
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
    """Both sides as parts of the range, one pair an input."""
    least = span.scaled(lower)
    most = least if upper is None else span.scaled(upper)
    if least.ndim != 1 or least.shape != most.shape:
        raise DataError(
            f"lower and upper values need one number an input, not arrays of shapes "
            f"{least.shape} and {most.shape}"
        )
    if (most < least).any():
        place = int(np.argmax(most < least))
        raise DataError(f"input {place} of the sample has a lower value above its upper one")
    return least, most


def default_method(below: Sample, above: Sample) -> str:
    """By what kind of values they are, which is known before they are seen."""
    return "exact" if below.is_binary and above.is_binary else "tightest"


def _certain(sample: Sample) -> float:
    """The population's mean if all that were not seen had value 0."""
    return 0.0 if sample.population is None else sample.mean * len(sample) / sample.population
