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
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from radii.problem import Bracket
from radii.runs.executors._scheduling import Agenda, Case
from radii.strategy import QuestionKind, Search

FIRST_SECONDS = 0.5
"""No first try is shorter: bounds without branching take about that on the papers' networks."""

TIMEOUT_GROWTH = 4.0

USUAL_SECONDS = 60.0
"""Where the growth passes through when the run itself has no limit."""

USEFUL_SECONDS = 0.2
"""With less left nothing is begun."""

USEFUL_FACTOR = 1.5
"""A try that cannot have so much more than the last one is not begun."""


FEWEST_INSTANCES = 5
"""Of each network, however long they take; what is finished already counts."""

MOST_INSTANCES = 40
"""Of each network."""

FURTHER_SECONDS = 20.0
"""So long, instances beyond the fewest are begun: cheap ones tell more of them."""

ATTACK_BATCH = 16
"""Instances attacked together, as in the whole run: alone, each would cost more."""


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end: float | None = None
        self._held_at: float | None = None
        self._longest = longest
        usual = min(longest, timeout if timeout < math.inf else USUAL_SECONDS)
        rounds = max(0, math.floor(math.log(usual / FIRST_SECONDS, TIMEOUT_GROWTH)))
        self.first_limit = usual / TIMEOUT_GROWTH**rounds

    @property
    def left(self) -> float:
        """Seconds, negative when it is over."""
        return self._seconds if self._end is None else self._end - self._clock()

    def begin(self, cases: Sequence[Case]) -> None:
        self._end = self._clock() + self._seconds
        for case in cases:
            case.search.probes = False  # proofs have their turn by width, all attacks come before
            self._grow(case, self.first_limit)

    def held(self, is_held: bool) -> None:
        if is_held:
            self._held_at = self._clock()
        elif self._held_at is not None and self._end is not None:
            self._end += self._clock() - self._held_at
            self._held_at = None

    def is_over(self) -> bool:
        return self.left < USEFUL_SECONDS

    def admits(self, case: Case) -> bool:
        tried = (
            r.allowed_seconds or 0.0
            for q, r in case.search.cut_short
            if not q.kind.begins_with_attack
        )
        return min(case.search.seconds, self.left) >= USEFUL_FACTOR * max(tried, default=0.0)

    def rank(self, case: Case) -> float:
        question = case.search.next_question()
        if question is None and case.search.outstanding:
            return math.inf  # it is ranked again when it knows more
        if question is None or question.kind.begins_with_attack:
            return -math.inf
        return -width(case.search.bracket, case.search.values[-1]) / case.search.seconds

    def seconds(self, case: Case, kind: QuestionKind) -> float | None:
        return self.left if kind.begins_with_attack else min(case.search.seconds, self.left)

    def renews(self, case: Case) -> bool:
        return self._grow(case, case.search.seconds)

    def _grow(self, case: Case, limit: float) -> bool:
        """Allow the case the least time, from `limit` on, with which it has something to ask."""
        search = case.search
        search.allow(limit)
        while search.next_question() is None:
            if is_closed(search) or limit >= self._longest or not search.gains_from_time():
                return False
            limit = min(self._longest, TIMEOUT_GROWTH * limit)
            search.allow(limit)
        return True


class SamplingAgenda(Agenda):
    """Random instances of each network, one of each in turn, until there are enough."""

    def __init__(
        self,
        *,
        seed: int = 0,
        fewest: int = FEWEST_INSTANCES,
        most: int = MOST_INSTANCES,
        seconds: float = FURTHER_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seed = seed
        self._fewest = fewest
        self._most = most
        self._clock = clock
        self._end = clock() + seconds
        self._ranks: dict[int, int] = {}
        self._begun: set[int] = set()

    def begin(self, cases: Sequence[Case]) -> None:
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
                case.batch = place // ATTACK_BATCH
                self._ranks[id(case)] = known[network] + place

    def admits(self, case: Case) -> bool:
        rank = self._ranks.get(id(case))
        if rank is None or id(case) in self._begun:
            return True
        if rank < self._fewest or (rank < self._most and self._clock() < self._end):
            self._begun.add(id(case))
            return True
        return False

    def rank(self, case: Case) -> float:
        return float(self._ranks.get(id(case), -1))
