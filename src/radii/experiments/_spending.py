"""Spending a budget: the order of questions, and their limits, that narrow a distribution fastest.

First every instance is attacked, which takes its upper side from nowhere to where it mostly stays.
Then proofs, at first with little time each: the widest bracket first, since a short try proves
about the same part of it everywhere. Easy instances close at once; for the others the limit grows
fourfold with every try, and that one goes first whose width is the largest part of the time that it
asks for. A try starts anew, so all shorter ones together cost it a third at most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from radii.execution import Agenda, Case
from radii.experiments._estimates import is_closed, width
from radii.search import QuestionKind

FIRST_SECONDS = 0.5
"""No first try is shorter: bounds without branching take about that on the papers' networks."""

TIMEOUT_GROWTH = 4.0

USUAL_SECONDS = 60.0
"""Where the growth passes through when the run itself has no limit."""

USEFUL_SECONDS = 0.2
"""With less left nothing is begun."""

USEFUL_FACTOR = 1.5
"""A try that cannot have so much more than the last one is not begun."""


class BudgetAgenda(Agenda):
    """Ends after `seconds` from now. Limits grow through `timeout`, and never beyond `longest`.

    Seconds in which the run is paused do not count.
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
        self._end = clock() + seconds
        self._held_at: float | None = None
        self._longest = longest
        usual = min(longest, timeout if timeout < math.inf else USUAL_SECONDS)
        rounds = max(0, math.floor(math.log(usual / FIRST_SECONDS, TIMEOUT_GROWTH)))
        self.first_limit = usual / TIMEOUT_GROWTH**rounds

    @property
    def left(self) -> float:
        """Seconds, negative when it is over."""
        return self._end - self._clock()

    def begin(self, cases: Sequence[Case]) -> None:
        for case in cases:
            self._grow(case, self.first_limit)

    def held(self, is_held: bool) -> None:
        if is_held:
            self._held_at = self._clock()
        elif self._held_at is not None:
            self._end += self._clock() - self._held_at
            self._held_at = None

    def is_over(self) -> bool:
        return self.left < USEFUL_SECONDS

    def admits(self, case: Case) -> bool:
        tried = (r.allowed_seconds or 0.0 for q, r in case.search.cut_short if q.kind is not _FIRST)
        return min(case.search.seconds, self.left) >= USEFUL_FACTOR * max(tried, default=0.0)

    def rank(self, case: Case) -> float:
        question = case.search.next_question()
        if question is None and case.search.outstanding:
            return math.inf  # it is ranked again when it knows more
        if question is None or question.kind is _FIRST:
            return -math.inf
        return -width(case.search.bracket, case.search.values[-1]) / case.search.seconds

    def seconds(self, case: Case, kind: QuestionKind) -> float | None:
        return self.left if kind is _FIRST else min(case.search.seconds, self.left)

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


_FIRST = QuestionKind.ATTACK
