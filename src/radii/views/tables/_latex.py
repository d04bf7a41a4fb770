"""Tables for papers as LaTeX: `\\usepackage{booktabs}` is all they need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from radii.terminal import say
from radii.views.tables._records import Cell, TableRecord

ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "–": "--",
        "−": "$-$",
        "±": r"$\pm$",
        "ε": r"$\varepsilon$",
        "∞": r"$\infty$",
    }
)

SCIENTIFIC = re.compile(r"(?P<digits>\d(\.\d+)?)e(?P<power>[+-]\d+)")
MINUS = re.compile(r"(?<![\w-])-(?=\d)")

ADDED_SPACE = r"\addlinespace"


def latex_table(columns: str, header: Sequence[str], body: Sequence[str], about: str) -> list[str]:
    """The lines of a table. `columns` aligns each, as in `lrr`; `body` has rows by `latex_row`."""
    return [
        r"\begin{table}",
        r"\centering",
        *([f"\\caption{{{latex_text(about)}}}"] if about else []),
        f"\\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        latex_row(*header),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def latex_row(*cells: str) -> str:
    return " & ".join(map(_number_or_text, cells)) + r" \\"


def _number_or_text(cell: str) -> str:
    """A minus is longer than a hyphen, and 4e-08 is written out."""
    if found := SCIENTIFIC.fullmatch(cell):
        return f"${found['digits']} \\cdot 10^{{{int(found['power'])}}}$"
    return MINUS.sub("$-$", latex_text(cell))


def latex_text(text: str) -> str:
    """Names and sentences of others as text, whatever LaTeX would take them for."""
    return text.translate(ESCAPES)


class LatexConsole:
    """Prints tables as LaTeX, and sentences as its comments."""

    def print(self, *objects: Any, **_: Any) -> None:
        """Called for everything that a command shows."""
        for shown in objects:
            lines = (
                latex_lines(shown)
                if isinstance(shown, TableRecord)
                else [f"% {' '.join(_lines(shown))}"]
            )
            say(*lines)


def latex_lines(record: TableRecord) -> list[str]:
    """The whole table; names are aligned to the left, numbers to the right."""
    columns = record.shown_columns()
    is_named = record.is_text or record.name_width is not None
    kinds = "l" if is_named else "r"
    kinds += ("l" if record.is_text else "r") * (len(columns) - 1)
    body: list[str] = []
    for cells in record.cells():
        parts = list(map(_lines, cells))
        if body and any(len(lines) > 1 for lines in parts):
            body.append(ADDED_SPACE)
        body += [latex_row(*line) for line in zip_longest(*parts, fillvalue="")]
    return latex_table(kinds, [column.title for column in columns], body, _about(record))


def _about(record: TableRecord) -> str:
    """Title and notes as sentences."""
    texts = (record.title or "", "; ".join(record.notes))
    sentences = [f"{text[0].upper()}{text[1:]}" for text in texts if text]
    return " ".join(text if text.endswith("?") else f"{text}." for text in sentences)


def _lines(cell: Cell) -> list[str]:
    lines = [cell] if isinstance(cell, str) else cell
    return [" ".join(str(line).split()) for line in lines]
