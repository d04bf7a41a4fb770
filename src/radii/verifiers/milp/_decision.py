"""Deciding a query: every polyhedron of violations is proven out of reach, or reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from radii.bounds import centre_of
from radii.errors import UnsupportedQuery
from radii.problem import Ball, Halfspaces, LipschitzRequirement, Verdict
from radii.verifiers._base import Answer
from radii.verifiers._case import BoundedProblem
from radii.verifiers._expressions import Float64
from radii.verifiers._lipschitz import steepest_ahead
from radii.verifiers._programs import LinearRelaxation, exhausted
from radii.verifiers.milp._branching import CUTOFF_ROOM, Branching, SolverResult
from radii.verifiers.milp._encoding import Encoding
from radii.verifiers.milp._programs import (
    Goal,
    depth_goal,
    exact_program,
    relaxed_program,
    slope_goal,
)
from radii.verifiers.milp._tightening import MilpOptions


def decide(case: BoundedProblem, effort: MilpOptions) -> Answer:
    """ROBUST only if every polyhedron has a proof; the first replayed witness ends the work."""
    case.try_input(centre_of(case.specification.region))
    if case.overflow is not None and case.witness is None:
        return Answer(Verdict.UNKNOWN, message=case.overflow)
    polyhedra = [] if case.witness else case.reachable()
    return minimise_goals(case, effort, polyhedra, depth_goal)


def minimise_goals(
    case: BoundedProblem,
    effort: MilpOptions,
    polyhedra: Sequence[Halfspaces],
    goal_of: Callable[[Encoding, Halfspaces], Goal],
) -> Answer:
    """Minimise the goal of each polyhedron; all must stay above 0 for a proof."""
    attempts = []
    if polyhedra:
        encoding = effort.encoding(case)
        for polyhedron in polyhedra:
            stopped = exhausted(case.limits)
            if stopped is not None:
                return Answer(stopped)
            goal = goal_of(encoding, polyhedron)
            attempts.append(_PolyhedronAttempt(case, effort, encoding, goal))
            if case.witness is not None:
                break
        attempts.sort(key=lambda attempt: attempt.outcome.bound)
    for attempt in attempts:
        if case.witness is None:
            attempt.settle()
    if case.witness is not None:
        return Answer(Verdict.NOT_ROBUST, case.witness.input)
    return _unproven_answer([attempt for attempt in attempts if not attempt.proven])


def _unproven_answer(unproven: list[_PolyhedronAttempt]) -> Answer:
    if not unproven:
        return Answer(Verdict.ROBUST)
    for attempt in unproven:
        if attempt.outcome.stopped is not None:
            return Answer(attempt.outcome.stopped)
    worst = min(attempt.outcome.bound for attempt in unproven)
    message = f"the least margin found, {worst:.3g}, is within tolerance of zero"
    return Answer(Verdict.UNKNOWN, message=message)


class _PolyhedronAttempt:
    """One polyhedron: its linear relaxation first; then, if needed, all that decides it."""

    def __init__(
        self, case: BoundedProblem, effort: MilpOptions, encoding: Encoding, goal: Goal
    ) -> None:
        self.case = case
        self.effort = effort
        self.encoding = encoding
        self.goal = goal
        program = relaxed_program(encoding, goal)
        relaxation = LinearRelaxation(program, case.limits, threads=effort.threads)
        self.branching = Branching(encoding, relaxation, lambda: 0.0, self._visit, case.limits)
        self.outcome = self.branching.run(1)

    @property
    def proven(self) -> bool:
        return self.outcome.bound > 0

    def settle(self) -> None:
        """Branch for a while; what is open then is left to the integer solver."""
        if not self._finished():
            self.outcome = self.branching.run(self.effort.branches)
        if not self._finished() and self.outcome.open:
            self.outcome = self._integers()

    def _finished(self) -> bool:
        stopped = self.outcome.stopped or exhausted(self.case.limits)
        if stopped is not None and not self.proven:
            self.outcome = replace(self.outcome, stopped=stopped)
        return self.proven or self.case.witness is not None or stopped is not None

    def _visit(self, point: Float64) -> bool:
        return self.case.try_input(self.encoding.input_at(point))

    def _integers(self) -> SolverResult:
        span = float((self.goal.high - self.goal.low).max())
        return self.effort.integers(
            exact_program(self.encoding, self.goal),
            cutoff=0.0,
            room=CUTOFF_ROOM * span,
            visit=self._visit,
            limits=self.case.limits,
            threads=self.effort.threads,
        )


# Lipschitz robustness exactly: each output is raised, and lowered, against L times the distance.
#
# Over the points (x, t) with |x - x0| <= t <= eps, an output that moves by more than L t + tau is
# a
# linear condition in Linf and L1. So the least of L t + tau - |f_i(x) - f_i(x0)| is one mixed-
# integer
# program for each output and direction, and LR holds exactly if all are positive.


def decide_slopes(case: BoundedProblem, effort: MilpOptions) -> Answer:
    """ROBUST only if no output can outrun L times the distance."""
    ball, requirement = case.specification.region, case.specification.requirement
    assert isinstance(requirement, LipschitzRequirement)
    requirement = requirement.of_each_output
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
    return minimise_goals(
        case, effort, polyhedra, lambda held, row: slope_goal(held, row, ball, requirement)
    )


def _change(requirement: LipschitzRequirement, index: int, sign: float) -> Halfspaces:
    """sign * (y_index - its reference) >= tau: what is broken at distance 0."""
    row = np.zeros(len(requirement.reference))
    row[index] = -sign
    offset = requirement.tau + sign * requirement.reference[index]
    return Halfspaces(row, np.array([offset]))
