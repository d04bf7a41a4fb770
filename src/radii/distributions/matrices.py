"""Matrices of two-sample tests between groups, laid out as in the per-class paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions.columns import Array, Float64
from radii.distributions.empirical import Side, side_values
from radii.distributions.multiple import holm
from radii.distributions.two_samples import ks_test
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from radii.distributions.distribution import Distribution

__all__ = ["KsMatrix", "ks_matrix"]


@dataclass(frozen=True, slots=True, eq=False)
class KsMatrix:
    """Kolmogorov-Smirnov statistics between groups; NaN where a group is absent.

    Below the diagonal groups of training inputs are compared, above it groups of testing inputs;
    the diagonal compares training with testing of one group. Inputs of no named split count as
    training. `adjusted` are Holm's p-values over all tests of the matrix. `left_out` counts the
    brackets of each group without any answer, which have no value to test.
    """

    by: str
    keys: tuple[Any, ...]
    statistics: Float64
    p_values: Float64
    adjusted: Float64
    left_out: tuple[int, ...]

    def differ(self, level: float = 0.05, *, is_adjusted: bool = True) -> Array:
        """Where the groups differ significantly."""
        return np.asarray((self.adjusted if is_adjusted else self.p_values) < level)

    def frame(self) -> pd.DataFrame:
        """The statistics as a table."""
        import pandas as pd

        return pd.DataFrame(self.statistics, index=list(self.keys), columns=list(self.keys))


def ks_matrix(distribution: Distribution, by: str = "class", side: Side = "lower") -> KsMatrix:
    """Compare groups by network, class, target or training, on correctly classified inputs.

    The test takes groups as independent. Targets of the same inputs, and networks on the same
    inputs, are not: for those `compare_all` has tests that know it.
    """
    right = distribution.correctly_classified()
    splits = right.group_by("split")
    testing = splits.get("test")
    training = right.select(right.column("split") != "test") if len(splits) > 1 else None
    if training is None:
        training, testing = (None, right) if testing is not None else (right, None)
    below = {} if training is None else _values(training, by, side)
    above = {} if testing is None else _values(testing, by, side)
    groups = right.group_by(by)
    keys = tuple(groups)
    if len(keys) < 2:
        raise DataError(f"there is only one {by}: nothing to compare")
    size = len(keys)
    statistics, p_values = np.full((size, size), math.nan), np.full((size, size), math.nan)
    for row in range(size):
        for column in range(size):
            if row == column:
                one, two = below.get(keys[row]), above.get(keys[row])
            else:
                values = below if row > column else above
                one, two = values.get(keys[row]), values.get(keys[column])
            if one is not None and two is not None:
                tested = ks_test(one, two)
                statistics[row, column] = tested.statistic
                p_values[row, column] = tested.p_value
    left_out = tuple(part.unsolved for part in groups.values())
    return KsMatrix(by, keys, statistics, p_values, holm(p_values), left_out)


def _values(distribution: Distribution, by: str, side: Side) -> dict[Any, Float64]:
    values = {key: side_values(part, side) for key, part in distribution.group_by(by).items()}
    return {key: told for key, told in values.items() if told.size}
