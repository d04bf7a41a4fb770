"""The empirical distribution function of one side of the brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from radii.distributions._columns import Float64
from radii.errors import DataError

if TYPE_CHECKING:
    from radii.distributions._distribution import Distribution


Side = Literal["lower", "upper"]


@dataclass(frozen=True, slots=True, eq=False)
class Ecdf:
    """A step function: `shares[i]` of the values are at most `values[i]`.

    Infinite values (inputs without a witness) are counted but never reached. Brackets without any
    answer have no value, and are `left_out`.
    """

    values: Float64
    shares: Float64
    left_out: int = 0

    def __call__(self, eps: npt.ArrayLike) -> Float64:
        """The share of values that are at most eps."""
        places = np.searchsorted(self.values, np.asarray(eps, np.float64), side="right")
        return np.concatenate([[0.0], self.shares])[places]


def ecdf(distribution: Distribution, side: Side = "lower") -> Ecdf:
    """Of the proven side, which the papers draw, or of the witnessed one."""
    sides = side_values(distribution, side)
    values, counts = np.unique(sides[np.isfinite(sides)], return_counts=True)
    return Ecdf(values, np.cumsum(counts) / max(1, len(sides)), distribution.unsolved)


def side_values(distribution: Distribution, side: str) -> Float64:
    """One number for each bracket that has an answer; others have none, and are left out."""
    return side_of(distribution, side)[~distribution.is_unsolved]


def side_of(distribution: Distribution, side: str) -> Float64:
    """A side of every bracket."""
    if side not in ("lower", "upper"):
        raise DataError(f"a bracket's side is lower or upper, not '{side}'")
    return distribution.lower if side == "lower" else distribution.upper
