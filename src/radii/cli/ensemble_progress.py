"""The progress bar of an ensemble's value, on standard error: how much of its bracket is closed."""

from __future__ import annotations

from typing import Self

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from radii.cli.console import Console
from radii.ensembles import GameValue


class EnsembleProgress:
    """Shown on a terminal only. Every eps begins anew, with the whole of its bracket open."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[value]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("loading", total=None, value="")
        self._eps: float | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def told(self, found: GameValue) -> None:
        """A bracket on its way to one number."""
        if found.eps != self._eps:
            self._eps = found.eps
            self._progress.reset(self._task, total=1.0, description=f"eps {found.eps:g}")
        lower, upper = float(found.lower), float(found.upper)
        questions = f", {found.questions} questions" if found.questions else ""
        self._progress.update(
            self._task,
            completed=1.0 - (upper - lower),
            value=f"value in [{lower:.3f}, {upper:.3f}]{questions}",
        )
