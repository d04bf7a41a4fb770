"""Writing the columns of the published results, which VERONA users' scripts read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from radii.distributions._distribution import Distribution
from radii.errors import StoreError
from radii.queries import Grid

if TYPE_CHECKING:
    import pandas as pd


VERONA_COLUMNS = (
    "image_id",
    "epsilon_value",
    "total_time",
    "smallest_sat_value",
    "network_path",
    "split",
    "training",
    "tmp_path",
    "original_label",
)


def verona_frame(
    distribution: Distribution, *, grid: Grid, split: str, training: str = "unknown"
) -> pd.DataFrame:
    """The distribution in the published columns: grid values on both sides, as published.

    `smallest_sat_value` is the smallest grid value at which a witness is known, empty without one.
    Misclassified inputs are left out: the published files hold correctly classified inputs only.
    Brackets with a target say so in `target_class`, and what was asked about it in `property`.
    """
    import pandas as pd

    rows = [
        (
            m.input,
            m.bracket.lower,
            m.seconds,
            _grid_value_from(grid, m.bracket.upper),
            m.network,
            split,
            training,
            f"image_{m.input}",
            float(m.label),
        )
        for m in distribution
        if m.correct
    ]
    frame = pd.DataFrame(rows, columns=list(VERONA_COLUMNS))
    kept = [m for m in distribution if m.correct]
    if any(m.target is not None for m in kept):
        frame["target_class"] = pd.array([m.target for m in kept], dtype="Int64")
        frame["property"] = [m.property for m in kept]
    return frame


def write_verona_folder(
    folder: Path, distribution: Distribution, *, grid: Grid, split: str, training: str = "unknown"
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
            known = [(eps, told) for eps, told in facts if eps > 0]  # NaN and 0 are no facts
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
