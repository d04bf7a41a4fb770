"""One call in a process of its own, so that its limits hold whatever the code called does."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from radii.errors import InputError, RadiiError
from radii.processes._child import POLL_SECONDS, WORK_GRACE_SECONDS, Call, Child
from radii.verdicts import Verdict

T = TypeVar("T")

DYING_SECONDS = 0.05
"""Between the end of a child's socket and the end of its process."""


@dataclass(frozen=True, slots=True)
class StoppedCall:
    """Why there is no value: the call was killed at a limit, or its process died by itself."""

    verdict: Verdict
    message: str
    has_died: bool = field(default=False, compare=False)

    @classmethod
    def dead(cls, child: Child) -> StoppedCall:
        """Of a process whose socket has ended; it is waited for, and what it started killed."""
        time.sleep(DYING_SECONDS)  # so that the exit code is its own and not that of our kill
        child.kill()
        verdict = Verdict.MEMOUT if "MemoryError" in child.last_words else Verdict.ERROR
        return cls(verdict, f"the process died ({child.reason_of_death})", has_died=True)


def call_guarded(
    function: Callable[..., T],
    *arguments: object,
    until: float = math.inf,
    memory_bytes: int | None = None,
) -> T | StoppedCall:
    """What `function(*arguments)` returns, computed in a new process.

    `until` is on `time.monotonic`'s clock. The call may stop by itself a little after it, with its
    best answer; then it is killed. An InputError of the call is raised here as one, with the same
    words; any other exception as a RadiiError.
    """
    child = Child.start(Call(function, arguments))
    try:
        stopped = _watch(child, until + WORK_GRACE_SECONDS, memory_bytes)
        return _value(child) if stopped is None else stopped
    finally:
        child.kill()


def _watch(child: Child, end: float, memory_bytes: int | None) -> StoppedCall | None:
    """Wait for an answer. None: there is one, or the process died."""
    is_watched = memory_bytes is not None
    while True:
        left = end - time.monotonic()
        pause = min(left, POLL_SECONDS) if is_watched else min(left, 3600.0)
        if child.connection.poll(max(0.0, pause)):
            return None
        if memory_bytes is not None and child.resident_bytes > memory_bytes:
            return StoppedCall(Verdict.MEMOUT, "killed: it overran its memory limit")
        if time.monotonic() >= end:
            return StoppedCall(Verdict.TIMEOUT, "killed: it overran its time limit")


def _value(child: Child) -> Any:
    """What the call returned, or how its process died."""
    try:
        kind, value = child.connection.recv()
    except (EOFError, OSError):
        return StoppedCall.dead(child)
    if kind == "input error":
        raise InputError(value)
    if kind == "error":
        raise RadiiError(value)
    return value
