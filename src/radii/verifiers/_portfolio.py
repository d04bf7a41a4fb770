"""The verifier `portfolio`: races others on a query and takes the first answer that counts.

Each member runs in a process of its own. A counterexample or a proof of one ends the race; the
others are told to stop, and killed if they do not. The result names who answered.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import wait

from radii.balls import Ball, Norm
from radii.errors import SpecificationError
from radii.networks import Network
from radii.processes import family_seconds
from radii.properties import LinearRequirement, Requirement
from radii.queries import Specification
from radii.verdicts import Verdict
from radii.verifiers._base import Answer, Limits, Verifier
from radii.verifiers._portfolio_members import PortfolioMember, member_for

MEMBER_POLL_SECONDS = 0.02
"""Between two looks at limits."""

MEMBER_GRACE_SECONDS = 0.4
"""How long a member may take to stop when it is told to, before it is killed."""


MemberAnswer = tuple[PortfolioMember, Answer]


class Portfolio(Verifier):
    """Decides what any of its members decides."""

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
        runners = [member_for(verifier) for verifier in able]
        late: list[MemberAnswer] = []
        try:
            for runner in runners:
                runner.ask(network, specification, limits)
            answer = _race(runners, limits)
        finally:
            late += _stop(runners)
        return _contradiction(answer, late) or answer


def _race(runners: Sequence[PortfolioMember], limits: Limits) -> Answer:
    """The first answer that counts, with who gave it; else why there is none."""
    missing: list[MemberAnswer] = []
    cpu_started = family_seconds()
    while running := [runner for runner in runners if runner.is_busy]:
        expired = limits.expired
        if expired is not None:
            return Answer(expired)
        if limits.cpu_seconds < math.inf:
            used = family_seconds() - cpu_started
            if not all(runner.is_ready for runner in running):  # loading is no part of the query
                cpu_started += used
            elif used > limits.cpu_seconds:
                return Answer(Verdict.TIMEOUT, message="its members used up the processor time")
        ready = wait([runner.connection for runner in running], timeout=MEMBER_POLL_SECONDS)
        answers = [
            (runner, answer)
            for runner in running
            if runner.connection in ready and (answer := runner.take()) is not None
        ]
        for runner in running:
            if runner.is_busy and runner.overran(limits.memory_bytes):
                runner.kill()
                answers.append((runner, Answer(Verdict.MEMOUT, message="killed at its limit")))
        missing += [(runner, answer) for runner, answer in answers if answer.verdict.is_missing]
        counting = [(runner, answer) for runner, answer in answers if not answer.verdict.is_missing]
        if counting:
            runner, answer = max(counting, key=lambda said: said[1].verdict is Verdict.ROBUST)
            arithmetic = runner.verifier.arithmetic
            first = replace(answer, answered_by=runner.name, arithmetic=arithmetic)
            return _contradiction(first, counting) or first
    return _no_answer(missing)


def _contradiction(answer: Answer, others: Sequence[MemberAnswer]) -> Answer | None:
    """A counterexample that was replayed weighs more than a proof that came before it."""
    for runner, other in others:
        if answer.verdict is Verdict.ROBUST and other.verdict is Verdict.NOT_ROBUST:
            claimed = " ".join(answer.answered_by or ())
            message = f"{claimed} claims a proof here, which this counterexample contradicts"
            return replace(other, answered_by=runner.name, message=message)
    return None


def _no_answer(missing: Sequence[MemberAnswer]) -> Answer:
    """No member could tell: a time-out if any met one, and what each said."""
    verdicts = [answer.verdict for _, answer in missing]
    order = (Verdict.TIMEOUT, Verdict.MEMOUT, Verdict.UNKNOWN, Verdict.ERROR, Verdict.CANCELLED)
    words = "; ".join(
        f"{runner.verifier.name}: {answer.message or answer.verdict.value}"
        for runner, answer in missing
    )
    return Answer(min(verdicts, key=order.index), message=words)


def _stop(runners: Sequence[PortfolioMember]) -> list[MemberAnswer]:
    """End the race, and take what was said meanwhile."""
    late: list[MemberAnswer] = []
    end = time.monotonic() + MEMBER_GRACE_SECONDS
    for runner in runners:
        if not runner.is_dead:
            runner.cancel()
    while running := [runner for runner in runners if runner.is_busy]:
        left = end - time.monotonic()
        if left <= 0:
            for runner in running:
                runner.kill()
            break
        ready = wait([runner.connection for runner in running], timeout=left)
        late += [
            (runner, answer)
            for runner in running
            if runner.connection in ready and (answer := runner.take()) is not None
        ]
    return late
