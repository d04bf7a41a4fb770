"""The verifier `portfolio`: races others on a query and takes the first answer that counts.

Each member runs in a process of its own. A counterexample or a proof of one ends the race; the
others are told to stop, and killed if they do not. The result names who answered.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import wait

from radii.balls import Ball, Norm
from radii.errors import SpecificationError
from radii.networks import Network
from radii.queries import Specification
from radii.verdicts import Verdict
from radii.verifiers._base import Answer, Limits, Verifier
from radii.verifiers.portfolio.members import Member, member_for

__all__ = ["Portfolio"]

WATCH_SECONDS = 0.02
"""Between two looks at limits."""

GRACE_SECONDS = 0.4
"""How long a member may take to stop when it is told to, before it is killed."""


class Portfolio(Verifier):
    """Decides what any of its members decides."""

    name = "portfolio"

    def __init__(self, members: Sequence[Verifier]) -> None:
        if len(members) < 2:
            raise SpecificationError("a portfolio needs at least two verifiers")
        self.members = tuple(members)
        self.norms = frozenset().union(*(member.norms for member in members))
        self.is_complete = any(member.is_complete for member in members)

    @property
    def version(self) -> str:
        return ", ".join(f"{member.name} {member.version}" for member in self.members)

    def unsupported(self, network: Network, norm: Norm) -> str | None:
        reasons = [member.unsupported(network, norm) for member in self.members]
        return None if None in reasons else "; ".join(reason or "" for reason in reasons)

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        expired = limits.expired
        if expired is not None:
            return Answer(expired)
        region = specification.region
        norm = region.norm if isinstance(region, Ball) else Norm.LINF
        able = [each for each in self.members if each.unsupported(network, norm) is None]
        runners = [member_for(verifier) for verifier in able]
        for runner in runners:
            runner.ask(network, specification, limits)
        try:
            return _raced(runners, limits)
        finally:
            _stop(runners)


def _raced(runners: Sequence[Member], limits: Limits) -> Answer:
    """The first answer that counts, with who gave it; else why there is none."""
    missing: list[tuple[Member, Answer]] = []
    while running := [runner for runner in runners if runner.is_busy]:
        expired = limits.expired
        if expired is not None:
            return Answer(expired)
        ready = wait([runner.connection for runner in running], timeout=WATCH_SECONDS)
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
        if counting:  # a counterexample that was replayed weighs more than a proof
            runner, answer = min(counting, key=lambda pair: pair[1].verdict is Verdict.ROBUST)
            return replace(answer, answered_by=runner.name)
    return _nothing(missing)


def _nothing(missing: Sequence[tuple[Member, Answer]]) -> Answer:
    """No member could tell: a time-out if any met one, and what each said."""
    verdicts = [answer.verdict for _, answer in missing]
    order = (Verdict.TIMEOUT, Verdict.MEMOUT, Verdict.UNKNOWN, Verdict.ERROR, Verdict.CANCELLED)
    words = "; ".join(
        f"{runner.verifier.name}: {answer.message or answer.verdict.value}"
        for runner, answer in missing
    )
    return Answer(min(verdicts, key=order.index), message=words)


def _stop(runners: Sequence[Member]) -> None:
    """Nobody needs the others' answers any more."""
    end = time.monotonic() + GRACE_SECONDS
    for runner in runners:
        if not runner.is_dead:
            runner.cancel()
    while running := [runner for runner in runners if runner.is_busy]:
        left = end - time.monotonic()
        if left <= 0:
            for runner in running:
                runner.kill()
            return
        for runner in running:
            if runner.connection in wait([each.connection for each in running], timeout=left):
                runner.take()
                break
