"""What this process may use of the machine, containers' limits included; sizes of memory.

The limits of a container stand in files of its control groups, which psutil does not read.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from radii.errors import InputError
from radii.processes._usage import resident_bytes

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")

WORKERS_SHARE = 0.9
"""Of the memory, for all workers together."""

WORKER_GROWTH = 1.5
"""A worker holds at least so many times what this process holds with everything loaded."""

UNLIMITED_BYTES = 1 << 60
"""Bytes beyond which a limit is none: older kernels write a huge number for it."""

_BYTES_OF_UNIT = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


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
    """Worker processes for which there are cores and memory; never less than one.

    `each` is the memory of one in bytes; None: as this process holds now, and half as much again.
    """
    held, limit = each or WORKER_GROWTH * (resident_bytes() or 0), memory_limit()
    if not held:
        return usable_cores()
    return max(1, min(usable_cores(), int(WORKERS_SHARE * limit / held)))


def memory_share(workers: int) -> int | None:
    """Bytes that each of so many workers may hold so that all fit.

    None where a worker could hardly start with so little.
    """
    share = int(WORKERS_SHARE * memory_limit() / workers)
    return share if share > WORKER_GROWTH * (resident_bytes() or 0) else None


def available_bytes() -> int:
    """Bytes that can be taken now without swapping."""
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
    held = resident_bytes()
    if limit is not None and held is not None and held >= limit:
        raise InputError(
            f"memory {show_size(limit)} is less than the {show_size(held)} that a process holds "
            "with libraries and networks loaded; allow more"
        )
