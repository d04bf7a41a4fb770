"""What processes use, and holding a family of them to what it may use.

A family is a process and all that it has started, at any depth. Memory and processor time are read
with psutil, which is loaded on first use. Only the children of a process are read from /proc where
Linux offers them: psutil would look at every process of the machine, forty times as slowly.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "std::bad_alloc")
"""Parts of the messages of torch and of C++ libraries."""

POLL_SECONDS = 0.05
"""Between two looks at what processes use, and whether they were cancelled."""

WATCH_SHARE = 20
"""Looking takes at most one part in so many of the time, however many processes there are."""


def resident_bytes(pid: int | None = None) -> int | None:
    """What a process, by default this one, holds in memory now; None if it does not exist."""
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def cpu_seconds(pid: int | None = None) -> float | None:
    """Processor time of all threads of a process and of those of its children that have ended.

    None if there is no such process.
    """
    if pid is None:
        own = os.times()
        return time.process_time() + own.children_user + own.children_system
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system + times.children_user + times.children_system)


def family_seconds() -> float:
    """Processor time of this process and of all that it has started."""
    living = sum(cpu_seconds(pid) or 0.0 for pid in descendant_pids(os.getpid()))
    return living + (cpu_seconds() or 0.0)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    import psutil

    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False


def descendant_pids(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have, as far as they exist."""
    if not _kernel_lists_children():
        return _listed_descendants(pid)
    descendants: list[int] = []
    parents = [pid]
    while parents:
        children = _children(parents.pop())
        descendants += children
        parents += children
    return descendants


@cache
def _kernel_lists_children() -> bool:
    return os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")  # noqa: PTH110


def _children(pid: int) -> list[int]:
    """Of all threads of a process. Not with pathlib, which is slow to load and to list."""
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                children += map(int, file.read().split())
    except OSError:  # it has just ended
        pass
    return children


def _listed_descendants(pid: int) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def is_out_of_memory(error: Exception) -> bool:
    """Whether that is what it means; torch says so in words, with a RuntimeError."""
    words = f"{type(error).__name__}: {error}"
    return isinstance(error, MemoryError) or any(part in words for part in OUT_OF_MEMORY)


class Ending(StrEnum):
    """Why work ended without a value. Each is named as the verdict that it amounts to."""

    TIMEOUT = "TIMEOUT"
    MEMOUT = "MEMOUT"
    CANCELLED = "CANCELLED"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Usage:
    """What processes hold in memory and have used of processors, together."""

    memory_bytes: int
    cpu_seconds: float

    @classmethod
    def of(cls, pids: Iterable[int]) -> Usage:
        """Of all that still exist."""
        memory, seconds = 0, 0.0
        for pid in pids:
            memory += resident_bytes(pid) or 0
            seconds += cpu_seconds(pid) or 0.0
        return cls(memory, seconds)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a family of processes may use for one piece of work, from when it begins."""

    seconds: float = math.inf
    cpu_seconds: float = math.inf
    memory_bytes: int | None = None


class Watch:
    """Holds one family of processes to its allowance, from now on.

    `measure` says what the family holds now and has used in its life. It is asked only if there is
    a limit on that, or if `is_counting`; of a family that `is_new`, only after a while.
    """

    def __init__(
        self,
        allowance: Allowance,
        measure: Callable[[], Usage],
        *,
        is_counting: bool = False,
        is_new: bool = False,
    ) -> None:
        self.allowance = allowance
        self.began = self._next_look = time.monotonic()
        self.end = self.began + allowance.seconds
        self.cpu_seconds = 0.0
        self._measure = measure
        has_limits = allowance.memory_bytes is not None or allowance.cpu_seconds < math.inf
        self._is_looking = has_limits or is_counting
        self._cpu_before = measure().cpu_seconds if self._is_looking and not is_new else 0.0
        if is_new:
            self._next_look += POLL_SECONDS

    @property
    def seconds(self) -> float:
        """Since the work began."""
        return time.monotonic() - self.began

    @property
    def pause(self) -> float:
        """How long to wait for something else before `overrun` is worth asking again."""
        due = min(self.end, self._next_look) if self._is_looking else self.end
        return max(0.0, due - time.monotonic())

    def overrun(self) -> tuple[Ending, str] | None:
        """Which limit the family has passed, and the same in words."""
        now = time.monotonic()
        is_over = now >= self.end
        if self._is_looking and (is_over or now >= self._next_look):
            usage = self._measure()
            self.cpu_seconds = max(self.cpu_seconds, usage.cpu_seconds - self._cpu_before)
            self._next_look = now + max(POLL_SECONDS, WATCH_SHARE * (time.monotonic() - now))
            most = self.allowance.memory_bytes
            if most is not None and usage.memory_bytes > most:
                return Ending.MEMOUT, "killed: it overran its memory limit"
            if self.cpu_seconds > self.allowance.cpu_seconds:
                return Ending.TIMEOUT, "killed: it overran its CPU limit"
        return (Ending.TIMEOUT, "killed: it overran its time limit") if is_over else None
