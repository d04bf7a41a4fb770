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
    Box,
    Instance,
    LinearRequirement,
    LipschitzRequirement,
    Norm,
    Query,
    Requirement,
    SoftmaxRequirement,
    Specification,
    Verdict,
    check_witness,
)
from radii.verifiers._base import Answer, GridVerifier, Limits, RadiusAnswer
from radii.verifiers._jacobian import without_slopes
from radii.verifiers._lipschitz import Shells, decide_lipschitz
from radii.verifiers._probabilities import decide_softmax, logit_question
from radii.verifiers.certificates._covers import ProbabilityCover, covered
from radii.verifiers.native._attempts import (
    Certify,
    ProofAttempt,
    crown_certificate,
    crown_margin,
    is_piecewise_linear,
    margin_at,
    prove_by_inputs,
    prove_by_units,
    proven_again,
)
from radii.verifiers.native._candidates import shortened
from radii.verifiers.native._climb import Climb, Patience
from radii.verifiers.native._nodes import Frontier

SPLIT_ATTEMPT_SHARE = 0.5
"""Of the time that is left, for each attempt of a climb that splits inputs."""

QUICK_PROOF_SHARE = 0.25
"""Of the time that is left, for each pass of CROWN; units it does not get to keep intervals."""

FIRST_PROOF_SHARE = 0.6
"""The same until one pass has proven something: one that is cut off proves nothing, and with
nothing proven there is nothing else to spend the time on."""

MARGINS_KEPT = 64
_margins: dict[tuple[object, ...], float] = {}
"""Of quick proofs, by network, instance, eps, whether on intervals, and arithmetic: what a glance
found is not done again by the climb after it. A pass that was cut off and proved nothing is not
kept."""

NEAR_GOAL = 1.05
_frontiers: dict[tuple[object, ...], dict[float, Frontier]] = {}
"""What the latest climb left open, by eps. It is gone on from up to this ratio to the goal: what a
much larger eps leaves open are many nodes, split where a smaller one needs no split."""

PASS_VARIATION = 1.2
_pass_seconds: dict[tuple[object, ...], float] = {}
"""Wall seconds of the last whole pass of CROWN by network, and a little more: one that would be cut
off is not begun."""

SPLITTABLE_INPUTS = 12
"""Up to here, splitting inputs beats splitting units (measured on networks of 6 x 50 units)."""


