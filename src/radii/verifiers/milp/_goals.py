"""What is minimised over an encoding: the depth of a violation, or the distance to one.

The depth of a violation of Lipschitz robustness reads the distance as well.

A goal adds columns and rows behind those of the encoding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from radii.balls import Ball, Norm
from radii.bounds import SUM_ROUNDING
from radii.properties import Halfspaces, LipschitzRequirement
from radii.verifiers._expressions import Affine, Float64, combined, stacked, unit_rows
from radii.verifiers._programs import LinearConstraints, at_least, at_most, joined_constraints
from radii.verifiers.milp._encoding import Encoding


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
    """No input is farther from the ball's centre, in Linf, than the first column behind the
    encoding's.
    """
    centre = ball.center.ravel()
    distance = unit_rows(np.full(len(centre), len(encoding.low)), columns)
    steps = encoding.inputs.shifted(-centre)
    minus = encoding.inputs.scaled(np.full(len(centre), -1.0), centre)
    within = stacked([minus.plus(distance), steps.plus(distance)], columns)
    return at_least(within, np.zeros(len(within)))
