"""The column layout of the published results, which VERONA users' scripts read and write."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from radii.brackets import Bracket, Measurement
from radii.distributions.distribution import Distribution
from radii.errors import DataError
from radii.queries import Grid

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "read_verona", "verona_frame"]

COLUMNS = (
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
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _grid_value_from(grid: Grid, upper: float) -> float | None:
    """The smallest grid value that is not below `upper`."""
    place = grid.count_below(upper)
    return grid[place] if place < len(grid) else None


def read_verona(path: Path) -> Distribution:
    """Read a file with the published columns; each row becomes a measurement."""
    import pandas as pd

    try:
        frame = pd.read_csv(path, skipinitialspace=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a table ({error})") from None
    absent = [name for name in COLUMNS if name not in frame.columns]
    if absent:
        raise DataError(f"{path}: column '{absent[0]}' is missing; it needs {', '.join(COLUMNS)}")
    return Distribution(_measurement(path, row) for row in frame.itertuples(index=False))


def _measurement(path: Path, row: object) -> Measurement:
    values = {name: getattr(row, name) for name in COLUMNS}
    upper = float(values["smallest_sat_value"])
    try:
        bracket = Bracket(float(values["epsilon_value"]), math.inf if math.isnan(upper) else upper)
    except ValueError as error:
        raise DataError(f"{path}: image {values['image_id']}: {error}") from None
    label = int(values["original_label"])
    return Measurement(
        network=str(values["network_path"]),
        fingerprint="",
        input=int(values["image_id"]),
        label=label,
        predicted=label,
        correct=True,
        property="one-to-any",
        target=None,
        bracket=bracket,
        witness_class=None,
        seconds=float(values["total_time"]),
        queries=0,
        missing=0,
        cancelled=0,
    )
