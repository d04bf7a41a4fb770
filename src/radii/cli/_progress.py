"""Progress bars on standard error: how far, how long still, and what is known so far.

Bars are shown on a terminal only; a file or a pipe gets none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import (
    DownloadColumn,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from radii.runs import BarDisplay, ProgressBar, terminal_bar
from radii.views import Console

if TYPE_CHECKING:
    from radii.datasets import ProgressCallback
    from radii.ensembles import GameValue
    from radii.training import Epoch

__all__ = ["EnsembleProgress", "PlainBar", "ProgressBar", "TrainingProgress", "download_bars"]


class PlainBar(BarDisplay):
    """One bar, and lines above it that are made plain."""

    def __init__(self, *columns: ProgressColumn, **fields: Any) -> None:
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        super().__init__(*columns, console=console, **fields)


class TrainingProgress(PlainBar):
    """Of `radii.training.train`, with a line for each tested epoch, terminal or not."""

    def __init__(self) -> None:
        super().__init__(TextColumn("{task.percentage:3.0f} %"))
        self._batches = self._first = 0
        self._began = time.perf_counter()

    def started(self, batches: int, done: int) -> None:
        self._batches, self._first = batches, done
        self._began = time.perf_counter()
        self._update(description="training", total=batches, completed=done)
        if 0 < done < batches:
            self._console.print(f"continuing after {100 * done / batches:.0f} % of the training")

    def advanced(self, done: int) -> None:
        self._update(completed=done)

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


class EnsembleProgress(PlainBar):
    """Of an ensemble's value: how much of its bracket is closed. Every eps begins anew."""

    def __init__(self) -> None:
        super().__init__(TextColumn("{task.fields[value]}"), value="")
        self._eps: float | None = None

    def show(self, bracket: GameValue) -> None:
        """A bracket on its way to one number."""
        if bracket.eps != self._eps:
            self._eps = bracket.eps
            self._bar.reset(self._task, total=1.0, description=f"eps {bracket.eps:g}")
        lower, upper = float(bracket.lower), float(bracket.upper)
        questions = f", {bracket.questions} questions" if bracket.questions else ""
        self._update(
            completed=1.0 - (upper - lower),
            value=f"value in [{lower:.3f}, {upper:.3f}]{questions}",
        )


@contextmanager
def download_bars(name: str) -> Iterator[ProgressCallback]:
    """A bar for each file of a data set that is downloaded."""
    bars = terminal_bar(Console(stderr=True), DownloadColumn(), TimeRemainingColumn())
    with bars:
        overall = bars.add_task(f"putting {name} in place", total=None)
        tasks: dict[str, TaskID] = {}

        def report(file: str, received: int, total: int | None) -> None:
            if file not in tasks:
                bars.update(overall, visible=False)
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=received, total=total)

        yield report
