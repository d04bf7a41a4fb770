"""How far a run is, how long it may still take, and what went wrong: from its answers alone."""

from __future__ import annotations

import datetime
import math
from collections import deque
from collections.abc import Iterable
from typing import Any

from radii import search
from radii.queries import Grid
from radii.report.following import Followed
from radii.search import Kind, Search
from radii.store import Answer
from radii.verdicts import Verdict

__all__ = ["Progress"]

FAILURES = (Verdict.TIMEOUT, Verdict.MEMOUT, Verdict.ERROR)
KEPT = 50
"""How many of the latest failures, disagreements and answers are told."""

WINDOW = 60
"""How many of the latest instances that ended say how fast it goes."""

FEWEST = 3
"""With fewer, nothing is said about the time that is left."""


class Progress:
    """Follows answers as they come; an instance is done when its search has no question left."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        experiment = followed.experiment
        self._searches = _searches(experiment, len(followed.subjects))
        self._spent = [0.0] * len(self._searches)
        self._is_done = [False] * len(self._searches)
        self._budget = float(experiment.get("budget") or math.inf)
        self._ends: deque[float] = deque(maxlen=WINDOW)
        self.done = 0
        self.queries = 0
        self.failure_count = 0
        self.failures: deque[Answer] = deque(maxlen=KEPT)
        self.latest: deque[Answer] = deque(maxlen=KEPT)

    def take_in(self, answers: Iterable[Answer]) -> None:
        """Answers in the order in which they were reported."""
        for answer in answers:
            row = self._followed.row_of(answer)
            asked = self._searches[row]
            if asked is not None:
                asked.tell(answer.question, answer.result)
            self._spent[row] += answer.result.own_seconds
            if answer.question.kind is not Kind.REPLAY:
                self.queries += 1
                self.latest.append(answer)
            if answer.result.verdict in FAILURES:
                self.failure_count += 1
                self.failures.append(answer)
            self._end(row, asked, answer)

    def _end(self, row: int, asked: Search | None, answer: Answer) -> None:
        if self._is_done[row]:
            return
        is_over = asked is None or asked.next_question() is None
        if is_over or self._spent[row] >= self._budget:
            self._is_done[row] = True
            self.done += 1
            if answer.question.kind is not Kind.REPLAY:  # misclassified inputs take no time
                self._ends.append(_seconds(answer.ended_at))

    def seconds_left(self, *, since: float, now: float) -> float | None:
        """At the pace of the latest instances that ended after `since`; None: too early to say.

        Both are seconds since 1970.
        """
        ends = sorted(end for end in self._ends if end >= since)
        if len(ends) < FEWEST:
            return None
        pace = (ends[-1] - ends[0]) / (len(ends) - 1)
        waited = (now - ends[0]) / len(ends)  # grows while nothing ends
        return (len(self._is_done) - self.done) * max(pace, waited)


def _searches(experiment: dict[str, Any], count: int) -> list[Search | None]:
    """The searches as the run makes them; None where a store does not say which."""
    name, values = experiment.get("search"), experiment.get("grid")
    if not name or not values:
        return [None] * count
    grid = Grid.parse(str(values))
    k, cuts = experiment.get("k"), experiment.get("cuts")
    seconds = float(experiment.get("budget") or experiment.get("timeout") or math.inf)
    return [search.make(str(name), grid, k=k, cuts=cuts, seconds=seconds) for _ in range(count)]


def _seconds(moment: str) -> float:
    return datetime.datetime.fromisoformat(moment).timestamp()
