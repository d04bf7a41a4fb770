"""Processes that answer requests of one kind, with hard limits, and keep what they loaded.

`guarded` starts a process for each call; here each process makes its function once. A request that
overruns a limit is killed with its process, and the next one gets a new process. One whose process
dies of anything else is tried once more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Self

from radii.errors import InputError
from radii.processes._child import POLL_SECONDS, WORK_GRACE_SECONDS, Child, Service
from radii.processes._guard import StoppedCall
from radii.verdicts import Verdict

START_SECONDS = 120.0
"""What a process may take, beside its first request, to import and make what it needs."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Request:
    """Arguments for the function, and the wall seconds that it may take."""

    arguments: tuple[Any, ...]
    seconds: float = math.inf


@dataclass(slots=True, eq=False)
class _PoolProcess:
    """One process, and the request that it works on until `end`."""

    child: Child
    is_new: bool = True
    request: Request | None = None
    end: float = math.inf

    def give(self, request: Request) -> None:
        start = START_SECONDS if self.is_new else 0.0
        self.request, self.is_new = request, False
        self.end = time.monotonic() + request.seconds + WORK_GRACE_SECONDS + start
        self.child.send(request.arguments)


class ProcessPool:
    """`jobs` processes that each hold `make(*arguments)`, a function importable by its name.

    Used as a context manager; leaving it ends them.
    """

    def __init__(
        self,
        make: Callable[..., Callable[..., Any]],
        *arguments: object,
        jobs: int,
        memory_bytes: int | None = None,
    ) -> None:
        self._post = Service(make, arguments)
        self._jobs = jobs
        self._memory_bytes = memory_bytes
        self._idle: list[_PoolProcess] = []
        self._busy: list[_PoolProcess] = []

    def answers(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Any]]:
        """Each request with what the function returned, or with a `StoppedCall`; as they end.

        An InputError of the function is raised here with the same words.
        """
        waiting, repeated = list(reversed(requests)), set()
        while waiting or self._busy:
            while waiting and len(self._busy) < self._jobs:
                member = self._idle.pop() if self._idle else self._hired()
                member.give(waiting.pop())
                self._busy.append(member)
            for request, outcome in self._ended():
                is_lost = isinstance(outcome, StoppedCall) and outcome.has_died
                if is_lost and id(request) not in repeated:
                    repeated.add(id(request))
                    waiting.append(request)
                else:
                    yield request, outcome

    def _hired(self) -> _PoolProcess:
        return _PoolProcess(Child.start(self._post, ONE_THREAD))

    def _ended(self) -> Iterator[tuple[Request, Any]]:
        left = min(member.end for member in self._busy) - time.monotonic()
        pause = min(max(0.0, left), POLL_SECONDS if self._memory_bytes else 3600.0)
        wait([member.child.connection for member in self._busy], pause)
        for member in list(self._busy):
            outcome = self._outcome(member)
            if outcome is None:
                continue
            self._busy.remove(member)
            request, member.request = member.request, None
            if isinstance(outcome, StoppedCall):
                member.child.kill()
            else:
                self._idle.append(member)
            assert request is not None
            yield request, outcome[0] if isinstance(outcome, tuple) else outcome

    def _outcome(self, member: _PoolProcess) -> tuple[Any] | StoppedCall | None:
        """The value in a tuple, or why there is none; None while the process works."""
        child = member.child
        if child.connection.poll():
            try:
                kind, value = child.connection.recv()
            except (EOFError, OSError):
                return StoppedCall.dead(child)
            if kind == "input error":
                raise InputError(value)
            return StoppedCall(Verdict.ERROR, str(value)) if kind == "error" else (value,)
        if self._memory_bytes is not None and child.resident_bytes > self._memory_bytes:
            return StoppedCall(Verdict.MEMOUT, "killed: it overran its memory limit")
        if time.monotonic() >= member.end:
            return StoppedCall(Verdict.TIMEOUT, "killed: it overran its time limit")
        return None

    def close(self) -> None:
        """End all processes."""
        for member in (*self._busy, *self._idle):
            member.child.kill()
        self._busy.clear()
        self._idle.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
