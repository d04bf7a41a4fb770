"""The numbers of the papers' tables: count, lowest, mean, median, for each network and split."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions._empirical import side_values

if TYPE_CHECKING:
    import pandas as pd

    from radii.distributions._distribution import Distribution


ValueRange = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Summary:
    """Of the radii of correctly classified inputs, each as (proven side, witnessed side).

    `inputs` counts all, `accuracy` is the share of them that is classified correctly. Those
    `unsolved` have no answer at all: they widen the intervals, and have no part in `deviation`.
    """

    inputs: int
    correct: int
    unsolved: int
    accuracy: float
    lowest: ValueRange
    mean: ValueRange
    median: ValueRange
    deviation: float

    def row(self) -> dict[str, float]:
        """Flat, for tables: `lowest_lower`, `lowest_upper` and so on."""
        flat: dict[str, float] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                flat |= {f"{field.name}_lower": value[0], f"{field.name}_upper": value[1]}
            else:
                flat[field.name] = value
        return flat


def inputs_with_radius(distribution: Distribution) -> str:
    """Which inputs have a radius: those that `correctly_classified` keeps."""
    if np.array_equal(distribution.holds, distribution.correct):
        return "correct inputs"
    return "inputs at which the property holds"


def summary(distribution: Distribution) -> Summary:
    """`deviation` is the standard deviation of the proven sides of brackets with an answer."""
    right = distribution.correctly_classified()
    proven = side_values(right, "lower")
    return Summary(
        inputs=len(distribution),
        correct=int(distribution.correct.sum()),
        unsolved=right.unsolved,
        accuracy=float(distribution.correct.mean()),
        lowest=right.minimum(),
        mean=right.mean(),
        median=right.median(),
        deviation=float(proven.std(ddof=1)) if len(proven) > 1 else 0.0,
    )


def summary_table(distribution: Distribution) -> pd.DataFrame:
    """One row a network and split; those that classify nothing correctly have none."""
    import pandas as pd

    rows = [
        {"network": network, "split": split or "", **summary(part).row()}
        for (network, split), part in distribution.group_by("network", "split").items()
        if part.holds.any()
    ]
    return pd.DataFrame(rows)
