"""Worker processes on this machine, with hard limits.

Each worker holds the networks and uses one thread. A task that overruns a limit and does not stop
by itself is killed with its worker; a worker that dies of anything is a missing answer and a new
worker, never a lost experiment. What a task had proven by then is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from radii.errors import RadiiError
from radii.problem import Result, Verdict
from radii.processes import (
    ONE_THREAD,
    POLL_SECONDS,
    START_SECONDS,
    WORK_GRACE_SECONDS,
    Allowance,
    Child,
    Ending,
    Line,
    Message,
    MessageKind,
    Service,
    StoppedCall,
    watch,
)
from radii.runs.executors._base import (
    Executor,
    Inline,
    SealedToolbox,
    Toolbox,
    missing_results,
)
from radii.strategy import Task

WORKER_MODULES = ("torch", "onnxruntime", "radii.runs.executors._local", "radii.verifiers")
"""What a local worker imports before it can work, about: nine tenths of the time to start one."""

KEPT_SHARE = 0.25
"""A worker that still holds more than this part of what its limit leaves for tasks is replaced:
memory that is not given back would make the next task a MEMOUT from its start."""

CLOSE_SECONDS = 2.0
"""At the end of a run, how long processes that a worker started may take to end by themselves."""

FAILED_STARTS = 3
"""Workers in a row that end before they are ready, until the run gives up."""


class LocalWorkers(Executor):
    """`jobs` worker processes; a worker starts when there is a task for it."""

    def __init__(self, tools: Toolbox | SealedToolbox, jobs: int) -> None:
        self._tools = tools if isinstance(tools, SealedToolbox) else SealedToolbox.pack(tools)
        self._jobs = jobs
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._failed_starts = 0

    @property
    def has_room(self) -> bool:
        return len(self._busy) < self._jobs

    def submit(self, task: Task) -> None:
        worker = self._free_worker()
        worker.give(task, self._tools.memory_bytes)
        self._busy.append(worker)

    def _free_worker(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if not worker.child.is_dead:
                return worker
            worker.child.kill()  # somebody else has ended it meanwhile
        return _Worker.start(self._tools)

    def cancel(self, task: Task) -> None:
        for worker in self._busy:
            if worker.current_task.number == task.number:
                worker.child.cancel()

    def wait(self) -> tuple[Task, list[Result]]:
        while True:
            for worker in self._busy:
                if not worker.child.is_busy:
                    return self._never_begun(worker)
            workers = {worker.child: worker for worker in self._busy}
            for child, event in watch(list(workers), POLL_SECONDS):  # other threads may cancel
                ended = self._outcome(workers[child], event)
                if ended is not None:
                    return ended

    def close(self) -> None:
        for worker in (*self._idle, *self._busy):
            worker.child.kill(CLOSE_SECONDS)
        self._idle.clear()
        self._busy.clear()

    def _outcome(
        self, worker: _Worker, event: Message | StoppedCall
    ) -> tuple[Task, list[Result]] | None:
        """The results of a task that has ended; None if it goes on, here or in another worker."""
        if not worker.child.is_ready:
            return self._start_again(worker)
        self._failed_starts = 0
        if isinstance(event, StoppedCall):
            return self._lost(worker, event)
        if event.kind is MessageKind.PARTIAL:
            worker.partial_results = event.value
            return None
        self._busy.remove(worker)
        if worker.keeps_too_much(self._tools.memory_bytes):
            worker.child.kill()
        else:
            self._idle.append(worker)
        if event.kind is not MessageKind.VALUE:
            raise RadiiError(f"a worker process failed: {event.value}")
        return worker.current_task, event.value

    def _never_begun(self, worker: _Worker) -> tuple[Task, list[Result]]:
        """A task was cancelled while its worker was loading, which it goes on with."""
        self._busy.remove(worker)
        self._idle.append(worker)
        task, message = worker.current_task, "cancelled before it began"
        return task, missing_results(self._tools, task, Ending.CANCELLED, 0.0, message, 0.0)

    def _start_again(self, worker: _Worker) -> tuple[Task, list[Result]] | None:
        """Give the task of a worker that never was ready to another one, but not for ever."""
        child = worker.child
        if child.is_cancelled:
            return self._never_begun(worker)
        self._failed_starts += 1
        if self._failed_starts >= FAILED_STARTS:
            reason = child.last_words or f"it was not ready after {START_SECONDS:g} s"
            raise RadiiError(f"a worker process could not start: {reason}")
        self._busy.remove(worker)
        self.submit(worker.current_task)
        return None

    def _lost(self, worker: _Worker, stopped: StoppedCall) -> tuple[Task, list[Result]]:
        """What is left of a task that was killed: what it had proven before, and missing answers.

        One whose worker died is asked again, so it has no verdict of its own.
        """
        self._busy.remove(worker)
        message = stopped.message
        if stopped.has_died:
            message = f"the worker process died ({worker.child.reason_of_death})"
        task, used = worker.current_task, (stopped.seconds, message, stopped.cpu_seconds)
        missing = missing_results(self._tools, task, stopped.ending, *used)
        known = zip(worker.partial_results, missing, strict=False)
        kept = [_with_partial_result(result, instead) for result, instead in known]
        results = [*kept, *missing[len(kept) :]]
        if stopped.has_died:
            verdict = Verdict.of(stopped.ending)
            results = [replace(result, verdict=verdict) for result in results]
        return task, results


def _serve_tasks(tools: SealedToolbox) -> Callable[[Line, Task], list[Result]]:
    """What a worker process does: it loads the networks once, and answers task after task."""
    import torch

    torch.set_num_threads(1)
    toolbox = tools.unpack()

    def answer(line: Line, task: Task) -> list[Result]:
        inline = Inline(toolbox, line.is_cancelled, line.report)
        inline.submit(task)
        return inline.wait()[1]

    return answer


def _with_partial_result(partial: Result, missing: Result) -> Result:
    """What was found, and why there is not more; its verdict only where there was a proof."""
    kept, is_proven = _kept_text(partial), partial.proof is not None
    message = f"{missing.message}; {kept}" if kept else missing.message
    return replace(
        partial,
        verdict=partial.verdict if is_proven else missing.verdict,
        seconds=missing.seconds,
        cpu_seconds=missing.cpu_seconds,
        # Where there is a proof, that comes first: it was not the proof that was killed.
        message=f"{kept}; after that {missing.message}" if is_proven else message,
        ending=missing.ending,
    )


def _kept_text(partial: Result) -> str:
    """What was found of a task that has no answer; empty if nothing was."""
    kept = []
    if partial.proof is not None:
        kept.append(f"the proof at eps {partial.proof.eps:g}")
    if partial.witness is not None:
        kept.append(f"the witness at distance {partial.witness.distance:g}")
    if not kept:
        return ""
    return f"{' and '.join(kept)} {'is' if len(kept) == 1 else 'are'} kept"


@dataclass(slots=True, eq=False)
class _Worker:
    """One process and the task it works on."""

    child: Child
    task: Task | None = None
    partial_results: list[Result] = field(default_factory=list)

    @classmethod
    def start(cls, tools: SealedToolbox) -> _Worker:
        service = Service(_serve_tasks, (tools,), has_line=True)
        starting = Allowance(START_SECONDS)
        return cls(Child.start(service, starting, ONE_THREAD, is_counting=True))

    @property
    def current_task(self) -> Task:
        if self.task is None:
            raise AssertionError("a worker without a task answered")
        return self.task

    def give(self, task: Task, memory_bytes: int | None = None) -> None:
        self.task, self.partial_results = task, []
        count = len(task.queries)
        seconds = task.seconds * count + WORK_GRACE_SECONDS
        cpu_seconds = task.cpu_seconds * count + WORK_GRACE_SECONDS
        self.child.ask((task,), Allowance(seconds, cpu_seconds, memory_bytes))

    def keeps_too_much(self, limit: int | None) -> bool:
        """Between tasks: too little of the limit is left for the next one."""
        if limit is None:
            return False
        held, first = self.child.usage().memory_bytes, self.child.held_at_first
        return held - first > KEPT_SHARE * (limit - first)
