"""The verifier `milp`: complete for piecewise-linear networks, on HiGHS."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from radii.balls import Norm
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.queries import Instance, Specification
from radii.verdicts import Verdict
from radii.verifiers._base import Answer, Limits, RadiusAnswer, Verifier
from radii.verifiers.milp.case import Case, Effort
from radii.verifiers.milp.deciding import decide
from radii.verifiers.milp.highs import highs_version
from radii.verifiers.milp.measuring import measure

__all__ = ["Milp"]


class Milp(Verifier):
    """Decides queries and measures exact radii in Linf and L1 by mixed-integer programming."""

    name = "milp"
    norms = frozenset({Norm.LINF, Norm.L1})
    is_complete = True

    def __init__(self, *, threads: int = 1, branches: int = 4096, tightening: float = 0.3) -> None:
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

    def radius(
        self,
        network: Network,
        instance: Instance,
        limits: Limits | None = None,
        *,
        upper: float = math.inf,
    ) -> RadiusAnswer:
        """The exact radius: a proof just below it, a witness just above.

        `upper` is a distance at which a violation is known, from an attack; it saves work.
        """
        reason = self.unsupported(network, instance.norm)
        if reason is None and instance.requirement.violations is None:
            reason = f"verifier '{self.name}' does not measure requirements that are not linear"
        if reason is not None:
            raise UnsupportedQuery(reason)
        started = time.perf_counter()
        try:
            answer = measure(network, instance, limits or Limits(), self.effort, upper)
        except MemoryError:
            answer = RadiusAnswer(0.0, stopped=Verdict.MEMOUT, message="out of memory")
        return replace(answer, seconds=time.perf_counter() - started)

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return decide(Case(network, specification, limits, self.effort))
