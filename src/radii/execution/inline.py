"""Runs tasks in this process, one after the other: for notebooks and tests. No hard limits."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from radii.execution._base import Executor, Task, Toolbox, missing_results
from radii.verdicts import Result, Verdict

__all__ = ["Inline"]


class Inline(Executor):
    """Time limits hold only as far as the verifier cooperates."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._tasks: deque[Task] = deque()

    @property
    def has_room(self) -> bool:
        return not self._tasks

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def wait(self) -> tuple[Task, list[Result]]:
        task = self._tasks.popleft()
        started = time.perf_counter()
        try:
            with _one_thread():
                return task, self._toolbox.answer(task)
        except MemoryError:
            verdict, message = Verdict.MEMOUT, "out of memory"
        except Exception as error:
            verdict, message = Verdict.ERROR, f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        return task, missing_results(self._toolbox, task, verdict, seconds, message)

    def close(self) -> None:
        self._tasks.clear()


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
