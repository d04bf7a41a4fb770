"""The verifier `portfolio`: races others on a query and takes the first answer that counts.

Each member runs in a process of its own, which is kept for the next query. A counterexample or a
proof of one ends the race; the others are told to stop, and killed if they do not. The result names
who answered.
"""

from __future__ import annotations

import math
import os
import pickle
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from radii.errors import SpecificationError
from radii.networks import Network
from radii.problem import Ball, Limits, LinearRequirement, Norm, Requirement, Specification, Verdict
from radii.processes import (
    ONE_THREAD,
    START_SECONDS,
    Allowance,
    Child,
    Ending,
    Line,
    Message,
    MessageKind,
    Service,
    StoppedCall,
    family_seconds,
    watch,
)
from radii.verifiers._base import Answer, Verifier

MEMBER_POLL_SECONDS = 0.02
"""Between two looks at limits."""

MEMBER_GRACE_SECONDS = 0.4
"""How long a member may take to stop when it is told to, before it is killed."""


class Portfolio(Verifier):
    """Decides what any of its members decides.

    Each proof keeps its own arithmetic; `arithmetic` is the weakest, in which all of them hold.
    """

    name = "portfolio"

    def __init__(self, members: Sequence[Verifier]) -> None:
        if len(members) < 2:
            raise SpecificationError("a portfolio needs at least two verifiers")
        kinds = {pickle.dumps(member): member.name for member in members}
        if len(kinds) < len(members):
            names = ", ".join(member.name for member in members)
            raise SpecificationError(f"a portfolio of {names} names a verifier twice")
        self.members = tuple(members)
        self.norms = frozenset().union(*(member.norms for member in members))
        self.kinds = frozenset().union(*(member.kinds for member in members))
        self.is_complete = any(member.is_complete for member in members)
        self.arithmetic = min((each.arithmetic for each in members), key=lambda one: one.strength)
        self._processes = MemberProcesses()

    @property
    def spec(self) -> str:
        return f"{self.name}:{','.join(member.spec for member in self.members)}"

    @property
    def version(self) -> str:
        return ", ".join(f"{member.name} {member.version}" for member in self.members)

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reasons = [member.unsupported(network, norm, kind) for member in self.members]
        return None if None in reasons else "; ".join(reason or "" for reason in reasons)

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        expired = limits.expired
        if expired is not None:
            return Answer(expired)
        region = specification.region
        norm = region.norm if isinstance(region, Ball) else Norm.LINF
        kind = type(specification.requirement)
        able = [each for each in self.members if each.unsupported(network, norm, kind) is None]
        members = [self._processes.member_for(verifier) for verifier in able]
        late: list[MemberAnswer] = []
        try:
            for member in members:
                member.ask(network, specification, limits)
            answer = _race(members, limits)
        finally:
            late += _stop(members)
        return _contradiction(answer, late) or answer


@dataclass(frozen=True, slots=True, eq=False)
class PortfolioJob:
    """One specification to decide; `network` comes along the first time it is needed.

    `number` stands for the network from then on. `started` is on `time.monotonic`'s clock, which
    all processes of a machine share.
    """

    number: int
    network: Network | None
    specification: Specification
    seconds: float
    started: float
    memory_bytes: int | None
    cpu_seconds: float


@dataclass(slots=True, eq=False)
class PortfolioMember:
    """One process that runs one verifier, and the networks that it has been given."""

    verifier: Verifier
    child: Child
    known: dict[tuple[object, ...], int] = field(default_factory=dict)

    @classmethod
    def start(cls, verifier: Verifier) -> PortfolioMember:
        service = Service(_serve_verifier, (verifier,), has_line=True)
        return cls(verifier, Child.start(service, Allowance(START_SECONDS), ONE_THREAD))

    @property
    def name(self) -> tuple[str, str]:
        return self.verifier.name, self.verifier.version

    def ask(self, network: Network, specification: Specification, limits: Limits) -> None:
        """Start deciding, at once or as soon as the process is ready."""
        number = self.known.get(network.cache_key, len(self.known))
        job = PortfolioJob(
            number,
            None if network.cache_key in self.known else network,
            specification,
            limits.seconds,
            limits.started,
            limits.memory_bytes,
            limits.cpu_seconds,
        )
        if self.child.is_ready:  # else the job may be taken back before it begins
            self.known[network.cache_key] = number
        self.child.ask((job,), Allowance(memory_bytes=limits.memory_bytes))

    def answer(self, event: Message | StoppedCall) -> Answer:
        """What the process came to, in the words of a verifier."""
        if isinstance(event, Message):
            if event.kind is not MessageKind.VALUE:
                return Answer(Verdict.ERROR, message=event.value)
            answer: Answer = event.value
            return answer
        message = event.message
        if event.has_died:
            message = f"its process died ({self.child.reason_of_death})"
        return Answer.stopped(event.ending, message)


MemberAnswer = tuple[PortfolioMember, Answer]


