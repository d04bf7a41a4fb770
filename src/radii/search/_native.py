"""The native radius search: attack, then one question that certifies as far as it can."""

from __future__ import annotations

from typing import ClassVar

from radii.search._base import Question, QuestionKind, Search


class Native(Search):
    """Leaves the choice of eps values to the verifier, which keeps what it learns between them."""

    name: ClassVar[str] = "native"
    needs_attack: ClassVar[bool] = True
    needs_radius: ClassVar[bool] = True

    def next_question(self) -> Question | None:
        first, last = self.open_range()
        if self.outstanding or first >= last:
            return None
        attack = Question(QuestionKind.ATTACK, self.values[-1])
        if attack not in self.told:
            return attack
        has_climbed = any(question.kind is QuestionKind.RADIUS for question in self.told)
        return None if has_climbed else Question(QuestionKind.RADIUS, self.values[last - 1])
