"""Are the same inputs hard for different networks? Spearman's correlation, over all pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions._columns import Array, Float64, joint_codes
from radii.distributions._empirical import Side, side_of
from radii.distributions._tests import holm
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from radii.distributions._distribution import Distribution


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Between networks, on the inputs at which the property holds for both; NaN if undefined.

    `p_values` are raw and `adjusted` Holm's, over the pairs above the diagonal; both are symmetric
    with NaN on the diagonal. `inputs` counts what each pair shares. `left_out` counts for each
    network the brackets without any answer, which have no rank.
    """

    networks: tuple[str, ...]
    coefficients: Float64
    p_values: Float64
    adjusted: Float64
    inputs: Array
    left_out: tuple[int, ...]

    def frame(self) -> pd.DataFrame:
        """The coefficients as a table."""
        import pandas as pd

        return pd.DataFrame(self.coefficients, index=self.networks, columns=self.networks)

    @property
    def mean(self) -> float:
        """Of all defined pairs; NaN if there is none."""
        upper = self.coefficients[np.triu_indices(len(self.networks), 1)]
        told = upper[~np.isnan(upper)]
        return float(told.mean()) if told.size else math.nan


def spearman_matrix(distribution: Distribution, side: Side = "lower") -> Correlations:
    """Spearman's rank correlation of the radii's sides for each pair of networks."""
    names = distribution.networks
    if len(names) < 2:
        raise DataError("a correlation needs at least two networks")
    values = _aligned(distribution, side)
    size = len(names)
    coefficients, p_values = np.eye(size), np.full((size, size), np.nan)
    inputs = np.diag((~np.isnan(values)).sum(axis=1))
    for one in range(size):
        for two in range(one + 1, size):
            both = ~np.isnan(values[one]) & ~np.isnan(values[two])
            found = _spearman(values[one][both], values[two][both])
            inputs[one, two] = inputs[two, one] = int(both.sum())
            coefficients[one, two] = coefficients[two, one] = found[0]
            p_values[one, two] = p_values[two, one] = found[1]
    adjusted = np.full((size, size), np.nan)
    above = np.triu_indices(size, 1)
    adjusted[above] = holm(p_values[above])
    adjusted.T[above] = adjusted[above]
    left_out = tuple(part.unsolved for part in distribution.by_network().values())
    return Correlations(names, coefficients, p_values, adjusted, inputs, left_out)


def _aligned(distribution: Distribution, side: Side) -> Float64:
    """A row a network, a column an input (with its target and split); NaN where it is absent."""
    places = joint_codes(distribution.column(name) for name in ("input", "target", "split"))
    rows = {name: place for place, name in enumerate(distribution.networks)}
    row = np.array([rows[str(name)] for name in distribution.network])
    aligned = np.full((len(rows), int(places.max()) + 1), np.nan)
    told = distribution.holds & ~distribution.is_unsolved
    aligned[row[told], places[told]] = side_of(distribution, side)[told]
    return aligned


def _spearman(x: Float64, y: Float64) -> tuple[float, float]:
    from scipy.stats import rankdata, t

    if len(x) < 3:
        return math.nan, math.nan
    ranks_x, ranks_y = rankdata(x) - (len(x) + 1) / 2, rankdata(y) - (len(y) + 1) / 2
    norm = math.sqrt(float(ranks_x @ ranks_x) * float(ranks_y @ ranks_y))
    if norm == 0:
        return math.nan, math.nan
    rho = max(-1.0, min(1.0, float(ranks_x @ ranks_y) / norm))
    if abs(rho) == 1:
        return rho, 0.0
    freedom = len(x) - 2
    statistic = rho * math.sqrt(freedom / (1 - rho * rho))
    return rho, float(2 * t.sf(abs(statistic), freedom))
