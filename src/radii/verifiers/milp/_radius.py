"""The exact radius: the least distance at which a violation can be reached.

The ball grows until it holds a violation or everything. In each ball the distance itself is
minimised, for one polyhedron of violations after the other, as far as it can beat the last.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from radii.networks import Network
from radii.problem import (
    Arithmetic,
    Ball,
    Halfspaces,
    Instance,
    Limits,
    Norm,
    Specification,
    Verdict,
)
from radii.verifiers._base import RadiusAnswer
from radii.verifiers._case import BALL_MARGIN, BoundedProblem, farthest, replay_depths
from radii.verifiers._expressions import Float64
from radii.verifiers._programs import LinearRelaxation, exhausted
from radii.verifiers.milp._branching import CUTOFF_ROOM, Branching, SolverResult
from radii.verifiers.milp._decision import decide
from radii.verifiers.milp._encoding import Encoding
from radii.verifiers.milp._programs import (
    distance_goal,
    exact_program,
    layout_of,
    relaxed_program,
    violation_depths,
)
from radii.verifiers.milp._tightening import MilpOptions

FIRST_GUESS = 0.125
"""The first ball, relative to the radius that the network's slope at the input suggests.

That is most often too large, and a ball that is too small costs next to nothing.
"""

BALL_GROWTH = 2.0
"""A ball without violations is followed by one this much larger."""

QUERY_SHARE = 0.25
"""Of the time left, what one query may take before a smaller eps is asked about."""

CLOSE_RATIO = 1.25
"""Queries narrow the radius down to this ratio; then the distance itself is minimised."""


def measure(
    network: Network,
    instance: Instance,
    limits: Limits,
    effort: MilpOptions,
    upper: float,
    arithmetic: Arithmetic,
) -> RadiusAnswer:
    """A proven lower side and a witness at the radius; `upper` is where a violation is known."""
    narrowed = _narrow(network, instance, limits, effort, upper, arithmetic)
    upper = min(upper, narrowed.upper)
    if upper == math.inf or exhausted(limits):
        return narrowed
    ball = instance.ball(min(BALL_MARGIN * upper, farthest(instance)))
    specification = Specification(ball, instance.requirement)
    found = _Nearest(BoundedProblem(network, specification, limits, arithmetic), effort).answer()
    if narrowed.lower > found.lower:
        found = replace(found, lower=narrowed.lower)
    return found if found.upper <= narrowed.upper else replace(found, witness=narrowed.witness)


def _narrow(
    network: Network,
    instance: Instance,
    limits: Limits,
    effort: MilpOptions,
    upper: float,
    arithmetic: Arithmetic,
) -> RadiusAnswer:
    """Queries at growing eps up to the first witness, then between the two sides.

    An eps that takes too long counts as out of reach, and the queries go on below it.
    """
    largest = farthest(instance)
    answer, barrier = RadiusAnswer(0.0), upper
    eps = min(FIRST_GUESS * _slope_radius(network, instance), upper / BALL_GROWTH, largest)
    while barrier > CLOSE_RATIO * answer.lower:
        specification = Specification(instance.ball(eps), instance.requirement)
        share = Limits(QUERY_SHARE * limits.remaining, limits.memory_bytes, limits.cancelled)
        case = BoundedProblem(network, specification, share, arithmetic)
        told = decide(case, effort)
        if told.verdict is Verdict.ROBUST:
            answer = replace(answer, lower=eps)
        elif case.witness is not None:
            answer, barrier = replace(answer, witness=case.witness), case.witness.distance
        elif told.verdict is not Verdict.UNKNOWN:
            answer, barrier = replace(answer, stopped=told.verdict), eps
        elif barrier < math.inf:  # too near to the radius for a query to tell
            break
        if exhausted(limits):
            return replace(answer, stopped=exhausted(limits))
        if barrier == math.inf and eps >= largest:
            break
        eps = min(_after(eps, answer.lower, barrier), largest)
    return answer if answer.witness is None else replace(answer, stopped=None)


def _after(eps: float, lower: float, barrier: float) -> float:
    """The eps to ask about next: beyond the last one, or between the two sides."""
    if barrier == math.inf:
        return BALL_GROWTH * eps
    return math.sqrt(lower * barrier) if lower > 0 else barrier / BALL_GROWTH**3


def _slope_radius(network: Network, instance: Instance) -> float:
    """Where the nearest violation would be if the network were affine; at least a tiny distance."""
    x = torch.from_numpy(np.asarray(instance.input, np.float64))[None].requires_grad_()
    with torch.enable_grad():
        outputs = network(x)[0]
        radii = []
        for polyhedron in instance.requirement.violations or ():
            rows = torch.from_numpy(polyhedron.matrix) @ outputs
            rows = rows + torch.from_numpy(polyhedron.offset)
            last = int(rows.argmax())
            (slope,) = torch.autograd.grad(rows[last], x, retain_graph=True)
            if instance.features is not None:
                slope = slope.ravel() * torch.from_numpy(instance.features.scale.copy())
            length = float(torch.linalg.vector_norm(slope, ord=_DUAL[instance.norm]))
            radii.append(float(rows[last].detach()) / length if length > 0 else math.inf)
    largest = farthest(instance)
    return min(max(min(radii, default=math.inf), 1e-6 * largest), largest)


_DUAL = {Norm.LINF: 1, Norm.L2: 2, Norm.L1: math.inf}


class _Nearest:
    """The nearest violation within one ball."""

    def __init__(self, case: BoundedProblem, effort: MilpOptions) -> None:
        assert isinstance(case.specification.region, Ball)
        self.case = case
        self.effort = effort
        self.ball = case.specification.region
        self.optimum = math.inf

    def answer(self) -> RadiusAnswer:
        if self.case.overflow is not None:
            return RadiusAnswer(0.0, stopped=Verdict.UNKNOWN, message=self.case.overflow)
        polyhedra = self.case.reachable()
        bound, stopped = self.ball.eps, None
        if polyhedra:
            encoding = self.effort.encoding(self.case)
            searches = []
            for polyhedron in polyhedra:
                if exhausted(self.case.limits):
                    return RadiusAnswer(0.0, stopped=exhausted(self.case.limits))
                searches.append(_DistanceSearch(self, encoding, polyhedron))
            for search in sorted(searches, key=lambda search: search.outcome.bound):
                search.settle()
                bound = min(bound, search.outcome.bound)
                stopped = stopped or search.outcome.stopped
        return RadiusAnswer(
            lower=max(0.0, bound),
            witness=self.case.witness,
            optimum=self.optimum if math.isfinite(self.optimum) else None,
            stopped=stopped,
        )

    def cutoff(self) -> float:
        """Nothing farther than this is of interest."""
        return min(self.ball.eps, self.optimum)

    def see(self, x: Float64, polyhedron: Halfspaces, allowance: float = 0.0) -> None:
        """Note an input that violates the property in real arithmetic; farther ones are moot."""
        shape = (1, *self.case.network.input_shape)
        with torch.no_grad():
            outputs = self.case.network(torch.from_numpy(x.reshape(shape))).numpy()
        if polyhedron.depth(outputs)[0] <= allowance:
            distance = self.ball.distance(x.reshape(self.ball.shape))
            self.optimum = min(self.optimum, distance)
            self.case.try_input(x)


class _DistanceSearch:
    """The nearest violation of one polyhedron within the ball."""

    def __init__(self, nearest: _Nearest, encoding: Encoding, polyhedron: Halfspaces) -> None:
        self.nearest, self.encoding, self.polyhedron = nearest, encoding, polyhedron
        self.case = case = nearest.case
        self.effort = nearest.effort
        self.noise = float(violation_depths(encoding, polyhedron).error.max())
        self.goal = distance_goal(encoding, polyhedron, nearest.ball)
        program = relaxed_program(encoding, self.goal)
        self.relaxation = LinearRelaxation(program, case.limits, threads=self.effort.threads)
        self.branching = Branching(
            encoding, self.relaxation, nearest.cutoff, self._visit, case.limits, best_first=True
        )
        self.outcome = self.branching.run(1)

    def settle(self) -> None:
        """Branch for a while; what is open then is left to the integer solver."""
        if self._unfinished():
            self.outcome = self.branching.run(self.effort.branches)
        if self._unfinished():
            self.outcome = self._integers()
        if self.outcome.point is not None and self.outcome.bound <= self.nearest.cutoff():
            self._polish(self.outcome.point)

    def _unfinished(self) -> bool:
        if self.outcome.open and self.outcome.stopped is None:
            self.outcome = replace(self.outcome, stopped=exhausted(self.case.limits))
        return self.outcome.open and self.outcome.stopped is None

    def _visit(self, point: Float64) -> bool:
        self.nearest.see(self.encoding.input_at(point), self.polyhedron)
        return False

    def _integers(self) -> SolverResult:
        eps = self.nearest.ball.eps
        return self.effort.integers(
            exact_program(self.encoding, self.goal),
            cutoff=self.nearest.cutoff(),
            room=CUTOFF_ROOM * eps,
            visit=self._visit,
            limits=self.case.limits,
            threads=self.effort.threads,
        )

    def _polish(self, point: Float64) -> None:
        """On the linear piece that holds the point, violations of growing depth, for a witness."""
        self.branching.settle_as(point)
        first = layout_of(self.encoding).goal
        rows = range(first + self.goal.violation.start, first + self.goal.violation.stop)
        high = self.relaxation.program.rows.high
        for depth in replay_depths(self.noise):
            if exhausted(self.case.limits):
                return
            for row in rows:
                self.relaxation.bound_row(row, -np.inf, high[row] - self.noise - depth)
            found = self.relaxation.minimum().point
            if found is None:
                continue
            x = self.encoding.input_at(found)
            if depth == 0.0:  # a violation up to the solver's tolerance
                self.nearest.see(x, self.polyhedron, replay_depths(self.noise)[-1])
            if self.case.try_input(x):
                return
