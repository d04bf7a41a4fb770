"""Calls in processes of their own, so that limits hold whatever the code called does.

`call_guarded` starts a process for one call. A `ProcessPool` keeps its processes: each makes its
function once. A request that overruns a limit is killed with its process, and the next one gets a
new process. One whose process dies of anything else is tried once more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from radii.errors import InputError, RadiiError
from radii.processes._child import (
    ONE_THREAD,
    START_SECONDS,
    WORK_GRACE_SECONDS,
    Call,
    Child,
    Message,
    MessageKind,
    Service,
    StoppedCall,
    watch,
)
from radii.processes._usage import Allowance, Ending, is_out_of_memory

T = TypeVar("T")


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
    seconds = until + WORK_GRACE_SECONDS - time.monotonic()
    child = Child.start(Call(function, arguments), Allowance(seconds, memory_bytes=memory_bytes))
    try:
        while not (events := list(watch([child]))):
            pass
        ((_, event),) = events
        if isinstance(event, Message) and event.kind is MessageKind.ERROR:
            raise RadiiError(event.value)
        value: T | StoppedCall = _value(event)
        return value
    finally:
        child.kill()


def _value(event: Message | StoppedCall) -> Any:
    """What a call came to; an InputError is raised."""
    if isinstance(event, StoppedCall):
        return event
    if event.kind is MessageKind.INPUT_ERROR:
        raise InputError(event.value)
    return (
        event.value if event.kind is MessageKind.VALUE else StoppedCall(Ending.FAILED, event.value)
    )


@dataclass(frozen=True, slots=True)
class Request:
    """Arguments for the function, and the wall seconds that it may take."""

    arguments: tuple[Any, ...]
    seconds: float = math.inf


class ProcessPool:
    """`jobs` processes that each hold `make(*arguments)`, a function importable by its name.

    `jobs` 0: what is made works in this process, on one request after the other, and nothing is
    stopped at a limit. Used as a context manager; leaving it ends them.
    """

    def __init__(
        self,
        make: Callable[..., Callable[..., Any]],
        *arguments: object,
        jobs: int,
        memory_bytes: int | None = None,
    ) -> None:
        self._service = Service(make, arguments)
        self._function: Callable[..., Any] | None = None  # which works here, without processes
        self._jobs = jobs
        self._memory_bytes = memory_bytes
        self._idle: list[Child] = []
        self._busy: dict[Child, Request] = {}

    def answers(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Any]]:
        """Each request with what the function returned, or with a `StoppedCall`; as they end.

        An InputError of the function is raised here with the same words.
        """
        if not self._jobs:
            yield from ((request, self._answer_here(request)) for request in requests)
            return
        waiting, repeated = list(reversed(requests)), set()
        while waiting or self._busy:
            while waiting and len(self._busy) < self._jobs:
                self._give(waiting.pop())
            for child, event in watch(list(self._busy)):
                outcome = _value(event)
                request = self._busy.pop(child)
                is_stopped = isinstance(outcome, StoppedCall)
                if is_stopped:
                    child.kill()
                else:
                    self._idle.append(child)
                if is_stopped and outcome.has_died and id(request) not in repeated:
                    repeated.add(id(request))
                    waiting.append(request)
                else:
                    yield request, outcome

    def _answer_here(self, request: Request) -> Any:
        if self._function is None:
            self._function = self._service.make(*self._service.arguments)
        try:
            return self._function(*request.arguments)
        except RadiiError:
            raise
        except Exception as error:
            ending = Ending.MEMORY_LIMIT if is_out_of_memory(error) else Ending.FAILED
            return StoppedCall(ending, f"{type(error).__name__}: {error}")

    def _give(self, request: Request) -> None:
        if self._idle:
            child = self._idle.pop()
        else:
            starting = Allowance(START_SECONDS, memory_bytes=self._memory_bytes)
            child = Child.start(self._service, starting, ONE_THREAD)
        self._busy[child] = request
        seconds = request.seconds + WORK_GRACE_SECONDS
        child.ask(request.arguments, Allowance(seconds, memory_bytes=self._memory_bytes))

    def close(self) -> None:
        """End all processes."""
        for child in (*self._busy, *self._idle):
            child.kill()
        self._busy.clear()
        self._idle.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
