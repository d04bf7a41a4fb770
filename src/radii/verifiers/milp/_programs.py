"""The two programs of an encoding, a linear relaxation and the exact one with integers, and goals.

A goal is what is minimised: the depth of a violation, or the distance to one; the depth of a
violation of Lipschitz robustness reads the distance as well. It adds columns and rows behind those
of the encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from radii.bounds import SUM_ROUNDING
from radii.problem import Ball, Halfspaces, LipschitzRequirement, Norm
from radii.verifiers._expressions import (
    Affine,
    Float64,
    Integers,
    combined,
    stacked,
    times_rows,
    unit_rows,
)
from radii.verifiers._programs import (
    LinearConstraints,
    Program,
    at_least,
    at_most,
    joined_constraints,
    program,
)
from radii.verifiers.milp._encoding import Encoding, HingeUnits, MaximumUnit


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the rows of a relaxed program are: hinges, their triangles, maxima, region, goal."""

    hinges: int
    maxima: tuple[slice, ...]
    goal: int

    def above(self, hinge: int) -> int:
        """The row column - input >= 0; an equation where the unit is active."""
        return hinge

    def triangle(self, hinge: int) -> int:
        """The row that holds the column below the chord."""
        return self.hinges + hinge


def layout_of(encoding: Encoding) -> RowLayout:
    hinges = len(encoding.hinges)
    slices, first = [], 2 * hinges
    for unit in encoding.maxima:
        slices.append(slice(first, first + len(unit.inputs)))
        first += len(unit.inputs) + 1
    return RowLayout(hinges, tuple(slices), first + len(encoding.region))


def relaxed_program(encoding: Encoding, goal: Goal | None = None) -> Program:
    """Each unit relaxed to the linear constraints that its bounds imply; rows as in `RowLayout`."""
    parts = [*_relaxed_hinges(encoding.hinges, len(encoding.low))]
    for unit in encoding.maxima:
        parts.extend(_relaxed_maximum(unit, len(encoding.low)))
    return _finished(encoding, goal, parts)


def exact_program(encoding: Encoding, goal: Goal) -> Program:
    """Each unit exact, with integer columns behind all others to choose its piece."""
    first = len(encoding.low) + len(goal.low)
    hinges = encoding.hinges
    unsettled = np.flatnonzero((hinges.low < 0) & (hinges.high > 0))
    chosen = unit_rows(first + np.arange(len(unsettled)), first + len(unsettled))
    above, _ = _relaxed_hinges(hinges, len(encoding.low))
    parts = [above, *_switched_hinges(hinges, unsettled, chosen)]
    total = first + len(unsettled)
    for unit in encoding.maxima:
        parts.extend(_switched_maximum(unit, total))
        total += len(unit.inputs)
    return _finished(encoding, goal, parts, integers=range(first, total))


def _finished(
    encoding: Encoding,
    goal: Goal | None,
    parts: list[LinearConstraints],
    integers: range = range(0),
) -> Program:
    ones = np.ones(len(integers))
    if goal is None:
        low, high, cost = encoding.low, encoding.high, np.zeros(len(encoding.low))
        return program(low, high, [*parts, encoding.region], cost)
    low = np.concatenate([encoding.low, goal.low, 0 * ones])
    high = np.concatenate([encoding.high, goal.high, ones])
    cost = np.concatenate([goal.cost, 0 * ones])
    return program(low, high, [*parts, encoding.region, goal.rows], cost, integers=integers)


def _relaxed_hinges(hinges: HingeUnits, columns: int) -> Iterator[LinearConstraints]:
    """column >= input (equal where active), and column <= the chord over the input's range."""
    count = len(hinges)
    value = unit_rows(hinges.columns, columns)
    rest = hinges.inputs.scaled(np.full(count, -1.0), np.zeros(count)).plus(value)
    above, equal = at_least(rest, np.zeros(count)), at_most(rest, np.zeros(count))
    with np.errstate(over="ignore"):
        width = hinges.high - hinges.low
    active = hinges.low >= 0
    crossing = (hinges.low < 0) & (hinges.high > 0) & np.isfinite(width)
    yield LinearConstraints(above.matrix, above.low, np.where(active, equal.high, np.inf))
    slope = np.divide(hinges.high, width, where=crossing, out=np.zeros(count))
    below = at_most(hinges.inputs.scaled(-slope, np.zeros(count)).plus(value), -slope * hinges.low)
    yield LinearConstraints(below.matrix, below.low, np.where(crossing, below.high, np.inf))


def _switched_hinges(
    hinges: HingeUnits,
    unsettled: Integers,
    chosen: csr_array,
) -> Iterator[LinearConstraints]:
    """column <= high * on, and column <= input - low * (1 - on)."""
    columns = chosen.shape[1]
    low, high = hinges.low[unsettled], hinges.high[unsettled]
    value = unit_rows(hinges.columns[unsettled], columns)
    nothing = np.zeros(len(unsettled))
    off = Affine(csr_array(value - times_rows(chosen, high)), nothing, nothing)
    yield at_most(off, nothing)
    inputs = hinges.inputs.rows(unsettled)
    on = inputs.scaled(np.full(len(unsettled), -1.0), nothing)
    yield at_most(on.plus(csr_array(value - times_rows(chosen, low))), -low)


