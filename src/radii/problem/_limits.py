"""Limits: how long a question may take, in how much memory, and whether anybody still asks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from radii.problem._verdicts import Verdict
from radii.processes import Allowance, Ending, cpu_seconds, resident_bytes

MEMORY_SHARE = 0.9
"""Of the memory limit, at which to stop: a step that is under way still needs some."""


def _never() -> bool:
    return False


def _cpu_used() -> float:
    return cpu_seconds() or 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop. Asked often by a verifier that cooperates; enforced from outside otherwise.

    `memory_bytes` is for the whole process: what it holds must stay below. `cpu_seconds` counts
    all its threads, and processes that it has started and that have ended.
    """

    seconds: float = float("inf")
    memory_bytes: int | None = None
    cancelled: Callable[[], bool] = _never
    started: float = field(default_factory=time.monotonic)
    cpu_seconds: float = float("inf")
    cpu_started: float = field(default_factory=_cpu_used)

    @property
    def remaining(self) -> float:
        """Wall seconds left, never negative; no more than the CPU seconds that are left."""
        left = self.started + self.seconds - time.monotonic()
        if self.cpu_seconds < math.inf:
            left = min(left, self.cpu_started + self.cpu_seconds - _cpu_used())
        return max(0.0, left)

    @property
    def memory_left(self) -> float:
        """Bytes that may still be allocated before it is time to stop, never negative."""
        if self.memory_bytes is None:
            return math.inf
        return max(0.0, MEMORY_SHARE * self.memory_bytes - (resident_bytes() or 0))

    @property
    def allowance(self) -> Allowance:
        """What processes that are started now may use."""
        left, memory = self.started + self.seconds - time.monotonic(), self.memory_left
        return Allowance(left, self.cpu_seconds, None if memory == math.inf else int(memory))

    @property
    def is_out_of_memory(self) -> bool:
        """It is time to stop, while what is under way still fits."""
        return self.memory_bytes is not None and self.memory_left <= 0

    @property
    def expired(self) -> Verdict | None:
        """CANCELLED, TIMEOUT or MEMOUT once it is time to stop, else None."""
        if self.cancelled():
            return Verdict.CANCELLED
        if self.remaining <= 0:
            return Verdict.TIMEOUT
        return Verdict.MEMOUT if self.is_out_of_memory else None

    @property
    def is_over(self) -> bool:
        """It is time to stop, for whatever reason."""
        return self.expired is not None

    def ending(self, verdict: Verdict) -> Ending:
        """How work under these limits has ended, by the verdict that it came to."""
        if verdict is Verdict.TIMEOUT and self.cpu_started + self.cpu_seconds <= _cpu_used():
            return Ending.CPU_LIMIT
        return verdict.ending

    def within(self, seconds: float) -> Limits:
        """The same limits for a part of the work that may take `seconds` from now."""
        return replace(self, seconds=min(seconds, self.remaining), started=time.monotonic())


UNLIMITED = Limits(started=0.0, cpu_started=0.0)
"""For work that ends by itself."""
