"""What a verifier is. A verifier writes `run`; `verify` does every check around it."""

from __future__ import annotations

import bisect
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

from radii.bounds import unprovable
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.plugins import Plugin
from radii.problem import (
    REAL,
    Arithmetic,
    Array,
    Ball,
    Instance,
    Limits,
    LinearRequirement,
    Norm,
    Proof,
    Query,
    Requirement,
    Result,
    Specification,
    Verdict,
    Witness,
    check_witness,
)
from radii.processes import Ending, is_out_of_memory


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What `run` claims. ROBUST states the margin of its proof; NOT_ROBUST brings a candidate.

    A candidate may come with any verdict: it is replayed, and counts if it is a counterexample.
    `answered_by` is the name and version of who answered, and `arithmetic` that of its proof, where
    these are not the verifier's own. `ending` says what its verdict does not: which limit it was.
    """

    verdict: Verdict
    candidate: Array | None = None
    margin: float = 0.0
    message: str = ""
    answered_by: tuple[str, str] | None = None
    arithmetic: Arithmetic | None = None
    certificate: bytes | None = None
    ending: Ending | None = None

    @classmethod
    def stopped(cls, ending: Ending, message: str = "") -> Self:
        """A missing answer."""
        return cls(Verdict.of(ending), message=message, ending=ending)


@dataclass(frozen=True, slots=True, eq=False)
class RadiusAnswer:
    """What measuring a radius directly gives: a proof below it and a witness above it.

    The property holds on every ball up to `lower`; `margin` is that of the proof, as in `Proof`.
    `optimum` is the distance to the nearest violation in real arithmetic as the solver found it,
    None if it found none. `stopped` says why the sides are further apart than tolerances demand,
    if they are. `certificate` shows the proof at `lower`.
    """

    lower: float
    witness: Witness | None = None
    optimum: float | None = None
    margin: float = 0.0
    stopped: Verdict | None = None
    seconds: float = 0.0
    message: str = ""
    certificate: bytes | None = None

    @property
    def upper(self) -> float:
        """The witness's distance; infinite without one."""
        return float("inf") if self.witness is None else self.witness.distance


