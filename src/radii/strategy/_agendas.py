"""Agendas: in which order instances are measured, and how far.

`BudgetAgenda` spends a budget where it narrows the distribution most. First every instance is
attacked, which takes its upper side from nowhere to where it mostly stays. Then come proofs, at
first with little time each: the widest bracket first, since a short try proves about the same part
of it everywhere. Easy instances close at once. For the others the limit grows fourfold with every
try, and the one goes first whose width is largest relative to the time it asks for. A try starts
anew, so all shorter ones together cost it a third at most.

`SamplingAgenda` measures a few instances, drawn at random, to learn from them what all would take.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from radii.problem import Bracket
from radii.strategy._base import QuestionKind, Search
from radii.strategy._schedule import Agenda, Case


def width(bracket: Bracket, top: float) -> float:
    """The bracket's width; without a witness it ends where the grid does, at `top`."""
    return max(0.0, min(bracket.upper, top) - bracket.lower)


def total_width(brackets: Iterable[Bracket], top: float) -> float:
    """The widths of a distribution, summed: what a budget is spent to narrow."""
    return sum(width(bracket, top) for bracket in brackets)


def is_closed(search: Search) -> bool:
    """No grid value is left between what is proven and what is witnessed."""
    first, last = search.open_range()
    return first >= last


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeGrowth:
    """How the time of tries grows. Seconds, except the two factors."""

    first_seconds: float = 0.5
    """No first try is shorter: bounds without branching take about that on the papers' networks."""
    factor: float = 4.0
    """From one try to the next."""
    usual_seconds: float = 60.0
    """Where the growth passes through when the run itself has no limit."""
    useful_seconds: float = 0.2
    """With less left of the budget nothing is begun."""
    useful_factor: float = 1.5
    """A try that cannot have this many times the time of the last one is not begun."""

    def first_limit(self, timeout: float, longest: float) -> float:
        """The time of first tries, from which the growth passes through `timeout`."""
        usual = min(longest, timeout if timeout < math.inf else self.usual_seconds)
        rounds = max(0, math.floor(math.log(usual / self.first_seconds, self.factor)))
        return usual / self.factor**rounds


class BudgetAgenda(Agenda):
    """Ends after `seconds` of measuring. Limits grow through `timeout`, and never beyond `longest`.

    What comes before the first question, as loading networks, does not count, nor do seconds in
    which the run is paused.
    """

    def __init__(
        self,
        seconds: float,
        *,
        timeout: float = math.inf,
        longest: float = math.inf,
        growth: TimeGrowth | None = None,
    ) -> None:
        self._seconds = seconds
        self._end: float | None = None
        self._held_at: float | None = None
        self._longest = longest
        self._growth = growth or TimeGrowth()
        self.first_limit = self._growth.first_limit(timeout, longest)

    def left(self, now: float) -> float:
        """Seconds, negative when it is over."""
        return self._seconds if self._end is None else self._end - now

    def begin(self, cases: Sequence[Case], now: float) -> None:
        self._end = now + self._seconds
        for case in cases:
            case.search.probes = False  # proofs have their turn by width, all attacks come before
            self._grow(case, self.first_limit)

    def held(self, is_held: bool, now: float) -> None:
        if is_held:
            self._held_at = now
        elif self._held_at is not None and self._end is not None:
            self._end += now - self._held_at
            self._held_at = None

    def is_over(self, now: float) -> bool:
        return self.left(now) < self._growth.useful_seconds

    def admits(self, case: Case, now: float) -> bool:
        tried = (
            r.allowed_seconds or 0.0
            for q, r in case.search.cut_short
            if not q.kind.begins_with_attack
        )
        available = min(case.search.seconds, self.left(now))
        return available >= self._growth.useful_factor * max(tried, default=0.0)

    def rank(self, case: Case) -> float:
        question = case.search.next_question()
        if question is None and case.search.outstanding:
            return math.inf  # it is ranked again when it knows more
        if question is None or question.kind.begins_with_attack:
            return -math.inf
        return -width(case.search.bracket, case.search.values[-1]) / case.search.seconds

    def seconds(self, case: Case, kind: QuestionKind, now: float) -> float | None:
        left = self.left(now)
        return left if kind.begins_with_attack else min(case.search.seconds, left)

    def renews(self, case: Case) -> bool:
        return self._grow(case, case.search.seconds)

    def _grow(self, case: Case, limit: float) -> bool:
        """Allow the case the least time, from `limit` on, with which it has something to ask."""
        search = case.search
        search.allow(limit)
        while search.next_question() is None:
            if is_closed(search) or limit >= self._longest or not search.gains_from_time():
                return False
            limit = min(self._longest, self._growth.factor * limit)
            search.allow(limit)
        return True


class SamplingAgenda(Agenda):
    """Random instances of each network, one of each in turn, until there are enough.

    `fewest` of each network are measured, however long they take, and what is finished already
    counts; more, up to `most`, are begun within the first `seconds`: cheap ones tell more of them.
    `batch` instances are attacked together, as in the whole run: alone, each would cost more.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        fewest: int = 5,
        most: int = 40,
        seconds: float = 20.0,
        batch: int = 16,
    ) -> None:
        self._seed = seed
        self._fewest = fewest
        self._most = most
        self._seconds = seconds
        self._batch = batch
        self._end = math.inf
        self._ranks: dict[int, int] = {}
        self._begun: set[int] = set()

    def begin(self, cases: Sequence[Case], now: float) -> None:
        self._end = now + self._seconds
        known: Counter[str] = Counter()
        waiting: dict[str, list[Case]] = defaultdict(list)
        for case in cases:
            if case.search.next_question() is not None:
                waiting[case.instance.network].append(case)
            elif case.instance.holds:
                known[case.instance.network] += 1
        chance = random.Random(self._seed)
        for network, asking in waiting.items():
            chance.shuffle(asking)
            for place, case in enumerate(asking):
                case.batch = place // self._batch
                self._ranks[id(case)] = known[network] + place

    def admits(self, case: Case, now: float) -> bool:
        rank = self._ranks.get(id(case))
        if rank is None or id(case) in self._begun:
            return True
        if rank < self._fewest or (rank < self._most and now < self._end):
            self._begun.add(id(case))
            return True
        return False

    def rank(self, case: Case) -> float:
        return float(self._ranks.get(id(case), -1))
