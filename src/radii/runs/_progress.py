"""How far a run has come: a bar on a terminal or in a notebook, and nothing anywhere else.

Bars on a terminal are on standard error. In a notebook the bar is an output that is replaced as the
run goes on; it needs no widgets, so that it is there in every notebook, and in stored ones.
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from radii.runs._fields import show_duration
from radii.terminal import say

if TYPE_CHECKING:
    from radii.problem import Result
    from radii.runs._plan import Observer
    from radii.strategy import Case, Question

UPDATE_SECONDS = 0.2
"""A notebook's bar is drawn at most this often: each time is a message to the browser."""


def progress_bar() -> AbstractContextManager[Observer | None]:
    """The bar of a run, where somebody looks; None where output is no terminal and no notebook."""
    if _is_notebook():
        return NotebookBar()
    return ProgressBar() if sys.stderr.isatty() else nullcontext(None)


def _is_notebook() -> bool:
    """A shell with a kernel behind it; IPython on a terminal has none."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def terminal_bar(console: RichConsole, *columns: ProgressColumn) -> Progress:
    """Text, a bar and further columns; nothing where the console is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class BarDisplay:
    """One bar, with the times that passed and are left. Use as a context manager."""

    def __init__(
        self, *columns: ProgressColumn, console: RichConsole | None = None, **fields: Any
    ) -> None:
        self._console = console or RichConsole(stderr=True, highlight=False, soft_wrap=True)
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        self._bar = terminal_bar(self._console, *columns, *times)
        self._task = self._bar.add_task("loading", total=None, **fields)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def _update(self, **changes: Any) -> None:
        self._bar.update(self._task, **changes)


class ProgressBar(BarDisplay):
    """Of an experiment: an observer of `Plan.run`."""

    def __init__(self) -> None:
        super().__init__(MofNCompleteColumn(), TextColumn("{task.fields[closed]}"), closed="")
        self._queries = 0

    def started(self, total: int) -> None:
        self._update(description="radii", total=total)

    def answered(self, _case: Case, _question: Question, _result: Result) -> None:
        self._queries += 1
        self._update(closed=f"{self._queries} queries")

    def finished(self, _case: Case) -> None:
        self._bar.advance(self._task)

    def counted(self, done: int, total: int) -> None:
        """For work without queries: the number of inputs that are done."""
        self._update(description="radii", completed=done, total=total)

    def held(self, is_held: bool) -> None:
        """Also said where no bar is shown: who waits for the run must know why."""
        self._update(description="paused" if is_held else "radii")
        if self._bar.disable:
            state = "paused: nothing is asked until it is resumed" if is_held else "resumed"
            say(f"radii: {state}", file=sys.stderr, flush=True)


class NotebookBar:
    """The same observer as an output of a notebook's cell. Use as a context manager."""

    def __init__(self) -> None:
        self._total = self._done = self._queries = 0
        self._state = "loading"
        self._began = self._drawn = time.monotonic()
        self._output: Any = None

    def __enter__(self) -> Self:
        from IPython.display import DisplayHandle

        self._output = DisplayHandle()  # type: ignore[no-untyped-call]
        self._output.display(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._state = "done" if kind is None else "stopped"
        self._draw(at_once=True)

    def started(self, total: int) -> None:
        self._total, self._state = total, "measuring"
        self._draw(at_once=True)

    def answered(self, _case: Case, _question: Question, _result: Result) -> None:
        self._queries += 1
        self._draw()

    def finished(self, _case: Case) -> None:
        self._done += 1
        self._draw()

    def held(self, is_held: bool) -> None:
        self._state = "paused" if is_held else "measuring"
        self._draw(at_once=True)

    def _draw(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._output is not None and (at_once or now - self._drawn >= UPDATE_SECONDS):
            self._drawn = now
            self._output.update(self)

    def __repr__(self) -> str:
        if self._state == "loading":
            return "radii: loading"
        spent = time.monotonic() - self._began
        counts = f"{self._done} of {self._total} brackets, {self._queries} queries"
        if self._state == "measuring" and self._done:
            left = spent * (self._total - self._done) / self._done
            return f"{counts}, {show_duration(spent)}, about {show_duration(left)} left"
        state = "" if self._state in ("done", "measuring") else f"{self._state}: "
        return f"{state}{counts}, {show_duration(spent)}"

    def _repr_html_(self) -> str:
        """Without the bar at the end: then it is a line that says what the run took."""
        is_over = self._state in ("done", "stopped")
        bar = f"<progress value='{self._done}' max='{max(1, self._total)}'></progress> "
        return f"<div style='font-size:90%;opacity:.75'>{'' if is_over else bar}{self!r}</div>"
