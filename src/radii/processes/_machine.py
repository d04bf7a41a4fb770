"""What this process may use of the machine: its cores and memory, containers' limits included."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from radii.processes._memory import resident_bytes

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
MEMINFO_FILE = Path("/proc/meminfo")

WORKERS_SHARE = 0.9
"""Of the memory, for all workers together."""

WORKER_GROWTH = 1.5
"""A worker holds at least so many times what this process holds with everything loaded."""

UNLIMITED_BYTES = 1 << 60
"""Bytes beyond which a limit is none: older kernels write a huge number for it."""


def usable_cores() -> int:
    """Cores that this process may run on, no more than its container has time for."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # no Linux
        allowed = os.cpu_count() or 1
    quota = _core_quota()
    return allowed if quota == math.inf else max(1, min(allowed, math.ceil(quota)))


def memory_limit() -> int | None:
    """Bytes that this process and its neighbours in the container may hold; None: no limit known.

    Without a container's limit it is all that the machine has.
    """
    limits = [
        value
        for text in _settings("memory", "memory.max", "memory.limit_in_bytes")
        if (value := _whole(text)) is not None and value < UNLIMITED_BYTES
    ]
    total = _meminfo("MemTotal")
    return min([*limits, *([total] if total is not None else [])], default=None)


def usable_workers(each: int | None = None) -> int:
    """Worker processes for which there are cores and memory; never less than one.

    `each` is the memory of one in bytes; None: as this process holds now, and half as much again.
    """
    held, limit = each or WORKER_GROWTH * (resident_bytes() or 0), memory_limit()
    if limit is None or not held:
        return usable_cores()
    return max(1, min(usable_cores(), int(WORKERS_SHARE * limit / held)))


def memory_share(workers: int) -> int | None:
    """Bytes that each of so many workers may hold so that all fit; None where that is not known.

    None also where a worker could hardly start with so little.
    """
    limit, held = memory_limit(), WORKER_GROWTH * (resident_bytes() or 0)
    if limit is None:
        return None
    share = int(WORKERS_SHARE * limit / workers)
    return share if share > held else None


def available_bytes() -> int | None:
    """Bytes that can be taken now without swapping; None where nobody tells."""
    free = _meminfo("MemAvailable")
    limit = memory_limit()
    held = next(_settings("memory", "memory.current", "memory.usage_in_bytes"), "")
    used = _whole(held)
    if limit is None or used is None:
        return free
    left = max(0, limit - used)
    return left if free is None else min(free, left)


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


def _meminfo(name: str) -> int | None:
    try:
        lines = MEMINFO_FILE.read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith(f"{name}:")]
    return int(found[0][1]) * 1024 if found else None


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
