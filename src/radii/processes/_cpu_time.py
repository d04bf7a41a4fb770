"""How much processor time processes have used, and which processes another one has started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

TICKS_BEFORE = 11
"""Fields of /proc/PID/stat between the process's name and its time: state, parent, ..."""


def cpu_seconds(pid: int | None = None) -> float | None:
    """Seconds of all threads of a process and of those of its children that have ended.

    None if there is no such process or no way to know: another process is seen on Linux only.
    """
    if pid is None:
        times = os.times()
        return time.process_time() + times.children_user + times.children_system
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    ticks = stat.rpartition(b")")[2].split()[TICKS_BEFORE : TICKS_BEFORE + 4]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def family_seconds() -> float:
    """Seconds of this process and of all that it has started, living ones on Linux only."""
    living = sum(cpu_seconds(pid) or 0.0 for pid in descendant_pids(os.getpid()))
    return living + (cpu_seconds() or 0.0)


def is_alive(pid: int) -> bool:
    """Whether there is such a process that has not ended; Linux only."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def descendant_pids(pid: int) -> list[int]:
    """The processes that a process has started and those that they have, as far as they live.

    Empty where there is no way to know, which is everywhere but on Linux.
    """
    found: list[int] = []
    if sys.platform != "linux":
        return found
    parents = [pid]
    while parents:
        children = _children(parents.pop())
        found += children
        parents += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_bytes().split())
    except OSError:  # it has just ended
        pass
    return found
