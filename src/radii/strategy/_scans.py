"""Searches that ask for proofs alone, k at once: linear scan, binary and k-binary search.

`Situation` says where k-binary search asks next: at cuts of the grid values that are open, around
what runs and what failed. It speaks of grid indices alone; a part [start, stop) holds values that
were never asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import ClassVar

from radii.errors import SpecificationError
from radii.problem import Grid
from radii.strategy._base import Question, QuestionKind, Search

IndexRange = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CuttingRules:
    """Where k-binary search asks around missing answers."""

    patience: int = 3
    """Missing answers in the open range up to which values between them are asked too. Beyond it
    they are taken to be as hard as their neighbours, and only the two outer parts are asked: the
    search closes in on a hard zone from both sides and never creeps through it."""
    nearly_longest: float = 0.6
    """Parts this much as long as the longest are cut where they are nearest to the middle of what
    is open: an answer there tells most. Found by trying; docs/search.md has the maxima it gives."""
    kept_distance: float = 0.25
    """Of a part beside a missing answer: how far a lone query stays away from that answer, while it
    would rather be at the middle of what is open."""


GOLDEN_CUTS = {
    2: (0.381966, 0.618034),
    4: (0.245122, 0.430160, 0.569840, 0.754878),
}
"""By k, cuts that repeat themselves: when one is answered, those that still run lie where the cuts
of what is left would be. The golden ratio for k = 2, the plastic ratio for k = 4."""


class Cuts(StrEnum):
    """How k queries cut the open range: in equal parts, or as `GOLDEN_CUTS` says."""

    EQUAL = "equal"
    GOLDEN = "golden"


@dataclass(frozen=True, slots=True)
class Situation:
    """The values [first, last) are open; at some of them a query runs or gave no answer.

    `running` and `missing` are in order, and inside of [first, last).
    """

    first: int
    last: int
    running: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    rules: CuttingRules = CuttingRules()

    def next_index(self, k: int, cuts: Cuts = Cuts.EQUAL) -> int | None:
        """Where to ask if fewer than k run; None if nothing is left to ask.

        What runs is completed to the cuts of the open range, the middle ones first, if it is a
        part of them. Otherwise the middle of what is left between known and running values is next.
        """
        parts = self._open_parts()
        left = _without(parts, self.running)
        if not left:
            return None
        if cuts is Cuts.GOLDEN and not self.missing:
            index = self._golden(k)
            if index is not None:
                return index
        if self.missing and k == 1:
            return self._leaning(self._central(left))
        equal = _equal_cuts(parts, k)
        if set(self.running) <= set(equal) and (rest := set(equal) - set(self.running)):
            return min(sorted(rest), key=lambda index: abs(2 * index + 1 - self.first - self.last))
        start, stop = self._central(left)
        return (start + stop) // 2

    def _open_parts(self) -> list[IndexRange]:
        """What may be asked, if nothing runs."""
        if len(self.missing) <= self.rules.patience:
            return _without([(self.first, self.last)], self.missing)
        outer = [(self.first, self.missing[0]), (self.missing[-1] + 1, self.last)]
        return [(start, stop) for start, stop in outer if start < stop]

    def _central(self, parts: Sequence[IndexRange]) -> IndexRange:
        """Of the parts that are nearly as long as the longest, the one nearest to the middle."""
        longest = max(stop - start for start, stop in parts)
        return min(
            (part for part in parts if part[1] - part[0] >= self.rules.nearly_longest * longest),
            key=lambda part: abs(part[0] + part[1] - self.first - self.last),
        )

    def _leaning(self, part: IndexRange) -> int:
        """In the part, as near to the middle of what is open as a missing answer beside it lets."""
        start, stop = part
        aim, half = (self.first + self.last) // 2, (start + stop) // 2
        away = int(self.rules.kept_distance * (stop - start))
        if len(self.missing) > self.rules.patience:
            return half
        if stop in self.missing and aim > half:
            return max(half, min(aim, stop - 1 - away))
        if start - 1 in self.missing and aim < half:
            return min(half, max(aim, start + away))
        return half

    def _golden(self, k: int) -> int | None:
        """The golden cut nearest to the middle that no running query stands for."""
        size = self.last - self.first + 1  # a range of n values has n + 1 outcomes
        places = GOLDEN_CUTS[k]
        taken = [(index - self.first + 1) / size for index in self.running]
        stands_for = min(
            combinations(range(k), len(taken)),
            key=lambda chosen: sum(abs(places[c] - t) for c, t in zip(chosen, taken, strict=True)),
        )
        free = [places[c] for c in range(k) if c not in stands_for]
        for place in sorted(free, key=lambda place: abs(place - 0.5)):
            index = self.first + min(max(round(place * size), 1), size - 1) - 1
            if index not in self.running:
                return index
        return None


def _without(parts: Iterable[IndexRange], indices: Iterable[int]) -> list[IndexRange]:
    """The parts, split around indices that they may hold."""
    left = list(parts)
    for index in indices:
        left = [
            piece
            for start, stop in left
            for piece in (
                ((start, index), (index + 1, stop)) if start <= index < stop else ((start, stop),)
            )
        ]
    return [(start, stop) for start, stop in left if start < stop]


def _equal_cuts(parts: Sequence[IndexRange], count: int) -> list[int]:
    """Up to `count` indices that leave the longest piece between them as short as can be.

    Of one part these are `count` + 1 equal pieces.
    """
    lengths = [stop - start for start, stop in parts]
    cuts = [0] * len(parts)
    for _ in range(min(count, sum(lengths))):
        room = [place for place, length in enumerate(lengths) if cuts[place] < length]
        cuts[max(room, key=lambda place: lengths[place] / (cuts[place] + 1))] += 1
    return [
        start + (turn + 1) * (stop - start) // (number + 1)
        for (start, stop), number in zip(parts, cuts, strict=True)
        for turn in range(number)
    ]


class KBinary(Search):
    """Up to k queries side by side, at the cuts of the open range into k + 1 parts.

    An answer settles the queries that it implies, and they make room for others; when one ends and
    others still run, the next eps is at the middle of what is left between them. See `Situation`
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
            if question not in self.answers and question not in self.outstanding:
                return question
        return None
