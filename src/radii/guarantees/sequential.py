"""Estimates that stop as soon as they are good enough, and stay valid whenever they stop.

Four fifths of the miss go to two betting limits, which hold at every number of inputs at once. The
last fifth pays for one look with a fixed-size interval at a number of inputs that is known
beforehand (`latest`): where the wanted error is promised in any case. So clear cases end early, and
no case goes on for long: for shares, the latest end is before the plan of Hoeffding's bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.errors import DataError, ExperimentError
from radii.guarantees.betting import BettingLimit
from radii.guarantees.estimates import Estimate, bracketed, estimate_mean
from radii.guarantees.planning import plan_samples
from radii.guarantees.populations import Population, Range, checked_confidence, checked_error

__all__ = ["Goal", "SequentialEstimate"]

LAST_LOOK = 0.2
"""The part of the miss that the look at the planned number of inputs gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
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
            told = estimate.is_at_least(self.threshold)
            if told is not None:
                return f"decided: the mean is {'at least' if told else 'below'} {self.threshold:g}"
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
        goal: Goal,
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
        self._look_confidence = 1 - LAST_LOOK * (1 - checked_confidence(confidence))
        miss = (1 - LAST_LOOK) * (1 - confidence) / 2
        self.latest = self._latest(goal)
        if self.latest is None:
            miss = (1 - confidence) / 2
        self._below = BettingLimit(miss, population.size)
        self._above = BettingLimit(miss, population.size)
        self._least: list[float] = []
        self._most: list[float] = []
        self._look: Estimate | None = None

    def _latest(self, goal: Goal) -> int | None:
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
        """How many inputs are looked at, at most; None: nobody knows."""
        known = [size for size in (self.latest, self.population.size) if size is not None]
        return min(known) if known else None

    def add(self, lower: npt.ArrayLike, upper: npt.ArrayLike | None = None) -> None:
        """The next inputs' values, or brackets of them."""
        least, most = bracketed(np.atleast_1d(lower), upper, self._span)
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
