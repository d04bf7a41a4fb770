"""The progress bar of a run, on standard error: how far, how long still, how tight so far."""

from __future__ import annotations

import sys
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from radii.cli.console import Console
from radii.execution import Case
from radii.search import Question
from radii.terminal import say
from radii.verdicts import Result


class ProgressBar:
    """Shown on a terminal only; a file or a pipe gets nothing."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[closed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not Console(stderr=True).is_terminal,
        )
        self._task = self._progress.add_task("loading", total=None, closed="")
        self._queries = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def started(self, total: int) -> None:
        self._progress.update(self._task, description="radii", total=total)

    def answered(self, _case: Case, _question: Question, _result: Result) -> None:
        self._queries += 1
        self._progress.update(self._task, closed=f"{self._queries} queries")

    def finished(self, _case: Case) -> None:
        self._progress.advance(self._task)

    def counted(self, done: int, total: int) -> None:
        """For work that has no queries: so many inputs are done."""
        self._progress.update(self._task, description="radii", completed=done, total=total)

    def held(self, is_held: bool) -> None:
        """Also said where no bar is shown: who waits for the run must know why."""
        self._progress.update(self._task, description="paused" if is_held else "radii")
        if self._progress.disable:
            told = "paused: nothing is asked until it is resumed" if is_held else "resumed"
            say(f"radii: {told}", file=sys.stderr, flush=True)
