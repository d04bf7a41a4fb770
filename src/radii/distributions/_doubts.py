"""What about a published table cannot be taken at its word. Nothing is dropped: it is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions._columns import Array, joint_codes
from radii.distributions._tables import numbers

if TYPE_CHECKING:
    import pandas as pd


OTHER_FILES = (
    *(".ipynb", ".ipynb_checkpoints", ".py", ".pyc", ".sh", ".md", ".txt", ".log", ".out", ".err"),
    *(".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".xlsx", ".parquet", ".vnnlib", ".pdf"),
    *(".png", ".jpg", ".svg", ".zip", ".gz", ".tar", ".git", ".gitignore", ".ds_store"),
    "__pycache__",
)
"""Ends of what a script finds in a folder of results beside networks."""

MEASUREMENT_COLUMNS = (
    *("image_id", "split", "target_class", "epsilon_value", "smallest_sat_value"),
    *("result", "total_time"),
)
"""What makes two rows the same measurement; the network's name is what they differ in."""

MOST_NAMED = 12


def note_rows(notes: list[str], path: Path, rows: Array, what: str, noun: str = "rows") -> None:
    """How many rows are marked, what about them, and which are the first (counted from 1)."""
    if rows.any():
        places = np.flatnonzero(rows)
        shown = ", ".join(str(place + 1) for place in places[:5])
        more = ", ..." if len(places) > 5 else ""
        where = f" (rows {shown}{more})" if noun == "rows" else ""
        notes.append(f"{path}: {len(places)} of {len(rows)} {noun} {what}{where}")


def note_unsolved(notes: list[str], path: Path, unsolved: Array, noun: str = "rows") -> None:
    """Results without any answer: they are kept, and are no radius of 0."""
    what = "have no answer, neither a proof nor a counterexample: kept as [0, inf)"
    note_rows(notes, path, unsolved, what, noun)


def note_names(notes: list[str], path: Path, networks: Array) -> None:
    """Networks that bear the name of another kind of file."""
    names, counts = np.unique(networks, return_counts=True)
    for name, count in zip(names.tolist(), counts.tolist(), strict=True):
        if name.lower().endswith(OTHER_FILES):
            notes.append(
                f"{path}: {count} of {len(networks)} rows are of '{name}', which is no network's "
                "name: they are kept under it"
            )


def note_splits(notes: list[str], path: Path, splits: Array | None) -> None:
    """Rows of no split where others have one."""
    if splits is not None and np.any(splits != ""):
        note_rows(notes, path, splits == "", "have no split, which others have")


def note_repeats(notes: list[str], path: Path, keys: Sequence[Array]) -> None:
    """Rows of an instance that has another row already."""
    codes = joint_codes(keys)
    _, first = np.unique(codes, return_index=True)
    again = np.ones(len(codes), np.bool_)
    again[first] = False
    note_rows(notes, path, again, "are of an instance that an earlier row is of: all are kept")


def note_copies(notes: list[str], path: Path, frame: pd.DataFrame, networks: Array) -> None:
    """Measurements that stand under several networks' names, word for word with their times.

    Brackets on a grid may well agree, and so may times that are a limit; measured times may not.
    """
    if "total_time" not in frame.columns:
        return
    seconds = numbers(path, frame, "total_time")
    is_measured = np.isfinite(seconds) & (seconds != np.floor(seconds))
    columns = [name for name in MEASUREMENT_COLUMNS if name in frame.columns]
    told = frame.loc[is_measured, columns].assign(network=networks[is_measured])
    sharing = told.groupby(columns, dropna=False, sort=False)["network"].agg(frozenset)
    sizes = told.groupby(columns, dropna=False, sort=False).size()
    for names in _joined_groups({group for group in sharing if len(group) > 1}):
        is_copied = np.array([len(group) > 1 and group <= names for group in sharing], np.bool_)
        shown = sorted(names)[:MOST_NAMED] + ["..."] * (len(names) > MOST_NAMED)
        count = int(is_copied.sum())
        notes.append(
            f"{path}: at least {int(sizes[is_copied].sum())} of {len(frame)} rows repeat {count} "
            f"{'measurement' if count == 1 else 'measurements'}, times included, under the names "
            f"of {len(names)} networks ({', '.join(shown)}): at most one name of each can be "
            "right, and all are kept"
        )


def _joined_groups(groups: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Groups that have a name in common, as one; the largest first."""
    parts: list[frozenset[str]] = []
    for group in groups:
        touching = [part for part in parts if part & group]
        parts = [part for part in parts if not part & group]
        parts.append(group.union(*touching))
    return sorted(parts, key=lambda part: (-len(part), sorted(part)))
