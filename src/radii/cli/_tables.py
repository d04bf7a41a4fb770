"""What commands show on a terminal: a console, and tables on it.

Text comes from data: any string that the console shows, be it a sentence, a cell or a title, is one
plain line without markup. What has several lines is put together by `stacked`.

Commands import this module where they show something: rich takes longer to load than many of them
take to answer, and with `--json` it is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console as RichConsole
from rich.table import Table
from rich.text import Text

from radii.terminal import plain

Cell: TypeAlias = str | Text


class Console(RichConsole):
    """Used wherever something is shown; also to draw bars on."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Called by rich for every string, wherever it stands."""
        return super().render_str(plain(text), **{**options, "markup": False, "emoji": False})


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
) -> Table:
    """Columns of numbers, aligned to the right.

    With `name_width`, the first column holds names instead: at least that wide, and folded where
    they are longer.
    """
    made = Table(
        box=SIMPLE_HEAD,
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    numbers = list(columns)
    if name_width is not None:
        made.add_column(numbers.pop(0), overflow="fold", min_width=name_width)
    for name in numbers:
        made.add_column(name, justify="right", no_wrap=no_wrap)
    for row in rows:
        made.add_row(*row)
    return made


def text_table(title: str | None, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Columns of text, aligned to the left."""
    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for name in columns:
        made.add_column(name)
    for row in rows:
        made.add_row(*row)
    return made


def has_room(made: Table, console: Console) -> bool:
    """Whether the console is wide enough to show the table without folding any of it."""
    unlimited = console.options.update(width=1000)
    return console.measure(made, options=unlimited).maximum <= console.width
