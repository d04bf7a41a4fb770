"""Linear programs, with or without integer columns, that never cut off a true value.

Whatever HiGHS would drop or round is dropped here first, and the rows are widened by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array, vstack

from radii.bounds import SMALLEST_NORMAL, SUM_ROUNDING
from radii.problem import Limits, Verdict
from radii.processes import resident_bytes
from radii.verifiers._expressions import Affine, Float64, widened_to, with_data

SMALLEST_COEFFICIENT = 1e-9
"""HiGHS drops matrix entries below this; here they become slack of their row."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearConstraints:
    """Constraints low <= matrix @ v <= high."""

    matrix: csr_array
    low: Float64
    high: Float64

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Minimise cost @ v + offset over columns between low and high, subject to rows."""

    low: Float64
    high: Float64
    rows: LinearConstraints
    cost: Float64
    offset: float = 0.0
    integers: tuple[int, ...] = ()

    @property
    def sizes(self) -> Float64:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def largest(self) -> float:
        """The largest absolute value of its numbers: columns, and coefficients."""
        coefficients = np.abs(self.rows.matrix.data).max(initial=0.0)
        return float(max(self.sizes.max(initial=0.0), coefficients))

    @property
    def total_range(self) -> float:
        """How far all columns and all rows can move, added up."""
        columns = self.high - self.low
        return float(columns.sum() + (abs(self.rows.matrix) @ columns).sum())


def at_least(expressions: Affine, bound: Float64) -> LinearConstraints:
    """What the expressions stand for is at least `bound`."""
    low = bound - expressions.offset
    slack = expressions.error + SUM_ROUNDING * (np.abs(bound) + np.abs(expressions.offset))
    return LinearConstraints(expressions.matrix, low - slack, np.full(len(low), np.inf))


def at_most(expressions: Affine, bound: Float64) -> LinearConstraints:
    """What the expressions stand for is at most `bound`."""
    high = bound - expressions.offset
    slack = expressions.error + SUM_ROUNDING * (np.abs(bound) + np.abs(expressions.offset))
    return LinearConstraints(expressions.matrix, np.full(len(high), -np.inf), high + slack)


def joined_constraints(parts: Sequence[LinearConstraints], columns: int) -> LinearConstraints:
    """All rows of all parts, in order, over the given number of columns."""
    matrices = [csr_array((0, columns)), *(widened_to(part.matrix, columns) for part in parts)]
    low = np.concatenate([np.zeros(0), *(part.low for part in parts)])
    high = np.concatenate([np.zeros(0), *(part.high for part in parts)])
    return LinearConstraints(csr_array(vstack(matrices)), low, high)


def program(
    low: Float64,
    high: Float64,
    parts: Sequence[LinearConstraints],
    cost: Float64,
    *,
    offset: float = 0.0,
    integers: Sequence[int] = (),
) -> Program:
    """All rows of all parts, in order, as one program that HiGHS takes as it is."""
    rows = joined_constraints(parts, len(low))
    sizes = np.maximum(np.abs(low), np.abs(high))
    return Program(low, high, _without_small(rows, sizes), cost, offset, tuple(integers))


def _without_small(rows: LinearConstraints, sizes: Float64) -> LinearConstraints:
    small = np.abs(rows.matrix.data) <= SMALLEST_COEFFICIENT
    if not small.any():
        return rows
    dropped = with_data(rows.matrix, np.where(small, rows.matrix.data, 0.0))
    kept = with_data(rows.matrix, np.where(small, 0.0, rows.matrix.data))
    slack = abs(dropped) @ sizes
    return LinearConstraints(kept, rows.low - slack, rows.high + slack)


# HiGHS as radii uses it: silent, on given threads, with tight tolerances and hard limits.


HIGHS_TOLERANCE = 1e-9
"""Primal, dual and integrality tolerance asked of HiGHS, whose finest is 1e-10.

What a tolerance of the solver can do to a bound is proportional to it; see `integer.py`.
"""


def highs_version() -> str:
    """The version of HiGHS, as stored with results."""
    return (
        f"{highspy.HIGHS_VERSION_MAJOR}.{highspy.HIGHS_VERSION_MINOR}.{highspy.HIGHS_VERSION_PATCH}"
    )


def load(program: Program, *, threads: int, presolve: bool) -> Any:
    """A HiGHS object that holds the program."""
    solver: Any = highspy.Highs()
    solver.silent()
    options = {
        "threads": threads,
        "parallel": "off" if threads == 1 else "choose",
        "presolve": "choose" if presolve else "off",
        "primal_feasibility_tolerance": HIGHS_TOLERANCE,
        "dual_feasibility_tolerance": HIGHS_TOLERANCE,
        "mip_feasibility_tolerance": HIGHS_TOLERANCE,
        "mip_abs_gap": 0.0,
        "mip_rel_gap": 0.0,
        # Relaxations of networks are scaled well as they are; leaving them saves iterations.
        "simplex_scale_strategy": 0,
        # Entries that small were dropped with their slack; HiGHS must not drop others.
        "small_matrix_value": 1e-12,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(program))
    return solver


def _model(program: Program) -> Any:
    matrix = csr_array(program.rows.matrix)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.low), len(program.rows)
    model.col_cost_, model.offset_ = program.cost, program.offset
    model.col_lower_, model.col_upper_ = program.low, program.high
    model.row_lower_, model.row_upper_ = program.rows.low, program.rows.high
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    model.a_matrix_.index_ = matrix.indices.astype(np.int32)
    model.a_matrix_.value_ = matrix.data
    if program.integers:
        kinds = [highspy.HighsVarType.kContinuous] * len(program.low)
        for column in program.integers:
            kinds[column] = highspy.HighsVarType.kInteger
        model.integrality_ = kinds
    return model


def run_highs(solver: Any, limits: Limits) -> Any:
    """Solve within the limits; the model's status. HiGHS counts its time over all runs."""
    remaining = limits.remaining
    if np.isfinite(remaining):
        solver.setOptionValue("time_limit", solver.getRunTime() + remaining)
    solver.run()
    return solver.getModelStatus()


def exhausted(limits: Limits) -> Verdict | None:
    """TIMEOUT, CANCELLED or MEMOUT once it is time to stop, else None."""
    if limits.memory_bytes is not None and (resident_bytes() or 0) > limits.memory_bytes:
        return Verdict.MEMOUT
    return limits.expired


# Linear relaxations whose bounds do not rest on the solver.
#
# HiGHS proposes multipliers; the bound is then computed from them by weak duality in float64, and
# its rounding is subtracted. Any multipliers give a valid bound, so no tolerance of the solver can
# make it wrong, only weak. Every column must be bounded for that; over a box they all are.


CUTOFF_MARGIN = 1e-6
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


class LinearRelaxation:
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
        self._solver.setOptionValue("objective_bound", cutoff - self._offset + CUTOFF_MARGIN)
        status = run_highs(self._solver, self.limits)
        if status == Status.kMemoryLimit:
            raise MemoryError("a linear program does not fit")
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
        underflow = SMALLEST_NORMAL + (SMALLEST_NORMAL * self._sizes).sum()
        proven = float(bound - SUM_ROUNDING * size - underflow)
        return -np.inf if np.isnan(proven) else proven

    def _stop_if_cancelled(self, event: Any) -> None:
        if self.limits.cancelled():
            event.interrupt()
