"""Deciding a query: every polyhedron of violations is proven out of reach, or reached."""

from __future__ import annotations

import numpy as np

from radii.bounds import box_of
from radii.properties import Halfspaces
from radii.verdicts import Verdict
from radii.verifiers._base import Answer
from radii.verifiers.milp.branching import Branching, Outcome
from radii.verifiers.milp.case import Case
from radii.verifiers.milp.encoding import Encoding
from radii.verifiers.milp.expressions import Float64
from radii.verifiers.milp.goals import Goal, depth_goal
from radii.verifiers.milp.highs import exhausted
from radii.verifiers.milp.integer import CUTOFF_ROOM, minimise_exactly
from radii.verifiers.milp.programs import exact_program, relaxed_program
from radii.verifiers.milp.relaxation import Relaxation
from radii.verifiers.milp.tightening import tightened_under

__all__ = ["decide"]


def decide(case: Case) -> Answer:
    """ROBUST only if every polyhedron has a proof; the first replayed witness ends the work."""
    low, high = box_of(case.specification.region)
    case.try_input((low + high) / 2)
    polyhedra = [] if case.witness else case.reachable()
    attempts = []
    if polyhedra:
        encoding = case.encoding()
        attempts = [_Attempt(case, encoding, polyhedron) for polyhedron in polyhedra]
        attempts.sort(key=lambda attempt: attempt.outcome.bound)
    for attempt in attempts:
        if case.witness is None:
            attempt.settle()
    if case.witness is not None:
        return Answer(Verdict.NOT_ROBUST, case.witness.input)
    unproven = [attempt for attempt in attempts if not attempt.proven]
    if not unproven:
        return Answer(Verdict.ROBUST, margin=case.largest_margin)
    for attempt in unproven:
        if attempt.outcome.stopped is not None:
            return Answer(attempt.outcome.stopped)
    worst = min(attempt.outcome.bound for attempt in unproven)
    message = f"the least margin found, {worst:.3g}, is within tolerance of zero"
    return Answer(Verdict.UNKNOWN, message=message)


class _Attempt:
    """One polyhedron: its linear relaxation first; then, if needed, all that decides it."""

    def __init__(self, case: Case, encoding: Encoding, polyhedron: Halfspaces) -> None:
        self.case = case
        self.encoding = encoding
        self.goal = depth_goal(encoding, polyhedron)
        self.margin = case.margin(polyhedron)
        stopped = exhausted(case.limits)
        self.outcome = Outcome(-np.inf, open=True, stopped=stopped) if stopped else self._branch(1)

    @property
    def proven(self) -> bool:
        return self.outcome.bound > self.margin

    @property
    def _finished(self) -> bool:
        return self.proven or self.case.witness is not None or self.outcome.stopped is not None

    def settle(self) -> None:
        """Branch; tighten under the assumption of a violation; branch again; integers."""
        if self._finished:
            return
        case, effort = self.case, self.case.effort
        if effort.branches:
            self.outcome = self._branch(effort.branches)
            if self._finished:
                return
            share = effort.share(case.limits)
            demands = self._demanding_violation()
            tighter = tightened_under(
                self.encoding, demands, case.limits, share, threads=effort.threads
            )
            if tighter is None:
                self.outcome = Outcome(np.inf, open=False)
                return
            self.encoding = tighter
            self.outcome = self._branch(effort.branches)
        if not self._finished:
            self.outcome = self._integers()

    def _visit(self, point: Float64) -> bool:
        return self.case.try_input(self.encoding.input_at(point))

    def _branch(self, branches: int) -> Outcome:
        case = self.case
        program = relaxed_program(self.encoding, self.goal)
        relaxation = Relaxation(program, case.limits, threads=case.effort.threads)
        branching = Branching(
            self.encoding, relaxation, lambda: self.margin, self._visit, case.limits
        )
        return branching.run(branches)

    def _demanding_violation(self) -> Goal:
        """The same goal, with the depth held below the margin."""
        high = np.minimum(self.goal.high, self.margin)
        return Goal(
            np.minimum(self.goal.low, high),
            high,
            self.goal.rows,
            self.goal.cost,
            self.goal.violation,
        )

    def _integers(self) -> Outcome:
        case = self.case
        span = float((self.goal.high - self.goal.low).max())
        return minimise_exactly(
            exact_program(self.encoding, self.goal),
            cutoff=self.margin,
            room=CUTOFF_ROOM * span,
            visit=self._visit,
            limits=case.limits,
            threads=case.effort.threads,
        )
