"""Regions of inputs as boxes, and the range of linear functions over a region."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from radii.balls import Ball, Box, Norm

Float64 = npt.NDArray[np.float64]

SUM_ROUNDING = 2.0**-40
"""What float64 sums may be off, relative to the sum of absolute values: up to 8,192 terms."""

REGION_ROWS_AT_ONCE = 256


def box_of(region: Ball | Box) -> tuple[Float64, Float64]:
    """The flattened lows and highs of the smallest box around a region."""
    low, high = region.box()
    return np.array(low, np.float64).ravel(), np.array(high, np.float64).ravel()


def centre_of(region: Ball | Box) -> Float64:
    """The flattened centre of a ball, or the middle of a box."""
    if isinstance(region, Ball):
        return region.center.ravel()
    low, high = box_of(region)
    return np.clip(low / 2 + high / 2, low, high)


def linear_range(matrix: csr_array, offset: Float64, region: Ball | Box) -> tuple[Float64, Float64]:
    """The least and the greatest value of each row of `matrix @ x + offset` over the region.

    Exact up to rounding, which is added, for boxes and for Linf and L1 balls clipped to their
    domain; for L2 balls the better of the ball's bound and the box's.
    """
    low, high = box_of(region)
    centre = centre_of(region)
    down, up = np.maximum(centre - low, 0.0), np.maximum(high - centre, 0.0)
    middle = matrix @ centre + offset
    size = abs(matrix) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(offset)
    below, above = np.empty_like(middle), np.empty_like(middle)
    for first in range(0, matrix.shape[0], REGION_ROWS_AT_ONCE):
        rows = slice(first, first + REGION_ROWS_AT_ONCE)
        dense = matrix[rows].toarray()
        above[rows] = _greatest(dense, down, up, region)
        below[rows] = _greatest(-dense, down, up, region)
    slack = SUM_ROUNDING * size
    return middle - below - slack, middle + above + slack


def _greatest(rows: Float64, down: Float64, up: Float64, region: Ball | Box) -> Float64:
    """The greatest rows @ d over steps d between -down and up within the ball of the region."""
    reach = np.where(rows > 0, up, down)
    gains = np.abs(rows)
    within_box = (gains * reach).sum(axis=1)
    if isinstance(region, Box) or region.norm is Norm.LINF:
        return np.asarray(within_box)
    if region.norm is Norm.L2:
        by_length = np.linalg.norm(rows, axis=1) * region.eps
        return np.asarray(np.minimum(within_box, by_length))
    # L1: the budget goes to the steepest features first, each as far as the domain lets it.
    order = np.argsort(-gains, axis=1)
    reach = np.take_along_axis(reach, order, axis=1)
    spent = np.cumsum(reach, axis=1) - reach
    steps = np.clip(region.eps - spent, 0.0, reach)
    return np.asarray((np.take_along_axis(gains, order, axis=1) * steps).sum(axis=1))
