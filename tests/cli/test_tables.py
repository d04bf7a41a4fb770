"""No table loses a column, a cell or a part of a word: in a pipe, and on a narrow terminal.

`test_help_examples.py` holds every table that an example of a command prints against this, too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import radii.cli
from radii.views import Console, TableColumn, TableRecord

CLI = Path(radii.cli.__file__).parent
Cell = str | tuple[str, ...]
NAME = "a-network-with-a-long-name_of_many.parts/here"


def table(
    title: str | None, columns: Sequence[str], rows: Sequence[Sequence[Cell]], **more: Any
) -> TableRecord:
    """With these cells."""

    def column(place: int) -> TableColumn:
        return TableColumn(columns[place], lambda row: row[place])

    shown = [column(place) for place in range(len(columns))]
    return TableRecord(title=title, columns=shown, rows=rows, **more)


def rendered(made: TableRecord, width: int | None) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(made)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def assert_nothing_lost(made: TableRecord) -> None:
    """In a pipe every row is one line; on 80 columns no word is broken, names only at their signs.

    Words that are longer than a terminal have to be broken.
    """
    piped, narrow = rendered(made, None), rendered(made, 80)
    assert "…" not in piped + narrow
    assert all(len(line.rstrip()) <= 80 for line in narrow.splitlines())
    header: list[Cell] = [column.title for column in made.shown_columns()]
    for row in [header, *made.cells()]:
        for place, cell in enumerate(row):
            lines = [cell] if isinstance(cell, str) else cell
            assert all(line in piped for line in lines)
            words = re.findall(r"[^-_./ \n]+" if place == 0 else r"\S+", "\n".join(lines))
            for word in words:
                assert len(word) > 24 or word in narrow, f"{word} is lost at 80 columns:\n{narrow}"


def test_a_wide_table_comes_in_parts_that_name_their_rows() -> None:
    columns = ["network", *(f"column {place}" for place in range(9))]
    made = table("Title", columns, [[NAME, *["0.1000–0.2000"] * 9]], name_width=8, notes=["Said."])
    assert_nothing_lost(made)
    told = rendered(made, 80)
    assert told.count("network ") == told.count("a-network-with-a-long-") == 3
    assert told.count("Title") == told.count("Said.") == 1
    assert len(rendered(made, None).strip().splitlines()) == 7


def test_a_line_parts_a_table_from_what_is_above_it() -> None:
    made = [table(title, ["network", "x"], [["a", "1"]], name_width=8) for title in ("One", "Two")]
    console = Console(file=io.StringIO(), width=None)
    console.print(made[0])
    console.print("Said.")
    console.print(made[1])
    assert isinstance(console.file, io.StringIO)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    assert lines[0] == "One", "there is nothing above the first"
    assert lines[lines.index("Two") - 1] == "" and lines[lines.index("Two") - 2] == "Said."


def test_several_columns_may_name_a_row() -> None:
    columns = ["network", "input", *(f"column {place}" for place in range(9))]
    rows = [["net", str(place), *["0.1000–0.2000"] * 9] for place in range(3)]
    told = rendered(table(None, columns, rows, name_width=8, keys=2), 80)
    parts = [line.split() for line in told.splitlines() if line.strip().startswith("net ")]
    assert len(parts) % 3 == 0 and len(parts) > 3
    assert [int(part[1]) for part in parts] == [0, 1, 2] * (len(parts) // 3)


@given(
    st.lists(st.text("abc-_. 019", max_size=30), min_size=1, max_size=12),
    st.booleans(),
    st.booleans(),
)
def test_no_table_loses_anything(cells: list[str], is_text: bool, wraps: bool) -> None:
    columns = [f"column{place}" for place in range(len(cells))]
    rows = [cells, [f"{NAME}-{place}"[-22:] for place in range(len(cells))]]
    if is_text:
        assert_nothing_lost(table("Title", columns, rows, is_text=True))
    else:
        assert_nothing_lost(table("Title", columns, rows, name_width=8, no_wrap=not wraps))


def test_lines_of_a_cell_stay_lines() -> None:
    made = table(None, ["pair", *"abcdefgh"], [[("one", "two"), *["0.12345678"] * 8]])
    assert_nothing_lost(made)
    assert rendered(made, 80).count("two") == 2


def test_a_sentence_in_a_pipe_is_one_line() -> None:
    console = Console(file=io.StringIO())
    console.print("a path: " + "/directory" * 30)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count("\n") == 1


def test_who_sets_columns_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert Console(file=io.StringIO()).width == 70


def test_everything_is_printed_on_this_console() -> None:
    """A table on a console of rich's own would be cut."""
    for path in CLI.glob("*.py"):
        assert "rich.console" not in path.read_text(), path
