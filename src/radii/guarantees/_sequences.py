"""A lower limit on a mean that holds at all times at once: a confidence sequence by betting.

For each candidate mean m a gambler starts with 1 and bets before each input that its value x in
[0, 1] is above m: capital is multiplied by 1 + c (x / m - 1), where c is the part of the capital at
stake. If the mean is at most m no bet is favourable, so capital exceeds 1 / miss ever with
probability at most `miss` (Ville's inequality), and m is refused once it does. Several c bet side
by side, each with an equal share of the starting capital, since the best one depends on what is not
known. Every factor falls with m: refusing m refuses all smaller means, in one and the same event,
so a grid of candidates loses precision but no validity.

Without replacement, what is left to draw has another mean than the whole: the bet is then against
(N m - what was seen) / (how many are left).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.errors import DataError, ExperimentError
from radii.guarantees._estimates import Estimate, estimate_mean, scaled_sides
from radii.guarantees._plans import plan_samples
from radii.guarantees._populations import Population, Range, checked_confidence, checked_error

Float64 = npt.NDArray[np.float64]

STAKES: Float64 = np.geomspace(0.004, 0.97, 14)
"""Parts of the capital at stake: neighbours differ by a factor of 1.5, close enough to the best."""
LIMIT_CANDIDATES = 1000
"""Candidates for the limit in [0, 1]: it is known to 0.001."""
RUINED_CAPITAL = 1e-200
"""Who has no more than this is out of the game, which is valid and keeps the arithmetic fast."""
MEAN_ROUNDING = 1e-9
"""A mean of what is left to draw that is 0 may be computed as this much below it."""


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


# Estimates that stop as soon as they are good enough, and stay valid whenever they stop.
#
# Four fifths of the miss go to two betting limits, which hold at every number of inputs at once.
# The
# last fifth pays for one look with a fixed-size interval at a number of inputs that is known
# beforehand (`latest`): where the wanted error is promised in any case. So clear cases end early,
# and
# no case goes on for long: for shares, the latest end is before the plan of Hoeffding's bound.


FINAL_MISS_SHARE = 0.2
"""The part of the miss that the look at the planned number of inputs gets."""


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
        """How many inputs are looked at, at most; None: nobody knows."""
        known = [size for size in (self.latest, self.population.size) if size is not None]
        return min(known) if known else None

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
