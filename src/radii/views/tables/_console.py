"""What commands show: a console, and tables on it, of which no column is ever lost.

A file or a pipe gets every line at its full length. On a terminal that is too narrow for a table,
the columns that do not fit follow in a second part below it, beside the names of the rows again.

Text comes from data: any string that the console shows, be it a sentence, a cell or a title, is one
plain line without markup. A cell of several lines is a tuple of them.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from radii.terminal import plain
from radii.views.tables._records import TableRecord

UNLIMITED = 100_000
"""Columns of a file or a pipe: no line is that long."""

NAME_SHARE = 3
"""A name may take a third of a terminal before it is folded."""


class Console(RichConsole):
    """Used wherever something is shown; also to draw bars on."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._is_begun = False
        if options.get("width") is None and "COLUMNS" not in os.environ and not self.is_terminal:
            self.width = UNLIMITED

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich does; a table that is too wide comes in parts, one with a title after a line."""
        parts: list[Any] = []
        for each in objects:
            if not isinstance(each, TableRecord):
                parts.append(each)
                continue
            parts += [""] if each.title and (parts or self._is_begun) else []
            parts += fitted(each, self)
        self._is_begun = True
        super().print(*parts, **options)

    def on_broken_pipe(self) -> None:
        """Whoever reads has enough: the command says so itself, with no exit code of rich's."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Called by rich for every string, wherever it stands."""
        return super().render_str(plain(text), **{**options, "markup": False, "emoji": False})


def stacked(*lines: str) -> Text:
    """A cell of several lines."""
    return Text("\n".join(map(plain, lines)))


def rich_table(record: TableRecord) -> Table:
    """The record as rich draws it, as wide as it is."""
    made = Table(
        box=SIMPLE_HEAD,
        title=record.title,
        title_justify="left",
        caption=stacked(*record.notes) if record.notes else None,
        caption_justify="left",
    )
    titles, rows = [column.title for column in record.shown_columns()], record.cells()
    for place, title in enumerate(titles):
        if record.is_text:
            made.add_column(title, overflow="fold")
        elif place == 0 and record.name_width is not None:
            made.add_column(title, overflow="fold", min_width=record.name_width)
        else:
            made.add_column(title, justify="right", no_wrap=record.no_wrap, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, str) else stacked(*cell) for cell in row))
    return made


def fitted(record: TableRecord, console: Console) -> Iterator[Table | Text]:
    """The table, or parts of it, one below the other: each narrow enough, each naming its rows.

    The notes of a table in parts stand below them, as wide as the console.
    """
    made = rich_table(record)
    if _narrowest(made, console) <= console.width:
        yield made
        return
    name, *others = made.columns
    folded = _folded(name, max(name.min_width or 0, console.width // NAME_SHARE))
    keys, others = [folded, *others[: record.keys - 1]], others[record.keys - 1 :]
    chosen: list[Column] = []
    title = made.title
    for column in others:
        if chosen and _narrowest(_part(made, [*keys, *chosen, column]), console) > console.width:
            yield _part(made, [*keys, *chosen], title=title)
            chosen, title = [], None
        chosen.append(column)
    yield _part(made, [*keys, *chosen], title=title)
    if made.caption:
        yield Text(str(made.caption), style="table.caption")


def _narrowest(made: Table, console: Console) -> int:
    """How wide a terminal must be to show it without breaking a word or a number."""
    unlimited = console.options.update(width=UNLIMITED)

    def unbroken(column: Column) -> Column:
        if not column.no_wrap:
            return column
        texts = (column.header, *column.cells)
        widest = max(console.measure(text, options=unlimited).maximum for text in texts)
        return dataclasses.replace(column, min_width=max(widest, column.min_width or 0))

    whole = _part(made, [unbroken(column) for column in made.columns])
    return console.measure(whole, options=unlimited).minimum


def _part(made: Table, columns: Sequence[Column], title: str | Text | None = None) -> Table:
    """Those columns of the table; what is too long even for a part is folded, never cut."""
    part = copy.copy(made)
    part.columns = [
        dataclasses.replace(column, _index=place, overflow="fold")
        for place, column in enumerate(columns)
    ]
    part.title, part.caption = title, None
    return part


def _folded(column: Column, width: int) -> Column:
    """The column with its names in lines of at most that width."""
    cells: list[RenderableType] = [
        stacked(*(piece for line in str(cell).split("\n") for piece in _lines(line, width)))
        for cell in column.cells
    ]
    return dataclasses.replace(column, _cells=cells)


def _lines(name: str, width: int) -> Iterator[str]:
    """A name in lines, broken after a sign that separates its parts; within one if it must be."""
    line = ""
    for word in re.findall(r"[^-_./ ]*[-_./ ]?", name):
        if line and cell_len(line + word) > width:
            yield line
            line = ""
        line += word
        while cell_len(line) > width:
            yield line[:width]
            line = line[width:]
    yield line
