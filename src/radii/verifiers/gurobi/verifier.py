"""The verifier `gurobi`: `milp`, with integer programs on Gurobi."""

from __future__ import annotations

import math

from radii.balls import Norm
from radii.networks import Network
from radii.properties import LinearRequirement, Requirement
from radii.queries import Instance, Specification
from radii.verdicts import FLOAT, Arithmetic, Verdict
from radii.verifiers._base import Answer, Limits, RadiusAnswer
from radii.verifiers.gurobi.integer import TooLarge, minimise_with_gurobi
from radii.verifiers.gurobi.licence import SIZE_LIMIT, gurobi_version, is_limited, refusal
from radii.verifiers.linear.highs import highs_version
from radii.verifiers.milp import Milp
from radii.verifiers.milp.effort import Effort

__all__ = ["Gurobi"]


class Gurobi(Milp):
    """As `Milp`: linear programs on HiGHS; what these leave open goes to Gurobi at once.

    With the licence that comes with the package, models of more than 2000 columns or rows are
    refused: before any work where the input alone is as large, else as a missing answer.
    """

    name = "gurobi"

    def __init__(
        self,
        *,
        threads: int = 1,
        branches: int = 0,
        tightening: float = 0.3,
        arithmetic: Arithmetic = FLOAT,
    ) -> None:
        self.effort = Effort(
            threads=threads,
            branches=branches,
            tightening=tightening,
            minimise=minimise_with_gurobi,
        )
        self.arithmetic = arithmetic

    @property
    def version(self) -> str:
        return f"{gurobi_version()}, HiGHS {highs_version()}"

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reason = super().unsupported(network, norm, kind) or refusal()
        inputs = math.prod(network.input_shape)
        if reason is None and inputs >= SIZE_LIMIT and is_limited():
            reason = (
                f"verifier '{self.name}' does not decide {network.name}: it has {inputs} inputs, "
                f"and Gurobi's licence here takes models of {SIZE_LIMIT} columns"
            )
        return reason

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        try:
            return super().run(network, specification, limits)
        except TooLarge as error:
            return Answer(Verdict.ERROR, message=str(error))

    def measure(
        self, network: Network, instance: Instance, limits: Limits, upper: float
    ) -> RadiusAnswer:
        try:
            return super().measure(network, instance, limits, upper)
        except TooLarge as error:
            return RadiusAnswer(0.0, stopped=Verdict.ERROR, message=str(error))
