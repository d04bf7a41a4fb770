"""A few instances, drawn at random, to learn from them what all would take."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from radii.execution import Agenda, Case

__all__ = ["Sampling"]

FEWEST = 5
"""Of each network, however long they take; what is finished already counts."""

MOST = 40
"""Of each network."""

MORE_SECONDS = 20.0
"""So long, instances beyond the fewest are begun: cheap ones tell more of them."""

BATCH = 16
"""Instances attacked together, as in the whole run: alone, each would cost more."""


class Sampling(Agenda):
    """Random instances of each network, one of each in turn, until there are enough."""

    def __init__(
        self,
        *,
        seed: int = 0,
        fewest: int = FEWEST,
        most: int = MOST,
        seconds: float = MORE_SECONDS,
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
                case.batch = place // BATCH
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
