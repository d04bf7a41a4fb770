"""Leaves: every unit has a sign, so the network is linear there and one linear program decides.

It asks for the input that comes closest to satisfying the splits and the violation all at once. Its
multipliers are then evaluated like any others, so a proof rests on our own arithmetic and not on
the solver's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array, eye_array, hstack, vstack
from torch import Tensor

from radii.bounds import Layers, Multipliers, Rows, Support
from radii.problem import Ball, Box, Norm

Float64 = npt.NDArray[np.float64]


def solve_leaf(layers: Layers, row: Rows, region: Ball | Box) -> tuple[Multipliers, Tensor] | None:
    """The best multipliers of one leaf, and the step from the centre that they are least at.

    Every unit's sign counts as a split, whether it was split or follows from bounds.

    None if the solver fails, or for an L2 ball, which is no linear program.
    """
    if isinstance(region, Ball) and region.norm is Norm.L2:
        return None
    is_active = row.lower[0] >= 0
    arguments, specs = layers.functions_of_steps(is_active)
    own = specs.view(-1, layers.parts, specs.shape[1])[int(row.spec[0])]
    rows = torch.cat([own, torch.where(is_active[:, None], -arguments, arguments)]).numpy()
    solution = _least_violation(rows, layers.support, region)
    if solution is None:
        return None
    weights, steps = solution
    gamma = torch.from_numpy(weights[: len(own)])[None]
    beta = torch.from_numpy(weights[len(own) :])[None]
    return Multipliers(torch.zeros_like(row.lower), gamma, beta), torch.from_numpy(steps)[None]


def _least_violation(
    rows: Float64, support: Support, region: Ball | Box
) -> tuple[Float64, Float64] | None:
    """Minimise t subject to rows @ (steps, 1) <= t over the region: multipliers, and where."""
    from scipy.optimize import linprog  # a tenth of the start of a worker; few trees get here

    low, high = support.down.numpy(), support.up.numpy()
    inputs = len(low)
    matrix = csr_array(np.hstack([rows[:, :inputs], -np.ones((len(rows), 1))]))
    right = -rows[:, inputs]
    cost = np.zeros(inputs + 1)
    cost[inputs] = 1.0
    bounds = [*zip(low, high, strict=True), (None, None)]
    if isinstance(region, Ball) and region.norm is Norm.L1:
        matrix, right, cost = _with_l1_budget(matrix, right, cost, inputs, region.eps)
        bounds += [(0.0, None)] * inputs
    found = linprog(cost, A_ub=matrix, b_ub=right, bounds=bounds, method="highs")
    if found.status != 0:
        return None
    weights = np.maximum(-found.ineqlin.marginals[: len(rows)], 0.0)
    return weights, found.x[:inputs]


def _with_l1_budget(
    matrix: csr_array, right: Float64, cost: Float64, inputs: int, eps: float
) -> tuple[csr_array, Float64, Float64]:
    """A column for each step's length, and their sum at most eps."""
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
    sides = np.concatenate([right, np.zeros(2 * inputs), [eps]])
    return csr_array(wider), sides, np.concatenate([cost, np.zeros(inputs)])
