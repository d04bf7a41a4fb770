"""What commands write: numbers as text, JSON and CSV."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from radii import views
from radii.errors import DataError, StoreError
from radii.terminal import plain, say

if TYPE_CHECKING:
    import pandas as pd

    from radii.views import Console, LatexConsole, TableRecord


def console_for(*, as_latex: bool = False, **options: Any) -> Console | LatexConsole:
    """Where a command shows its tables: the terminal, or as LaTeX."""
    return views.LatexConsole() if as_latex else views.Console(**options)


def print_parts(parts: Iterable[TableRecord | str], *, as_latex: bool = False) -> None:
    """Tables and sentences in their order, where a command shows them."""
    console = console_for(as_latex=as_latex, highlight=False)
    for part in parts:
        console.print(part)


def print_json(value: Any, *, indent: int = 1) -> None:
    """Nested lists and dictionaries on standard output; what is not a finite number is null."""
    json.dump(views.plain_json(value), sys.stdout, indent=indent, allow_nan=False)
    say("")


def write_csv(frame: pd.DataFrame, target: Path | IO[str]) -> None:
    """Write the frame without its index. A name is one cell, whatever characters it has.

    A terminal gets plain cells.
    """
    if not isinstance(target, Path) and target.isatty():
        frame = frame.map(lambda cell: plain(cell) if isinstance(cell, str) else cell)
    # Python before 3.13 leaves a carriage return unquoted, and readers take it for a line's end.
    is_broken = bool(frame.map(_has_return).to_numpy().any())
    quoting: Any = csv.QUOTE_NONNUMERIC if is_broken else csv.QUOTE_MINIMAL
    frame.to_csv(target, index=False, quoting=quoting)


def write_frame(frame: pd.DataFrame, path: Path | None, *, as_parquet: bool) -> None:
    """Write the frame, in a folder that is made if need be; without a path as CSV to the terminal
    or pipe."""
    from radii.statistics import check_parquet

    if as_parquet:
        check_parquet()
    with writing(path):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        if as_parquet:
            frame.to_parquet(path, index=False)
        else:
            write_csv(frame, path or sys.stdout)


def _has_return(cell: object) -> bool:
    return isinstance(cell, str) and "\r" in cell


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """The same for rows of numbers, without pandas."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(rows)


def check_file(path: Path | None, flag: str) -> None:
    """A directory in the place of a file to write is refused before any work."""
    if path is not None and path.is_dir():
        raise DataError(f"{path} is a directory: name a file with {flag}")


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, in a folder that is made if need be."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@contextmanager
def writing(path: Path | None) -> Iterator[None]:
    """Turns a failure to write there into one sentence; without a path, to standard output.

    A reader that went away (head, less) is not a failure.
    """
    try:
        yield
    except OSError as reason:
        if path is None and isinstance(reason, BrokenPipeError):
            raise
        raise StoreError(
            f"{path or 'standard output'}: cannot be written ({reason.strerror or reason})"
        ) from None


@contextmanager
def interruptible(kept: str) -> Iterator[None]:
    """For work that can be continued: says where it is kept when the user interrupts it."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{kept}, run again to continue") from None
