"""How many inputs an estimate needs, before any is looked at; and what a stated error means."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics import _limits as limits
from radii.statistics._columns import Float64
from radii.statistics._limits import Method
from radii.statistics._populations import (
    Population,
    Range,
    checked_confidence,
    checked_error,
)

MOST_SAMPLES = 10**15
"""Nobody plans for more; this keeps the search for a number finite."""
MOST_EXACT = 200_000
MOST_EXACT_FINITE = 2_000
"""Above these Hoeffding's plan stands for the exact one, whose worst case takes long to compute."""


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """`samples` inputs suffice for an estimate within `error` of the truth, with `confidence`."""

    samples: int
    error: float
    confidence: float
    method: str
    population: Population
    values: Range

    def __str__(self) -> str:
        return (
            f"{self.samples} inputs: the estimate is within ±{self.error:g} of the mean over "
            f"{self.population} with {100 * self.confidence:g} % confidence ({self.method}, "
            f"values in [{self.values.low:g}, {self.values.high:g}]), for "
            f"{self.population.sampling}"
        )

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "samples": self.samples,
            "error": self.error,
            "confidence": self.confidence,
            "method": self.method,
            "range": [self.values.low, self.values.high],
            "population": self.population.size,
            "statement": f"{self.population}: {self.population.sampling}",
        }

    def check_available(self, available: int, name: str) -> None:
        """A DataError, with what the set allows, if the plan asks for more inputs than it has."""
        if self.samples <= available:
            return
        how = (self.method, self.population, self.values)
        error = reachable_error(available, self.confidence, *how)
        sure = reachable_confidence(available, self.error, *how)
        worth = f"or ±{self.error:g} with {100 * sure:.3g} %" if sure > 0 else "nothing narrower"
        raise DataError(
            f"±{self.error:g} with {100 * self.confidence:g} % confidence needs {self.samples} "
            f"inputs but {name} has {available}: all of them allow "
            f"±{error:.3g} with {100 * self.confidence:g} %, {worth}"
        )


def plan_samples(
    error: float,
    confidence: float,
    *,
    method: str = "hoeffding",
    population: Population | None = None,
    values: Range | None = None,
) -> SamplePlan:
    """The fewest inputs for which the method promises the error, both sides together.

    `exact` takes the worst case over all that could be seen.
    """
    whom = population or Population("the data")
    span = values or Range()
    wanted, miss = checked_error(error) / span.width, 1 - checked_confidence(confidence)
    if wanted >= 1:
        raise DataError(
            f"error {error:g} is no narrower than the range [{span.low:g}, {span.high:g}]"
        )
    way = limits.method(method)
    samples = _fewest(way, wanted, miss / 2, whom.size)
    if way.name == "exact" and samples <= (MOST_EXACT if whom.size is None else MOST_EXACT_FINITE):
        samples = _fewest_exact(wanted, miss / 2, samples, whom.size)
    return SamplePlan(samples, error, confidence, way.name, whom, span)


def reachable_error(
    samples: int, confidence: float, method: str, population: Population, span: Range
) -> float:
    """The error that this number of inputs allows."""
    miss = 1 - checked_confidence(confidence)
    way, of = limits.method(method), population.size
    if way.name == "exact" and of is None and samples <= MOST_EXACT:
        return _worst_exact(samples, miss / 2) * span.width
    return min(1.0, way.promise(samples, of, miss / 2)) * span.width


def reachable_confidence(
    samples: int, error: float, method: str, population: Population, span: Range
) -> float:
    """The confidence with which this number of inputs allows the error; 0 if with none."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if reachable_error(samples, middle, method, population, span) <= error:
            low = middle
        else:
            high = middle
    return low


def _fewest(way: Method, wanted: float, miss: float, population: int | None) -> int:
    most = MOST_SAMPLES if population is None else population
    if population is None and way.promise(most, None, miss) > wanted:
        raise DataError(f"error {wanted:g} of the range needs more than {MOST_SAMPLES:g} inputs")
    # All of a finite population leave no error at all.
    return 1 + bisect_left(
        range(1, most), True, key=lambda count: way.promise(count, population, miss) <= wanted
    )


def _fewest_exact(wanted: float, miss: float, enough: int, population: int | None) -> int:
    """By halving. The worst case is nearly monotone in the number; what is returned suffices."""
    return 1 + bisect_left(
        range(1, enough),
        True,
        key=lambda count: _is_enough_exact(count, wanted, miss, population),
    )


def _is_enough_exact(samples: int, wanted: float, miss: float, population: int | None) -> bool:
    """Whatever share is seen, all shares that are lower by more than `wanted` are refused."""
    successes = np.arange(1, samples + 1)
    refused = successes / samples - wanted
    successes, refused = successes[refused > 0], refused[refused > 0]
    if population is None:
        from scipy.special import betainc

        tails = betainc(successes, samples - successes + 1, refused)
    else:
        from scipy.stats import hypergeom

        whole = np.ceil(refused * population) - 1
        tails = hypergeom.sf(successes - 1, population, whole, samples)
    return bool((tails <= miss).all())


def _worst_exact(samples: int, miss: float) -> float:
    """How far Clopper and Pearson's limits are from the sample's share, at most."""
    from scipy.special import betaincinv

    successes = np.arange(1, samples + 1)
    low = betaincinv(successes, samples - successes + 1, miss)
    return float((successes / samples - low).max())


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedEstimates:
    """Estimates from independent samples of the planned size, at least and at most.

    `truth` is the mean of the whole set, as far as brackets leave it known.
    """

    error: float
    samples: int
    least: Float64
    most: Float64
    truth: tuple[float, float]

    @property
    def missed(self) -> float:
        """The share of estimates with a side further from the set's than the error."""
        off = (np.abs(self.least - self.truth[0]) > self.error) | (
            np.abs(self.most - self.truth[1]) > self.error
        )
        return float(off.mean())


def repeat_estimates(
    lower: npt.ArrayLike,
    upper: npt.ArrayLike | None = None,
    *,
    errors: Sequence[float],
    confidence: float = 0.95,
    repeats: int = 50,
    method: str = "hoeffding",
    seed: int = 0,
) -> list[RepeatedEstimates]:
    """For each error, `repeats` samples without replacement from the values of a set in [0, 1].

    Plans are those for independent inputs, as in the literature; one that is larger than the set
    is a DataError.
    """
    least = np.asarray(lower, np.float64)
    most = least if upper is None else np.asarray(upper, np.float64)
    if least.ndim != 1 or least.shape != most.shape or not len(least):
        raise DataError("repeated estimates need one value, or one bracket, for each input")
    if repeats < 1:
        raise DataError(f"repeats {repeats} must be at least 1")
    rng = np.random.default_rng(seed)
    estimates = []
    for error in errors:
        plan = plan_samples(error, confidence, method=method, population=Population("the set"))
        plan.check_available(len(least), "the set")
        drawn = [rng.permutation(len(least))[: plan.samples] for _ in range(repeats)]
        estimates.append(
            RepeatedEstimates(
                error=error,
                samples=plan.samples,
                least=np.array([least[rows].mean() for rows in drawn]),
                most=np.array([most[rows].mean() for rows in drawn]),
                truth=(float(least.mean()), float(most.mean())),
            )
        )
    return estimates
