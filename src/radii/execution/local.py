"""Worker processes on this machine, with hard limits.

Each worker holds the networks and uses one thread. A task that overruns its limit and does not stop
by itself is killed with its worker; a worker that dies of anything is a missing answer and a new
worker, never a lost experiment.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import IO

from radii.errors import RadiiError
from radii.execution._base import Equipment, Executor, Task, Toolbox, missing_results
from radii.verdicts import Result, Verdict

__all__ = ["LocalWorkers"]

GRACE_SECONDS = 2.0
"""How long after its limit a task may take to stop by itself before its worker is killed."""

DYING_SECONDS = 0.05
"""Between the end of a worker's socket and the end of its process."""

START_SECONDS = 120.0
"""How long a worker may take to import torch and load the networks; slow disks included."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class LocalWorkers(Executor):
    """`jobs` worker processes; a worker starts when there is a task for it."""

    def __init__(self, toolbox: Toolbox, jobs: int) -> None:
        self._toolbox = toolbox
        self._equipment = Equipment.pack(toolbox)
        self._jobs = jobs
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []

    @property
    def has_room(self) -> bool:
        return len(self._busy) < self._jobs

    def submit(self, task: Task) -> None:
        worker = self._idle.pop() if self._idle else _Worker.start(self._equipment)
        worker.give(task)
        self._busy.append(worker)

    def wait(self) -> tuple[Task, list[Result]]:
        while True:
            pause = max(0.0, min(worker.killed_at for worker in self._busy) - time.monotonic())
            ready = wait([w.connection for w in self._busy], timeout=min(pause, 3600.0))
            for worker in list(self._busy):
                if worker.connection in ready:
                    ended = self._collect(worker)
                    if ended is not None:
                        return ended
                elif time.monotonic() >= worker.killed_at:
                    return self._lost(worker, Verdict.TIMEOUT, "killed: it overran its time limit")

    def close(self) -> None:
        for worker in (*self._idle, *self._busy):
            worker.kill()
        self._idle.clear()
        self._busy.clear()

    def _collect(self, worker: _Worker) -> tuple[Task, list[Result]] | None:
        """What a worker sent: None if it only says that it is ready."""
        try:
            message = worker.connection.recv()
        except (EOFError, OSError):
            return self._died(worker)
        if message == "ready":
            worker.begin()
            return None
        self._busy.remove(worker)
        self._idle.append(worker)
        return worker.current_task, message

    def _died(self, worker: _Worker) -> tuple[Task, list[Result]]:
        time.sleep(DYING_SECONDS)  # so that the exit code is its own and not that of our kill
        worker.kill()
        if not worker.is_ready:
            raise RadiiError(f"a worker process could not start: {worker.last_words}")
        verdict = Verdict.MEMOUT if "MemoryError" in worker.last_words else Verdict.ERROR
        code = worker.exit_code
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        return self._lost(worker, verdict, f"the worker process died ({reason})")

    def _lost(self, worker: _Worker, verdict: Verdict, message: str) -> tuple[Task, list[Result]]:
        worker.kill()
        self._busy.remove(worker)
        task, seconds = worker.current_task, time.monotonic() - worker.began_at
        return task, missing_results(self._toolbox, task, verdict, seconds, message)


@dataclass(slots=True, eq=False)
class _Worker:
    """One process and the task it works on."""

    process: subprocess.Popen[bytes]
    connection: Connection
    stderr: IO[bytes]
    is_ready: bool = False
    task: Task | None = None
    began_at: float = 0.0
    killed_at: float = float("inf")
    exit_code: int = 0
    last_words: str = ""

    @classmethod
    def start(cls, equipment: Equipment) -> _Worker:
        ours, theirs = socket.socketpair()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
        with theirs:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    __package__ + ".worker",
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={**os.environ, **ONE_THREAD},
            )
        connection = Connection(ours.detach())
        connection.send(equipment)
        return cls(process, connection, stderr)

    @property
    def current_task(self) -> Task:
        if self.task is None:
            raise AssertionError("a worker without a task answered")
        return self.task

    def give(self, task: Task) -> None:
        self.task = task
        self.began_at = time.monotonic()
        self.killed_at = self.began_at + START_SECONDS
        if self.is_ready:
            self.begin()

    def begin(self) -> None:
        """Send the task; from now on its time runs."""
        self.is_ready = True
        task = self.current_task
        self.began_at = time.monotonic()
        self.killed_at = self.began_at + task.seconds * len(task.queries) + GRACE_SECONDS
        self.connection.send(task)

    def kill(self) -> None:
        """End the process and keep its exit code and the last line of its standard error."""
        if self.stderr.closed:
            return
        if not self.connection.closed:
            self.connection.close()
        self.process.kill()
        self.exit_code = self.process.wait()
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        self.last_words = lines[-1] if lines else ""
        self.stderr.close()