class Verifier(Plugin, ABC):
    """Decides whether a requirement holds on a whole region.

    `norms` and `kinds` are the balls and the requirements that it can decide; `arithmetic` is what
    its proofs speak of: `real` for tools that do not account for the rounding of the network.
    `unsupported` is asked once before any work starts; `verify` may then be called many times.
    Instances are cheap and picklable, and `spec` tells their options apart. What one remembers of
    earlier questions saves time, stays in its process, and is never needed.
    """

    unnamed_options: ClassVar[frozenset[str]] = frozenset({"arithmetic"})
    norms: frozenset[Norm] = frozenset({Norm.LINF})
    kinds: frozenset[type[Requirement]] = frozenset({LinearRequirement})
    is_complete: bool = False
    arithmetic: Arithmetic = REAL

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the deciding engine, as stored with every result."""

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        """Why this verifier cannot decide queries of this kind; None if it can."""
        if norm not in self.norms:
            return f"verifier '{self.name}' does not decide balls in {norm.value}"
        if not issubclass(kind, tuple(self.kinds)):
            return f"verifier '{self.name}' does not decide {kind.description}"
        if network.graph.opaque is not None:
            return (
                f"{network.name}: {network.graph.opaque.reason}, so nothing can be proven; "
                "only attacks can be asked: --search attack-only"
            )
        reason = unprovable(network.graph, self.arithmetic)
        return None if reason is None else f"{network.name} {reason}"

    @abstractmethod
    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        """Decide, soundly: ROBUST only with a proof. Return early when `limits.expired`."""

    @final
    def verify(self, network: Network, query: Query, limits: Limits | None = None) -> Result:
        """The query's result, with its witness replayed. Never raises for a missing answer."""
        limits = limits or Limits()
        started = time.perf_counter()
        answer, witness = self.decide(network, query.specification, limits)
        proof = None
        if answer.verdict is Verdict.ROBUST:
            arithmetic = answer.arithmetic or self.arithmetic
            proof = Proof(query.eps, answer.margin, arithmetic, answer.certificate)
        name, version = answer.answered_by or (self.name, self.version)
        return Result(
            verdict=answer.verdict,
            eps=query.eps,
            verifier=name,
            version=version,
            seconds=time.perf_counter() - started,
            proof=proof,
            witness=witness,
            message=answer.message,
            ending=answer.ending or limits.ending(answer.verdict),
        )

    @final
    def decide(
        self, network: Network, specification: Specification, limits: Limits
    ) -> tuple[Answer, Witness | None]:
        """An answer whose verdict is backed: NOT_ROBUST exactly if a witness was replayed."""
        region = specification.region
        norm = region.norm if isinstance(region, Ball) else Norm.LINF
        self._check_supported(network, norm, specification.requirement)
        try:
            answer = self._over_categories(network, specification, limits)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            answer = Answer.stopped(Ending.MEMORY_LIMIT, "out of memory")
        witness = check_witness(network, specification, answer.candidate)
        if witness is not None:
            message = answer.message
            if answer.verdict is Verdict.ROBUST:
                message = f"{self.name} claimed ROBUST beside a counterexample; not believed"
            found = Answer(
                Verdict.NOT_ROBUST,
                answer.candidate,
                message=message,
                answered_by=answer.answered_by,
                arithmetic=answer.arithmetic,
            )
            return found, witness
        if reason := self._disbelieved(answer):
            return Answer(Verdict.UNKNOWN, message=reason, answered_by=answer.answered_by), None
        return answer, None

    def _disbelieved(self, answer: Answer) -> str | None:
        """Why an answer without a replayed witness does not count; None if it does."""
        if answer.verdict is Verdict.NOT_ROBUST:
            return "its counterexample does not replay on ONNX Runtime"
        if answer.verdict is not Verdict.ROBUST:
            return None
        if not math.isfinite(answer.margin):
            return f"{self.name} claimed ROBUST by a margin of {answer.margin}; not believed"
        spoken = answer.arithmetic or self.arithmetic
        if spoken.strength < self.arithmetic.strength:
            return f"its proof holds {spoken.scope}, not {self.arithmetic.scope}"
        return None

    def _over_categories(
        self, network: Network, specification: Specification, limits: Limits
    ) -> Answer:
        """One run for each combination of categories in reach; ROBUST only if all of them are."""
        region = specification.region
        pieces = region.pieces() if isinstance(region, Ball) and region.norm is Norm.LINF else []
        if not pieces:
            return self.run(network, specification, limits)
        margins, spoken, missing = [], [], None
        for place, piece in enumerate(pieces):
            share = limits.within(limits.remaining / (len(pieces) - place))
            answer = self.run(network, replace(specification, region=piece), share)
            margins.append(answer.margin)
            spoken.append(answer.arithmetic or self.arithmetic)
            if check_witness(network, specification, answer.candidate) is not None:
                return answer
            if answer.verdict is not Verdict.ROBUST:
                missing = missing or answer
        weakest = min(spoken, key=lambda one: one.strength)
        return missing or replace(answer, margin=min(margins), arithmetic=weakest, certificate=None)

    def _check_supported(self, network: Network, norm: Norm, requirement: Requirement) -> None:
        reason = self.unsupported(network, norm, type(requirement))
        if reason is not None:
            raise UnsupportedQuery(reason)


