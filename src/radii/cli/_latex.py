"""Tables of commands as LaTeX, for papers: `\\usepackage{booktabs}` is all they need."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from rich.table import Table
from rich.text import Text

from radii.cli._tables import Console
from radii.terminal import say
from radii.views import ADDED_SPACE, latex_row, latex_table

WIDE = 10_000
"""Columns of a console on which every table has room: paper folds nothing."""


class LatexConsole(Console):
    """Prints tables as LaTeX, and sentences as its comments."""

    def __init__(self) -> None:
        super().__init__(width=WIDE)

    def print(self, *objects: Any, **_: Any) -> None:
        """Called for everything that a command shows."""
        for shown in objects:
            if isinstance(shown, Table):
                for line in latex_lines(shown):
                    say(line)
            else:
                say(f"% {' '.join(_lines(shown))}")


def latex_lines(table: Table) -> list[str]:
    """The whole table; names are aligned to the left, numbers to the right."""
    columns = table.columns
    kinds = "".join("r" if column.justify == "right" else "l" for column in columns)
    body: list[str] = []
    for cells in zip(*(column.cells for column in columns), strict=True):
        parts = list(map(_lines, cells))
        if body and any(len(lines) > 1 for lines in parts):
            body.append(ADDED_SPACE)
        body += [latex_row(*line) for line in zip_longest(*parts, fillvalue="")]
    header = [" ".join(_lines(column.header)) for column in columns]
    return latex_table(kinds, header, body, _about(table))


def _about(table: Table) -> str:
    """Title and caption as sentences."""
    told = [" ".join(_lines(table.title)), "; ".join(_lines(table.caption))]
    sentences = [f"{text[0].upper()}{text[1:]}" for text in told if text]
    return " ".join(text if text.endswith("?") else f"{text}." for text in sentences)


def _lines(shown: Any) -> list[str]:
    """The lines of what a table shows, be it text or none."""
    text = shown.plain if isinstance(shown, Text) else str(shown or "")
    return [" ".join(line.split()) for line in text.splitlines()]
