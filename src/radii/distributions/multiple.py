"""Many tests at once: Holm's correction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from radii.distributions.columns import Float64

__all__ = ["holm"]


def holm(p_values: npt.ArrayLike) -> Float64:
    """Adjusted p-values, in the shape of the raw ones. NaN is a test that was not made.

    Rejecting those at most alpha rejects any true hypothesis with probability at most alpha.
    """
    raw = np.asarray(p_values, np.float64)
    adjusted = np.full(raw.shape, np.nan)
    made = ~np.isnan(raw)
    values = raw[made]
    order = np.argsort(values)
    factors = len(values) - np.arange(len(values))
    grown = np.maximum.accumulate(values[order] * factors)
    placed = np.empty(len(values))
    placed[order] = np.minimum(grown, 1.0)
    adjusted[made] = placed
    return adjusted
