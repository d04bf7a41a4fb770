"""Deciding a query: every polyhedron of violations is proven out of reach, or reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from radii.bounds import centre_of
from radii.properties import Halfspaces
from radii.verdicts import Verdict
from radii.verifiers._base import Answer
from radii.verifiers.case import Case
from radii.verifiers.linear.expressions import Float64
from radii.verifiers.linear.highs import exhausted
from radii.verifiers.linear.relaxation import Relaxation
from radii.verifiers.milp.branching import Branching, Outcome
from radii.verifiers.milp.effort import Effort
from radii.verifiers.milp.encoding import Encoding
from radii.verifiers.milp.goals import Goal, depth_goal
from radii.verifiers.milp.integer import CUTOFF_ROOM
from radii.verifiers.milp.programs import exact_program, relaxed_program

__all__ = ["decide", "settle"]


def decide(case: Case, effort: Effort) -> Answer:
    """ROBUST only if every polyhedron has a proof; the first replayed witness ends the work."""
    case.try_input(centre_of(case.specification.region))
    if case.overflow is not None and case.witness is None:
        return Answer(Verdict.UNKNOWN, message=case.overflow)
    polyhedra = [] if case.witness else case.reachable()
    return settle(case, effort, polyhedra, depth_goal)


def settle(
    case: Case,
    effort: Effort,
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
            attempts.append(_Attempt(case, effort, encoding, goal))
            if case.witness is not None:
                break
        attempts.sort(key=lambda attempt: attempt.outcome.bound)
    for attempt in attempts:
        if case.witness is None:
            attempt.settle()
    if case.witness is not None:
        return Answer(Verdict.NOT_ROBUST, case.witness.input)
    return _summary([attempt for attempt in attempts if not attempt.proven])


def _summary(unproven: list[_Attempt]) -> Answer:
    if not unproven:
        return Answer(Verdict.ROBUST)
    for attempt in unproven:
        if attempt.outcome.stopped is not None:
            return Answer(attempt.outcome.stopped)
    worst = min(attempt.outcome.bound for attempt in unproven)
    message = f"the least margin found, {worst:.3g}, is within tolerance of zero"
    return Answer(Verdict.UNKNOWN, message=message)


class _Attempt:
    """One polyhedron: its linear relaxation first; then, if needed, all that decides it."""

    def __init__(self, case: Case, effort: Effort, encoding: Encoding, goal: Goal) -> None:
        self.case = case
        self.effort = effort
        self.encoding = encoding
        self.goal = goal
        program = relaxed_program(encoding, goal)
        relaxation = Relaxation(program, case.limits, threads=effort.threads)
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

    def _integers(self) -> Outcome:
        span = float((self.goal.high - self.goal.low).max())
        return self.effort.integers(
            exact_program(self.encoding, self.goal),
            cutoff=0.0,
            room=CUTOFF_ROOM * span,
            visit=self._visit,
            limits=self.case.limits,
            threads=self.effort.threads,
        )
