"""Write the table of ONNX operators in docs/networks.md, which is made from their translators.

python scripts/operator_table.py
"""

from __future__ import annotations

import re
from pathlib import Path

from radii.networks._building import PASSED_THROUGH
from radii.networks.operators._base import TRANSLATED, OperatorKind

PAGE = Path(__file__).parents[1] / "docs" / "networks.md"
BEGIN, END = "<!-- made by scripts/operator_table.py -->\n\n", "\n<!-- end -->\n"

ROWS = {
    OperatorKind.AFFINE: "affine",
    OperatorKind.PIECEWISE_LINEAR: "piecewise linear",
    OperatorKind.SMOOTH: "smooth",
}


def table() -> str:
    """The table as Markdown: a row for each kind, and those that leave no node."""
    lines = ["| kind | ONNX operators |", "|---|---|"]
    for kind, title in ROWS.items():
        names = [
            f"{name} ({stated.note})" if stated.note else name
            for name in sorted(TRANSLATED)
            for stated in TRANSLATED[name]
            if stated.kind is kind
        ]
        lines.append(f"| {title} | {', '.join(names)} |")
    passed = ", ".join(sorted(PASSED_THROUGH))
    lines.append(
        f"| leave no node | Constant, {passed}, and all others that do not depend on the input |"
    )
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """The page with the table of now between its two marks."""
    return re.sub(f"(?<={BEGIN}).*(?={END})", lambda _: table(), page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
