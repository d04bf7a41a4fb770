"""Linear relaxations whose bounds do not rest on the solver.

HiGHS proposes multipliers; the bound is then computed from them by weak duality in float64, and
its rounding is subtracted. Any multipliers give a valid bound, so no tolerance of the solver can
make it wrong, only weak. Every column must be bounded for that; over a box they all are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array

from radii.bounds.regions import ROUNDING
from radii.verifiers._base import Limits
from radii.verifiers.linear.expressions import Float64
from radii.verifiers.linear.highs import load, run
from radii.verifiers.linear.program import Program

__all__ = ["Minimum", "Relaxation"]

CLEARLY = 1e-6
"""How far beyond the cutoff the solver goes, so that rounding taken off leaves it beyond."""

Status = highspy.HighsModelStatus


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """`bound` is proven to be at most the minimum; infinite if there is no feasible point.

    `point` and `duals` (a row each) are what the solver ended at, if it ended at something.
    """

    bound: float
    point: Float64 | None = None
    duals: Float64 | None = None


class Relaxation:
    """A linear program that is solved again and again, each time from the last basis."""

    def __init__(self, program: Program, limits: Limits, *, threads: int = 1) -> None:
        self.program = program
        self.limits = limits
        self.low, self.high = program.low.copy(), program.high.copy()
        self.row_low, self.row_high = program.rows.low.copy(), program.rows.high.copy()
        self._matrix = csr_array(program.rows.matrix)
        self._transposed = csr_array(self._matrix.T)
        self._absolute = abs(self._transposed)
        self._sizes = program.sizes
        self._cost, self._offset = program.cost, program.offset
        self._indices = np.arange(len(program.low), dtype=np.int32)
        self._solver: Any = load(program, threads=threads, presolve=False)
        self._solver.cbSimplexInterrupt += self._stop_if_cancelled

    def aim(self, cost: Float64, offset: float = 0.0) -> None:
        """Minimise something else from now on."""
        self._cost, self._offset = cost, offset
        self._solver.changeColsCost(len(cost), self._indices, cost)

    def bound_column(self, column: int, low: float, high: float) -> None:
        """Change a column's bounds; never beyond the program's own."""
        self.low[column], self.high[column] = low, high
        self._solver.changeColBounds(column, low, high)

    def bound_row(self, row: int, low: float, high: float) -> None:
        self.row_low[row], self.row_high[row] = low, high
        self._solver.changeRowBounds(row, low, high)

    def minimum(self, cutoff: float = np.inf) -> Minimum:
        """A proven lower bound on the current aim, and where the solver found it.

        The solver may end as soon as the bound is clearly beyond the cutoff.
        """
        self._solver.setOptionValue("objective_bound", cutoff - self._offset + CLEARLY)
        status = run(self._solver, self.limits)
        if status == Status.kInfeasible:
            return Minimum(np.inf if self._proves_infeasible() else -np.inf)
        solution = self._solver.getSolution()
        if not solution.dual_valid:
            return Minimum(-np.inf)
        duals = np.array(solution.row_dual)
        point = np.array(solution.col_value) if solution.value_valid else None
        return Minimum(self._bound(self._cost, self._offset, duals), point, duals)

    def row_values(self, point: Float64) -> Float64:
        return np.asarray(self._matrix @ point)

    def _proves_infeasible(self) -> bool:
        """A ray is a proof if the rows it combines exclude every point between the bounds."""
        _, has_ray, ray = self._solver.getDualRay()
        if not has_ray:
            return False
        nothing = np.zeros_like(self._cost)
        multipliers = np.array(ray)
        return any(self._bound(nothing, 0.0, sign * multipliers) > 0 for sign in (1.0, -1.0))

    def _bound(self, cost: Float64, offset: float, duals: Float64) -> float:
        """A lower bound on cost @ v + offset by weak duality, for any multipliers of the rows.

        A multiplier towards an infinite side of its row counts as zero. The rounding of this very
        computation is subtracted.
        """
        sides = np.where(duals > 0, self.row_low, self.row_high)
        usable = np.isfinite(sides) & np.isfinite(duals)
        y = np.where(usable, duals, 0.0)
        gains = y * np.where(usable, sides, 0.0)
        reduced = cost - self._transposed @ y
        rest = np.minimum(reduced * self.low, reduced * self.high)
        bound = offset + gains.sum() + rest.sum()
        size = abs(offset) + np.abs(gains).sum()
        size += (np.abs(cost) + self._absolute @ np.abs(y)) @ self._sizes
        proven = float(bound - ROUNDING * size)
        return -np.inf if np.isnan(proven) else proven

    def _stop_if_cancelled(self, event: Any) -> None:
        if self.limits.cancelled():
            event.interrupt()
