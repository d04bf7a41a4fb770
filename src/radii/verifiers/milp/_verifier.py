"""The verifier `milp`: complete for piecewise-linear networks, on HiGHS."""

from __future__ import annotations

from radii.balls import Norm
from radii.networks import Network
from radii.properties import (
    LinearRequirement,
    LipschitzRequirement,
    Requirement,
    SoftmaxRequirement,
)
from radii.queries import Instance, Specification
from radii.verdicts import FLOAT, Arithmetic
from radii.verifiers._base import Answer, Limits, RadiusAnswer, RadiusVerifier
from radii.verifiers._case import BoundedProblem
from radii.verifiers._probabilities import decide_softmax
from radii.verifiers._programs import highs_version
from radii.verifiers.milp._decision import decide, decide_slopes
from radii.verifiers.milp._radius import measure
from radii.verifiers.milp._tightening import MilpOptions


class Milp(RadiusVerifier):
    """Decides queries and measures exact radii in Linf and L1 by mixed-integer programming."""

    name = "milp"
    norms = frozenset({Norm.LINF, Norm.L1})
    kinds = frozenset({LinearRequirement, SoftmaxRequirement, LipschitzRequirement})
    is_complete = True

    def __init__(
        self,
        *,
        threads: int = 1,
        branches: int = 4096,
        tightening: float = 0.3,
        arithmetic: Arithmetic = FLOAT,
    ) -> None:
        self.effort = MilpOptions(threads=threads, branches=branches, tightening=tightening)
        self.arithmetic = arithmetic

    @property
    def version(self) -> str:
        return f"HiGHS {highs_version()}"

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reason = super().unsupported(network, norm, kind)
        if reason is None and not network.is_piecewise_linear:
            reason = (
                f"verifier '{self.name}' does not decide {network.name}: "
                "it has operators that are not piecewise linear"
            )
        return reason

    def measure(
        self, network: Network, instance: Instance, limits: Limits, upper: float
    ) -> RadiusAnswer:
        return measure(network, instance, limits, self.effort, upper, self.arithmetic)

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        match specification.requirement:
            case SoftmaxRequirement():
                return decide_softmax(network, specification, limits, self._linear, self.arithmetic)
            case LipschitzRequirement():
                case = BoundedProblem(network, specification, limits, self.arithmetic)
                return decide_slopes(case, self.effort)
        return self._linear(network, specification, limits)

    def _linear(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return decide(BoundedProblem(network, specification, limits, self.arithmetic), self.effort)
