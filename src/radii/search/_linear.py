"""Linear scan: every grid value in turn, from the smallest."""

from __future__ import annotations

from typing import ClassVar

from radii.errors import SpecificationError
from radii.queries import Grid
from radii.search._base import Question, QuestionKind, Search


class Linear(Search):
    """The smallest open values first, k at once, up to the first that is refuted.

    Values without an answer are passed over, so it asks as many queries as there are values where
    nothing can be decided: a baseline, and the right choice where small values are cheap.
    """

    name: ClassVar[str] = "linear"
    default_k: ClassVar[int | None] = 1

    def __init__(self, grid: Grid, *, k: int = 1) -> None:
        super().__init__(grid)
        if k < 1:
            raise SpecificationError(f"k {k} must be at least 1")
        self.k = k

    def next_question(self) -> Question | None:
        if len(self.outstanding) >= self.k:
            return None
        first, last = self.open_range()
        for index in range(first, last):
            question = Question(QuestionKind.PROVE, self.values[index])
            if question not in self.told and question not in self.outstanding:
                return question
        return None
