"""Leaves of the tree, where every unit has a sign: one linear program decides each.

The program asks for the input that comes closest to satisfying the splits and the violation all at
once. Its multipliers are then evaluated like any others, so a proof rests on our own arithmetic and
not on the solver's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack
from torch import Tensor

from radii.balls import Ball, Box, Norm
from radii.verifiers.branch_and_bound.duals import Layers, Multipliers, Rows

__all__ = ["solve_leaf"]

Float64 = npt.NDArray[np.float64]


def solve_leaf(layers: Layers, row: Rows, region: Ball | Box) -> tuple[Multipliers, Tensor] | None:
    """The best multipliers of one leaf, and the input they are least at.

    None if the solver fails, or for an L2 ball, which is no linear program.
    """
    if isinstance(region, Ball) and region.norm is Norm.L2:
        return None
    signs = (row.signs if row.signs is not None else torch.zeros_like(row.lower))[0]
    columns = _columns_of_input(layers, row.lower[0] >= 0)
    arguments = _arguments(layers, columns)
    split = signs.nonzero().squeeze(1)
    spec = row.spec[0] @ columns
    rows = torch.cat([spec, -signs[split, None] * arguments[split]]).numpy()
    solution = _least_violation(rows, layers, region)
    if solution is None:
        return None
    weights, point = solution
    gamma = torch.from_numpy(weights[: len(spec)])[None]
    beta = torch.zeros_like(row.lower)
    beta[0, split] = torch.from_numpy(weights[len(spec) :])
    slopes = torch.zeros_like(row.lower)
    return Multipliers(slopes, gamma, beta), torch.from_numpy(point)[None]


def _columns_of_input(layers: Layers, is_active: Tensor) -> Tensor:
    """Every column as an affine function of the input: (columns, inputs + 1)."""
    columns = torch.eye(layers.inputs + 1, dtype=torch.float64)
    start = 0
    for matrix in layers.matrices:
        units = is_active[start : start + len(matrix), None]
        columns = torch.cat([columns, torch.where(units, matrix @ columns, 0.0)])
        start += len(matrix)
    return columns


def _arguments(layers: Layers, columns: Tensor) -> Tensor:
    parts = [matrix @ columns[: matrix.shape[1]] for matrix in layers.matrices]
    return torch.cat(parts) if parts else torch.zeros(0, columns.shape[1], dtype=torch.float64)


def _least_violation(
    rows: Float64, layers: Layers, region: Ball | Box
) -> tuple[Float64, Float64] | None:
    """Minimise t subject to rows @ (x, 1) <= t over the region: multipliers, and where."""
    inputs = layers.inputs
    low, high = layers.support.low.numpy(), layers.support.high.numpy()
    matrix = csr_array(np.hstack([rows[:, :inputs], -np.ones((len(rows), 1))]))
    right = -rows[:, inputs]
    cost = np.zeros(inputs + 1)
    cost[inputs] = 1.0
    bounds = [*zip(low, high, strict=True), (None, None)]
    if isinstance(region, Ball) and region.norm is Norm.L1:
        centre = layers.support.centre.numpy()
        matrix, right, cost = _with_l1_budget(matrix, right, cost, centre, region.eps)
        bounds += [(0.0, None)] * inputs
    found = linprog(cost, A_ub=matrix, b_ub=right, bounds=bounds, method="highs")
    if found.status != 0:
        return None
    weights = np.maximum(-found.ineqlin.marginals[: len(rows)], 0.0)
    return weights, found.x[:inputs]


def _with_l1_budget(
    matrix: csr_array, right: Float64, cost: Float64, centre: Float64, eps: float
) -> tuple[csr_array, Float64, Float64]:
    """A column s_i >= |x_i - centre_i| for each input, and their sum at most eps."""
    inputs = len(centre)
    unit, nothing = eye_array(inputs), csr_array((inputs, 1))
    budget = hstack([csr_array((1, inputs + 1)), csr_array(np.ones((1, inputs)))])
    wider = vstack(
        [
            hstack([matrix, csr_array((matrix.shape[0], inputs))]),
            hstack([unit, nothing, -unit]),
            hstack([-unit, nothing, -unit]),
            budget,
        ]
    )
    sides = np.concatenate([right, centre, -centre, [eps]])
    return csr_array(wider), sides, np.concatenate([cost, np.zeros(inputs)])