class MemberProcesses:
    """The processes of one portfolio. They live as long as it does, and do not travel with it."""

    def __init__(self) -> None:
        self._members: dict[bytes, PortfolioMember] = {}
        weakref.finalize(self, _end_all, self._members, os.getpid())

    def __reduce__(self) -> tuple[type[MemberProcesses], tuple[()]]:
        return MemberProcesses, ()

    def member_for(self, verifier: Verifier) -> PortfolioMember:
        """The living member that runs this verifier; a new one if there is none."""
        key = pickle.dumps(verifier)
        member = self._members.get(key)
        if member is None or member.child.is_busy or member.child.is_dead:
            if member is not None:
                member.child.kill()
            member = self._members[key] = PortfolioMember.start(verifier)
        return member


def _end_all(members: Mapping[bytes, PortfolioMember], owner: int) -> None:
    """At the end of the portfolio, or of the process that it was made in, but not of a fork."""
    for member in members.values() if os.getpid() == owner else ():
        member.child.kill()


def _serve_verifier(verifier: Verifier) -> Callable[[Line, PortfolioJob], Answer]:
    """What the process of a member does."""
    import torch

    torch.set_num_threads(1)
    networks: dict[int, Network] = {}

    def decide(line: Line, job: PortfolioJob) -> Answer:
        if job.network is not None:
            networks[job.number] = job.network
        network = networks[job.number]
        limits = Limits(
            job.seconds, job.memory_bytes, line.is_cancelled, job.started, job.cpu_seconds
        )
        return verifier.decide(network, job.specification, limits)[0]

    return decide


def _answers(members: Sequence[PortfolioMember], seconds: float) -> Iterator[MemberAnswer]:
    """Who has answered or was killed, within so many seconds."""
    by_child = {member.child: member for member in members}
    for child, event in watch(list(by_child), seconds):
        yield by_child[child], by_child[child].answer(event)


def _race(members: Sequence[PortfolioMember], limits: Limits) -> Answer:
    """The first answer that counts, with who gave it; else why there is none."""
    missing: list[MemberAnswer] = []
    cpu_started = family_seconds()
    while running := [member for member in members if member.child.is_busy]:
        expired = limits.expired
        if expired is not None:
            return Answer(expired)
        if limits.cpu_seconds < math.inf:
            used = family_seconds() - cpu_started
            if not all(member.child.is_ready for member in running):  # loading does not count
                cpu_started += used
            elif used > limits.cpu_seconds:
                return Answer.stopped(Ending.CPU_LIMIT, "its members used up the processor time")
        answers = list(_answers(running, MEMBER_POLL_SECONDS))
        missing += [(member, answer) for member, answer in answers if answer.verdict.is_missing]
        counting = [(member, answer) for member, answer in answers if not answer.verdict.is_missing]
        if counting:
            member, answer = max(counting, key=lambda pair: pair[1].verdict is Verdict.ROBUST)
            arithmetic = member.verifier.arithmetic
            failed = [each for each in missing if each[1].verdict is Verdict.ERROR]
            message = "; ".join(filter(None, (answer.message, _words(failed))))
            first = replace(answer, answered_by=member.name, arithmetic=arithmetic, message=message)
            return _contradiction(first, counting) or first
    return _no_answer(missing)


def _contradiction(answer: Answer, others: Sequence[MemberAnswer]) -> Answer | None:
    """A counterexample that was replayed weighs more than a proof that came before it."""
    for member, other in others:
        if answer.verdict is Verdict.ROBUST and other.verdict is Verdict.NOT_ROBUST:
            claimed = " ".join(answer.answered_by or ())
            message = f"{claimed} claims a proof here, which this counterexample contradicts"
            return replace(other, answered_by=member.name, message=message)
    return None


ORDER_OF_MISSING = (
    Ending.TIME_LIMIT,
    Ending.CPU_LIMIT,
    Ending.MEMORY_LIMIT,
    Ending.GAVE_UP,
    Ending.FAILED,
    Ending.LOST,
    Ending.CANCELLED,
)
"""Of several members without an answer, whose ending is that of the portfolio."""


def _no_answer(missing: Sequence[MemberAnswer]) -> Answer:
    """No member could tell: a time-out if any met one, and what each said."""
    endings = [answer.ending or answer.verdict.ending for _, answer in missing]
    return Answer.stopped(min(endings, key=ORDER_OF_MISSING.index), _words(missing))


def _words(missing: Sequence[MemberAnswer]) -> str:
    """What each of these members said."""
    return "; ".join(
        f"{member.verifier.name}: {answer.message or answer.verdict.value}"
        for member, answer in missing
    )


def _stop(members: Sequence[PortfolioMember]) -> list[MemberAnswer]:
    """End the race, and take what was said meanwhile."""
    late: list[MemberAnswer] = []
    for member in members:
        member.child.cancel(MEMBER_GRACE_SECONDS)
    while running := [member for member in members if member.child.is_busy]:
        late += _answers(running, MEMBER_GRACE_SECONDS)
    return late
