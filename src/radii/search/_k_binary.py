"""k-binary search: k queries at once cut the open range into parts."""

from __future__ import annotations

from typing import ClassVar

from radii.errors import SpecificationError
from radii.queries import Grid
from radii.search._base import Question, QuestionKind, Search
from radii.search._splitting import GOLDEN_CUTS, Cuts, Situation


class KBinary(Search):
    """Up to k queries side by side, at the cuts of the open range into k + 1 parts.

    An answer settles the queries that it implies, and they make room for others; when one ends and
    others still run, the next eps is at the middle of what is left between them. See `splitting`
    for where that is, and for what missing answers do.
    """

    name: ClassVar[str] = "k-binary"
    default_k: ClassVar[int | None] = 2

    def __init__(self, grid: Grid, *, k: int = 2, cuts: Cuts = Cuts.EQUAL) -> None:
        super().__init__(grid)
        if k < 1:
            raise SpecificationError(f"k {k} must be at least 1")
        if cuts is Cuts.GOLDEN and k not in GOLDEN_CUTS:
            known = " and ".join(map(str, GOLDEN_CUTS))
            raise SpecificationError(f"cuts 'golden' are known for k {known}, not for {k}")
        self.k = k
        self.cuts = cuts

    def next_question(self) -> Question | None:
        if len(self.outstanding) >= self.k:
            return None
        first, last = self.open_range()
        running = map(self.index_of, self.outstanding)
        situation = Situation(
            first,
            last,
            tuple(sorted(index for index in running if first <= index < last)),
            tuple(self.missing_indices()),
        )
        index = situation.next_index(self.k, self.cuts)
        return None if index is None else Question(QuestionKind.PROVE, self.values[index])


class Binary(KBinary):
    """One query at a time, each at the middle of the open range: k-binary search with k = 1."""

    name: ClassVar[str] = "binary"
    default_k: ClassVar[int | None] = None

    def __init__(self, grid: Grid) -> None:
        super().__init__(grid, k=1)
