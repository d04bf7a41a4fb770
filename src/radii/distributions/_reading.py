"""Published results as distributions: VERONA's files, those of the papers, and radii's own tables.

Three kinds of tables are told apart by their columns:

- one row an instance, with `epsilon_value` and `smallest_sat_value` (`result_df.csv`);
- one row a query, with `epsilon_value` and `result` (`epsilons_df.csv`, `per_epsilon_results.csv`),
  or with eps in a first column without a name, as pandas writes an index;
- one row an instance, with `lower` and `upper` (what `radii export` writes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions._columns import Array
from radii.distributions._distribution import Distribution
from radii.distributions._frames import columns_of_frame
from radii.distributions._per_epsilon import columns_of_queries
from radii.distributions._published import columns_of_instances
from radii.distributions._tables import read_table, with_named_eps
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class ImportedResults:
    """What a file says, and what about it cannot be taken at its word."""

    distribution: Distribution
    notes: tuple[str, ...]


def read_results(
    path: Path | str,
    *,
    largest_eps: float | None = None,
    distrust: bool = False,
    split: str = "",
    training: str = "",
) -> ImportedResults:
    """Read a file, or the folder of a VERONA experiment or of a radii run.

    A published value is a claim: nothing is replayed here (`radii audit` does that). Where a row
    claims a proof at or beyond its own counterexample, the claimed proof is kept as published and
    a note says so; with `distrust` it is dropped instead. `largest_eps` is the end of the grid:
    VERONA writes it into `smallest_sat_value` when it found no counterexample. `split` and
    `training` are for files that lack these columns.
    """
    place = Path(path)
    if (place / "radii.sqlite").is_file():
        stored = Distribution.from_store(place, training=training)
        return ImportedResults(stored.labelled(split=split) if split else stored, ())
    notes: list[str] = []
    if place.is_dir():
        columns = _columns_of_folder(place, distrust, notes)
    else:
        columns = _columns_of_table(place, read_table(place), largest_eps, distrust, notes)
    defaults = {"split": split, "training": training}
    for name, value in defaults.items():
        columns.setdefault(name, value)
    return ImportedResults(Distribution.from_arrays(**columns), tuple(notes))


def _columns_of_table(
    path: Path,
    frame: pd.DataFrame,
    largest_eps: float | None,
    distrust: bool,
    notes: list[str],
) -> dict[str, Any]:
    if {"lower", "upper"} <= set(frame.columns):
        return columns_of_frame(_restored(frame))
    if "result" in frame.columns and "epsilon_value" not in frame.columns:
        frame = with_named_eps(frame)
        if "epsilon_value" in frame.columns:
            notes.append(f"{path}: the first column has no name, and is taken as epsilon_value")
    if "epsilon_value" not in frame.columns:
        raise DataError(
            f"{path}: column 'epsilon_value' is missing; a table of results has it, with "
            "'smallest_sat_value' (a row an instance) or 'result' (a row a query), "
            "or has 'lower' and 'upper'"
        )
    if "smallest_sat_value" in frame.columns:
        return columns_of_instances(path, frame, largest_eps, distrust, notes)
    if "result" in frame.columns:
        return columns_of_queries(path, frame, distrust, notes)
    raise DataError(f"{path}: column 'smallest_sat_value' or 'result' is missing")


def _restored(frame: pd.DataFrame) -> pd.DataFrame:
    """radii's own column names, where reading gave them the published ones."""
    own = {
        "image_id": "input",
        "network_path": "network",
        "total_time": "seconds",
        "original_label": "label",
        "target_class": "target",
    }
    return frame.rename(columns=own)


def _columns_of_folder(folder: Path, distrust: bool, notes: list[str]) -> dict[str, Any]:
    """VERONA's folder: its queries if they were kept, with labels from its result file."""
    folder = _run_within(folder)
    results = next(_result_files(folder), None)
    queries = sorted((folder / "tmp").glob("*/*/epsilons_df.csv"))
    if not queries:
        if results is None:
            from radii.store import ENSEMBLE_FILE

            if (folder / ENSEMBLE_FILE).is_file():
                raise DataError(
                    f"{folder}: holds an ensemble, not a run; radii report {folder} shows it"
                )
            raise DataError(
                f"{folder}: no result_df.csv, no tmp/*/*/epsilons_df.csv and no radii.sqlite here"
            )
        return _columns_of_table(results, read_table(results), None, distrust, notes)
    columns = columns_of_queries(folder, _joined_queries(queries), distrust, notes)
    if results is not None:
        columns |= _labels(results, read_table(results), columns)
    return columns


def _run_within(folder: Path) -> Path:
    """The folder itself, or the one run that the folder of a VERONA experiment holds."""
    if next(_result_files(folder), None) is not None or (folder / "tmp").is_dir():
        return folder
    below = [place for part in ("*", "results/*") for place in sorted(folder.glob(part))]
    runs = [place for place in below if (place / "results" / "result_df.csv").is_file()]
    if len(runs) > 1:
        names = ", ".join(str(run) for run in runs[:4])
        raise DataError(f"{folder}: holds {len(runs)} runs; name one of them ({names})")
    return runs[0] if runs else folder


def _result_files(folder: Path) -> Iterator[Path]:
    names = ("result_df.csv", "results_df.csv")
    places = (folder, folder / "results")
    return (place / name for place in places for name in names if (place / name).is_file())


def _joined_queries(files: list[Path]) -> pd.DataFrame:
    """The per-query files of all instances; their folders are named after network and image."""
    import pandas as pd

    frames = []
    for file in files:
        frame = read_table(file)
        frame["network_path"], frame["image_id"] = file.parts[-3], file.parts[-2]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _labels(path: Path, frame: pd.DataFrame, columns: dict[str, Any]) -> dict[str, Array]:
    """The labels and targets of the result file's rows, by network and image."""
    told = columns_of_instances(path, frame, None, False, [])
    found = {
        (network, image): place
        for place, (network, image) in enumerate(zip(told["network"], told["input"], strict=True))
    }
    rows = zip(columns["network"], columns["input"], strict=True)
    places = np.array([found.get(row, -1) for row in rows])
    return {
        name: np.where(places >= 0, told[name][places], -1)
        for name in ("label", "target")
        if name in told
    }
