"""Outputs at which a probability rises to a level or above, in outer polyhedra.

With d_j = y_j - y_c as in `floors`, that is log sum exp(d) <= t: a convex set, so each of its
tangents is a halfspace that holds all of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from radii.properties import Halfspaces

__all__ = ["Tangents", "log_sum_exp"]

Float64 = npt.NDArray[np.float64]

TANGENT_SLACK = 2.0**-40
"""What the rounding of a tangent may be, relative to the numbers in it."""


def log_sum_exp(point: Float64) -> float:
    largest = float(point.max())
    return largest + float(np.log(np.exp(point - largest).sum()))


class Tangents:
    """A polyhedron around the violations, cut down by one tangent after the other."""

    def __init__(self, rows: Float64, top: float, low: Float64) -> None:
        """`low` are bounds on the differences: the first tangent is the one above them."""
        self._rows, self._top = rows, top
        self._matrix: list[Float64] = [*rows]  # no difference alone may be above `top`
        self._offset = [-top] * len(rows)
        self.add(low + (top - log_sum_exp(low)))

    def add(self, point: Float64) -> None:
        """The tangent at a point: log sum exp there plus shares @ (d - point) <= top."""
        value = log_sum_exp(point)
        shares = np.exp(point - value)
        slack = TANGENT_SLACK * (1 + abs(value) + abs(self._top) + float(shares @ np.abs(point)))
        self._matrix.append(shares @ self._rows)
        self._offset.append(value - self._top - float(shares @ point) - slack)

    @property
    def polyhedron(self) -> Halfspaces:
        return Halfspaces(np.stack(self._matrix), np.array(self._offset))
