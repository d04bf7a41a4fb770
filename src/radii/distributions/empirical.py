"""The empirical distribution function of one side of the brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from radii.distributions.columns import Float64
from radii.errors import DataError

if TYPE_CHECKING:
    from radii.distributions.distribution import Distribution

__all__ = ["Ecdf", "Side", "ecdf", "side_values"]

Side = Literal["lower", "upper"]


@dataclass(frozen=True, slots=True, eq=False)
class Ecdf:
    """A step function: `shares[i]` of the values are at most `values[i]`.

    Infinite values (inputs without a witness) are counted but never reached.
    """

    values: Float64
    shares: Float64

    def __call__(self, eps: npt.ArrayLike) -> Float64:
        """The share of values that are at most eps."""
        places = np.searchsorted(self.values, np.asarray(eps, np.float64), side="right")
        return np.concatenate([[0.0], self.shares])[places]


def ecdf(distribution: Distribution, side: Side = "lower") -> Ecdf:
    """Of the proven side, which the papers draw, or of the witnessed one."""
    sides = side_values(distribution, side)
    values, counts = np.unique(sides[np.isfinite(sides)], return_counts=True)
    return Ecdf(values, np.cumsum(counts) / len(sides))


def side_values(distribution: Distribution, side: str) -> Float64:
    if side not in ("lower", "upper"):
        raise DataError(f"a bracket's side is lower or upper, not '{side}'")
    return distribution.lower if side == "lower" else distribution.upper
