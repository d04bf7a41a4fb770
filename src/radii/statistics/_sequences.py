"""Estimates that may stop at any time: confidence sequences by betting, and demands on them.

`BettingLimit` is a lower limit on a mean that holds at all times at once. For each candidate mean m
a gambler starts with 1 and bets before each input that its value x in [0, 1] is above m: capital is
multiplied by 1 + c (x / m - 1), where c is the part of the capital at stake. If the mean is at most
m no bet is favourable, so that capital ever exceeds 1 / miss with probability at most `miss`
(Ville's inequality), and m is refused once it does. Several c bet side by side, each with an equal
share of the starting capital, since the best one depends on what is not known. Every factor falls
with m: refusing m refuses all smaller means, in one and the same event, so a grid of candidates
loses precision but no validity.

Without replacement, what is left to draw has another mean than the whole: the bet is then against
(N m - what was seen) / (how many are left).

`SequentialEstimate` stops as soon as it is good enough, and is valid whenever it stops. Four fifths
of the miss go to two betting limits. The last fifth pays for one look with a fixed-size interval at
a number of inputs that is known beforehand (`latest`), where the wanted error is promised in any
case. So clear cases end early and no case goes on for long: for shares, the latest end is before
the plan of Hoeffding's bound. `Demand` says what is asked of an estimate, of either kind, and
`Tally` keeps the count while values come in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.errors import DataError, ExperimentError
from radii.statistics import _limits as limits
from radii.statistics._columns import Float64
from radii.statistics._estimates import Estimate, estimate_mean, scaled_sides
from radii.statistics._plans import SamplePlan, plan_samples
from radii.statistics._populations import (
    Population,
    Range,
    checked_confidence,
    checked_error,
)

STAKES: Float64 = np.geomspace(0.004, 0.97, 14)
"""Parts of the capital at stake: neighbours differ by a factor of 1.5, close enough to the best."""
LIMIT_CANDIDATES = 1000
"""Candidates for the limit in [0, 1]: it is known to 0.001."""
RUINED_CAPITAL = 1e-200
"""Who has no more than this is out of the game, which is valid and keeps the arithmetic fast."""
MEAN_ROUNDING = 1e-9
"""A mean of what is left to draw that is 0 may be computed as this much below it."""
FINAL_MISS_SHARE = 0.2
"""The part of the miss that the look at the planned number of inputs gets."""


class BettingLimit:
    """Fed with values in the order in which they were drawn; `limit` may be asked at any time.

    With probability at least 1 - `miss`, no `limit` it ever shows is above the mean.
    """

    def __init__(
        self, miss: float, population: int | None = None, candidates: Float64 | None = None
    ) -> None:
        self._enough = len(STAKES) / miss
        self._population = population
        grid = (
            np.arange(1, LIMIT_CANDIDATES) / LIMIT_CANDIDATES if candidates is None else candidates
        )
        self._means: Float64 = np.sort(grid)
        self._capital = np.ones((len(STAKES), len(grid)))
        self._seen, self._total = 0, 0.0
        self._refused = 0

    @property
    def limit(self) -> float:
        """The largest mean that is refused, 0 if none is."""
        return float(self._means[self._refused - 1]) if self._refused else 0.0

    def add(self, values: npt.ArrayLike) -> None:
        """Look at more values; the gamblers' capital is inspected after them."""
        with np.errstate(over="ignore", under="ignore"):  # infinitely rich, or ruined: both valid
            for value in np.atleast_1d(np.asarray(values, np.float64)).tolist():
                self._bet(value)
        self._capital[self._capital < RUINED_CAPITAL] = 0.0
        won = np.flatnonzero(self._capital[:, self._refused :].sum(axis=0) >= self._enough)
        if won.size:
            self._refused += int(won[-1]) + 1

    def _bet(self, value: float) -> None:
        means = self._means[self._refused :]
        if self._population is not None:
            means = remaining_means(means, self._population, self._seen, self._total)
            impossible = int(np.searchsorted(means, -MEAN_ROUNDING))
            self._refused += impossible
            means = np.maximum(means[impossible:], MEAN_ROUNDING)
        self._capital[:, self._refused :] *= growth(value, means)
        self._seen += 1
        self._total += value


def growth(values: float | Float64, means: Float64) -> Float64:
    """By what each stake multiplies its capital in a bet against each mean: (stakes, means)."""
    return 1.0 + np.multiply.outer(STAKES, values / means - 1.0)


