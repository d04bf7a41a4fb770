"""Searches that attack first: the closest witness says where a proof is worth trying."""

from __future__ import annotations

from typing import ClassVar

from radii.problem import Verdict
from radii.strategy._base import Question, QuestionKind, Search
from radii.strategy._scans import Situation


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
