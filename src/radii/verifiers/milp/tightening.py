"""Bounds on the inputs of unsettled units from linear programs, the most promising units first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radii.verifiers._base import Limits
from radii.verifiers.linear.expressions import Affine, Float64, widened_to
from radii.verifiers.linear.highs import exhausted
from radii.verifiers.linear.relaxation import Relaxation
from radii.verifiers.milp.encoding import Encoding
from radii.verifiers.milp.programs import relaxed_program

__all__ = ["Tightening"]


@dataclass(frozen=True, slots=True)
class Tightening:
    """Improves bounds by two linear programs a unit, within a share of the time."""

    limits: Limits
    share: Limits
    threads: int

    def __call__(
        self, encoding: Encoding, rows: Affine, low: Float64, high: Float64, knees: Float64
    ) -> tuple[Float64, Float64]:
        relaxation = Relaxation(relaxed_program(encoding), self.limits, threads=self.threads)
        low, high = low.copy(), high.copy()
        _improve(relaxation, rows, low, high, knees, self.share)
        return low, high


def _improve(
    relaxation: Relaxation,
    rows: Affine,
    low: Float64,
    high: Float64,
    knees: Float64,
    share: Limits,
) -> None:
    """Improve, in place, the bounds that still have a knee between them.

    Row i turns at `knees[:, i]`. Those nearest to being settled go first, and of each the side
    nearer to a knee: where it settles the row, the other side is not needed.
    """
    matrix = widened_to(rows.matrix, len(relaxation.low))
    below, above = (np.abs(knees - side).min(axis=0) for side in (low, high))
    nearest = np.minimum(below, above) / np.maximum(high - low, np.finfo(float).tiny)
    for index in np.argsort(nearest, kind="stable"):
        for side in (1.0, -1.0) if below[index] <= above[index] else (-1.0, 1.0):
            if not np.any((low[index] < knees[:, index]) & (knees[:, index] < high[index])):
                break
            if exhausted(share):
                return
            cost = matrix[[index]].toarray().ravel()
            relaxation.aim(side * cost, side * rows.offset[index])
            found = relaxation.minimum().bound - rows.error[index]
            if found == np.inf:  # the region is empty: any bounds hold
                return
            if side > 0:
                low[index] = max(low[index], found)
            else:
                high[index] = min(high[index], -found)
