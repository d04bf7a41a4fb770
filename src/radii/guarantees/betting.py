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

import numpy as np
import numpy.typing as npt

__all__ = ["BettingLimit"]

Float64 = npt.NDArray[np.float64]

STAKES: Float64 = np.geomspace(0.004, 0.97, 14)
"""Parts of the capital at stake: neighbours differ by a factor of 1.5, close enough to the best."""
CANDIDATES = 1000
"""Candidates for the limit in [0, 1]: it is known to 0.001."""
RUIN = 1e-200
"""Who has no more than this is out of the game, which is valid and keeps the arithmetic fast."""
ROUNDING = 1e-9
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
        grid = np.arange(1, CANDIDATES) / CANDIDATES if candidates is None else candidates
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
        self._capital[self._capital < RUIN] = 0.0
        won = np.flatnonzero(self._capital[:, self._refused :].sum(axis=0) >= self._enough)
        if won.size:
            self._refused += int(won[-1]) + 1

    def _bet(self, value: float) -> None:
        means = self._means[self._refused :]
        if self._population is not None:
            means = remaining_means(means, self._population, self._seen, self._total)
            impossible = int(np.searchsorted(means, -ROUNDING))
            self._refused += impossible
            means = np.maximum(means[impossible:], ROUNDING)
        self._capital[:, self._refused :] *= growth(value, means)
        self._seen += 1
        self._total += value


def growth(values: float | Float64, means: Float64) -> Float64:
    """By what each stake multiplies its capital in a bet against each mean: (stakes, means)."""
    return 1.0 + np.multiply.outer(STAKES, values / means - 1.0)


def remaining_means(means: Float64, population: int, seen: int, total: float | Float64) -> Float64:
    """What the mean of those not seen yet is, if the whole population's is one of `means`."""
    return (population * means - total) / (population - seen)
