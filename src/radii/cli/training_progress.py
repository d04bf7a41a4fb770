"""How training goes, on standard error: a bar on a terminal, and a line for each tested epoch."""

from __future__ import annotations

import time
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from radii.cli.console import Console
from radii.training import Epoch


class TrainingProgress:
    """An observer of `radii.training.train`."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("loading", total=None)
        self._batches = self._first = self._done = 0
        self._began = time.perf_counter()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def started(self, batches: int, done: int) -> None:
        self._batches, self._first, self._done = batches, done, done
        self._began = time.perf_counter()
        self._bar.update(self._task, description="training", total=batches, completed=done)
        if 0 < done < batches:
            self._console.print(f"continuing after {100 * done / batches:.0f} % of the training")

    def advanced(self, done: int) -> None:
        self._done = done
        self._bar.update(self._task, completed=done)

    def finished_epoch(self, epoch: Epoch, done: int) -> None:
        self.advanced(done)
        if epoch.accuracy is None or epoch.robust_accuracy is None:
            return
        spent = time.perf_counter() - self._began
        left = spent * (self._batches - done) / max(1, done - self._first)
        self._console.print(
            f"epoch {epoch.number:3d}  loss {epoch.loss:.4f}  accuracy {epoch.accuracy:.3f}  "
            f"under PGD {epoch.robust_accuracy:.3f}  {epoch.seconds:.1f} s, {left:.0f} s left"
        )
