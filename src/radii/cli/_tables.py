"""What commands show: a console, and tables on it, of which no column is ever lost.

A file or a pipe gets every line at its full length. On a terminal that is too narrow for a table,
the columns that do not fit follow in a second part below it, beside the names of the rows again.

Text comes from data: any string that the console shows, be it a sentence, a cell or a title, is one
plain line without markup. What has several lines is put together by `stacked`.

Commands import this module where they show something: rich takes longer to load than many of them
take to answer, and with `--json` it is not needed.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from radii.terminal import plain

Cell: TypeAlias = str | Text


UNLIMITED = 100_000
"""Columns of what is no terminal: no line is that long."""

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
            is_new = isinstance(each, Table) and each.title and (parts or self._is_begun)
            parts += [""] if is_new else []
            parts += fitted(each, self) if isinstance(each, Table) else [each]
        self._is_begun = True
        super().print(*parts, **options)

    def on_broken_pipe(self) -> None:
        """Whoever reads has enough: the command says so itself, with no exit code of rich's."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Called by rich for every string, wherever it stands."""
        return super().render_str(plain(text), **{**options, "markup": False, "emoji": False})


def console_for(*, as_latex: bool, **options: Any) -> Console:
    """Where a command shows its tables: the terminal, or as LaTeX."""
    if not as_latex:
        return Console(**options)
    from radii.cli._latex import LatexConsole

    return LatexConsole()


class KeyedTable(Table):
    """A table whose first columns name a row: every part of it shows them."""

    keys = 1


def stacked(*lines: str) -> Text:
    """A cell of several lines."""
    return Text("\n".join(map(plain, lines)))


def table(
    title: str | None,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    name_width: int | None = None,
    caption: str | Text | None = None,
    no_wrap: bool = True,
    keys: int = 1,
) -> Table:
    """Columns of numbers, aligned to the right; the first `keys` of them name a row.

    With `name_width`, the first column holds names instead: at least that wide, and folded where
    they are longer. Networks are named as on pages and figures, without `.onnx`.
    """
    made = KeyedTable(
        box=SIMPLE_HEAD,
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    made.keys = keys
    numbers = list(columns)
    if name_width is not None:
        made.add_column(numbers.pop(0), overflow="fold", min_width=name_width)
    for name in numbers:
        made.add_column(name, justify="right", no_wrap=no_wrap, overflow="fold")
    listed = list(rows)
    if columns[0] == "network":
        short = without_endings([str(row[0]) for row in listed])
        listed = [(short[str(row[0])], *row[1:]) for row in listed]
    for row in listed:
        made.add_row(*row)
    return made


def without_endings(networks: Sequence[str]) -> dict[str, str]:
    """Names of networks without `.onnx`, which published files leave out at will; each as it is
    where two would become one."""
    distinct = dict.fromkeys(networks)
    short = {name: re.sub(r"\.onnx(?= \(|$)", "", name) for name in distinct}
    are_distinct = len(set(short.values())) == len(short)
    return short if are_distinct else {name: name for name in distinct}


def text_table(title: str | None, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Columns of text, aligned to the left."""
    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for name in columns:
        made.add_column(name, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def fitted(made: Table, console: Console) -> Iterator[Table | Text]:
    """The table, or parts of it, one below the other: each narrow enough, each naming its rows.

    The caption of a table in parts stands below them, as wide as the console.
    """
    if _narrowest(made, console) <= console.width:
        yield made
        return
    count = made.keys if isinstance(made, KeyedTable) else 1
    name, *others = made.columns
    folded = _folded(name, max(name.min_width or 0, console.width // NAME_SHARE))
    keys, others = [folded, *others[: count - 1]], others[count - 1 :]
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
