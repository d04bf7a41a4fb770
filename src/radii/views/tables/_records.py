"""A table as a record: rows of anything, and columns that say what of a row they show, and how.

The record is made once. What prints it (`Console`, `latex_lines`, `markdown_lines`) knows nothing
of what is in it; JSON and CSV are written from the same rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Cell: TypeAlias = str | tuple[str, ...]
"""A line of text, or several."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """What a column shows of a row: the `value`, written in a `form` such as `.4f`.

    A value may be a cell of text already. None and NaN are a dash. A column that is not `is_shown`
    is left out, so that a table lists all that it may have in one place.
    """

    title: str
    value: Callable[[Any], Any]
    form: str = ""
    is_shown: bool = True

    def cell(self, row: Any) -> Cell:
        value = self.value(row)
        if isinstance(value, str | tuple):
            return value
        return number_or_dash(value, self.form)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecord:
    """A table with its title, and notes below it, a line each.

    The first `keys` columns name a row. With `name_width` the first column holds names: at least
    that wide, and folded where they are longer. Numbers are aligned to the right; with `is_text`
    all columns to the left. Without `no_wrap` cells may be broken between words.
    """

    title: str | None
    columns: Sequence[TableColumn]
    rows: Sequence[Any]
    notes: Sequence[str] = ()
    keys: int = 1
    name_width: int | None = None
    no_wrap: bool = True
    is_text: bool = False

    def shown_columns(self) -> list[TableColumn]:
        return [column for column in self.columns if column.is_shown]

    def cells(self) -> list[list[Cell]]:
        """The text of every row; networks are named as on pages and figures, without `.onnx`."""
        columns = self.shown_columns()
        cells = [[column.cell(row) for column in columns] for row in self.rows]
        if columns[0].title != "network":
            return cells
        short = without_endings([str(first) for first, *_ in cells])
        return [[short[str(first)], *others] for first, *others in cells]


def without_endings(networks: Sequence[str]) -> dict[str, str]:
    """Names of networks without `.onnx`, which published files leave out at will; each as it is
    where two would become one."""
    distinct = dict.fromkeys(networks)
    short = {name: re.sub(r"\.onnx(?= \(|$)", "", name) for name in distinct}
    are_distinct = len(set(short.values())) == len(short)
    return short if are_distinct else {name: name for name in distinct}


def number_or_dash(value: float | None, form: str) -> str:
    """The number in a format such as `.2f`; a dash where there is none."""
    is_absent = value is None or (isinstance(value, float) and math.isnan(value))
    return "-" if is_absent else format(value, form)


def interval(low: float, high: float) -> str:
    """A radius as what is proven and what is witnessed."""
    return f"{low:.4f}–{high:.4f}" if math.isfinite(high) else f"{low:.4f}–none"


def markdown_lines(record: TableRecord) -> list[str]:
    """The table in Markdown, numbers to the right; its title and notes stand elsewhere."""
    titles = [column.title for column in record.shown_columns()]
    rule = ["---" if record.is_text else "---:"] * len(titles)
    cells = (
        [cell if isinstance(cell, str) else "<br>".join(cell) for cell in row]
        for row in record.cells()
    )
    lines = [f"| {' | '.join(row)} |" for row in (titles, *cells)]
    return [lines[0], f"|{'|'.join(rule)}|", *lines[1:]]
