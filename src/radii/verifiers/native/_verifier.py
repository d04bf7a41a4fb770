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
from radii.balls import Box, Norm
from radii.networks import Network
from radii.properties import (
    LinearRequirement,
    LipschitzRequirement,
    Requirement,
    SoftmaxRequirement,
)
from radii.queries import Instance, Query, Specification
from radii.verdicts import FLOAT, Arithmetic, Verdict, Witness
from radii.verifiers._base import Answer, GridVerifier, Limits, RadiusAnswer
from radii.verifiers._jacobian import has_known_slopes
from radii.verifiers._lipschitz import Shells, decide_lipschitz
from radii.verifiers._probabilities import decide_softmax, logit_question
from radii.verifiers.native._attempts import (
    ProofAttempt,
    is_piecewise_linear,
    prove_by_inputs,
    prove_by_units,
    proves_by_crown,
)
from radii.verifiers.native._candidates import shortened
from radii.verifiers.native._nodes import Frontier
from radii.witnesses import check_witness

SLOPES_KNOWN = "ReLU and its kin, Clip, MaxPool, Sigmoid, Tanh and one Softmax over all outputs"

SPLIT_ATTEMPT_SHARE = 0.5
"""Of the time that is left, for each attempt of a climb that splits inputs."""

SPLITTABLE_INPUTS = 12
"""Up to here, splitting inputs beats splitting units (measured on networks of 6 x 50 units)."""


