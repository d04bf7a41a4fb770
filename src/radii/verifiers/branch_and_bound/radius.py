"""The native radius search: certify as large an eps as the time allows.

First the largest grid value below the witness, since proving it closes the bracket. What that
leaves open in its tree is all that any smaller eps still has to prove, so nothing is done twice:
if the goal turns out to be out of reach, smaller values go on from its open nodes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from radii.verdicts import Verdict, Witness
from radii.verifiers.branch_and_bound.frontier import Frontier
from radii.verifiers.branch_and_bound.proving import Attempt

__all__ = ["Climb", "Patience"]

PATIENT_SHARE = 0.15
"""Of the time that is left: how long an attempt runs before it may be found hopeless."""

LAST_SHARE = 0.8
"""Of the time that is left: how long it runs at most, so that smaller values get their turn."""

FIRST_HOPE, LAST_HOPE = 2.0, 1.0
"""It goes on while, at the pace so far, it would end within so many times the time it has."""


@dataclass(slots=True)
class Patience:
    """Says when an attempt would take longer than it may: less and less is forgiven."""

    seconds: float
    started: float = field(default_factory=time.monotonic)

    def is_hopeless(self, closed_share: float) -> bool:
        if math.isinf(self.seconds):
            return False
        spent = (time.monotonic() - self.started) / max(self.seconds, 1e-9)
        if spent < PATIENT_SHARE:
            return False
        progress = (spent - PATIENT_SHARE) / (LAST_SHARE - PATIENT_SHARE)
        hope = FIRST_HOPE + (LAST_HOPE - FIRST_HOPE) * progress
        return spent > LAST_SHARE or spent > hope * closed_share


Prove = Callable[[float, Frontier | None, Patience | None], Attempt]
"""Decide at an eps, going on from a frontier; without patience, do not branch."""


class Climb:
    """Raises `lower` along increasing grid values; a closer witness lowers the goal."""

    def __init__(self, values: Sequence[float], prove: Prove, remaining: Callable[[], float]):
        self.values = values
        self.prove = prove
        self.remaining = remaining
        self.proven = -1
        self.goal = len(values) - 1
        self.witness: Witness | None = None
        self.frontier: Frontier | None = None
        self.margin = 0.0

    @property
    def lower(self) -> float:
        """The largest proven value; 0 if there is none."""
        return self.values[self.proven] if self.proven >= 0 else 0.0

    @property
    def is_closed(self) -> bool:
        return self.proven >= self.goal

    def run(self) -> None:
        """Until the goal is proven or the time is over."""
        while not self.is_closed and self.remaining() > 0:
            verdict = self._try(self.goal, Patience(self.remaining()))
            if verdict.is_missing:
                self._without_branching()
                self._between(self.goal)
                return

    def _between(self, failed: int) -> None:
        """Bisect what is open below an index that could not be decided."""
        while self.proven + 1 < min(failed, self.goal + 1) and self.remaining() > 0:
            index = (self.proven + min(failed, self.goal + 1)) // 2
            if self._try(index, Patience(self.remaining())) is not Verdict.ROBUST:
                failed = index

    def _without_branching(self) -> None:
        """The largest value that the root alone proves."""
        low, high = self.proven + 1, self.goal - 1
        while low <= high and self.remaining() > 0:
            middle = (low + high + 1) // 2
            if self._try(middle, None) is Verdict.ROBUST:
                low = middle + 1
            else:
                high = min(middle - 1, self.goal)

    def _try(self, index: int, patience: Patience | None) -> Verdict:
        attempt = self.prove(self.values[index], self.frontier if patience else None, patience)
        verdict = attempt.answer.verdict
        if verdict is Verdict.ROBUST:
            self.proven = max(self.proven, index)
            self.margin = attempt.answer.margin
        if patience is not None and attempt.frontier is not None:
            self.frontier = attempt.frontier
        witness = attempt.witness
        if witness is not None and (
            self.witness is None or witness.distance < self.witness.distance
        ):
            self.witness = witness
            while self.goal >= 0 and self.values[self.goal] >= witness.distance:
                self.goal -= 1
        return verdict
