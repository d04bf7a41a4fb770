"""Tables as text."""

from __future__ import annotations

from collections.abc import Sequence


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers stand right, words left."""
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(heads), *cells]) for i in range(len(heads))]
    print(f"\n{title}")
    print("  " + "  ".join(head.ljust(w) for head, w in zip(heads, widths, strict=True)))
    for row, values in zip(cells, rows, strict=True):
        parts = (
            cell.ljust(w) if isinstance(value, str) else cell.rjust(w)
            for cell, value, w in zip(row, values, widths, strict=True)
        )
        print("  " + "  ".join(parts), flush=True)


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
