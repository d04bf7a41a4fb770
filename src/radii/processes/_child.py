"""A process of our own to work in: started, talked to, watched and ended from here.

A child runs `radii.processes._worker`. It is given a job when it starts: a `Call`, or a `Service`
which then takes one request after the other. `watch` is the one loop that waits for children: it
says what they answer, and kills those that have passed a limit. Whatever a child starts is counted
with it and ends with it. A child dies with its parent, however that dies.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from multiprocessing.connection import Connection, wait
from typing import IO, Any

from radii.errors import ExperimentError
from radii.processes._usage import (
    QUOTED_CHARACTERS,
    Allowance,
    Ending,
    Usage,
    Watch,
    descendant_pids,
    has_workers,
    is_alive,
    speaks_of_memory,
)

WORK_GRACE_SECONDS = 0.8
"""How long after its limit work may take to stop by itself before its process is killed: with the
killing, an answer is there within a second of the limit."""

START_SECONDS = 120.0
"""How long a service may take until it is ready: to import torch and load networks, slow disks
included."""

DYING_SECONDS = 0.05
"""Between the end of a child's socket and the end of its process."""

ORPHAN_SECONDS = 0.15
"""How long what a killed process had started may take to end by itself, before it is killed too: a
supervisor then ends its program and removes its files."""