class BranchAndBound(GridVerifier):
    """Complete for piecewise-linear networks; smooth ones are split by input.

    In L2 a query within a hair of the radius may stay UNKNOWN: its leaves are no linear programs.
    Requirements that are not linear become linear queries: see `refinement` and `lipschitz`.

    `device` is where multipliers are looked for: any that torch has. `arithmetic` is what its
    proofs speak of.
    """

    name: ClassVar[str] = "native"
    norms = frozenset(Norm)
    kinds = frozenset({LinearRequirement, SoftmaxRequirement, LipschitzRequirement})
    is_complete = True

    def __init__(self, *, device: str = "cpu", arithmetic: Arithmetic = FLOAT) -> None:
        self.device = device
        self.arithmetic = arithmetic

    @property
    def version(self) -> str:
        return __version__

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reason = super().unsupported(network, norm, kind)
        if reason is None and kind is LipschitzRequirement and not has_known_slopes(network):
            reason = (
                f"verifier '{self.name}' does not bound the slopes of {network.name}: "
                f"it has operators other than {SLOPES_KNOWN}"
            )
        return reason

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return self._decided(network, specification, limits, Shells())

    def _decided(
        self, network: Network, specification: Specification, limits: Limits, shells: Shells
    ) -> Answer:
        """By the kind of requirement; `shells` is what is known of an input's slopes."""
        match specification.requirement:
            case SoftmaxRequirement():
                return decide_softmax(network, specification, limits, self._linear, self.arithmetic)
            case LipschitzRequirement():
                return decide_lipschitz(
                    network, specification, limits, self._linear, shells, self.arithmetic
                )
        return self._linear(network, specification, limits)

    def _linear(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        question = logit_question(network, specification, self.arithmetic)
        if question is not None:
            return decide_softmax(*question, limits, self._linear, self.arithmetic)
        if _splits_inputs(network, specification):
            attempt = prove_by_inputs(
                network, specification, limits, arithmetic=self.arithmetic, device=self.device
            )
        else:
            attempt = prove_by_units(
                network,
                specification,
                limits,
                arithmetic=self.arithmetic,
                device=self.device,
                attacks=True,
            )
        return attempt.answer

    def _by_several(
        self, network: Network, specification: Specification, limits: Limits, shells: Shells
    ) -> ProofAttempt:
        """A question that is made of several linear ones; its candidate is replayed."""
        answer = self._decided(network, specification, limits, shells)
        witness = check_witness(network, specification, answer.candidate)
        if witness is None and answer.verdict is Verdict.NOT_ROBUST:
            answer = replace(answer, verdict=Verdict.UNKNOWN)
        return ProofAttempt(answer, witness)

    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        prove = _Prover(self, network, instance, limits)
        climb = Climb(
            values,
            prove,
            lambda: 0.0 if limits.expired else limits.remaining,
            lambda climb: report(RadiusAnswer(climb.lower, climb.witness)),
        )
        first = Query(instance, values[0]).specification
        if _branches_itself(network, first) and not _splits_inputs(network, first):
            climb.rise(prove.is_easy)
        climb.run()
        return RadiusAnswer(
            lower=climb.lower,
            witness=climb.witness,
            stopped=None if climb.is_closed else limits.expired or Verdict.UNKNOWN,
            message="" if climb.is_closed else climb.message,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Prover:
    """Proves the property of one instance at one eps after the other, for a climb."""

    verifier: BranchAndBound
    network: Network
    instance: Instance
    limits: Limits
    shells: Shells = field(default_factory=Shells)

    def __call__(
        self, eps: float, frontier: Frontier | None, patience: Patience, branches: bool
    ) -> ProofAttempt:
        """An attempt; a witness that it finds is brought as close as it can be."""
        specification = Query(self.instance, eps).specification
        attempt = self._attempt(specification, eps, frontier, patience, branches)
        if attempt.witness is None:
            return attempt
        return replace(attempt, witness=shortened(self.network, specification, attempt.witness))

    def is_easy(self, eps: float) -> bool:
        """Whether CROWN alone proves it."""
        specification = Query(self.instance, eps).specification
        return proves_by_crown(self.network, specification, self.verifier.arithmetic)

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


PATIENT_SHARE = 0.06
"""Of the time that is left: how long an attempt runs before it may be found hopeless."""

FIRST_ATTEMPT_SHARE, LATER_ATTEMPT_SHARE, ROOT_SHARE = 0.7, 0.7, 0.1
"""Of the time that is left: how long the attempt at the goal, those at smaller values, and those
that do not branch run at most, so that still smaller values get their turn."""

HIGHEST_NEXT = 1 / 2
"""How far up between proven and given up the next value is at most."""

DOUBLING_EPS = 0.05
"""By how much an eps grows, about, for its proof to take twice as long."""


@dataclass(slots=True)
class Patience:
    """Says when an attempt will not end in time.

    Easy nodes are closed first, so the closed part of a tree runs ahead of the time it needs:
    attempts that just made it had closed 0.7 after a fifth and 0.9 after half of their time. Behind
    the cube root of the time spent, they are given up.
    """

    seconds: float
    last_share: float = FIRST_ATTEMPT_SHARE
    started: float | None = None

    def is_hopeless(self, closed_share: float) -> bool:
        """Its time begins with the first question: the root's bounds are none of the tree's."""
        if self.started is None:
            self.started = time.monotonic()
        if math.isinf(self.seconds):
            return False
        spent = (time.monotonic() - self.started) / max(self.seconds, 1e-9)
        is_behind = spent > PATIENT_SHARE and closed_share < math.cbrt(spent)
        return spent > self.last_share or is_behind


Prove = Callable[[float, Frontier | None, Patience, bool], ProofAttempt]
"""Decide at an eps, going on from a frontier, while there is patience; False: do not branch."""


class Climb:
    """Raises `lower` along increasing grid values; a closer witness lowers the goal.

    `on_progress` is called when a side has moved.
    """

    def __init__(
        self,
        values: Sequence[float],
        prove: Prove,
        remaining: Callable[[], float],
        on_progress: Callable[[Climb], None] = lambda _: None,
    ) -> None:
        self.values = values
        self.prove = prove
        self.remaining = remaining
        self.proven = -1
        self.goal = len(values) - 1
        self.witness: Witness | None = None
        self.frontiers: dict[int, Frontier] = {}
        self.last_seconds = 0.0
        self.message = ""
        self.tell = on_progress

    @property
    def lower(self) -> float:
        """The largest proven value; 0 if there is none."""
        return self.values[self.proven] if self.proven >= 0 else 0.0

    @property
    def is_closed(self) -> bool:
        return self.proven >= self.goal

    def run(self) -> None:
        """Until the goal is proven or the time is over."""
        while not self.is_closed and self.remaining() > 0:
            verdict = self._try(self.goal, Patience(self.remaining()))
            if verdict.is_missing:
                self._without_branching()
                self._between(self.goal)
                return

    def rise(self, is_proven: Callable[[float], bool]) -> None:
        """First to the largest value with a proof that is quickly found, for a lower side that is
        there whatever happens later."""
        low, high = 0, self.goal
        while low <= high and self.remaining() > 0:
            middle = (low + high) // 2
            if not is_proven(self.values[middle]):
                high = middle - 1
                continue
            self.proven, low = middle, middle + 1
            self.tell(self)

    def _between(self, failed: int) -> None:
        """Values between what is proven and an index that could not be decided.

        When all are tried, the least that was given up gets the time that is left.
        """
        while not self.is_closed and self.remaining() > 0:
            failed = min(failed, self.goal + 1)
            gap = failed - self.proven
            if gap > 1:
                index = self._affordable(self.proven + max(1, math.floor(HIGHEST_NEXT * gap)))
                patience = Patience(self.remaining(), LATER_ATTEMPT_SHARE)
            else:
                index, patience = failed, Patience(math.inf)
            verdict = self._try(index, patience)
            if verdict is Verdict.ROBUST:
                failed = max(failed, self.proven + 1)
            elif gap > 1:
                failed = index
            elif verdict.is_missing:
                return

    def _affordable(self, most: int) -> int:
        """The largest index up to `most` that half of the time that is left should suffice for."""
        doublings = math.log2(max(1.0, self.remaining() / (2 * max(self.last_seconds, 1e-3))))
        limit = self.lower * (1 + DOUBLING_EPS * doublings)
        while most > self.proven + 1 and self.values[most] > limit:
            most -= 1
        return most

    def _without_branching(self) -> None:
        """The largest value that the root alone proves."""
        low, high = self.proven + 1, self.goal - 1
        while low <= high and self.remaining() > 0:
            middle = (low + high + 1) // 2
            patience = Patience(self.remaining(), ROOT_SHARE)
            if self._try(middle, patience, branches=False) is Verdict.ROBUST:
                low = middle + 1
            else:
                high = min(middle - 1, self.goal)

    def _try(self, index: int, patience: Patience, *, branches: bool = True) -> Verdict:
        # Only what a value at least as large left open may be gone on from.
        known = [other for other in self.frontiers if other >= index]
        frontier = self.frontiers[min(known)] if known and branches else None
        started = time.monotonic()
        attempt = self.prove(self.values[index], frontier, patience, branches)
        verdict = attempt.answer.verdict
        before = self.proven, self.witness
        self.message = attempt.answer.message
        if verdict is Verdict.ROBUST:
            self.last_seconds = time.monotonic() - started
            self.proven = max(self.proven, index)
        if branches and attempt.frontier is not None:
            self.frontiers[index] = attempt.frontier
        witness = attempt.witness
        if witness is not None and (
            self.witness is None or witness.distance < self.witness.distance
        ):
            self.witness = witness
            while self.goal >= 0 and self.values[self.goal] >= witness.distance:
                self.goal -= 1
        if self.proven > before[0] or self.witness is not before[1]:
            self.tell(self)
        return verdict