def remaining_means(means: Float64, population: int, seen: int, total: float | Float64) -> Float64:
    """What the mean of those not seen yet is, if the whole population's is one of `means`."""
    return (population * means - total) / (population - seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When to stop: sampling moves neither end by more than `error`, or it is decided whether the
    mean is at least `threshold`. With both, whichever comes first.
    """

    error: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.error is None and self.threshold is None:
            raise ExperimentError("a sequential estimate needs an error or a threshold to stop at")
        if self.error is not None:
            checked_error(self.error)

    def reached_by(self, estimate: Estimate) -> str | None:
        """Why to stop now; None: go on."""
        if self.threshold is not None:
            decision = estimate.is_at_least(self.threshold)
            if decision is not None:
                side = "at least" if decision else "below"
                return f"decided: the mean is {side} {self.threshold:g}"
        if self.error is not None and estimate.error <= self.error:
            return f"precise: sampling moves neither end by more than {self.error:g}"
        return None


class SequentialEstimate:
    """Fed with values in the order of the sample; `estimate` is valid at any time.

    Which input comes next, and when to stop, may depend on everything seen, but the order of the
    sample must not: it is drawn beforehand. Inputs that are ready early wait for their turn.
    """

    def __init__(
        self,
        goal: StoppingRule,
        population: Population,
        *,
        confidence: float = 0.95,
        values: Range | None = None,
        is_share: bool = True,
    ) -> None:
        self.goal = goal
        self.population = population
        self.confidence = confidence
        self._span = values or Range()
        self._method = "exact" if is_share else "tightest"
        self._look_confidence = 1 - FINAL_MISS_SHARE * (1 - checked_confidence(confidence))
        miss = (1 - FINAL_MISS_SHARE) * (1 - confidence) / 2
        self.latest = self._latest(goal)
        if self.latest is None:
            miss = (1 - confidence) / 2
        self._below = BettingLimit(miss, population.size)
        self._above = BettingLimit(miss, population.size)
        self._least: list[float] = []
        self._most: list[float] = []
        self._look: Estimate | None = None

    def _latest(self, goal: StoppingRule) -> int | None:
        """After how many inputs the wanted error is reached in any case; None without one."""
        if goal.error is None:
            return None
        plan = plan_samples(
            goal.error,
            self._look_confidence,
            method=self._method,
            population=self.population,
            values=self._span,
        )
        return plan.samples

    def __len__(self) -> int:
        return len(self._least)

    @property
    def needed(self) -> int | None:
        """The most inputs that are looked at; None where no number is known."""
        sizes = [size for size in (self.latest, self.population.size) if size is not None]
        return min(sizes, default=None)

    def add(self, lower: npt.ArrayLike, upper: npt.ArrayLike | None = None) -> None:
        """The next inputs' values, or brackets of them."""
        least, most = scaled_sides(np.atleast_1d(lower), upper, self._span)
        size = self.population.size
        if size is not None and len(self) + len(least) > size:
            raise DataError(f"{self.population} are all sampled already")
        self._below.add(least)
        self._above.add(1.0 - most)
        self._least.extend(least.tolist())
        self._most.extend(most.tolist())
        if self._look is None and self.latest is not None and len(self) >= self.latest:
            self._look = estimate_mean(
                self._least[: self.latest],
                self._most[: self.latest],
                population=self.population,
                confidence=self._look_confidence,
                method=self._method,
            )

    @property
    def estimate(self) -> Estimate:
        """What is known now. A DataError before the first input."""
        if not self._least:
            raise DataError("an estimate needs at least one input")
        least, most = float(np.mean(self._least)), float(np.mean(self._most))
        low, high = self._below.limit, 1.0 - self._above.limit
        if self._look is not None:
            low, high = max(low, self._look.low), min(high, self._look.high)
        if len(self) == self.population.size:
            low, high = least, most
        return Estimate(
            least=self._span.unscaled(least),
            most=self._span.unscaled(most),
            low=self._span.unscaled(min(low, least)),
            high=self._span.unscaled(max(high, most)),
            samples=len(self),
            confidence=self.confidence,
            method="betting",
            population=self.population,
        )

    @property
    def reason_to_stop(self) -> str | None:
        """None: go on."""
        if not self._least:
            return None
        if (reason := self.goal.reached_by(self.estimate)) is not None:
            return reason
        if len(self) == self.population.size:
            return "every input of the set was looked at"
        if self.latest is not None and len(self) >= self.latest:
            return f"the {self.latest} inputs were looked at that promise the error in any case"
        return None


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
    """Values by their place in the sample, in whatever order they are measured.

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
        self._values: dict[int, tuple[float, float]] = {}
        self._taken = 0

    def _needed(self, available: int | None, is_share: bool) -> int:
        """How many inputs to draw: all of them are looked at unless it stops early."""
        most = self.demand.samples
        if most is not None and available is not None and most > available:
            raise DataError(f"{most} samples are asked for, but there are {available} inputs")
        if self._sequential is not None:
            sizes = [n for n in (self._sequential.needed, most, available) if n is not None]
            if not sizes:
                raise ExperimentError("a decision may take for ever: give a number of samples, too")
            return min(sizes)
        if most is not None:
            return most
        plan = self.demand.plan(self.population, self._span, is_share=is_share)
        if available is not None:
            plan.check_available(available, self.population.name)
        return plan.samples

    def put(self, place: int, lower: float, upper: float) -> bool:
        """One input's value, or its bracket; True if no further input is needed."""
        self._values[place] = (lower, upper)
        while not self.is_enough and self._taken in self._values:
            if self._sequential is not None:
                least, most = self._values[self._taken]
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
        reason = self._sequential.reason_to_stop
        return reason or f"after {self._taken} inputs, no more may be looked at"

    def estimate(self) -> Estimate:
        """Of the inputs counted so far; a fixed-size one only when all are there."""
        if self._sequential is not None:
            return self._sequential.estimate
        if self._taken < self.needed:
            raise DataError(f"{self._taken} of {self.needed} inputs are known: run again")
        pairs = [self._values[place] for place in range(self._taken)]
        return estimate_mean(
            [least for least, _ in pairs],
            [most for _, most in pairs],
            population=self.population,
            confidence=self.demand.confidence,
            method=self._method,
            values=self._span,
        )
