"""Lipschitz robustness exactly: each output is raised, and lowered, against L times the distance.

Over the points (x, t) with |x - x0| <= t <= eps, an output that moves by more than L t + tau is a
linear condition in Linf and L1. So the least of L t + tau - |f_i(x) - f_i(x0)| is one mixed-integer
program for each output and direction, and LR holds exactly if all are positive.
"""

from __future__ import annotations

import numpy as np

from radii.balls import Ball
from radii.bounds import centre_of
from radii.errors import UnsupportedQuery
from radii.properties import Halfspaces, LipschitzRequirement
from radii.verdicts import Verdict
from radii.verifiers._base import Answer
from radii.verifiers.case import Case
from radii.verifiers.lipschitz import steepest_ahead
from radii.verifiers.milp.deciding import settle
from radii.verifiers.milp.effort import Effort
from radii.verifiers.milp.goals import slope_goal

__all__ = ["decide_slopes"]


def decide_slopes(case: Case, effort: Effort) -> Answer:
    """ROBUST only if no output can outrun L times the distance."""
    ball, requirement = case.specification.region, case.specification.requirement
    assert isinstance(requirement, LipschitzRequirement)
    if not isinstance(ball, Ball):
        raise UnsupportedQuery("Lipschitz robustness is about balls: a box has no distance")
    case.try_input(centre_of(ball))
    if case.overflow is not None and case.witness is None:
        return Answer(Verdict.UNKNOWN, message=case.overflow)
    ahead = None if case.witness else steepest_ahead(case.network, case.specification)
    if ahead is not None:
        return Answer(Verdict.NOT_ROBUST, ahead.input)
    changes = [
        _change(requirement, index, sign)
        for index in range(len(requirement.reference))
        for sign in (1.0, -1.0)
    ]
    polyhedra = [] if case.witness else changes
    return settle(
        case, effort, polyhedra, lambda held, row: slope_goal(held, row, ball, requirement)
    )


def _change(requirement: LipschitzRequirement, index: int, sign: float) -> Halfspaces:
    """sign * (y_index - its reference) >= tau: what is broken at distance 0."""
    row = np.zeros(len(requirement.reference))
    row[index] = -sign
    offset = requirement.tau + sign * requirement.reference[index]
    return Halfspaces(row, np.array([offset]))
