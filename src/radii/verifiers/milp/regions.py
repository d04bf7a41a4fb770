"""The columns and rows that stand for the inputs of a region."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from radii.balls import Ball, Box, Norm
from radii.bounds import box_of
from radii.properties import Halfspaces
from radii.verifiers.linear.expressions import Affine, Float64, combined, unit_rows
from radii.verifiers.linear.program import Rows, at_most, joined

__all__ = ["input_columns", "region_rows"]


def input_columns(region: Ball | Box) -> tuple[Float64, Float64, Affine]:
    """Lows and highs of the columns, and the network's input in terms of them."""
    low, high = box_of(region)
    if isinstance(region, Ball) and region.norm is Norm.L1:
        return _steps(region.center.ravel(), low, high)
    exact = unit_rows(np.arange(len(low)), len(low))
    return low, high, Affine(exact, np.zeros(len(low)), np.zeros(len(low)))


def _steps(centre: Float64, low: Float64, high: Float64) -> tuple[Float64, Float64, Affine]:
    """Steps up and steps down from the centre, so that an L1 ball is one row over the columns."""
    up, down = np.maximum(high - centre, 0.0), np.maximum(centre - low, 0.0)
    rising, falling = np.flatnonzero(up > 0), np.flatnonzero(down > 0)
    columns = len(rising) + len(falling)
    places = np.full((2, len(centre)), -1)
    places[0, rising] = np.arange(len(rising))
    places[1, falling] = len(rising) + np.arange(len(falling))
    matrix = csr_array(unit_rows(places[0], columns) + unit_rows(places[1], columns, -1.0))
    reach = np.nextafter(np.concatenate([up[rising], down[falling]]), np.inf)
    return np.zeros(columns), reach, Affine(matrix, centre.copy(), np.zeros(len(centre)))


def region_rows(
    region: Ball | Box, halfspaces: Halfspaces | None, inputs: Affine, sizes: Float64
) -> Rows:
    """What the region demands beyond the bounds of its columns."""
    parts = []
    if isinstance(region, Ball) and region.norm is Norm.L1:
        total = csr_array(abs(inputs.matrix).sum(axis=0)[None])
        parts.append(at_most(Affine(total, np.zeros(1), np.zeros(1)), np.array([region.eps])))
    if halfspaces is not None:
        maps = {0: csr_array(halfspaces.matrix)}
        depths = combined(maps, halfspaces.offset, {0: inputs}, sizes)
        parts.append(at_most(depths, np.zeros(len(depths))))
    return joined(parts, len(sizes))