class BranchAndBound(GridVerifier):
    """Complete for piecewise-linear networks; smooth ones are split by input.

    In L2 a query within a hair of the radius may stay UNKNOWN: its leaves are no linear programs.
    Requirements that are not linear become linear queries: see `refinement` and `lipschitz`.

    `device` is where multipliers are looked for: any that torch has. `arithmetic` is what its
    proofs speak of. With `certificates` it keeps what shows a proof, see `radii.verifiers`.
    """

    name: ClassVar[str] = "native"
    unnamed_options = frozenset({"arithmetic", "certificates"})
    norms = frozenset(Norm)
    kinds = frozenset({LinearRequirement, SoftmaxRequirement, LipschitzRequirement})
    is_complete = True

    def __init__(
        self, *, device: str = "cpu", arithmetic: Arithmetic = FLOAT, certificates: bool = False
    ) -> None:
        self.device = device
        self.arithmetic = arithmetic
        self.certificates = certificates

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

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        attempt = self._decided(network, specification, limits, Shells())
        certificate = None if attempt.certify is None else attempt.certify()
        return replace(attempt.answer, certificate=certificate)

    def _decided(
        self, network: Network, specification: Specification, limits: Limits, shells: Shells
    ) -> ProofAttempt:
        """By the kind of requirement; `shells` is what is known of an input's slopes."""
        match specification.requirement:
            case SoftmaxRequirement():
                return self._by_probabilities(network, specification, limits)
            case LipschitzRequirement():
                answer = decide_lipschitz(
                    network, specification, limits, self._part, shells, self.arithmetic
                )
                return ProofAttempt(answer)
        return self._linear(network, specification, limits, certifies=self.certificates)

    def _by_probabilities(
        self, network: Network, specification: Specification, limits: Limits
    ) -> ProofAttempt:
        """Bounds on probabilities; what covers their violations is what a certificate states."""
        covers: list[ProbabilityCover] = []
        started = time.monotonic()
        answer = decide_softmax(network, specification, limits, self._part, self.arithmetic, covers)
        if not (self.certificates and covers and network.is_piecewise_linear):
            return ProofAttempt(answer)
        requirement = covered(covers, network.output_size)
        stated = replace(specification, requirement=requirement)
        certify = proven_again(network, stated, self.arithmetic, limits, started)
        return ProofAttempt(answer, certify=certify)

    def _part(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        """One of several linear questions, which need no certificates of their own."""
        return self._linear(network, specification, limits, certifies=False).answer

    def _linear(
        self, network: Network, specification: Specification, limits: Limits, *, certifies: bool
    ) -> ProofAttempt:
        question = logit_question(network, specification, self.arithmetic)
        if question is not None:
            return ProofAttempt(decide_softmax(*question, limits, self._part, self.arithmetic))
        if _splits_inputs(network, specification):
            return prove_by_inputs(
                network,
                specification,
                limits,
                arithmetic=self.arithmetic,
                device=self.device,
                certifies=certifies,
            )
        return prove_by_units(
            network,
            specification,
            limits,
            arithmetic=self.arithmetic,
            device=self.device,
            attacks=True,
            certifies=certifies,
        )

    def _by_several(
        self, network: Network, specification: Specification, limits: Limits, shells: Shells
    ) -> ProofAttempt:
        """A question that is made of several linear ones; its candidate is replayed."""
        attempt = self._decided(network, specification, limits, shells)
        answer = attempt.answer
        witness = check_witness(network, specification, answer.candidate)
        if witness is None and answer.verdict is Verdict.NOT_ROBUST:
            answer = replace(answer, verdict=Verdict.UNKNOWN)
        return replace(attempt, answer=answer, witness=witness)

    def glance(
        self, network: Network, instance: Instance, eps: float, limits: Limits
    ) -> RadiusAnswer:
        """By CROWN alone, on networks so large that it is the first proof of a climb as well."""
        prove = _Prover(self, network, instance, limits, first_share=1.0)
        climb = Climb((eps,), prove, lambda: 0.0 if limits.expired else limits.remaining)
        self._rise(climb, prove)
        certificate = None if climb.certify is None else climb.certify()
        return RadiusAnswer(climb.lower, stopped=limits.expired, certificate=certificate)

    def _rise(self, climb: Climb, prove: _Prover) -> None:
        """What quick proofs reach."""
        first = Query(prove.instance, climb.values[0]).specification
        if _branches_itself(prove.network, first) and not _splits_inputs(prove.network, first):
            at_zero = margin_at(prove.network, first, prove.instance.outputs)
            climb.rise(prove.margin_on_intervals, prove.certify_on_intervals, at_zero)
            climb.rise(prove.margin, prove.certify, at_zero)

    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        prove = _Prover(self, network, instance, limits)
        is_short = prove.pass_seconds > limits.remaining
        if is_short:  # a pass of CROWN, with which all proofs but the quickest begin, is cut off
            prove = replace(prove, begins_passes=False)
        climb = Climb(
            values,
            prove,
            lambda: 0.0 if limits.expired else limits.remaining,
            lambda climb: report(RadiusAnswer(climb.lower, climb.witness)),
        )
        climb.frontiers = prove.earlier_frontiers(values[-1])
        self._rise(climb, prove)
        if not is_short:
            climb.run()
        prove.keep_frontiers(climb.frontiers)
        gave_up = Verdict.TIMEOUT if is_short else climb.stopped or Verdict.UNKNOWN
        return RadiusAnswer(
            certificate=None if climb.certify is None else climb.certify(),
            lower=climb.lower,
            witness=climb.witness,
            stopped=None if climb.is_closed else limits.expired or gave_up,
            message="" if climb.is_closed else climb.message,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Prover:
    """Proves the property of one instance at one eps after the other, for a climb.

    `quick_proofs` are the values of eps that CROWN alone has proven; until there is one, a pass may
    take `first_share` of the time that is left. Without `begins_passes`, intervals and what is
    remembered are all that quick proofs are made of.
    """

    verifier: BranchAndBound
    network: Network
    instance: Instance
    limits: Limits
    shells: Shells = field(default_factory=Shells)
    quick_proofs: list[float] = field(default_factory=list)
    first_share: float = FIRST_PROOF_SHARE
    begins_passes: bool = True

    def __call__(
        self, eps: float, frontier: Frontier | None, patience: Patience, branches: bool
    ) -> ProofAttempt:
        """An attempt; a witness that it finds is brought as close as it can be."""
        specification = Query(self.instance, eps).specification
        attempt = self._attempt(specification, eps, frontier, patience, branches)
        if attempt.witness is None:
            return attempt
        return replace(attempt, witness=shortened(self.network, specification, attempt.witness))

    def margin_on_intervals(self, eps: float) -> float:
        """The margin of the cheapest proof: CROWN, on plain intervals of all units."""
        return self.margin(eps, on_intervals=True)

    def margin(self, eps: float, *, on_intervals: bool = False) -> float:
        """The margin of a proof by CROWN alone."""
        arithmetic = self.verifier.arithmetic
        key = *self._key, eps, on_intervals
        if key in _margins:
            return self._noted(eps, _margins[key])
        if not (on_intervals or self.begins_passes):
            return -math.inf
        specification = Query(self.instance, eps).specification
        part = QUICK_PROOF_SHARE if self.quick_proofs else self.first_share
        share = self.limits.within(max(part * self.limits.remaining, self.pass_seconds))
        started = time.monotonic()
        margin = crown_margin(
            self.network,
            specification,
            arithmetic,
            on_intervals=on_intervals,
            is_over=lambda: share.expired is not None,
        )
        is_whole = share.expired is None
        if is_whole and not on_intervals:
            _pass_seconds[self.network.cache_key] = PASS_VARIATION * (time.monotonic() - started)
        if math.isfinite(margin) and (margin > 0 or is_whole):
            _margins[key] = margin
            while len(_margins) > MARGINS_KEPT:
                _margins.pop(next(iter(_margins)))
        return self._noted(eps, margin)

    def _noted(self, eps: float, margin: float) -> float:
        if margin > 0:
            self.quick_proofs.append(eps)
        return margin

    def earlier_frontiers(self, goal: float) -> dict[float, Frontier]:
        """What the last climb of this instance left open near the goal, such as that of a probe."""
        held = _frontiers.get(self._key, {})
        return {eps: left for eps, left in held.items() if eps <= NEAR_GOAL * goal}

    def keep_frontiers(self, frontiers: dict[float, Frontier]) -> None:
        """For the next climb; those of other instances are forgotten."""
        _frontiers.clear()
        _frontiers[self._key] = frontiers

    @property
    def _key(self) -> tuple[object, ...]:
        """What all that is remembered of an instance depends on: also what a violation is, since
        properties of other packages may share a name."""
        verifier, violations = self.verifier, self.instance.requirement.violations or ()
        return (
            self.network.cache_key,
            self.instance.key,
            tuple((held.matrix.tobytes(), held.offset.tobytes()) for held in violations),
            verifier.arithmetic,
            verifier.certificates,
        )

    @property
    def pass_seconds(self) -> float:
        """What a pass of CROWN over this network should take; 0 if there was none yet."""
        return _pass_seconds.get(self.network.cache_key, 0.0)

    def certify_on_intervals(self, eps: float) -> Certify | None:
        return self.certify(eps, on_intervals=True)

    def certify(self, eps: float, *, on_intervals: bool = False) -> Certify | None:
        """How a proof by CROWN alone is certified, if that is wanted."""
        if not self.verifier.certificates:
            return None
        specification = Query(self.instance, eps).specification
        return crown_certificate(
            self.network,
            specification,
            self.verifier.arithmetic,
            self.limits,
            on_intervals=on_intervals,
        )

    def _attempt(
        self,
        specification: Specification,
        eps: float,
        frontier: Frontier | None,
        patience: Patience,
        branches: bool,
    ) -> ProofAttempt:
        verifier, network, limits = self.verifier, self.network, self.limits
        share = limits.within(SPLIT_ATTEMPT_SHARE * limits.remaining if branches else 0.0)
        if not _branches_itself(network, specification):
            if branches:
                return verifier._by_several(network, specification, share, self.shells)
            is_known = eps <= self.shells.proven
            return ProofAttempt(Answer(Verdict.ROBUST if is_known else Verdict.UNKNOWN))
        if _splits_inputs(network, specification):
            return prove_by_inputs(
                network,
                specification,
                share,
                arithmetic=verifier.arithmetic,
                device=verifier.device,
                certifies=verifier.certificates,
            )
        return prove_by_units(
            network,
            specification,
            limits,
            arithmetic=verifier.arithmetic,
            device=verifier.device,
            is_hopeless=patience.is_hopeless,
            frontier=frontier,
            branches=branches,
            certifies=verifier.certificates,
            stops_at_rounding=True,
        )


def _branches_itself(network: Network, specification: Specification) -> bool:
    """Whether it is one linear question, and not several that are made of another one."""
    is_linear = isinstance(specification.requirement, LinearRequirement)
    return is_linear and logit_question(network, specification, FLOAT) is None


def _splits_inputs(network: Network, specification: Specification) -> bool:
    """Boxes fill a box; the rounded rim of an L1 or L2 ball they only come near to."""
    region = specification.region
    is_box = isinstance(region, Box) or region.norm is Norm.LINF
    has_few = math.prod(network.input_shape) <= SPLITTABLE_INPUTS
    return (is_box and has_few) or not is_piecewise_linear(network, specification)
