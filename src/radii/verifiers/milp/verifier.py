"""The verifier `milp`: complete for piecewise-linear networks, on HiGHS."""

from __future__ import annotations

from radii.balls import Norm
from radii.networks import Network
from radii.queries import Specification
from radii.verifiers._base import Answer, Limits, Verifier
from radii.verifiers.milp.case import Case, Effort
from radii.verifiers.milp.deciding import decide
from radii.verifiers.milp.highs import highs_version

__all__ = ["Milp"]


class Milp(Verifier):
    """Decides queries and measures exact radii in Linf and L1 by mixed-integer programming."""

    name = "milp"
    norms = frozenset({Norm.LINF, Norm.L1})
    is_complete = True

    def __init__(self, *, threads: int = 1, branches: int = 256, tightening: float = 0.3) -> None:
        self.effort = Effort(threads=threads, branches=branches, tightening=tightening)

    @property
    def version(self) -> str:
        return f"HiGHS {highs_version()}"

    def unsupported(self, network: Network, norm: Norm) -> str | None:
        reason = super().unsupported(network, norm)
        if reason is None and not network.is_piecewise_linear:
            reason = (
                f"verifier '{self.name}' does not decide {network.name}: "
                "it has operators that are not piecewise linear"
            )
        return reason

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return decide(Case(network, specification, limits, self.effort))