def _relaxed_maximum(unit: MaximumUnit, columns: int) -> Iterator[LinearConstraints]:
    """value >= each input, and value - greatest low <= the sum of how far inputs are above low."""
    count = len(unit.inputs)
    value = unit_rows(np.full(count, unit.column), columns)
    rest = unit.inputs.scaled(np.full(count, -1.0), np.zeros(count)).plus(value)
    yield at_least(rest, np.zeros(count))
    total = Affine(
        csr_array(unit.inputs.matrix.sum(axis=0)[None]),
        unit.inputs.offset.sum(keepdims=True),
        unit.inputs.error.sum(keepdims=True),
    )
    excess = total.scaled(np.full(1, -1.0), np.zeros(1)).plus(value[[0]])
    yield at_most(excess, np.array([unit.low.max() - unit.low.sum()]))


def _switched_maximum(unit: MaximumUnit, first: int) -> Iterator[LinearConstraints]:
    """value >= each input, value <= the chosen input, and exactly one is chosen."""
    count = len(unit.inputs)
    value = unit_rows(np.full(count, unit.column), first)
    rest = unit.inputs.scaled(np.full(count, -1.0), np.zeros(count)).plus(value)
    yield at_least(rest, np.zeros(count))
    room = unit.high.max() - unit.low
    chosen = unit_rows(first + np.arange(count), first + count, room)
    yield at_most(rest.plus(chosen), room)
    one = csr_array(unit_rows(first + np.arange(count), first + count).sum(axis=0)[None])
    yield LinearConstraints(one, np.ones(1), np.ones(1))


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """Extra columns between low and high, extra rows, and the cost of all columns.

    `violation` says which of the extra rows (distance) or columns (depth) hold the outputs to a
    violation.
    """

    low: Float64
    high: Float64
    rows: LinearConstraints
    cost: Float64
    violation: slice


def violation_depths(encoding: Encoding, polyhedron: Halfspaces) -> Affine:
    """The polyhedron's rows as expressions: it is reached where all are at most 0."""
    maps = {0: csr_array(polyhedron.matrix)}
    return combined(maps, polyhedron.offset, {0: encoding.outputs}, encoding.sizes)


def depth_goal(encoding: Encoding, polyhedron: Halfspaces) -> Goal:
    """Minimise a new column that is at least every row of the polyhedron."""
    rows = violation_depths(encoding, polyhedron)
    low, high = rows.range(encoding.low, encoding.high)
    column = len(encoding.low)
    depth = unit_rows(np.full(len(rows), column), column + 1)
    beyond = rows.scaled(np.full(len(rows), -1.0), np.zeros(len(rows))).plus(depth)
    cost = np.zeros(column + 1)
    cost[column] = 1.0
    return Goal(
        low=low.max(keepdims=True),
        high=high.max(keepdims=True),
        rows=at_least(beyond, np.zeros(len(rows))),
        cost=cost,
        violation=slice(column, column + 1),
    )


def distance_goal(encoding: Encoding, polyhedron: Halfspaces, ball: Ball) -> Goal:
    """Minimise the distance from the ball's centre at which every row is at most 0."""
    rows = violation_depths(encoding, polyhedron)
    reached = at_most(rows, np.zeros(len(rows)))
    violation = slice(0, len(rows))
    columns = len(encoding.low)
    if ball.norm is Norm.L1:
        cost = np.zeros(columns)
        cost[: encoding.inputs.matrix.shape[1]] = 1.0
        return Goal(np.zeros(0), np.zeros(0), reached, cost, violation)
    reach = _within(encoding, ball, columns + 1)
    cost = np.zeros(columns + 1)
    cost[columns] = 1.0
    return Goal(
        low=np.zeros(1),
        high=np.array([ball.eps * (1 + SUM_ROUNDING)]),
        rows=joined_constraints([reached, reach], columns + 1),
        cost=cost,
        violation=violation,
    )


def slope_goal(
    encoding: Encoding, change: Halfspaces, ball: Ball, requirement: LipschitzRequirement
) -> Goal:
    """Minimise a new column that is at least the row of `change` plus L times the distance.

    The distance is a column of its own before it; in L1 it is the sum of all steps.
    """
    row, columns = violation_depths(encoding, change), len(encoding.low)
    total = columns + 2
    if ball.norm is Norm.L1:
        steps = np.zeros(total)
        steps[: encoding.inputs.matrix.shape[1]] = requirement.constant
        lengths, reach = csr_array(steps[None]), []
    else:
        lengths = unit_rows(np.array([columns]), total, requirement.constant)
        reach = [_within(encoding, ball, total)]
    depth = unit_rows(np.array([columns + 1]), total)
    beyond = row.scaled(np.full(1, -1.0), np.zeros(1)).plus(csr_array(depth - lengths))
    farthest = ball.eps * (1 + SUM_ROUNDING)
    low, high = row.range(encoding.low, encoding.high)
    cost = np.zeros(total)
    cost[columns + 1] = 1.0
    return Goal(
        low=np.array([0.0, float(low[0])]),
        high=np.array([farthest, float(high[0]) + requirement.constant * farthest]),
        rows=joined_constraints([at_least(beyond, np.zeros(1)), *reach], total),
        cost=cost,
        violation=slice(columns + 1, total),
    )


def _within(encoding: Encoding, ball: Ball, columns: int) -> LinearConstraints:
    """No input is farther from the ball's centre, in Linf and its features' scales, than the first
    column behind the encoding's.
    """
    centre = ball.center.ravel()
    scale = 1.0 if ball.features is None else ball.features.scale * (1 + SUM_ROUNDING)
    distance = unit_rows(np.full(len(centre), len(encoding.low)), columns, scale)
    steps = encoding.inputs.shifted(-centre)
    minus = encoding.inputs.scaled(np.full(len(centre), -1.0), centre)
    within = stacked([minus.plus(distance), steps.plus(distance)], columns)
    return at_least(within, np.zeros(len(within)))
