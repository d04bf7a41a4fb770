"""The native radius search: certify as large an eps as the time allows.

First the largest grid value below the witness, with most of the time, since that closes the
bracket; if it does not end, what the root alone proves, which is cheap; then what lies between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from radii.verdicts import Verdict, Witness

__all__ = ["Attempt", "Climb"]

TOP_SHARE = 0.6
"""Of the time that is left, for the attempt that would close the bracket."""

LATER_SHARE = 0.5
"""Of the time that is left then, for each attempt in between."""

Attempt = Callable[[float, float], tuple[Verdict, Witness | None]]
"""Decide at an eps within some seconds."""


class Climb:
    """Raises `lower` along increasing grid values; a closer witness lowers the goal."""

    def __init__(self, values: Sequence[float], attempt: Attempt, remaining: Callable[[], float]):
        self.values = values
        self.attempt = attempt
        self.remaining = remaining
        self.proven = -1
        self.goal = len(values) - 1
        self.witness: Witness | None = None

    @property
    def lower(self) -> float:
        """The largest proven value; 0 if there is none."""
        return self.values[self.proven] if self.proven >= 0 else 0.0

    def run(self) -> None:
        """Until the goal is proven or the time is over."""
        while self.proven < self.goal and self.remaining() > 0:
            if self._try(self.goal, TOP_SHARE * self.remaining()).is_missing:
                self._without_branching()
                self._between(self.goal)
                return

    def _between(self, failed: int) -> None:
        """Bisect what is open below an index that could not be decided."""
        while self.proven + 1 < failed and self.remaining() > 0:
            index = (self.proven + failed) // 2
            if self._try(index, LATER_SHARE * self.remaining()) is not Verdict.ROBUST:
                failed = index

    def _without_branching(self) -> None:
        """The largest value that the root alone proves."""
        low, high = self.proven + 1, self.goal - 1
        while low <= high and self.remaining() > 0:
            middle = (low + high + 1) // 2
            verdict = self._try(middle, 0.0)
            if verdict is Verdict.ROBUST:
                low = middle + 1
            else:
                high = min(middle - 1, self.goal)

    def _try(self, index: int, seconds: float) -> Verdict:
        verdict, witness = self.attempt(self.values[index], seconds)
        if verdict is Verdict.ROBUST:
            self.proven = max(self.proven, index)
        if witness is not None and (
            self.witness is None or witness.distance < self.witness.distance
        ):
            self.witness = witness
            while self.goal >= 0 and self.values[self.goal] >= witness.distance:
                self.goal -= 1
        return verdict
