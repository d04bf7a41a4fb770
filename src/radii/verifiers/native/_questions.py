"""Questions by their kind: linear ones are proven, others are made of several linear ones.

Bounds on probabilities become linear questions about logits, and Lipschitz robustness becomes
linear questions about shells around the input (`radii.verifiers._probabilities` and `_lipschitz`).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from radii.bounds import box_of
from radii.networks import Network
from radii.problem import (
    FLOAT,
    Box,
    Limits,
    LinearRequirement,
    LipschitzRequirement,
    Norm,
    SoftmaxRequirement,
    Specification,
    Verdict,
    check_witness,
)
from radii.verifiers._base import Answer
from radii.verifiers._lipschitz import Shells, decide_lipschitz
from radii.verifiers._probabilities import Decide, decide_softmax, logit_question
from radii.verifiers.certificates._covers import ProbabilityCover, covered
from radii.verifiers.native._attempts import (
    ProofAttempt,
    prove_by_inputs,
    prove_by_splits,
    prove_by_units,
    proven_again,
)
from radii.verifiers.native._form import ProofForm, is_piecewise_linear
from radii.verifiers.native._session import ProofSession


def decide_question(
    session: ProofSession, specification: Specification, limits: Limits, shells: Shells
) -> ProofAttempt:
    """By the kind of requirement; `shells` is what is known of an input's slopes."""
    match specification.requirement:
        case SoftmaxRequirement():
            return _by_probabilities(session, specification, limits)
        case LipschitzRequirement():
            answer = decide_lipschitz(
                session.network,
                specification,
                limits,
                _parts_of(session),
                shells,
                session.arithmetic,
            )
            return ProofAttempt(answer)
    return _linear(session, specification, limits)


def decide_by_several(
    session: ProofSession, specification: Specification, limits: Limits, shells: Shells
) -> ProofAttempt:
    """A question that is made of several linear ones; its candidate is replayed."""
    attempt = decide_question(session, specification, limits, shells)
    answer = attempt.answer
    witness = check_witness(session.network, specification, answer.candidate)
    if witness is None and answer.verdict is Verdict.NOT_ROBUST:
        answer = replace(answer, verdict=Verdict.UNKNOWN)
    return replace(attempt, answer=answer, witness=witness)


def _by_probabilities(
    session: ProofSession, specification: Specification, limits: Limits
) -> ProofAttempt:
    """Bounds on probabilities; what covers their violations is what a certificate states."""
    network, arithmetic = session.network, session.arithmetic
    covers: list[ProbabilityCover] = []
    started = time.monotonic()
    parts = _parts_of(session)
    answer = decide_softmax(network, specification, limits, parts, arithmetic, covers)
    if not (session.certifies and covers and network.is_piecewise_linear):
        return ProofAttempt(answer)
    requirement = covered(covers, network.output_size)
    stated = replace(specification, requirement=requirement)
    return ProofAttempt(answer, certify=proven_again(session, stated, limits, started))


def _parts_of(session: ProofSession) -> Decide:
    """Decides the linear questions that one question is made of, which are about its network or
    about the part of it that gives logits."""

    def decide(network: Network, specification: Specification, limits: Limits) -> Answer:
        return _linear(session.about(network), specification, limits).answer

    return decide


def _linear(session: ProofSession, specification: Specification, limits: Limits) -> ProofAttempt:
    question = logit_question(session.network, specification, session.arithmetic)
    if question is not None:
        parts = _parts_of(session)
        return ProofAttempt(decide_softmax(*question, limits, parts, session.arithmetic))
    if splits_inputs(session, specification):
        return prove_by_inputs(session, specification, limits)
    if not is_piecewise_linear(session.network, specification):
        return prove_by_splits(session, specification, limits, attacks=True)
    if not clips_inputs(session, specification):
        return prove_by_units(session, specification, limits, attacks=True)
    share = limits.within(session.settings.clipping_share * limits.remaining)
    attempt = prove_by_splits(session, specification, share, attacks=True)
    if attempt.answer.verdict in (Verdict.ROBUST, Verdict.NOT_ROBUST):
        return attempt
    return prove_by_units(session, specification, limits)


def clips_inputs(session: ProofSession, specification: Specification) -> bool:
    """Whether violations of several rows at once may clip a moderate number of inputs to points:
    constraints among inputs that a small network states, such as clauses."""
    form = ProofForm.of(session.network, specification, session.arithmetic)
    settings = session.settings
    has_few = math.prod(session.network.input_shape) <= settings.smooth.split_inputs
    is_small = form.arguments < settings.crown_first_units
    return has_few and is_small and max(form.rows, default=0) > 1


def is_one_question(network: Network, specification: Specification) -> bool:
    """Whether it is one linear question, and not several that are made of another one."""
    is_linear = isinstance(specification.requirement, LinearRequirement)
    return is_linear and logit_question(network, specification, FLOAT) is None


def splits_inputs(session: ProofSession, specification: Specification) -> bool:
    """With few inputs: more of them where units are smooth, since a split says less of those. Boxes
    fill a box; the rounded rim of an L1 or L2 ball they only come near to, as smooth units do."""
    region, settings = specification.region, session.settings
    if not is_piecewise_linear(session.network, specification):
        low, high = box_of(region)
        return int((low < high).sum()) <= settings.smooth_splittable_inputs
    is_box = isinstance(region, Box) or region.norm is Norm.LINF
    return is_box and math.prod(session.network.input_shape) <= settings.splittable_inputs
