"""Tables as CSV, in which a name is one cell whatever characters it has."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from radii.terminal import plain

if TYPE_CHECKING:
    import pandas as pd


def write_csv(frame: pd.DataFrame, target: Path | IO[str]) -> None:
    """Write the frame to a file or stream, without its index. A terminal gets plain cells."""
    if not isinstance(target, Path) and target.isatty():
        frame = frame.map(lambda cell: plain(cell) if isinstance(cell, str) else cell)
    # Python before 3.13 leaves a carriage return unquoted, and readers take it for a line's end.
    is_broken = bool(frame.map(_has_return).to_numpy().any())
    quoting: Any = csv.QUOTE_NONNUMERIC if is_broken else csv.QUOTE_MINIMAL
    frame.to_csv(target, index=False, quoting=quoting)


def _has_return(cell: object) -> bool:
    return isinstance(cell, str) and "\r" in cell