STDERR_TAIL_BYTES = 1 << 16
"""The end of the standard error that is read."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""The environment of a child beside which others work."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function, importable by its name, and its arguments: what a child does once."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """What a child does until its end: `make(*arguments)` is a function, which is then called with
    the arguments of each request. What is made once, such as loaded networks, serves all of them.

    If it `has_line`, its first argument is the `Line` to its parent.
    """

    make: Callable[..., Callable[..., Any]]
    arguments: tuple[Any, ...]
    has_line: bool = False


class MessageKind(Enum):
    """What a child says."""

    READY = "it can take requests"
    PARTIAL = "how far it has come"
    VALUE = "what the function returned"
    INPUT_ERROR = "the words of an InputError"
    ERROR = "the name and the words of another exception"


@dataclass(frozen=True, slots=True)
class Message:
    """From a child to its parent."""

    kind: MessageKind
    value: Any = None


@dataclass(frozen=True, slots=True)
class Order:
    """From a parent to a child: the arguments of a request, or None to cancel it."""

    number: int
    arguments: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class StoppedCall:
    """Why there is no value: the call was killed at a limit, or its process died by itself.

    `seconds` and `cpu_seconds` are what it had used by then, as far as that was counted.
    """

    ending: Ending
    message: str
    has_died: bool = field(default=False, compare=False)
    seconds: float = field(default=0.0, compare=False)
    cpu_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Spare:
    """A process that waits for its job, and the environment that it was started with."""

    process: subprocess.Popen[bytes]
    connection: Connection
    stderr: IO[bytes]
    environment: Mapping[str, str]
    parent: int

    @classmethod
    def start(cls, environment: Mapping[str, str], modules: Sequence[str] = ()) -> _Spare:
        """A process that imports these modules before it looks for its job."""
        if _unready:
            raise ExperimentError(
                "a module that worker processes import starts worker processes itself, on import: "
                "put that part of it under `if __name__ == '__main__':`"
            )
        if not has_workers():
            raise ExperimentError(
                "worker processes need Linux or macOS: leave out --jobs, or use WSL on Windows"
            )
        ours, theirs = socket.socketpair()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        module, socket_and_parent = f"{__package__}._worker", (theirs.fileno(), os.getpid())
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, socket_and_parent), *modules],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={**os.environ, **environment},
                start_new_session=True,  # a group of its own, to be killed as a whole
            )
        return cls(process, Connection(ours.detach()), stderr, environment, os.getpid())

    def end(self) -> None:
        self.connection.close()
        self.process.kill()  # it has started nothing
        self.process.wait()
        self.stderr.close()


_spares: list[_Spare] = []
"""Those of this process that have no job yet."""

_unready: list[int] = []
"""The id of this process while it is a child that imports what its job needs, and must not start
children of its own: they would import the same, and start others."""


@contextmanager
def becoming_ready() -> Iterator[None]:
    """Around what a child does before its job: whatever starts a process there is refused."""
    _unready.append(os.getpid())
    try:
        yield
    finally:
        _unready.clear()


@contextmanager
def spare_children(
    count: int, modules: Sequence[str], environment: Mapping[str, str]
) -> Iterator[None]:
    """Start processes now that import `modules` while this one does something else.

    A `Child` that is started meanwhile with the same environment is one of them, so that its job
    begins at once. Those that nobody took are ended in the end. What cannot be imported is left to
    the job to complain about.
    """
    started = [_Spare.start(environment, modules) for _ in range(count)]
    _spares.extend(started)
    try:
        yield
    finally:
        for spare in started:
            if spare in _spares:
                _spares.remove(spare)
                spare.end()


def _take_spare(environment: Mapping[str, str]) -> _Spare | None:
    """One that lives, is ours and not that of a process that was forked, and fits."""
    for spare in list(_spares):
        is_ours = spare.parent == os.getpid() and spare.environment == environment
        if is_ours and spare.process.poll() is None:
            _spares.remove(spare)
            return spare
    return None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Child:
    """One process, the socket to it, and what it may still use.

    It is busy from the moment it is given a request until its answer, or its end. Another thread
    may call `cancel` meanwhile.
    """

    process: subprocess.Popen[bytes]
    connection: Connection
    stderr: IO[bytes]
    starting: Allowance
    is_counting: bool
    watch: Watch = field(init=False)
    is_ready: bool = False
    is_busy: bool = False
    is_cancelled: bool = False
    held_at_first: int = 0
    exit_code: int = 0
    last_words: str = ""
    _number: int = 0
    _waiting: tuple[tuple[Any, ...], Allowance] | None = None
    _talking: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.watch = Watch(self.starting, self.usage)

    @classmethod
    def start(
        cls,
        job: Call | Service,
        allowance: Allowance,
        environment: Mapping[str, str] | None = None,
        *,
        is_counting: bool = False,
    ) -> Child:
        """A new process. The allowance is for the call, or for a service to become ready.

        Processor time is counted where it is limited, or everywhere if `is_counting`.
        """
        spare = _take_spare(environment or {}) or _Spare.start(environment or {})
        child = cls(spare.process, spare.connection, spare.stderr, allowance, is_counting)
        child.is_ready = child.is_busy = isinstance(job, Call)
        _living_children().add(child)
        child._send(sys.path)  # it imports what this process can
        child._send(job)
        return child

    def ask(self, arguments: tuple[Any, ...], allowance: Allowance) -> None:
        """Give a request to a service, which begins with it as soon as it is ready.

        Only then the time of the request begins.
        """
        with self._talking:
            self.is_busy, self.is_cancelled = True, False
            self._number += 1
            self._waiting = (arguments, allowance)
            if self.is_ready:
                self._begin()
            else:
                self.watch = Watch(self.starting, self.usage)

    def _begin(self) -> None:
        if self._waiting is not None:
            arguments, allowance = self._waiting
            self._waiting = None
            self.watch = Watch(allowance, self.usage, is_counting=self.is_counting)
            self._send(Order(self._number, arguments))

    def cancel(self, grace: float = WORK_GRACE_SECONDS) -> None:
        """Nobody waits for the answer any more: the child is killed unless it stops soon.

        A request that has not begun is withdrawn, and the child is no longer busy.
        """
        with self._talking:
            if not self.is_busy or self.is_cancelled:
                return
            self.is_cancelled = True
            if self._waiting is not None:
                self._waiting, self.is_busy = None, False
            else:
                self.watch.end = min(self.watch.end, time.monotonic() + grace)
                self._send(Order(self._number, None))

    def _send(self, message: object) -> None:
        with suppress(OSError):  # it has died, as `watch` will find
            self.connection.send(message)

    def receive(self) -> Message | StoppedCall | None:
        """What the process has sent, or how it died; None if it has only become ready."""
        try:
            message: Message = self.connection.recv()
        except (EOFError, OSError):
            return self._died()
        if message.kind is MessageKind.PARTIAL:
            return message
        with self._talking:
            if message.kind is not MessageKind.READY:
                self.is_busy = False
                return message
            self.is_ready = True
            if self.is_counting:
                self.held_at_first = self.usage().memory_bytes
            self._begin()
            return None

    def check(self) -> StoppedCall | None:
        """Kill the processes if they have passed a limit."""
        overrun = self.watch.overrun()
        if overrun is None:
            return None
        ending, message = overrun
        if self.is_cancelled and time.monotonic() >= self.watch.end:
            ending, message = Ending.CANCELLED, "it went on after it was cancelled"
        return self._stopped(ending, message)

    def _died(self) -> StoppedCall:
        time.sleep(DYING_SECONDS)  # so that the exit code is its own and not that of our kill
        stopped = self._stopped(Ending.FAILED, "", has_died=True)
        ending = Ending.LOST if self.exit_code == -signal.SIGKILL else Ending.FAILED
        if speaks_of_memory(self.last_words):
            ending = Ending.MEMORY_LIMIT
        message = f"the process died ({self.reason_of_death})"
        return StoppedCall(ending, message, True, stopped.seconds, stopped.cpu_seconds)

    def _stopped(self, ending: Ending, message: str, has_died: bool = False) -> StoppedCall:
        seconds = self.watch.seconds if self.is_ready else 0.0
        stopped = StoppedCall(ending, message, has_died, seconds, self.watch.cpu_seconds)
        self.kill()
        return stopped

    def usage(self) -> Usage:
        """What its processes hold and have used; nothing once they are gone."""
        return Usage.of([self.process.pid, *descendant_pids(self.process.pid)])

    @property
    def is_dead(self) -> bool:
        """It was killed, or has ended by itself or by somebody else."""
        return self.stderr.closed or self.process.poll() is not None

    @property
    def reason_of_death(self) -> str:
        code, words = self.exit_code, self.last_words[:QUOTED_CHARACTERS]
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"{reason}; it printed: {words}" if words else reason

    def kill(self, orphan_seconds: float = ORPHAN_SECONDS) -> None:
        """End the processes, keep the exit code and the last line of the standard error."""
        self.is_busy = False
        if self.stderr.closed:
            return
        if not self.connection.closed:
            self.connection.close()
        elsewhere = descendant_pids(self.process.pid)  # they may have left the group
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # not waited for yet: the id is still ours
        self.exit_code = self.process.wait()
        _end(elsewhere, orphan_seconds)
        size = self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, size - STDERR_TAIL_BYTES))
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        self.last_words = lines[-1] if lines else ""
        self.stderr.close()


def watch(
    children: Sequence[Child], seconds: float = float("inf")
) -> Iterator[tuple[Child, Message | StoppedCall]]:
    """Wait until a child says something or must be stopped, at most `seconds`; then each event.

    A child that is stopped has been killed. Events are handled one by one: those of children
    after the one at which the caller leaves are there at the next call.
    """
    pause = min([seconds, *(child.watch.pause for child in children)])
    ready = wait([child.connection for child in children], min(pause, 3600.0))
    for child in children:
        if child.connection.closed:  # the caller has killed it meanwhile
            continue
        event = child.receive() if child.connection in ready else child.check()
        if event is not None:
            yield child, event


def _end(orphans: list[int], seconds: float) -> None:
    """Processes whose parent was killed end by themselves, or are ended."""
    end = time.monotonic() + seconds
    while (left := [pid for pid in orphans if is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.005)
    left += [below for parent in left for below in descendant_pids(parent)]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + ORPHAN_SECONDS
    while any(map(is_alive, left)) and time.monotonic() < end:  # so that none is seen after this
        time.sleep(0.005)


@cache
def _living_children() -> weakref.WeakSet[Child]:
    """Children that nobody has dropped yet: those that are left at the end of this process die."""
    children: weakref.WeakSet[Child] = weakref.WeakSet()
    parent = os.getpid()

    def kill_all() -> None:
        if os.getpid() == parent:  # a fork has inherited this function, but not the children
            for child in list(children):
                child.kill()

    atexit.register(kill_all)
    return children
