"""Tables of a study: what radii finds beside what the paper prints, as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from radii.views import latex_row, latex_table

NO_NUMBER_TEXT = "–"
"""Stands in a table where radii or the paper has no number."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A number of ours beside the paper's.

    The paper's is text as it is printed, so that its decimals are known: `0.042` has three. It is
    empty where the paper has none; `ours` is None where it cannot be computed.
    """

    ours: float | str | None
    paper: str

    @property
    def difference(self) -> float | None:
        """Ours less the paper's; None where one of the two is no number."""
        theirs = _number(self.paper)
        if theirs is None or isinstance(self.ours, str | None) or not math.isfinite(self.ours):
            return None
        return float(self.ours) - theirs

    @property
    def agrees(self) -> bool | None:
        """Do both agree as far as the paper prints digits? None where there is nothing to compare.

        Papers round or cut off: both are agreement.
        """
        if self.ours is None or not self.paper or self.ours == "":
            return None
        difference = self.difference
        if difference is None:
            return str(self.ours) == self.paper
        unit = 10.0 ** -decimals(self.paper)
        return -0.5 * unit - 1e-9 <= difference < unit - 1e-9

    @property
    def text(self) -> str:
        """`0.042 (0.042)`; with the difference where it is one: `0.070 (0.071, −0.001)`."""
        ours = _as_printed(self.ours, self.paper)
        if not self.paper:
            return ours
        if self.agrees is not False or self.difference is None:
            return f"{ours} ({self.paper})"
        digits = max(decimals(self.paper), 0)
        # A difference below the last digit is still one: one more digit shows it.
        shown = f"{self.difference:+.{digits}f}"
        if not float(shown):
            shown = f"{self.difference:+.{digits + 1}f}"
        return f"{ours} ({self.paper}, {shown.replace('-', '−')})"


Cell = str | int | float | None | Beside


