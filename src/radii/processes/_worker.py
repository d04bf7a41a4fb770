"""The process behind `radii.processes._child`, `python -m radii.processes._worker FD PARENT ...`.

Started by `Child`, never by hand. It is a process of its own, not a fork or a re-import of the
caller's main module, so it works from any script or notebook. The first messages say where to
import from, and its job: a call, or a service to give until the other end closes. Modules that are
named behind its parent's id are imported before: a process that is started ahead of its job has
them then.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from radii.errors import InputError
from radii.processes._child import Call, Message, MessageKind, Order, Service, becoming_ready
from radii.processes._usage import is_out_of_memory

PR_SET_PDEATHSIG = 1
"""prctl's option: which signal to get when the parent dies."""


def main() -> None:
    """Read the job and do it."""
    _die_with(int(sys.argv[2]))
    for module in sys.argv[3:]:
        with suppress(Exception):  # the job will find out, and somebody waits for its words
            import_module(module)
    connection = Connection(int(sys.argv[1]))
    try:
        sys.path[:] = connection.recv()  # so that its imports find what the caller's do
        with becoming_ready():
            job: Call | Service = connection.recv()
        if isinstance(job, Call):
            connection.send(_outcome(job.function, job.arguments))
        else:
            _serve(job, connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _die_with(parent: int) -> None:
    """Leave Ctrl-C to the parent, and die when it dies, however it dies (at once on Linux)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Line:
    """What a service can say and ask while it works on a request."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._number = 0
        self._is_cancelled = False

    def is_cancelled(self) -> bool:
        """Called often: does nobody wait for the answer any more?"""
        while not self._is_cancelled and self._connection.poll():
            self._is_cancelled = self._connection.recv().number == self._number
        return self._is_cancelled

    def report(self, value: object) -> None:
        """Report progress, which counts even if the process is killed."""
        self._connection.send(Message(MessageKind.PARTIAL, value))

    def next_request(self) -> tuple[Any, ...]:
        """The arguments of the next request, once there is one."""
        self._is_cancelled = False
        while True:
            order: Order = self._connection.recv()
            if order.arguments is not None:  # else it came too late: the answer was on its way
                self._number = order.number
                return order.arguments


def _serve(service: Service, connection: Connection) -> None:
    with becoming_ready():
        handle = service.make(*service.arguments)
    line = Line(connection)
    first = (line,) if service.has_line else ()
    connection.send(Message(MessageKind.READY))
    while True:
        arguments = line.next_request()
        connection.send(_outcome(handle, (*first, *arguments)))


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Message:
    try:
        return Message(MessageKind.VALUE, function(*arguments))
    except InputError as error:
        return Message(MessageKind.INPUT_ERROR, str(error))
    except Exception as error:
        if is_out_of_memory(error):  # the process dies of it, and its parent reads that
            raise
        return Message(MessageKind.ERROR, f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
