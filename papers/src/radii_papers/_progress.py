"""The progress bar of a study: its steps, and the inputs of the experiment inside one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.progress import MofNCompleteColumn, TextColumn

from radii.cli import PlainBar

if TYPE_CHECKING:
    from radii.problem import Result
    from radii.strategy import Case, Question


class StudyBar(PlainBar):
    """Of a study of a paper: which step it makes, and how far an experiment inside it is."""

    def __init__(self) -> None:
        super().__init__(MofNCompleteColumn(), TextColumn("{task.fields[inner]}"), inner="")
        self._total = self._done = 0

    def step(self, heading: str, done: int, total: int) -> None:
        self._total = self._done = 0
        self._update(description=heading or "radii", completed=done, total=total, inner="")

    def inside(self) -> Self:
        """This bar observes the experiments of a step itself."""
        return self

    def started(self, total: int) -> None:
        self._total, self._done = total, 0
        self._show()

    def answered(self, _case: Case, _question: Question, _result: Result) -> None: ...

    def finished(self, _case: Case) -> None:
        self._done += 1
        self._show()

    def held(self, is_held: bool) -> None:
        self._update(inner="paused" if is_held else "")

    def _show(self) -> None:
        self._update(inner=f"{self._done} of {self._total} inputs")
