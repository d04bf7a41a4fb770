"""One attempt to decide a linear question: its form, its root, its tree, and its certificate.

By units: CROWN alone on large networks, then the root's bounds, a tree of splits on the signs of
units, and what came of it. By inputs: boxes. A proof that cannot be stated as it was found is found
once more in a way that can.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from radii.attacks import attack_specification
from radii.bounds import box_of, fuse, has_forward_forms, stage_bounds, without_softmax
from radii.problem import Limits, Specification, Verdict, Witness
from radii.verifiers._base import Answer
from radii.verifiers._case import attack_seconds, check_bounded
from radii.verifiers.native._box_certificates import box_certificate
from radii.verifiers.native._candidates import Candidates
from radii.verifiers.native._certificates import certificate_of
from radii.verifiers.native._crown_proofs import crown_log, has_relu_alone, least_margin
from radii.verifiers.native._form import ProofForm, is_piecewise_linear
from radii.verifiers.native._input_splitting import SplitOutcome, split_inputs
from radii.verifiers.native._line_proofs import prove_by_lines
from radii.verifiers.native._mapped_reduction import mapped_reduction
from radii.verifiers.native._nodes import Frontier
from radii.verifiers.native._patience import Patience
from radii.verifiers.native._proof_log import ProofLog
from radii.verifiers.native._reduction import PossibleOverflow, Reduction, reduce
from radii.verifiers.native._session import ProofSession
from radii.verifiers.native._smooth_tree import SmoothTree
from radii.verifiers.native._tree import Tree

UNPROVABLE = "an input of the region is closer to a violation than what the network may round"

Certify = Callable[[], bytes | None]
"""Makes the certificate of a proof; None where the format cannot state it."""


@dataclass(frozen=True, slots=True, eq=False)
class ProofAttempt:
    """What came of it. `frontier` is what stayed open: where to go on for a smaller region.
    `certify` makes the certificate of a proof, if something is known to make it of. What
    `is_unprovable` stays so, however long it is tried: rounding is in the way."""

    answer: Answer
    witness: Witness | None = None
    frontier: Frontier | None = None
    certify: Certify | None = None
    is_unprovable: bool = False


def prove_by_units(
    session: ProofSession,
    specification: Specification,
    limits: Limits,
    *,
    patience: Patience | None = None,
    frontier: Frontier | None = None,
    branches: bool = True,
    attacks: bool = False,
    plain: bool = False,
    stops_at_rounding: bool = False,
) -> ProofAttempt:
    """Split on the signs of units; for piecewise-linear networks.

    `patience` gives up a tree that will not end in time; `frontier` is what an attempt on a larger
    region left open; `attacks` looks for a counterexample before branching, for callers that have
    not attacked themselves; `plain` takes maxima one after another, as certificates do.
    `stops_at_rounding` gives up once it is unprovable, for callers that go on with a smaller
    region.
    """
    network, started = session.network, time.monotonic()
    check_bounded(network, specification)
    form = ProofForm.of(network, specification, session.arithmetic, plain=plain)
    if not form.violations:
        return ProofAttempt(Answer(Verdict.ROBUST))
    has_crown = _is_tried_by_crown(session, form)
    if has_crown and least_margin(session, form, specification) > 0:
        certify = crown_certificate(session, specification, limits)
        return ProofAttempt(Answer(Verdict.ROBUST), certify=certify)
    root = _root(session, form, specification, limits)
    if isinstance(root, ProofAttempt):
        is_attacked = attacks and root.answer.verdict is Verdict.UNKNOWN
        return (_attack_first(session, specification, limits) if is_attacked else None) or root
    growth = _Growth(session, specification, limits, form, root, frontier)
    tree = growth.tree(patience, stops_at_rounding=stops_at_rounding)
    if branches and form.keeps_structure:
        tree.start_cheaply()
    tree.start()
    if attacks and not tree.is_proven and not tree.is_refuted:
        refuted = _attack_first(session, specification, limits)
        if refuted is not None:
            return refuted
    if branches:
        tree.grow()
    attempt = growth.outcome(tree)
    if attempt.answer.verdict is not Verdict.ROBUST:
        return attempt
    return replace(attempt, certify=growth.certified(started))


def _is_tried_by_crown(session: ProofSession, form: ProofForm) -> bool:
    """Whether CROWN on the layers as they are goes first. Where the tree works on the network's own
    maps its root is CROWN anyway, and other units than ReLU have a certificate by the tree alone.
    """
    is_large = form.arguments >= session.settings.crown_first_units
    is_certified = not form.plain or has_relu_alone(form.fusion)
    return is_large and not form.keeps_structure and is_certified


def _root(
    session: ProofSession, form: ProofForm, specification: Specification, limits: Limits
) -> Reduction | ProofAttempt:
    """What the region leaves open; an attempt that has failed where the root cannot be bounded."""
    try:
        return _reduced(session, form, specification, limits)
    except MemoryError as error:
        return ProofAttempt(Answer(Verdict.MEMOUT, message=str(error)))
    except PossibleOverflow as error:
        return ProofAttempt(Answer(Verdict.UNKNOWN, message=str(error)))


def _reduced(
    session: ProofSession, form: ProofForm, specification: Specification, limits: Limits
) -> Reduction:
    """On the network's own maps where they are smaller than matrices of open units, on such
    matrices elsewhere. What affine forms have shown of units cannot be stated."""
    region, inputs, arithmetic = specification.region, specification.inputs, session.arithmetic
    settings = session.settings
    if not form.keeps_structure:
        return reduce(
            form.relu_form(), region, form.violations, inputs, limits, arithmetic, settings.root
        )
    seconds = settings.root_slopes_share * limits.remaining
    forms = not (form.plain and session.certifies)
    state = session.memory.passes.state(form.fusion, [region], arithmetic, limits, forms=forms)
    reduction = mapped_reduction(
        state, region, form.violations, inputs, limits, seconds, settings.root
    )
    is_stated = not (forms and has_forward_forms(form.fusion))
    return reduction if is_stated else replace(reduction, grounds=())


class _Growth:
    """A tree on what a root leaves open, from planting it to its certificate.

    `frontier` is what an attempt on a larger region left open. Where a certificate is wanted, the
    tree keeps a log of what it shows, unless what it goes on from has kept none.
    """

    def __init__(
        self,
        session: ProofSession,
        specification: Specification,
        limits: Limits,
        form: ProofForm,
        reduction: Reduction,
        frontier: Frontier | None,
    ) -> None:
        self.session, self.specification, self.limits = session, specification, limits
        self.form, self.reduction, self.frontier = form, reduction, frontier
        self.candidates = Candidates(session.network, specification, session.settings.candidates)
        has_log = session.certifies and (frontier is None or frontier.log is not None)
        self.log = self._log() if has_log else None

    def _log(self) -> ProofLog:
        reduction, frontier = self.reduction, self.frontier
        return ProofLog(
            reduction.region,
            reduction.grounds,
            len(self.form.violations),
            tuple(np.cumsum([0, *reduction.layer_sizes[:-1]]).tolist()),
            before=None if frontier is None else frontier.log,
        )

    def tree(self, patience: Patience | None, *, stops_at_rounding: bool) -> Tree:
        settings, frontier = self.session.settings, self.frontier
        memory_share = settings.multiplier_memory_share * self.limits.memory_left
        return Tree(
            self.reduction,
            self.candidates,
            self.limits,
            patience=patience,
            device=self.session.device,
            memory_bytes=int(min(settings.multiplier_memory_bytes, memory_share)),
            begun=None if frontier is None else frontier.within(self.reduction),
            log=self.log,
            stops_at_rounding=stops_at_rounding,
            trials=settings.trials,
            settings=settings.tree,
        )

    def outcome(self, tree: Tree) -> ProofAttempt:
        """What a tree that has stopped growing says."""
        reduction, candidates = self.reduction, self.candidates
        if candidates.witness is not None:
            return ProofAttempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
        if tree.is_proven:
            return ProofAttempt(Answer(Verdict.ROBUST))
        left = Frontier(tree.left, reduction.names, reduction.region, tree.log, tree.closed_share)
        message = UNPROVABLE if tree.is_unprovable else ""
        answer = Answer(self.limits.expired or Verdict.UNKNOWN, message=message)
        return ProofAttempt(answer, frontier=left, is_unprovable=tree.is_unprovable)

    def certified(self, started: float) -> Certify | None:
        """How the proof of a tree that is closed is certified; by another one where the form of
        its units cannot be stated, unless that was plain already."""
        session, specification = self.session, self.specification
        if self.log is None:
            return None
        if self.reduction.grounds:
            return _stated(session, specification, self.log, self.form)
        if self.form.plain:
            return None
        return proven_again(session, specification, self.limits, started)


def _attack_first(
    session: ProofSession, specification: Specification, limits: Limits
) -> ProofAttempt | None:
    seconds = attack_seconds(limits)
    witness = attack_specification(session.network, specification, seconds=seconds)
    if witness is None:
        return None
    return ProofAttempt(Answer(Verdict.NOT_ROBUST, witness.input), witness)


def prove_by_inputs(
    session: ProofSession, specification: Specification, limits: Limits
) -> ProofAttempt:
    """Split the region of inputs; for few inputs."""
    network, started = session.network, time.monotonic()
    check_bounded(network, specification)
    candidates = Candidates(network, specification, session.settings.candidates)
    result = split_inputs(
        network,
        specification,
        limits,
        candidates.replay,
        arithmetic=session.arithmetic,
        device=session.device,
        settings=session.settings.boxes,
    )
    if candidates.witness is not None:
        return ProofAttempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if result.outcome is SplitOutcome.PROVEN:
        certify = proven_again(session, specification, limits, started)
        return ProofAttempt(Answer(Verdict.ROBUST), certify=certify)
    message = _overflow(session, specification)
    return ProofAttempt(Answer(limits.expired or Verdict.UNKNOWN, message=message))


def prove_by_splits(
    session: ProofSession,
    specification: Specification,
    limits: Limits,
    *,
    patience: Patience | None = None,
    branches: bool = True,
    attacks: bool = False,
) -> ProofAttempt:
    """Bound the whole region with ever better lines, and split on units of any kind; for networks
    that are not piecewise linear, with many inputs.

    As `prove_by_units`, without what trees of ReLU units can go on from.
    """
    network, started = session.network, time.monotonic()
    check_bounded(network, specification)
    stated = specification.requirement.violations or ()
    fusion, violations = without_softmax(fuse(network), stated, session.arithmetic)
    if not violations:
        return ProofAttempt(Answer(Verdict.ROBUST))
    seconds = session.settings.lines.share * limits.remaining
    share = limits.within(seconds) if branches else limits
    whole = prove_by_lines(session, fusion, violations, specification, share)
    if not whole.left:
        certify = proven_again(session, specification, limits, started)
        return ProofAttempt(Answer(Verdict.ROBUST), certify=certify)
    refuted = _attack_first(session, specification, limits) if attacks else None
    if refuted is not None:
        return refuted
    if not (branches and whole.known):
        message = _overflow(session, specification)
        return ProofAttempt(Answer(limits.expired or Verdict.UNKNOWN, message=message))
    candidates = Candidates(network, specification, session.settings.candidates)
    tree = SmoothTree(
        fusion,
        specification.region,
        whole.left,
        candidates,
        limits,
        patience=patience,
        arithmetic=session.arithmetic,
        settings=session.settings.smooth,
    )
    tree.start(whole.known)
    tree.grow()
    if candidates.witness is not None:
        return ProofAttempt(Answer(Verdict.NOT_ROBUST, candidates.found), candidates.witness)
    if tree.is_proven:
        certify = proven_again(session, specification, limits, started)
        return ProofAttempt(Answer(Verdict.ROBUST), certify=certify)
    message = _overflow(session, specification)
    return ProofAttempt(Answer(limits.expired or Verdict.UNKNOWN, message=message))


def _overflow(session: ProofSession, specification: Specification) -> str:
    """That something may overflow in the region, where nothing was proven; else nothing."""
    low, high = box_of(specification.region)
    bounds = stage_bounds(fuse(session.network), low, high, session.arithmetic)
    if all(np.isfinite(stage.error).all() for stage in bounds):
        return ""
    return str(PossibleOverflow(None))


# How a proof is certified.


def _stated(
    session: ProofSession, specification: Specification, log: ProofLog, form: ProofForm
) -> Certify:
    """The certificate of what a log has."""
    network, arithmetic, rows = session.network, session.arithmetic, form.rows
    return lambda: certificate_of(network, specification, arithmetic, log, rows)


def crown_certificate(
    session: ProofSession,
    specification: Specification,
    limits: Limits,
    *,
    on_intervals: bool = False,
) -> Certify | None:
    """Makes the certificate of a proof by CROWN alone, if that is wanted: bounds it once more, and
    states them. Where units are others than ReLU, it is proven once more by a tree of them."""

    def certify() -> bytes | None:
        form = ProofForm.of(session.network, specification, session.arithmetic)
        log = crown_log(session, form, specification, on_intervals=on_intervals)
        if log is None:
            again = proven_again(session, specification, limits, time.monotonic())
            return None if again is None else again()
        return _stated(session, specification, log, form)()

    return certify if session.certifies else None


def proven_again(
    session: ProofSession, specification: Specification, limits: Limits, started: float
) -> Certify | None:
    """Proves once more, if certificates are wanted, what a proof that began then has shown, in
    words that certificates have: by units, or by boxes that CROWN alone closes. There is none if
    that takes much longer."""
    settings = session.settings
    seconds = settings.certifying_share * (time.monotonic() - started)
    seconds += settings.least_certifying_seconds

    def certify() -> bytes | None:
        if not is_piecewise_linear(session.network, specification):
            return box_certificate(session.network, specification, session.arithmetic, seconds)
        share = Limits(seconds, limits.memory_bytes, limits.cancelled)
        again = prove_by_units(session, specification, share, plain=True)
        return None if again.certify is None else again.certify()

    return certify if session.certifies else None
