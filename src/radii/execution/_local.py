"""Worker processes on this machine, with hard limits.

Each worker holds the networks and uses one thread. A task that overruns a limit and does not stop
by itself is killed with its worker; a worker that dies of anything is a missing answer and a new
worker, never a lost experiment. What a task had proven by then is kept.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait

from radii.errors import RadiiError
from radii.execution._base import (
    Executor,
    PartialResults,
    SealedToolbox,
    Task,
    Toolbox,
    missing_results,
)
from radii.processes import (
    CANCEL_MESSAGE,
    DYING_SECONDS,
    POLL_SECONDS,
    READY_MESSAGE,
    WORK_GRACE_SECONDS,
    Child,
)
from radii.verdicts import Result, Verdict

START_SECONDS = 120.0
"""How long a worker may take to import torch and load the networks; slow disks included."""

KEPT_SHARE = 0.25
"""A worker that still holds more than this part of what its limit leaves for tasks is replaced:
memory that is not given back would make the next task a MEMOUT from its start."""

CLOSE_SECONDS = 2.0
"""At the end, how long what a worker had started may take to end by itself: nobody waits then."""

FAILED_STARTS = 3
"""Workers in a row that end before they are ready, until there is no use in starting another."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class LocalWorkers(Executor):
    """`jobs` worker processes; a worker starts when there is a task for it."""

    def __init__(self, tools: Toolbox | SealedToolbox, jobs: int) -> None:
        self._equipment = tools if isinstance(tools, SealedToolbox) else SealedToolbox.pack(tools)
        self._jobs = jobs
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._failed_starts = 0

    @property
    def has_room(self) -> bool:
        return len(self._busy) < self._jobs

    def submit(self, task: Task) -> None:
        worker = self._free_worker()
        worker.give(task)
        self._busy.append(worker)

    def _free_worker(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.child.process.poll() is None:
                return worker
            worker.child.kill()  # somebody else has ended it meanwhile
        return _Worker.start(self._equipment)

    def cancel(self, task: Task) -> None:
        for worker in self._busy:
            if worker.current_task.number == task.number:
                worker.cancel()

    def wait(self) -> tuple[Task, list[Result]]:
        while True:
            pause = max(0.0, min(worker.killed_at for worker in self._busy) - time.monotonic())
            pause = min(pause, POLL_SECONDS)  # memory grows, and other threads may cancel
            ready = wait([worker.child.connection for worker in self._busy], timeout=pause)
            for worker in list(self._busy):
                if worker.child.connection in ready:
                    ended = self._collect(worker)
                    if ended is not None:
                        return ended
                elif worker.is_cancelled and not worker.is_ready:
                    return self._never_begun(worker)
                elif worker.held_too_much(self._equipment.memory_bytes):
                    return self._lost(worker, Verdict.MEMOUT, "killed: it overran its memory limit")
                elif worker.used_too_much():
                    return self._lost(worker, Verdict.TIMEOUT, "killed: it overran its CPU limit")
                elif time.monotonic() >= worker.killed_at:
                    ended = self._overrun(worker)
                    if ended is not None:
                        return ended

    def close(self) -> None:
        for worker in (*self._idle, *self._busy):
            worker.child.kill(CLOSE_SECONDS)
        self._idle.clear()
        self._busy.clear()

    def _collect(self, worker: _Worker) -> tuple[Task, list[Result]] | None:
        """What a worker sent: None if it only says that it is ready, or how far it has come."""
        try:
            message = worker.child.connection.recv()
        except (EOFError, OSError):
            return self._died(worker)
        if message == READY_MESSAGE:
            self._failed_starts = 0
            worker.begin()
            return None
        if isinstance(message, PartialResults):
            worker.so_far = message.results
            return None
        self._busy.remove(worker)
        if worker.keeps_too_much(self._equipment.memory_bytes):
            worker.child.kill()
        else:
            self._idle.append(worker)
        return worker.current_task, message

    def _never_begun(self, worker: _Worker) -> tuple[Task, list[Result]]:
        """A task was cancelled while its worker was loading, which it goes on with."""
        self._busy.remove(worker)
        self._idle.append(worker)
        message = "cancelled before it began"
        task = worker.current_task
        return task, missing_results(self._equipment, task, Verdict.CANCELLED, 0.0, message, 0.0)

    def _died(self, worker: _Worker) -> tuple[Task, list[Result]] | None:
        """What a worker's end leaves of its task; None: it never began, and another will do it."""
        time.sleep(DYING_SECONDS)  # so that the exit code is its own and not that of our kill
        child = worker.child
        child.kill()
        if not worker.is_ready:
            self._start_again(worker, child.last_words)
            return None
        verdict = Verdict.MEMOUT if "MemoryError" in child.last_words else Verdict.ERROR
        message = f"the worker process died ({child.reason_of_death})"
        task, results = self._lost(worker, verdict, message)
        return task, [replace(result, verdict=verdict) for result in results]  # to be asked again

    def _start_again(self, worker: _Worker, reason: str) -> None:
        """Give the task of a worker that never was ready to another one, but not for ever."""
        worker.child.kill()
        self._failed_starts += 1
        if self._failed_starts >= FAILED_STARTS:
            raise RadiiError(f"a worker process could not start: {reason}")
        self._busy.remove(worker)
        self.submit(worker.current_task)

    def _overrun(self, worker: _Worker) -> tuple[Task, list[Result]] | None:
        if not worker.is_ready:
            self._start_again(worker, f"it was not ready after {START_SECONDS:g} s")
            return None
        if worker.is_cancelled:
            return self._lost(worker, Verdict.CANCELLED, "killed: it was cancelled and went on")
        return self._lost(worker, Verdict.TIMEOUT, "killed: it overran its time limit")

    def _lost(self, worker: _Worker, verdict: Verdict, message: str) -> tuple[Task, list[Result]]:
        """What is left of a task that is killed: what it had proven before, and missing answers."""
        task, seconds, cpu = worker.current_task, worker.seconds, worker.cpu_seconds
        worker.child.kill()
        self._busy.remove(worker)
        missing = missing_results(self._equipment, task, verdict, seconds, message, cpu)
        known = zip(worker.so_far, missing, strict=False)
        proven = [_with_partial_result(result, instead) for result, instead in known]
        return task, [*proven, *missing[len(proven) :]]


def _with_partial_result(found: Result, missing: Result) -> Result:
    """What was found, and why there is not more; its verdict only where there was a proof."""
    return replace(
        found,
        verdict=found.verdict if found.proof is not None else missing.verdict,
        seconds=missing.seconds,
        cpu_seconds=missing.cpu_seconds,
        message=f"{missing.message}{_kept_text(found)}",
    )


def _kept_text(found: Result) -> str:
    """What of a task counts although it was killed, to go behind the reason of that."""
    kept = []
    if found.proof is not None:
        kept.append(f"the proof at eps {found.proof.eps:g}")
    if found.witness is not None:
        kept.append(f"the witness at distance {found.witness.distance:g}")
    if not kept:
        return ""
    return f"; {' and '.join(kept)} {'is' if len(kept) == 1 else 'are'} kept"


@dataclass(slots=True, eq=False)
class _Worker:
    """One process and the task it works on."""

    child: Child
    is_ready: bool = False
    is_cancelled: bool = False
    held_at_first: int = 0
    task: Task | None = None
    began_at: float = 0.0
    cpu_before: float = 0.0
    cpu_seconds: float | None = 0.0
    killed_at: float = float("inf")
    so_far: list[Result] = field(default_factory=list)

    @classmethod
    def start(cls, equipment: SealedToolbox) -> _Worker:
        return cls(Child.start(equipment, ONE_THREAD))

    @property
    def current_task(self) -> Task:
        if self.task is None:
            raise AssertionError("a worker without a task answered")
        return self.task

    def give(self, task: Task) -> None:
        self.task = task
        self.is_cancelled = False
        self.so_far = []
        self.began_at = time.monotonic()
        self.killed_at = self.began_at + START_SECONDS
        if self.is_ready:
            self._send()

    def begin(self) -> None:
        """The process has just become ready for its first task."""
        self.is_ready = True
        self.held_at_first = self.child.resident_bytes
        self._send()

    def _send(self) -> None:
        """From now on the task's time runs."""
        task = self.current_task
        self.began_at = time.monotonic()
        end = self.began_at + task.seconds * len(task.queries) + WORK_GRACE_SECONDS
        self.killed_at = min(end, self.killed_at) if self.is_cancelled else end
        before = self.child.cpu_seconds
        self.cpu_before, self.cpu_seconds = before or 0.0, None if before is None else 0.0
        with suppress(OSError):  # it has died, as `wait` will find
            self.child.send(task)
            if self.is_cancelled:
                self.child.send(CANCEL_MESSAGE)

    @property
    def seconds(self) -> float:
        """Wall time since the task began; a task whose worker still loads has not."""
        return time.monotonic() - self.began_at if self.is_ready else 0.0

    def cancel(self) -> None:
        """Ask the process to stop; it is killed if it does not."""
        if self.is_cancelled:
            return
        self.is_cancelled = True
        self.killed_at = min(self.killed_at, time.monotonic() + WORK_GRACE_SECONDS)
        if self.is_ready:
            with suppress(OSError):  # it has died, as `wait` will find
                self.child.send(CANCEL_MESSAGE)

    def held_too_much(self, limit: int | None) -> bool:
        return limit is not None and self.is_ready and self.child.resident_bytes > limit

    def used_too_much(self) -> bool:
        """Looks at the processor time of the task, and remembers it in case the process dies."""
        if not self.is_ready:
            return False
        used = self.child.cpu_seconds
        if used is None:
            return False
        self.cpu_seconds = used - self.cpu_before
        task = self.current_task
        return self.cpu_seconds > task.cpu_seconds * len(task.queries) + WORK_GRACE_SECONDS

    def keeps_too_much(self, limit: int | None) -> bool:
        """Between tasks: too little of the limit is left for the next one."""
        if limit is None:
            return False
        room = limit - self.held_at_first
        return self.child.resident_bytes - self.held_at_first > KEPT_SHARE * room
