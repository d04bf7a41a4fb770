"""Runs tasks in this process, one after the other: for notebooks and tests. No hard limits."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from radii.execution._base import Executor, Task, Toolbox, missing_results
from radii.processes import family_seconds, is_out_of_memory
from radii.verdicts import Result, Verdict


class Inline(Executor):
    """Limits hold only as far as the verifier cooperates.

    `cancelled` is asked whether to stop the task that runs, beside `cancel` from another thread;
    `so_far` is told what its results are before it has ended.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        cancelled: Callable[[], bool] = lambda: False,
        so_far: Callable[[list[Result]], None] = lambda _: None,
    ) -> None:
        self._toolbox = toolbox
        self._so_far = so_far
        self._tasks: deque[Task] = deque()
        self._cancelled = cancelled
        self._cancelled_numbers: set[int] = set()

    @property
    def has_room(self) -> bool:
        return not self._tasks

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def cancel(self, task: Task) -> None:
        self._cancelled_numbers.add(task.number)

    def wait(self) -> tuple[Task, list[Result]]:
        task = self._tasks.popleft()
        started, cpu_started = time.perf_counter(), family_seconds()

        def is_cancelled() -> bool:
            return task.number in self._cancelled_numbers or self._cancelled()

        try:
            with _one_thread():
                return task, self._toolbox.answer(task, is_cancelled, self._so_far)
        except Exception as error:
            verdict, message = _missing(error)
        seconds, cpu = time.perf_counter() - started, family_seconds() - cpu_started
        return task, missing_results(self._toolbox, task, verdict, seconds, message, cpu)

    def close(self) -> None:
        self._tasks.clear()


def _missing(error: Exception) -> tuple[Verdict, str]:
    """What an exception leaves of an answer."""
    if is_out_of_memory(error):
        return Verdict.MEMOUT, "out of memory"
    return Verdict.ERROR, f"{type(error).__name__}: {error}"


@contextmanager
def _one_thread() -> Iterator[None]:
    """torch on one thread: small networks lose more to handing work around than they gain."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
