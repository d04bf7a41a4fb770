"""The verifier `enumeration`: every linear region of a tiny network, one convex problem each."""

from __future__ import annotations

from radii.bounds import box_of, centre_of
from radii.networks import Network, OperatorKind
from radii.problem import (
    FLOAT,
    Arithmetic,
    Ball,
    Instance,
    Limits,
    LinearRequirement,
    Norm,
    Requirement,
    SoftmaxRequirement,
    Specification,
    Verdict,
)
from radii.verifiers._base import Answer, RadiusAnswer, RadiusVerifier
from radii.verifiers._case import BALL_MARGIN, BoundedProblem, farthest, replay_depths
from radii.verifiers._expressions import Float64
from radii.verifiers._linear_regions import Exploration, NextViolation
from radii.verifiers._probabilities import decide_softmax
from radii.verifiers._programs import highs_version

UNCLEAR_REGIONS = 32
"""After so many linear regions with a violation that does not replay, a search is given up."""


class Enumeration(RadiusVerifier):
    """Decides queries and measures exact radii in every norm, on networks of a few units.

    Made to be trusted rather than fast: it has no relaxation, no branching on them and no integer
    program. `max_units` is how many nonlinear units a network may have.
    """

    name = "enumeration"
    norms = frozenset(Norm)
    kinds = frozenset({LinearRequirement, SoftmaxRequirement})
    is_complete = True

    def __init__(self, *, max_units: int = 20, arithmetic: Arithmetic = FLOAT) -> None:
        self.max_units = max_units
        self.arithmetic = arithmetic

    @property
    def version(self) -> str:
        return f"HiGHS {highs_version()}"

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reason = super().unsupported(network, norm, kind)
        if reason is not None:
            return reason
        if not network.is_piecewise_linear:
            return (
                f"verifier '{self.name}' does not decide {network.name}: "
                "it has operators that are not piecewise linear"
            )
        units = sum(
            node.size for node in network.graph.nodes if node.kind is not OperatorKind.AFFINE
        )
        if units > self.max_units:
            return (
                f"verifier '{self.name}' takes networks of up to {self.max_units} nonlinear units, "
                f"but {network.name} has {units}"
            )
        return None

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        if isinstance(specification.requirement, SoftmaxRequirement):
            return decide_softmax(network, specification, limits, self._linear, self.arithmetic)
        return self._linear(network, specification, limits)

    def _linear(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        case = BoundedProblem(network, specification, limits, self.arithmetic)
        if case.overflow is not None:
            return Answer(Verdict.UNKNOWN, message=case.overflow)
        region = specification.region
        centre = centre_of(region)
        if isinstance(region, Ball):
            search = _ViolationSearch(case, centre, region.norm, region.eps)
        else:
            low, high = box_of(region)
            search = _ViolationSearch(case, centre, Norm.LINF, float((high - low).max()))
        last = search.run()
        if case.witness is not None:
            return Answer(Verdict.NOT_ROBUST, case.witness.input)
        if last.stopped is not None:
            return Answer(last.stopped)
        if search.nearest is not None:
            return Answer(Verdict.UNKNOWN, message="violations within tolerance do not replay")
        return Answer(Verdict.ROBUST)

    def measure(
        self, network: Network, instance: Instance, limits: Limits, upper: float
    ) -> RadiusAnswer:
        largest = farthest(instance)
        answer = self._within(network, instance, limits, min(BALL_MARGIN * upper, largest))
        if answer.optimum is None or BALL_MARGIN * answer.optimum >= largest:
            return answer
        # What is rounded grows with the region: a ball that just holds the violation proves more.
        closer = self._within(network, instance, limits, BALL_MARGIN * answer.optimum)
        return closer if closer.optimum is not None else answer

    def _within(
        self, network: Network, instance: Instance, limits: Limits, reach: float
    ) -> RadiusAnswer:
        ball = instance.ball(reach)
        case = BoundedProblem(
            network, Specification(ball, instance.requirement), limits, self.arithmetic
        )
        if case.overflow is not None:
            return RadiusAnswer(0.0, stopped=Verdict.UNKNOWN, message=case.overflow)
        search = _ViolationSearch(case, centre_of(ball), instance.norm, reach)
        last = search.run()
        return RadiusAnswer(
            lower=last.bound if search.nearest is None else search.nearest,
            witness=case.witness,
            optimum=search.optimum,
            stopped=last.stopped,
        )


class _ViolationSearch:
    """Violations from the nearest on, until one replays."""

    def __init__(self, case: BoundedProblem, centre: Float64, norm: Norm, reach: float) -> None:
        self.case = case
        self.nearest: float | None = None
        self.optimum: float | None = None
        region = case.specification.region
        features = region.features if isinstance(region, Ball) else None
        self.exploration = Exploration(
            case.fusion,
            case.stages,
            case.output,
            centre,
            box_of(case.specification.region),
            norm,
            reach,
            case.violations,
            case.specification.inputs,
            case.limits,
            1.0 if features is None else features.scale,
        )

    def run(self) -> NextViolation:
        """The last thing reached. `nearest` is then the proven distance of the first violation."""
        reached = NextViolation(0.0)
        for _ in range(UNCLEAR_REGIONS):
            reached = self.exploration.next()
            if reached.found is None:
                break
            if self.nearest is None:
                self.nearest = reached.bound
            if self._replays(reached):
                break
        return reached

    def _replays(self, reached: NextViolation) -> bool:
        """Go into the violation, deeper and deeper, until ONNX Runtime sees it."""
        assert reached.found is not None
        for depth in replay_depths(float(reached.found.depths.error.max())):
            where = self.exploration.within(reached.found, depth)
            if where.point is None:
                continue
            if depth == 0.0 and self.optimum is None:
                self.optimum = self._distance(where.point)
            if self.case.try_input(where.point):
                return True
        return False

    def _distance(self, point: Float64) -> float:
        region = self.case.specification.region
        if isinstance(region, Ball):
            return region.distance(point.reshape(region.shape))
        return self.exploration.norm.length(point - self.exploration.centre)
