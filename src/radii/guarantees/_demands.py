"""What is asked of an estimate, and the count kept while its values come in."""

from __future__ import annotations

from dataclasses import dataclass

from radii.errors import DataError, ExperimentError
from radii.guarantees import _limits as limits
from radii.guarantees._estimates import Estimate, estimate_mean
from radii.guarantees._plans import SamplePlan, plan_samples
from radii.guarantees._populations import Population, Range, checked_confidence
from radii.guarantees._sequences import SequentialEstimate, StoppingRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """How sure and how precise; by default a number of inputs that is planned beforehand.

    `samples` replaces the plan, or is the most a sequential estimate looks at. `threshold` asks
    whether the mean is at least that. Without `method`, shares are planned by Hoeffding's bound,
    as in the literature, and reported with exact limits, which are never wider; other values are
    planned and reported with the tightest of several limits that share the miss.
    """

    error: float | None = None
    confidence: float = 0.95
    method: str = ""
    samples: int | None = None
    is_sequential: bool = False
    threshold: float | None = None

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)
        if self.method:
            limits.method(self.method)
        if self.samples is not None and self.samples < 1:
            raise ExperimentError(f"samples {self.samples} must be at least 1")
        if self.is_sequential:
            if self.method:
                raise ExperimentError(
                    f"method '{self.method}' is for a number of inputs that is fixed beforehand; "
                    "a sequential estimate has its own"
                )
            StoppingRule(error=self.error, threshold=self.threshold)
        elif self.error is None and self.samples is None:
            raise ExperimentError("how many inputs? give an error, or a number of samples")

    def plan(self, population: Population, values: Range, *, is_share: bool) -> SamplePlan:
        """The number of inputs that a fixed-size estimate needs for its error."""
        if self.error is None:
            raise ExperimentError("a plan needs an error")
        way = self.method or ("hoeffding" if is_share else "tightest")
        return plan_samples(
            self.error, self.confidence, method=way, population=population, values=values
        )


class Tally:
    """Values by their place in the sample, in whatever order they are found.

    An estimate takes them in the order of the sample, so that quick inputs are no likelier to be
    counted than slow ones.
    """

    def __init__(
        self,
        demand: Demand,
        population: Population,
        available: int | None,
        *,
        values: Range | None = None,
        is_share: bool = True,
    ) -> None:
        self.demand = demand
        self.population = population
        self._span = values or Range()
        self._method = demand.method or ("exact" if is_share else "tightest")
        self._sequential: SequentialEstimate | None = None
        if demand.is_sequential:
            goal = StoppingRule(error=demand.error, threshold=demand.threshold)
            self._sequential = SequentialEstimate(
                goal,
                population,
                confidence=demand.confidence,
                values=self._span,
                is_share=is_share,
            )
        self.needed = self._needed(available, is_share)
        self._found: dict[int, tuple[float, float]] = {}
        self._taken = 0

    def _needed(self, available: int | None, is_share: bool) -> int:
        """How many inputs to draw: all of them are looked at unless it stops early."""
        told, most = self.demand, self.demand.samples
        if most is not None and available is not None and most > available:
            raise DataError(f"{most} samples are asked for, but there are {available} inputs")
        if self._sequential is not None:
            known = [n for n in (self._sequential.needed, most, available) if n is not None]
            if not known:
                raise ExperimentError("a decision may take for ever: give a number of samples, too")
            return min(known)
        if most is not None:
            return most
        plan = told.plan(self.population, self._span, is_share=is_share)
        if available is not None:
            plan.check_available(available, self.population.name)
        return plan.samples

    def put(self, place: int, lower: float, upper: float) -> bool:
        """One input's value, or its bracket; True if no further input is needed."""
        self._found[place] = (lower, upper)
        while not self.is_enough and self._taken in self._found:
            if self._sequential is not None:
                least, most = self._found[self._taken]
                self._sequential.add([least], [most])
            self._taken += 1
        return self.is_enough

    @property
    def counted(self) -> int:
        """How many inputs of the sample the estimate rests on."""
        return self._taken

    @property
    def is_enough(self) -> bool:
        if self._sequential is not None and self._sequential.reason_to_stop is not None:
            return True
        return self._taken >= self.needed

    @property
    def reason(self) -> str:
        """Why it ended."""
        if self._sequential is None:
            return f"all {self._taken} inputs of the sample were looked at"
        told = self._sequential.reason_to_stop
        return told or f"after {self._taken} inputs, no more may be looked at"

    def estimate(self) -> Estimate:
        """Of the inputs counted so far; a fixed-size one only when all are there."""
        if self._sequential is not None:
            return self._sequential.estimate
        if self._taken < self.needed:
            raise DataError(f"{self._taken} of {self.needed} inputs are known: run again")
        pairs = [self._found[place] for place in range(self._taken)]
        return estimate_mean(
            [least for least, _ in pairs],
            [most for _, most in pairs],
            population=self.population,
            confidence=self.demand.confidence,
            method=self._method,
            values=self._span,
        )
