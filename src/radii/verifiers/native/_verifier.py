"""The native verifier: branch and bound on the signs of units, or on the inputs.

It searches for a radius itself, by a climb: first the largest grid value below the witness, since
proving it closes the bracket. What that leaves open in its tree is all that any smaller eps still
has to prove, so nothing is done twice: if the goal turns out to be out of reach, smaller values go
on from its open nodes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from radii import __version__
from radii.networks import Network
from radii.problem import (
    FLOAT,
    Arithmetic,
    Instance,
    Limits,
    LinearRequirement,
    LipschitzRequirement,
    Norm,
    Query,
    Requirement,
    SoftmaxRequirement,
    Specification,
    Verdict,
)
from radii.verifiers._base import Answer, GridVerifier, RadiusAnswer
from radii.verifiers._jacobian import without_slopes
from radii.verifiers._lipschitz import Shells
from radii.verifiers.native._attempts import (
    Certify,
    ProofAttempt,
    crown_certificate,
    prove_by_inputs,
    prove_by_splits,
    prove_by_units,
)
from radii.verifiers.native._candidates import shortened
from radii.verifiers.native._climb import Climb
from radii.verifiers.native._crown_proofs import crown_margin, margin_at
from radii.verifiers.native._form import is_piecewise_linear
from radii.verifiers.native._nodes import Frontier
from radii.verifiers.native._patience import Patience
from radii.verifiers.native._questions import (
    decide_by_several,
    decide_question,
    is_one_question,
    splits_inputs,
)
from radii.verifiers.native._session import ProofMemories, ProofSession
from radii.verifiers.native._settings import ProofSettings


class BranchAndBound(GridVerifier):
    """Complete for piecewise-linear networks; smooth ones are split by input.

    In L2 a query within a hair of the radius may stay UNKNOWN: its leaves are no linear programs.
    Requirements that are not linear become linear queries: see `refinement` and `lipschitz`.

    `device` is where multipliers are looked for: any that torch has. `arithmetic` is what its
    proofs speak of. With `certificates` it keeps what shows a proof, see `radii.verifiers`.
    `settings` may be replaced by experiments. What it remembers of earlier questions stays in this
    process.
    """

    name: ClassVar[str] = "native"
    unnamed_options = frozenset({"arithmetic", "certificates"})
    norms = frozenset(Norm)
    kinds = frozenset({LinearRequirement, SoftmaxRequirement, LipschitzRequirement})
    is_complete = True
    settings = ProofSettings()

    def __init__(
        self, *, device: str = "cpu", arithmetic: Arithmetic = FLOAT, certificates: bool = False
    ) -> None:
        self.device = device
        self.arithmetic = arithmetic
        self.certificates = certificates
        self._memories = ProofMemories()

    @property
    def version(self) -> str:
        return __version__

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reason = super().unsupported(network, norm, kind)
        if reason is None and kind is LipschitzRequirement:
            steep = without_slopes(network)
            if steep is not None:
                reason = (
                    f"verifier '{self.name}' does not bound the slopes of {network.name}: "
                    f"the slopes of operator '{steep}' are not known"
                )
        return reason

    def _session(self, network: Network) -> ProofSession:
        self._memories.note(network)
        return ProofSession(network, self.arithmetic, self.device, self.certificates, self.settings)

    def _prover(self, network: Network, instance: Instance, limits: Limits) -> _Prover:
        return _Prover(self._memories.recall(self._session(network), instance), instance, limits)

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        attempt = decide_question(self._session(network), specification, limits, Shells())
        certificate = None if attempt.certify is None else attempt.certify()
        return replace(attempt.answer, certificate=certificate)

    def glance(
        self, network: Network, instance: Instance, eps: float, limits: Limits
    ) -> RadiusAnswer:
        """By CROWN alone, on networks so large that it is the first proof of a climb as well."""
        prove = replace(self._prover(network, instance, limits), first_share=1.0)
        climb = self._climb((eps,), prove)
        prove.rise(climb)
        certificate = None if climb.certify is None else climb.certify()
        return RadiusAnswer(climb.lower, stopped=limits.expired, certificate=certificate)

    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        prove = self._prover(network, instance, limits)
        is_short = prove.pass_seconds > limits.remaining
        if is_short:  # a pass of CROWN, with which all proofs but the quickest begin, is cut off
            prove = replace(prove, begins_passes=False)
        climb = self._climb(values, prove, report)
        climb.frontiers = prove.earlier_frontiers(values[-1])
        prove.rise(climb)
        if not is_short:
            climb.run()
        prove.session.memory.keep_frontiers(climb.frontiers)
        gave_up = Verdict.TIMEOUT if is_short else climb.stopped or Verdict.UNKNOWN
        return RadiusAnswer(
            certificate=None if climb.certify is None else climb.certify(),
            lower=climb.lower,
            witness=climb.witness,
            stopped=None if climb.is_closed else limits.expired or gave_up,
            message="" if climb.is_closed else climb.message,
        )

    def _climb(
        self,
        values: Sequence[float],
        prove: _Prover,
        report: Callable[[RadiusAnswer], None] = lambda _: None,
    ) -> Climb:
        limits = prove.limits
        return Climb(
            values,
            prove,
            lambda: 0.0 if limits.is_over else limits.remaining,
            lambda climb: report(RadiusAnswer(climb.lower, climb.witness)),
            self.settings.climb,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Prover:
    """Proves the property of one instance at one eps after the other, for a climb.

    `quick_proofs` are the values of eps that CROWN alone has proven; until there is one, a pass may
    take `first_share` of the time that is left, by default the settings'. Without `begins_passes`,
    intervals and what is remembered are all that quick proofs are made of.
    """

    session: ProofSession
    instance: Instance
    limits: Limits
    shells: Shells = field(default_factory=Shells)
    quick_proofs: list[float] = field(default_factory=list)
    first_share: float | None = None
    begins_passes: bool = True

    def __call__(
        self, eps: float, frontier: Frontier | None, patience: Patience, branches: bool
    ) -> ProofAttempt:
        """An attempt; a witness that it finds is brought as close as it can be."""
        session, specification = self.session, Query(self.instance, eps).specification
        attempt = self._attempt(specification, eps, frontier, patience, branches)
        if attempt.witness is None:
            return attempt
        settings = session.settings.candidates
        nearest = shortened(session.network, specification, attempt.witness, settings)
        return replace(attempt, witness=nearest)

    def rise(self, climb: Climb) -> None:
        """What quick proofs reach."""
        session, first = self.session, Query(self.instance, climb.values[0]).specification
        if is_one_question(session.network, first) and not splits_inputs(session, first):
            at_zero = margin_at(session, first, self.instance.outputs)
            climb.rise(self.margin_on_intervals, self.certify_on_intervals, at_zero)
            climb.rise(self.margin, self.certify, at_zero)

    def margin_on_intervals(self, eps: float) -> float:
        """The margin of the cheapest proof: CROWN, on plain intervals of all units."""
        return self.margin(eps, on_intervals=True)

    def margin(self, eps: float, *, on_intervals: bool = False) -> float:
        """The margin of a proof by CROWN alone; one of a pass that was cut off and proved nothing
        is not remembered."""
        session, known = self.session, self.session.memory.margins.get((eps, on_intervals))
        if known is not None:
            return self._noted(eps, known)
        if not (on_intervals or self.begins_passes):
            return -math.inf
        specification = Query(self.instance, eps).specification
        share = self.limits.within(max(self._pass_share * self.limits.remaining, self.pass_seconds))
        started = time.monotonic()
        margin = crown_margin(session, specification, share, on_intervals=on_intervals)
        is_whole = not share.is_over
        if is_whole and not on_intervals:
            session.pass_duration.seconds = time.monotonic() - started
        if math.isfinite(margin) and (margin > 0 or is_whole):
            session.memory.margins[eps, on_intervals] = margin
        return self._noted(eps, margin)

    @property
    def _pass_share(self) -> float:
        """Of the time that is left, for a pass of CROWN."""
        settings = self.session.settings
        if self.quick_proofs:
            return settings.quick_proof_share
        return settings.first_proof_share if self.first_share is None else self.first_share

    def _noted(self, eps: float, margin: float) -> float:
        if margin > 0:
            self.quick_proofs.append(eps)
        return margin

    def earlier_frontiers(self, goal: float) -> dict[float, Frontier]:
        """What the last climb of this instance left open near the goal, such as that of a probe."""
        most = self.session.settings.near_goal * goal
        return {eps: left for eps, left in self.session.memory.frontiers.items() if eps <= most}

    @property
    def pass_seconds(self) -> float:
        """What a pass of CROWN over this network should take; 0 if there was none yet."""
        return self.session.settings.pass_variation * self.session.pass_duration.seconds

    def certify_on_intervals(self, eps: float) -> Certify | None:
        return self.certify(eps, on_intervals=True)

    def certify(self, eps: float, *, on_intervals: bool = False) -> Certify | None:
        """How a proof by CROWN alone is certified, if that is wanted."""
        specification = Query(self.instance, eps).specification
        return crown_certificate(
            self.session, specification, self.limits, on_intervals=on_intervals
        )

    def _attempt(
        self,
        specification: Specification,
        eps: float,
        frontier: Frontier | None,
        patience: Patience,
        branches: bool,
    ) -> ProofAttempt:
        session, limits = self.session, self.limits
        split_share = session.settings.split_attempt_share if branches else 0.0
        share = limits.within(split_share * limits.remaining)
        if not is_one_question(session.network, specification):
            if branches:
                return decide_by_several(session, specification, share, self.shells)
            is_known = eps <= self.shells.proven
            return ProofAttempt(Answer(Verdict.ROBUST if is_known else Verdict.UNKNOWN))
        if splits_inputs(session, specification):
            return prove_by_inputs(session, specification, share)
        if not is_piecewise_linear(session.network, specification):
            return prove_by_splits(
                session, specification, limits, patience=patience, branches=branches
            )
        return prove_by_units(
            session,
            specification,
            limits,
            patience=patience,
            frontier=frontier,
            branches=branches,
            stops_at_rounding=True,
        )