@dataclass(frozen=True, slots=True)
class StudyTable:
    """One table. `forms` are formats of the columns' plain numbers, such as `.3f`; none: as is.

    `title` begins with the paper's own number, as in "Table 5".
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    forms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows} | {len(self.columns)}
        assert len(widths) == 1, f"{self.name}: rows of {sorted(widths)} cells"

    @property
    def comparisons(self) -> list[Beside]:
        """Every number of ours that has one of the paper to be held against."""
        cells = [cell for row in self.rows for cell in row if isinstance(cell, Beside)]
        return [cell for cell in cells if cell.agrees is not None]

    def texts(self) -> list[list[str]]:
        """All rows as a reader sees them."""
        forms = self.forms or ("",) * len(self.columns)
        return [
            [cell_text(cell, form) for cell, form in zip(row, forms, strict=True)]
            for row in self.rows
        ]

    def markdown(self) -> list[str]:
        lines = [_markdown_row(self.columns), _markdown_row(["---"] * len(self.columns))]
        return lines + [_markdown_row(row) for row in self.texts()]

    def latex(self) -> list[str]:
        kinds = "l" + "r" * (len(self.columns) - 1)
        return latex_table(
            kinds, self.columns, [latex_row(*row) for row in self.texts()], self.title
        )

    def csv(self) -> str:
        """Numbers in full; a column with the paper's has two more: the paper's and the difference.

        An empty cell has no number.
        """
        is_beside = [
            any(isinstance(row[place], Beside) for row in self.rows)
            for place in range(len(self.columns))
        ]
        header: list[str] = []
        for name, beside in zip(self.columns, is_beside, strict=True):
            header += [name, f"{name}, paper", f"{name}, difference"] if beside else [name]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        for row in self.rows:
            cells: list[Any] = []
            for cell, beside in zip(row, is_beside, strict=True):
                cells += _csv_cells(cell) if beside else [cell]
            writer.writerow(cells)
        return stream.getvalue()

    def record(self) -> dict[str, Any]:
        """As JSON keeps it; `from_record` reads it again."""
        rows = [
            [
                {"ours": _kept(cell.ours), "paper": cell.paper}
                if isinstance(cell, Beside)
                else _kept(cell)
                for cell in row
            ]
            for row in self.rows
        ]
        names = ("name", "title", "columns", "forms")
        return {**{name: getattr(self, name) for name in names}, "rows": rows}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> StudyTable:
        rows = tuple(
            tuple(
                Beside(_restored(cell["ours"]), cell["paper"])
                if isinstance(cell, dict)
                else _restored(cell)
                for cell in row
            )
            for row in record["rows"]
        )
        columns, forms = tuple(record["columns"]), tuple(record["forms"])
        return cls(record["name"], record["title"], columns, rows, forms)


def cell_text(cell: Cell, form: str = "") -> str:
    """A cell as a reader sees it; a dash where there is no number."""
    if isinstance(cell, Beside):
        return cell.text
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return NO_NUMBER_TEXT
    if isinstance(cell, str):
        return cell
    if isinstance(cell, float) and math.isinf(cell):
        return "∞"
    return format(cell, form)


def interval_text(low: float, high: float, digits: int = 3) -> str:
    """What is proven and what is witnessed: `0.042–0.044`, or `0.042–∞` without a witness."""
    return f"{low:.{digits}f}–{cell_text(float(high), f'.{digits}f')}"


def share_text(count: int, total: int, noun: str = "") -> str:
    """`12 of 40 (30 %)`, or `12 of 40 rows (30 %)`."""
    what = f"{count} of {total} {noun}".rstrip()
    return f"{what} ({100 * count / total:.0f} %)" if total else what


def decimals(printed: str) -> int:
    """How many digits a printed number has behind its point."""
    return len(printed.partition(".")[2])


def paper_rows(text: str, names: int = 1) -> dict[tuple[str, ...], tuple[str, ...]]:
    """A table of the paper from its lines: `names` words that tell the row, then its numbers.

    A word of several words is written with `_` or without a blank; a lone dash is no number.
    """
    rows = {}
    for line in text.strip().splitlines():
        words = line.split()
        rows[tuple(words[:names])] = tuple("" if word == "-" else word for word in words[names:])
    return rows


def _csv_cells(cell: Cell) -> list[Any]:
    if not isinstance(cell, Beside):
        return [cell, None, None]
    difference = cell.difference
    return [cell.ours, cell.paper or None, None if difference is None else f"{difference:.6g}"]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _as_printed(value: float | str | None, paper: str) -> str:
    """Ours with as many digits as the paper prints."""
    if value is None or value == "":
        return NO_NUMBER_TEXT
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return cell_text(float(value))
    if _number(paper) is not None:
        return f"{value:.{decimals(paper)}f}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def markdown_cells(line: str) -> list[str]:
    """The cells of a row that `StudyTable.markdown` wrote."""
    inside = line.strip().removeprefix("| ").removesuffix(" |")
    return [cell.replace(r"\|", "|") for cell in inside.split(" | ")]


def _kept(cell: str | float | None) -> str | float | list[str] | None:
    """JSON has no infinity: it is kept as a list of its name."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return [str(cell)]
    return cell


def _restored(cell: Any) -> Any:
    return float(cell[0]) if isinstance(cell, list) else cell


UNEXPLAINED = "not explained by the files"

EVERY_ROW = "*"


def reasons_of(
    row: str,
    cells: Mapping[str, Cell],
    known: Mapping[tuple[str, str], str],
) -> str:
    """Why numbers of a row differ from the paper's: a reason for each, said once.

    `known` has them by the names of row and column, or for `EVERY_ROW`; empty where all agree.
    """
    reasons: dict[str, list[str]] = {}
    for column, cell in cells.items():
        if isinstance(cell, Beside) and cell.agrees is False:
            reason = known.get((row, column)) or known.get((EVERY_ROW, column)) or UNEXPLAINED
            reasons.setdefault(reason, []).append(column)
    return "; ".join(f"{', '.join(columns)}: {reason}" for reason, columns in reasons.items())
