"""Writing the columns of the published results, which VERONA users' scripts read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii.distributions.distribution import Distribution
from radii.queries import Grid

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "verona_frame"]

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
