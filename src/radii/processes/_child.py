"""A process of our own to work in: started, talked to, watched and ended from here."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import IO, Any

from radii.processes._cpu_time import cpu_seconds, descendant_pids, is_alive
from radii.processes._memory import resident_bytes

WORK_GRACE_SECONDS = 0.8
"""How long after its limit work may take to stop by itself before its process is killed: with the
killing, an answer is there within a second of the limit."""

ORPHAN_SECONDS = 0.15
"""How long what a killed process had started may take to end by itself, before it is killed too: a
supervisor then ends its program and removes its files."""

OUTPUT_TAIL_BYTES = 1 << 16
"""The end of the standard error that is read."""

POLL_SECONDS = 0.05
"""Between two looks at what a process holds, and whether it was cancelled."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function, importable by its name, and its arguments: what a child does once."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """What a child does until its end: `make(*arguments)` is a function, and every message then a
    tuple of arguments for it. What is made once, such as loaded networks, serves all of them."""

    make: Callable[..., Callable[..., Any]]
    arguments: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class Child:
    """One process that runs `radii.processes._worker`, and the socket to it.

    What it holds and uses is counted together with the processes that it starts, which end with it.
    """

    process: subprocess.Popen[bytes]
    connection: Connection
    stderr: IO[bytes]
    exit_code: int = 0
    last_words: str = ""
    _sending: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def start(cls, job: object, environment: Mapping[str, str] | None = None) -> Child:
        """A new process, which gets the job as its first message."""
        ours, theirs = socket.socketpair()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        module = f"{__package__}._worker"
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # a group of its own, to be killed as a whole
            )
        connection = Connection(ours.detach())
        with suppress(OSError):  # it has died already, as who waits for it will find
            connection.send(job)
        return cls(process, connection, stderr)

    def send(self, message: object) -> None:
        """A message to the process; two threads may speak to it, one after the other."""
        with self._sending:
            self.connection.send(message)

    @property
    def resident_bytes(self) -> int:
        """What the processes hold in memory; 0 once they are gone."""
        return sum(resident_bytes(pid) or 0 for pid in self._family)

    @property
    def cpu_seconds(self) -> float | None:
        """What the processes have used of processors; None if there is no way to know."""
        if cpu_seconds(self.process.pid) is None:
            return None
        return sum(cpu_seconds(pid) or 0.0 for pid in self._family)

    @property
    def _family(self) -> list[int]:
        return [self.process.pid, *descendant_pids(self.process.pid)]

    @property
    def reason_of_death(self) -> str:
        code = self.exit_code
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def kill(self, orphan_seconds: float = ORPHAN_SECONDS) -> None:
        """End the processes, keep the exit code and the last line of the standard error."""
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
        self.stderr.seek(max(0, size - OUTPUT_TAIL_BYTES))
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        self.last_words = lines[-1] if lines else ""
        self.stderr.close()


def _end(orphans: list[int], seconds: float) -> None:
    """Processes whose parent was killed end by themselves, or are ended."""
    end = time.monotonic() + seconds
    while any(map(is_alive, orphans)) and time.monotonic() < end:
        time.sleep(0.005)
    left = [pid for pid in orphans if is_alive(pid)]
    left += [below for pid in left for below in descendant_pids(pid)]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
