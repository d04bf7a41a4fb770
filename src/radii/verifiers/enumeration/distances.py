"""The distance from a point to a polyhedron, with a lower bound that needs no trust in the solver.

For any multipliers y >= 0, every x with matrix @ x <= bound satisfies
|x - centre| >= y @ (matrix @ centre - bound) / |matrix.T @ y|, the latter in the dual norm. So a
solver only proposes y. If the polyhedron is empty, good multipliers make the quotient huge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array

from radii.balls import Norm
from radii.bounds.regions import ROUNDING
from radii.verifiers._base import Limits
from radii.verifiers.linear.expressions import Float64
from radii.verifiers.linear.highs import load, run
from radii.verifiers.linear.program import Program, Rows

__all__ = ["Nearest", "Polyhedron", "nearest"]

_DUAL: dict[Norm, Any] = {Norm.LINF: 1, Norm.L2: 2, Norm.L1: np.inf}


@dataclass(frozen=True, slots=True, eq=False)
class Polyhedron:
    """All x with matrix @ x <= bound."""

    matrix: Float64
    bound: Float64

    def cut(self, matrix: Float64, bound: Float64) -> Polyhedron:
        return Polyhedron(np.vstack([self.matrix, matrix]), np.append(self.bound, bound))

    def contains(self, x: Float64, tolerance: float = 0.0) -> bool:
        return bool(np.all(self.matrix @ x <= self.bound + tolerance))


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """`bound` is proven to be at most the distance; `point` is the solver's nearest, if any."""

    bound: float
    point: Float64 | None


def nearest(polyhedron: Polyhedron, centre: Float64, norm: Norm, limits: Limits) -> Nearest:
    """How far the polyhedron is from the centre. The bound is huge if it is empty."""
    if polyhedron.contains(centre):
        return Nearest(0.0, centre)
    lengths = np.linalg.norm(polyhedron.matrix, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    matrix, bound = polyhedron.matrix / lengths[:, None], polyhedron.bound / lengths
    solve = _euclidean if norm is Norm.L2 else _linear
    multipliers, point = solve(matrix, bound - matrix @ centre, norm, limits)
    # The sign of a ray is the solver's choice; clipped to y >= 0, either sign gives a valid bound.
    proven = max(
        _proven(polyhedron, centre, norm, sign * multipliers / lengths) for sign in (1.0, -1.0)
    )
    return Nearest(proven, None if point is None else centre + point)


def _proven(polyhedron: Polyhedron, centre: Float64, norm: Norm, multipliers: Float64) -> float:
    """The quotient above, with the rounding of this computation taken off."""
    y = np.where(np.isfinite(multipliers), np.maximum(multipliers, 0.0), 0.0)
    gain = y @ (polyhedron.matrix @ centre - polyhedron.bound)
    sizes = np.abs(polyhedron.matrix) @ np.abs(centre) + np.abs(polyhedron.bound)
    gain -= ROUNDING * float(y @ sizes)
    length = np.linalg.norm(polyhedron.matrix.T @ y, _DUAL[norm])
    length += ROUNDING * np.linalg.norm(np.abs(polyhedron.matrix).T @ y, _DUAL[norm])
    if not (0 < gain < np.inf and 0 <= length < np.inf):  # also where either is NaN
        return 0.0
    return float(gain / length * (1 - ROUNDING)) if length > 0 else np.inf


def _euclidean(
    matrix: Float64, bound: Float64, _norm: Norm, _limits: Limits
) -> tuple[Float64, Float64 | None]:
    """Least distance as a non-negative least-squares problem: multipliers and step."""
    from scipy.optimize import nnls  # a tenth of the start of a worker; only L2 gets here

    stacked = np.vstack([-matrix.T, -bound[None]])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    try:
        multipliers, _ = nnls(stacked, target)
    except RuntimeError:  # no convergence: nothing is known
        return np.zeros(len(bound)), None
    residual = stacked @ multipliers - target
    if abs(residual[-1]) < EMPTY:
        return multipliers, None
    return multipliers, -residual[:-1] / residual[-1]


EMPTY = 1e-12
"""A residual below this says that no point meets all constraints."""


def _linear(
    matrix: Float64, bound: Float64, norm: Norm, limits: Limits
) -> tuple[Float64, Float64 | None]:
    """Least distance in Linf or L1 as a linear program over steps up and steps down."""
    count, features = matrix.shape
    steps = np.hstack([matrix, -matrix])
    cost = np.ones(2 * features)
    if norm is Norm.LINF:
        steps = np.hstack([steps, np.zeros((count, 1))])
        within = np.hstack([np.eye(features), np.eye(features), -np.ones((features, 1))])
        steps = np.vstack([steps, within])
        cost = np.append(np.zeros(2 * features), 1.0)
    high = np.concatenate([bound, np.zeros(len(steps) - count)])
    rows = Rows(csr_array(steps), np.full(len(high), -np.inf), high)
    program = Program(np.zeros(len(cost)), np.full(len(cost), np.inf), rows, cost)
    solver = load(program, threads=1, presolve=False)
    status = run(solver, limits)
    if status == highspy.HighsModelStatus.kInfeasible:
        _, has_ray, ray = solver.getDualRay()
        return (np.array(ray)[:count] if has_ray else np.zeros(count)), None
    solution = solver.getSolution()
    if not (solution.dual_valid and solution.value_valid):
        return np.zeros(count), None
    value = np.array(solution.col_value)
    return -np.array(solution.row_dual)[:count], value[:features] - value[features : 2 * features]
