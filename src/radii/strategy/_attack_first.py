"""Searches that attack first: the closest witness says where a proof is worth trying.

`probe_proofs` is what a probe of `Native` tries after its quick attack, and `joined_result` what
it comes to. The choice of eps values within a long proof is the verifier's own: a `GridVerifier`
gets the increasing values that are open and its limits, reports each larger one that it has proven,
and ends with the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from radii.problem import Query, Result, Verdict
from radii.strategy._base import Question, QuestionKind, Search
from radii.strategy._scans import Situation
from radii.strategy._schedule import Task


class Native(Search):
    """Leaves the choice of eps values to the verifier, which keeps what it learns between them.

    A probe closes most easy brackets; only where it does not are a thorough attack and a long proof
    worth their time.
    """

    name: ClassVar[str] = "native"
    needs_attack: ClassVar[bool] = True
    needs_radius: ClassVar[bool] = True

    def next_question(self) -> Question | None:
        first, last = self.open_range()
        if self.outstanding or first >= last:
            return None
        attack = Question(QuestionKind.ATTACK, self.values[-1])
        if attack not in self.answers:
            probe = Question(QuestionKind.PROBE, self.values[-1])
            return probe if self.probes and probe not in self.answers else attack
        has_climbed = any(question.kind is QuestionKind.RADIUS for question in self.answers)
        return None if has_climbed else Question(QuestionKind.RADIUS, self.values[last - 1])


class AttackGuided(Search):
    """Attack; then prove at the largest grid value below the witness; mostly that is all.

    When the proof fails with a closer witness, the steps below it double (1, 2, 4, ... values), so
    that a weak attack costs a few queries and not one for every grid value. Once something is
    proven, or when an answer is missing, what is left is bisected.
    """

    name: ClassVar[str] = "attack-guided"
    needs_attack: ClassVar[bool] = True

    def next_question(self) -> Question | None:
        if self.outstanding:
            return None
        first, last = self.open_range()
        if first >= last:
            return None
        attack = Question(QuestionKind.ATTACK, self.values[-1])
        if attack not in self.answers:
            return attack
        index = self._next_index(first, last)
        return None if index is None else Question(QuestionKind.PROVE, self.values[index])

    def _next_index(self, first: int, last: int) -> int | None:
        proofs = [
            result
            for question, result in self.answers.items()
            if question.kind is QuestionKind.PROVE
        ]
        refuted = sum(result.verdict is Verdict.NOT_ROBUST for result in proofs)
        if refuted == len(proofs):
            return max(first, last - (1 << refuted))
        missing = tuple(self.missing_indices())
        return Situation(first, last, missing=missing).next_index(1)


class AttackOnly(Search):
    """The upper side alone: one attack, no proof."""

    name: ClassVar[str] = "attack-only"
    needs_attack: ClassVar[bool] = True
    needs_verifier: ClassVar[bool] = False

    def next_question(self) -> Question | None:
        attack = Question(QuestionKind.ATTACK, self.values[-1])
        first, last = self.open_range()
        if first >= last or attack in self.answers or attack in self.outstanding:
            return None
        return attack


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLimits:
    """What the proofs of a probe may take, beside the quick attack before them."""

    cpu_factor: float = 4.0
    """CPU seconds of proofs for each one of the attack: about what the thorough attack would take,
    so that a probe that fails at most doubles what comes before the long proof."""
    glance_factor: float = 9.0
    """Wall seconds for a proof at the least value, for each one that the attack may take: nearly
    all of a budget. One pass over a residual network takes up to two seconds; cut off, it proves
    nothing."""
    least_seconds: float = 0.5
    """CPU seconds of proofs: nine of ten brackets of mnist-net_256x2 close in less."""


@dataclass(frozen=True, slots=True)
class ProbeProof:
    """A short try to prove one eps; a glance is the quickest that the verifier has."""

    eps: float
    is_glance: bool
    seconds: float
    cpu_seconds: float = math.inf


def probe_proofs(
    task: Task,
    query: Query,
    grid: Iterable[float],
    attacked: Result,
    limits: ProbeLimits = ProbeLimits(),  # noqa: B008 (it is frozen)
) -> list[ProbeProof]:
    """What to try for one instance of a probe, given what its attack found; all of it, in order.

    First a glance at the least value, since what follows may use up the time; then a proof of what
    would close the bracket: the largest value below the witness. Values between are left to the
    long proof.
    """
    nearest = math.inf if attacked.witness is None else attacked.witness.distance
    below = [value for value in grid if 0 < value <= query.eps and value < nearest]
    if not below:
        return []
    glance_seconds = min(task.seconds, limits.glance_factor * task.attack_seconds)
    cpu_seconds = max(limits.least_seconds, limits.cpu_factor * (attacked.cpu_seconds or 0.0))
    return [
        ProbeProof(below[0], True, glance_seconds),
        ProbeProof(
            below[-1],
            False,
            min(task.seconds, max(limits.least_seconds, task.attack_seconds)),
            min(task.cpu_seconds, cpu_seconds),
        ),
    ]


def joined_result(attacked: Result, proven: Result) -> Result:
    """What an attack and the proofs after it came to. That those ended early is no missing answer:
    a probe's time is short, and nobody was promised more."""
    witnesses = [w for w in (attacked.witness, proven.witness) if w is not None]
    closest = min(witnesses, key=lambda witness: witness.distance, default=None)
    cpu_seconds = (attacked.cpu_seconds or 0.0) + (proven.cpu_seconds or 0.0)
    seconds = attacked.seconds + proven.seconds
    best = proven if proven.proof is not None else attacked
    if best.proof is None and attacked.witness is None and closest is not None:
        best = replace(attacked, verdict=Verdict.NOT_ROBUST, witness=closest)
    return replace(
        best,
        witness=closest,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        message="",
        ending=best.verdict.ending,
    )
