"""The verifier `milp`: complete for piecewise-linear networks, on HiGHS."""

from __future__ import annotations

import time
from dataclasses import replace

from radii.networks import Network
from radii.problem import (
    FLOAT,
    Arithmetic,
    Instance,
    Limits,
    LinearRequirement,
    LipschitzRequirement,
    Norm,
    Requirement,
    SoftmaxRequirement,
    Specification,
    Verdict,
)
from radii.verifiers._base import Answer, RadiusAnswer, RadiusVerifier
from radii.verifiers._case import BoundedProblem
from radii.verifiers._probabilities import decide_softmax
from radii.verifiers._programs import highs_version
from radii.verifiers.milp._decision import decide, decide_slopes
from radii.verifiers.milp._radius import measure
from radii.verifiers.milp._tightening import MilpOptions
from radii.verifiers.native._attempts import prove_by_units
from radii.verifiers.native._session import ProofSession

LEAST_CERTIFYING_SECONDS = 2.0
"""To prove once more what took less."""


class Milp(RadiusVerifier):
    """Decides queries and measures exact radii in Linf and L1 by mixed-integer programming.

    An integer solver's word is no certificate. With `certificates`, what it has proven is proven
    once more by the tree of `native`, which writes one: in at most the same time.
    """

    name = "milp"
    unnamed_options = frozenset({"arithmetic", "certificates"})
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
        certificates: bool = False,
    ) -> None:
        self.effort = MilpOptions(threads=threads, branches=branches, tightening=tightening)
        self.arithmetic = arithmetic
        self.certificates = certificates

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
        started = time.monotonic()
        answer = self._linear(network, specification, limits)
        if not self.certificates or answer.verdict is not Verdict.ROBUST:
            return answer
        seconds = max(time.monotonic() - started, LEAST_CERTIFYING_SECONDS)
        return self._certified(network, specification, limits.within(seconds), answer)

    def _certified(
        self, network: Network, specification: Specification, limits: Limits, answer: Answer
    ) -> Answer:
        """With a certificate, if the tree proves it too; a counterexample that it meets counts."""
        session = ProofSession(network, self.arithmetic, certifies=True)
        again = prove_by_units(session, specification, limits, plain=True)
        certificate = None if again.certify is None else again.certify()
        return replace(answer, candidate=again.answer.candidate, certificate=certificate)

    def _linear(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return decide(BoundedProblem(network, specification, limits, self.arithmetic), self.effort)
