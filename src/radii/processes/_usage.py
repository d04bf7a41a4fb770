"""What processes use, what this one may use of the machine, and holding a family to its limits.

A family is a process and all that it has started, at any depth. Memory and processor time are read
with psutil, which is loaded on first use. Only the children of a process are read from /proc where
Linux offers them: psutil would look at every process of the machine, forty times as slowly. The
limits of a container stand in files of its control groups, which psutil does not read. Whether this
system has worker processes at all, and locks between processes, differs too, and stands here.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from radii.errors import InputError

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")

WORKERS_SHARE = 0.9
"""Of the memory, for all workers together."""

WORKER_GROWTH = 1.5
"""The memory of a worker is at least this multiple of this process's, with everything loaded."""

UNLIMITED_BYTES = 1 << 60
"""A limit beyond this is no limit: older kernels write a huge number instead."""

_BYTES_OF_UNIT = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def has_workers() -> bool:
    """Worker processes are started, watched and killed as groups, which Windows has not."""
    return hasattr(os, "killpg")


def take_lock(file: int, *, is_shared: bool = False) -> None:
    """Lock an open file until it is closed; a BlockingIOError if another process has it.

    Windows has no shared locks: there it is locked for one. A system that can lock nothing is taken
    at its word that nobody else is there.
    """
    if (posix := _optional("fcntl")) is not None:
        posix.flock(file, (posix.LOCK_SH if is_shared else posix.LOCK_EX) | posix.LOCK_NB)
    elif (windows := _optional("msvcrt")) is not None:
        try:
            windows.locking(file, windows.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None


def _optional(name: str) -> ModuleType | None:
    """A module of the standard library that some systems lack."""
    try:
        return import_module(name)
    except ImportError:
        return None


def usable_cores() -> int:
    """Cores that this process may run on, no more than its container has time for."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # no Linux
        allowed = os.cpu_count() or 1
    quota = _core_quota()
    return allowed if quota == math.inf else max(1, min(allowed, math.ceil(quota)))


def memory_limit() -> int:
    """Bytes that this process and its neighbours in the container may hold.

    Without a container's limit it is all that the machine has.
    """
    import psutil

    limits = [
        value
        for text in _settings("memory", "memory.max", "memory.limit_in_bytes")
        if (value := _whole(text)) is not None and value < UNLIMITED_BYTES
    ]
    return min([*limits, psutil.virtual_memory().total])


def usable_workers(each: int | None = None) -> int:
    """Worker processes for which there are cores and memory; never less than one, where there are
    any at all.

    `each` is the memory of one in bytes; None: as this process holds now, and half as much again.
    """
    if not has_workers():
        return 0
    each_bytes, limit = each or WORKER_GROWTH * (resident_bytes() or 0), memory_limit()
    if not each_bytes:
        return usable_cores()
    return max(1, min(usable_cores(), int(WORKERS_SHARE * limit / each_bytes)))


def memory_share(workers: int) -> int | None:
    """Bytes that each of the workers may use so that all fit.

    None where a worker could hardly start with so little.
    """
    share = int(WORKERS_SHARE * memory_limit() / workers)
    return share if share > WORKER_GROWTH * (resident_bytes() or 0) else None


def available_bytes() -> int:
    """Bytes that can be allocated now without swapping."""
    import psutil

    free = int(psutil.virtual_memory().available)
    used = _whole(next(_settings("memory", "memory.current", "memory.usage_in_bytes"), ""))
    return free if used is None else min(free, max(0, memory_limit() - used))


def _core_quota() -> float:
    """How many cores' worth of time the container has; infinite without a limit."""
    quotas = [math.inf]
    for text in _settings("cpu", "cpu.max", ""):
        share, _, period = text.partition(" ")
        if share != "max" and _whole(period):
            quotas.append(int(share) / int(period))
    shares = list(_settings("cpu", "", "cpu.cfs_quota_us"))
    periods = list(_settings("cpu", "", "cpu.cfs_period_us"))
    for share, period in zip(shares, periods, strict=False):
        if (_whole(share) or -1) > 0 and _whole(period):
            quotas.append(int(share) / int(period))
    return min(quotas)


def _settings(controller: str, new: str, old: str) -> Iterator[str]:
    """Files of this process's groups, from its own up to the root, in both layouts of cgroups."""
    try:
        lines = OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" and new:
            root, name = CGROUPS, new
        elif controller in controllers.split(",") and old:
            root, name = CGROUPS / controller, old
        else:
            continue
        own = root / path.lstrip("/")
        for place in (own, *own.parents):
            if place == root or root in place.parents:
                with suppress(OSError):
                    yield (place / name).read_text().strip()


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def parse_size(value: object) -> int:
    """Bytes, from 500M, 2G, 1.5GiB or a whole number of bytes; K, M, G, T are powers of 1024."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", str(value).strip().upper())
    is_size = parts is not None and not isinstance(value, bool)
    size = int(float(parts[1]) * _BYTES_OF_UNIT[parts[2]]) if parts and is_size else 0
    if size <= 0:
        raise InputError(f"memory {value!r} must be a size above 0, such as 500M or 2G")
    return size


def show_size(size: int) -> str:
    """Bytes as people read them: 2G, 1.5G, 500M."""
    for unit in ("T", "G", "M", "K"):
        if size >= _BYTES_OF_UNIT[unit]:
            return f"{size / _BYTES_OF_UNIT[unit]:.4g}{unit}"
    return str(size)


def check_room(limit: int | None) -> None:
    """An InputError if this process, with all it needs loaded, is beyond the limit already."""
    resident = None if limit is None else resident_bytes()
    if limit is not None and resident is not None and resident >= limit:
        raise InputError(
            f"memory {show_size(limit)} is less than the {show_size(resident)} that a process "
            "holds with libraries and networks loaded; allow more"
        )


QUOTED_CHARACTERS = 200
"""Characters of a program's last line that a message quotes."""

OUT_OF_MEMORY = (
    "memoryerror",
    "can't allocate memory",
    "cannot allocate memory",
    "out of memory",
    "outofmemory",
    "std::bad_alloc",
)
"""Parts of the messages of Python, torch, C++ libraries and Java, in small letters."""

POLL_SECONDS = 0.05
"""Between two looks at what processes use, and whether they were cancelled."""

WATCH_SHARE = 20
"""The reciprocal of the share of time that sampling may take, however many processes there are."""


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
    is_stated = speaks_of_memory(f"{type(error).__name__}: {error}")
    return isinstance(error, MemoryError) or is_stated


def speaks_of_memory(line: str) -> bool:
    """Whether the last line that a program printed says that it ran out of memory."""
    return any(part in line.lower() for part in OUT_OF_MEMORY)


class Ending(StrEnum):
    """How a piece of work ended: with an answer, without one, or stopped by something."""

    ANSWERED = "answered"
    """With all that it was asked for."""
    GAVE_UP = "gave up"
    """By itself, with nothing left to try."""
    TIME_LIMIT = "time limit"
    CPU_LIMIT = "CPU limit"
    MEMORY_LIMIT = "memory limit"
    CANCELLED = "cancelled"
    """Nobody needed it any more."""
    FAILED = "failed"
    """It crashed, could not be started, or gave no answer that can be read."""
    LOST = "lost"
    """Somebody else killed its process, or the machine that it ran on is gone."""


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
                return Ending.MEMORY_LIMIT, "it overran its memory limit"
            if self.cpu_seconds > self.allowance.cpu_seconds:
                return Ending.CPU_LIMIT, "it overran its CPU limit"
        return (Ending.TIME_LIMIT, "it overran its time limit") if is_over else None
