"""Tables for papers as LaTeX: `\\usepackage{booktabs}` is all they need."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
