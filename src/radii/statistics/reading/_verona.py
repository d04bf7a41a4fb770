"""VERONA's folders, both ways: an experiment, the results in it, and radii's results as one.

experiment/
  data/networks/*.onnx, or data/networks/networks.csv with a column `architecture`
  data/images/*.pt and data/image_labels.csv
  results/RUN/configuration.json, results/RUN/results/result_df.csv
  results/RUN/tmp/NETWORK/IMAGE/epsilons_df.csv, with every query
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import DataError, ExperimentError, StoreError
from radii.problem import Grid
from radii.statistics._columns import NO_NUMBER, Array
from radii.statistics.reading._published import (
    columns_of_instances,
    columns_of_queries,
    columns_of_table,
)
from radii.statistics.reading._tables import read_table
from radii.store import ENSEMBLE_FILE

if TYPE_CHECKING:
    import pandas as pd

    from radii.statistics._distribution import Distribution

# --- an experiment


@dataclass(frozen=True, slots=True)
class VeronaExperiment:
    """`grid` has the epsilons of the last run's configuration; None where there is none."""

    networks: tuple[Path, ...]
    data: Path
    grid: Grid | None
    results: tuple[Path, ...]

    def as_toml(self, *, domain: str, beside: Path) -> str:
        """An experiment file of radii that is to lie in the folder `beside`."""
        names = [_quoted(os.path.relpath(path.resolve(), beside)) for path in self.networks]
        lines = [
            "# made from a VERONA experiment by radii convert",
            f"networks = [{', '.join(names)}]",
            f"data = {_quoted(os.path.relpath(self.data.resolve(), beside))}",
            f"domain = {_quoted(domain)}  # valid inputs",
        ]
        if self.grid is not None:
            lines.append(f'grid = "{self.grid}"  # the epsilons of its last run')
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A string of TOML, which, unlike JSON, knows no pairs of surrogates."""
    if not text.isprintable():
        raise ExperimentError(f"{text!r}: has characters that an experiment file cannot hold")
    return json.dumps(text, ensure_ascii=False)


def find_experiment(folder: Path) -> VeronaExperiment:
    """What the folder holds; an ExperimentError says what is missing."""
    from radii.datasets import is_verona, read_grid

    if not folder.is_dir():
        raise ExperimentError(f"{folder}: there is no such folder")
    root = folder / "data" if (folder / "data").is_dir() else folder
    if not is_verona(root):
        raise ExperimentError(f"{root}: has no images/*.pt with image_labels.csv, as VERONA's have")
    configurations = sorted(folder.glob("**/configuration.json"), key=lambda p: p.stat().st_mtime)
    return VeronaExperiment(
        networks=_networks(root / "networks"),
        data=root,
        grid=read_grid(configurations[-1]) if configurations else None,
        results=tuple(
            path.parent.parent for path in sorted(folder.glob("**/results/result_df.csv"))
        ),
    )


def _networks(folder: Path) -> tuple[Path, ...]:
    listed = folder / "networks.csv"
    networks: tuple[Path, ...]
    if listed.is_file():
        try:
            with listed.open(newline="", encoding="utf-8-sig") as stream:
                rows = list(csv.DictReader(stream))
            onnx_rows = (row for row in rows if row.get("network_type") == "onnx")
            names = [name for row in onnx_rows if (name := row["architecture"])]
        except (OSError, UnicodeDecodeError, csv.Error, KeyError):
            raise ExperimentError(
                f"{listed}: is not a table with architecture and network_type"
            ) from None
        networks = tuple(_placed(folder, Path(name)) for name in names)
    else:
        networks = tuple(sorted(folder.glob("*.onnx")))
    if not networks:
        raise ExperimentError(f"{folder}: holds no network in ONNX")
    return networks


def _placed(folder: Path, named: Path) -> Path:
    """A path in networks.csv is from where VERONA was started; its name may lie beside the list."""
    places = (named, folder / named, folder / named.name)
    return next((place for place in places if place.is_file()), folder / named)


# --- reading results


def columns_of_folder(folder: Path, distrust: bool, notes: list[str]) -> dict[str, Any]:
    """The columns of a run: from its queries if they were kept, with labels from its results."""
    folder = _run_within(folder)
    results = next(_result_files(folder), None)
    queries = sorted((folder / "tmp").glob("*/*/epsilons_df.csv"))
    if not queries:
        if results is None:
            if (folder / ENSEMBLE_FILE).is_file():
                raise DataError(
                    f"{folder}: holds an ensemble, not a run; radii report {folder} shows it"
                )
            raise DataError(
                f"{folder}: no result_df.csv, no tmp/*/*/epsilons_df.csv and no radii.sqlite here"
            )
        return columns_of_table(results, None, distrust, notes)
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
    results = columns_of_instances(path, frame, None, False, [])
    rows = zip(results["network"], results["input"], strict=True)
    place_of_row = {row: place for place, row in enumerate(rows)}
    wanted = zip(columns["network"], columns["input"], strict=True)
    places = np.array([place_of_row.get(row, -1) for row in wanted])
    return {
        name: np.where(places >= 0, results[name][places], NO_NUMBER)
        for name in ("label", "target")
        if name in results
    }


# --- writing results


def verona_frame(
    distribution: Distribution, *, grid: Grid, split: str, training: str = "unknown"
) -> pd.DataFrame:
    """The brackets in the published columns: grid values on both sides.

    `smallest_sat_value` is the smallest grid value at which a witness is known, empty without one.
    Misclassified inputs are left out: the published files hold correctly classified inputs only.
    Brackets with a target say so in `target_class`, and what was asked about it in `property`.
    """
    import pandas as pd

    kept = {name: values[distribution.correct] for name, values in distribution.columns.items()}
    frame = pd.DataFrame(
        {
            "image_id": kept["input"],
            "epsilon_value": kept["lower"],
            "total_time": kept["seconds"],
            "smallest_sat_value": [_grid_value_from(grid, end) for end in kept["upper"].tolist()],
            "network_path": kept["network"],
            "split": split,
            "training": training,
            "tmp_path": [f"image_{number}" for number in kept["input"].tolist()],
            "original_label": kept["label"].astype(np.float64),
        }
    )
    if np.any(kept["target"] != NO_NUMBER):
        frame["target_class"] = pd.Series(kept["target"], dtype="Int64")
        frame.loc[kept["target"] == NO_NUMBER, "target_class"] = pd.NA
        frame["property"] = kept["property"]
    return frame


def write_verona_folder(
    folder: Path,
    distribution: Distribution,
    *,
    grid: Grid,
    split: str,
    training: str = "unknown",
) -> int:
    """VERONA's folder of an experiment, with what is known at values of the grid; how many results.

    `tmp` holds what the brackets rest on: UNSAT at what is proven, SAT at the first value of the
    grid with a counterexample; UNKNOWN at the first value where neither is known. It has one place
    an image, so brackets with targets are in the table of results alone.
    """
    import pandas as pd

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"{folder}: is not empty, or no folder; name a new one")
    frame = verona_frame(distribution, grid=grid, split=split, training=training)
    if frame.empty:
        raise StoreError(f"{folder}: there is no correctly classified input to write")
    frame["smallest_sat_value"] = frame["smallest_sat_value"].astype(float)
    frame["network_path"] = frame["network_path"].str.removesuffix(".onnx") + ".onnx"
    frame["tmp_path"] = [
        f"tmp/{Path(name).stem}/image_{number}"
        for name, number in zip(frame["network_path"], frame["image_id"], strict=True)
    ]
    try:
        (folder / "results").mkdir(parents=True, exist_ok=True)
        frame.to_csv(folder / "results" / "result_df.csv")
        for row in frame.itertuples() if "target_class" not in frame else ():
            facts = [(row.epsilon_value, "UNSAT"), (row.smallest_sat_value, "SAT")]
            known = [(eps, result) for eps, result in facts if eps > 0]  # NaN and 0 are no facts
            known = known or [(grid[0], "UNKNOWN")]  # an input without a row would be lost
            place = folder / row.tmp_path
            place.mkdir(parents=True, exist_ok=True)
            table = pd.DataFrame(known, columns=["epsilon_value", "result"])
            table["time"], table["verifier"] = row.total_time / len(known), "radii"
            table.to_csv(place / "epsilons_df.csv")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror or error})") from None
    return len(frame)


def _grid_value_from(grid: Grid, upper: float) -> float | None:
    """The smallest grid value that is not below `upper`."""
    place = grid.count_below(upper)
    return grid[place] if place < len(grid) else None