class GridVerifier(Verifier):
    """A verifier that finds the largest grid value it can prove, keeping what it learns on the way.

    It writes `climb` beside `run`.
    """

    @abstractmethod
    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        """The largest of the increasing values it can prove, and any witness met on the way.

        `report` is told whenever more is proven or a closer witness is met: what was said is kept
        if the process is killed.
        """

    def glance(
        self, network: Network, instance: Instance, eps: float, limits: Limits
    ) -> RadiusAnswer:
        """A quick proof at the least value, for verifiers whose climbs are long in coming to one.

        Called before there is time for a climb; by default nothing is tried.
        """
        return RadiusAnswer(0.0)

    @final
    def certify_least(
        self, network: Network, instance: Instance, eps: float, limits: Limits
    ) -> Result:
        """As `certify`, what a glance at one value says."""
        self._check_supported(network, instance.norm, instance.requirement)
        started, features = time.perf_counter(), instance.features
        answer = RadiusAnswer(0.0)
        if features is None or not features.movable(eps):
            answer = self.glance(network, instance, eps, limits)
        return self._as_result(answer, eps, started, limits)

    def _as_result(
        self, answer: RadiusAnswer, eps: float, started: float, limits: Limits
    ) -> Result:
        """The result of what began then; `eps` is that of a missing answer."""
        is_proven = 0 < answer.lower < answer.upper and math.isfinite(answer.margin)
        stopped = answer.stopped or Verdict.UNKNOWN
        is_whole = is_proven and answer.stopped is None
        return Result(
            verdict=Verdict.ROBUST if is_proven else stopped,
            eps=answer.lower if is_proven else eps,
            verifier=self.name,
            version=self.version,
            seconds=time.perf_counter() - started,
            proof=Proof(answer.lower, answer.margin, self.arithmetic, answer.certificate)
            if is_proven
            else None,
            witness=answer.witness,
            message=answer.message,
            ending=Ending.ANSWERED if is_whole else limits.ending(stopped),
        )

    @final
    def certify(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits | None = None,
        on_progress: Callable[[Result], None] = lambda _: None,
    ) -> Result:
        """ROBUST at the largest value that could be proven; a missing answer if none could.

        A witness that was met comes along in either case. `on_progress` gets the result so far,
        whenever it is better than before.
        """
        self._check_supported(network, instance.norm, instance.requirement)
        limits = limits or Limits()
        started, so_far = time.perf_counter(), RadiusAnswer(0.0)

        def report(answer: RadiusAnswer) -> None:
            nonlocal so_far
            so_far = answer
            on_progress(self._as_result(answer, values[-1], started, limits))

        try:
            answer = self._climb_features(network, instance, values, limits, report)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            answer = replace(so_far, stopped=Verdict.MEMOUT, message="out of memory")
        return self._as_result(answer, values[-1], started, limits)

    def _climb_features(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        """A climb up to where categories begin to change; from there on a query at a time."""
        features, best = instance.features, RadiusAnswer(0.0)
        is_moving = [features is not None and bool(features.movable(eps)) for eps in values]
        if not all(is_moving):
            best = self.climb(network, instance, values[: is_moving.count(False)], limits, report)
        if not any(is_moving) or best.witness is not None or best.stopped is not None:
            return best
        low, high = is_moving.count(False), len(values)
        while low < high:
            middle = (low + high) // 2
            query = Specification(instance.ball(values[middle]), instance.requirement)
            share = limits.within(limits.remaining / 2)
            answer, witness = self.decide(network, query, share)
            if answer.verdict is Verdict.ROBUST:
                best = replace(best, lower=values[middle], margin=answer.margin, certificate=None)
                low = middle + 1
            elif witness is not None:
                best = replace(best, witness=witness, stopped=None)
                high = bisect.bisect_left(values, witness.distance)
            else:
                best, high = replace(best, stopped=answer.verdict, message=answer.message), middle
            report(best)
        return best


class RadiusVerifier(Verifier):
    """A verifier that can also measure a radius directly. It writes `measure` beside `run`."""

    @abstractmethod
    def measure(
        self, network: Network, instance: Instance, limits: Limits, upper: float
    ) -> RadiusAnswer:
        """The radius of an instance that holds, soundly. Return early when `limits.expired`."""

    @final
    def radius(
        self,
        network: Network,
        instance: Instance,
        limits: Limits | None = None,
        *,
        upper: float = math.inf,
    ) -> RadiusAnswer:
        """The exact radius: a proof just below it, a witness just above.

        `upper` is a distance at which a violation is known, from an attack; nothing farther is
        looked at, and the closer it is the less work there is.
        """
        self._check_supported(network, instance.norm, instance.requirement)
        if instance.kind is not LinearRequirement:
            raise UnsupportedQuery(
                f"verifier '{self.name}' measures no radius of {instance.kind.description}"
            )
        if instance.features is not None and instance.features.groups:
            raise UnsupportedQuery(
                f"verifier '{self.name}' measures no radius where categories change; ask queries"
            )
        started = time.perf_counter()
        if instance.holds:
            try:
                answer = self.measure(network, instance, limits or Limits(), upper)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                answer = RadiusAnswer(0.0, stopped=Verdict.MEMOUT, message="out of memory")
        else:
            point = Specification(instance.ball(0.0), instance.requirement)
            witness = check_witness(network, point, instance.input)
            answer = RadiusAnswer(0.0, witness, optimum=0.0)
        if answer.lower >= answer.upper > 0:
            message = (
                f"{self.name} claimed a proof at {answer.lower:g} beside a witness; not believed"
            )
            answer = replace(answer, lower=0.0, message=message)
        elif not (math.isfinite(answer.lower) and math.isfinite(answer.margin)):
            message = (
                f"{self.name} claimed a proof at {answer.lower} by {answer.margin}; not believed"
            )
            answer = replace(answer, lower=0.0, margin=0.0, message=message)
        return replace(answer, seconds=time.perf_counter() - started)
