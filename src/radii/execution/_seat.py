"""What runs on a node of a cluster: an actor that passes tasks on to a worker process beside it.

It imports no torch and no Ray: it is cheap to start, and `radii.execution._cluster` makes an actor
of it. The worker process keeps the limits as it does locally, and takes nobody with it when it
dies.
"""

from __future__ import annotations

import threading

from radii import __version__
from radii.execution._base import SealedToolbox, Task
from radii.execution._local import LocalWorkers
from radii.verdicts import Result


class Seat:
    """One place to work. `cancel` is called by another thread while `answer` runs.

    `turn` numbers the calls of `answer`: what is said of one never reaches the next.
    """

    def __init__(self, equipment: SealedToolbox) -> None:
        self._workers = LocalWorkers(equipment, jobs=1)
        self._speaking = threading.Lock()
        self._running: tuple[int, Task] | None = None
        self._cancelled_turn = -1

    def version(self) -> str:
        """Of radii on this node; the first thing that a driver asks."""
        return __version__

    def answer(self, turn: int, task: Task) -> list[Result]:
        """The task's results, however it ends."""
        with self._speaking:
            self._workers.submit(task)
            self._running = turn, task
            if self._cancelled_turn == turn:  # it was faster than the task
                self._workers.cancel(task)
        results = self._workers.wait()[1]
        with self._speaking:
            self._running = None
        return results

    def cancel(self, turn: int) -> None:
        """Nobody needs the answer of this turn."""
        with self._speaking:
            self._cancelled_turn = turn
            if self._running is not None and self._running[0] == turn:
                self._workers.cancel(self._running[1])
