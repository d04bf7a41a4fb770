"""How far a run is, how long it may still take, and what went wrong: from its answers alone."""

from __future__ import annotations

import datetime
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from radii import strategy
from radii.problem import Verdict
from radii.statistics import FollowedStore
from radii.store import StoredResult, StoredSettings
from radii.strategy import QuestionKind, Search

FAILED_VERDICTS = (Verdict.TIMEOUT, Verdict.MEMOUT, Verdict.ERROR)
LATEST_EVENTS = 50
"""How many of the latest failures, disagreements and answers are shown."""

RATE_WINDOW = 60
"""How many of the latest instances that ended say how fast it goes."""

FEWEST_FINISHED = 3
"""With fewer, nothing is said about the time that is left."""


SITTING_SECONDS = 600.0
"""After this time without an answer, or two limits, the next one belongs to another sitting."""


@dataclass(slots=True)
class Sitting:
    """Answers that were reported one after the other; times are in seconds since 1970."""

    began: float
    ended: float
    answers: int = 1

    def facts(self) -> dict[str, float]:
        return {"began": self.began, "ended": self.ended, "answers": self.answers}


class RunProgress:
    """Follows answers as they come; an instance is done when its search has no question left."""

    def __init__(self, followed: FollowedStore) -> None:
        self._followed = followed
        self._searches = _searches(followed.settings, len(followed.records))
        self._spent = [0.0] * len(self._searches)
        self._is_done = [False] * len(self._searches)
        self._budget = followed.settings.budget or math.inf
        self._ends: deque[float] = deque(maxlen=RATE_WINDOW)
        self.done = 0
        self.queries = 0
        self.failure_count = 0
        self.failures: deque[StoredResult] = deque(maxlen=LATEST_EVENTS)
        self.latest: deque[StoredResult] = deque(maxlen=LATEST_EVENTS)
        self.sittings: list[Sitting] = []
        self._rest = max(SITTING_SECONDS, 2 * (followed.settings.timeout or 0.0))

    def take_in(self, answers: Iterable[StoredResult]) -> None:
        """Answers in the order in which they were reported."""
        for answer in answers:
            row = self._followed.row_of(answer)
            asked = self._searches[row]
            if asked is not None:
                asked.tell(answer.question, answer.result)
            self._spent[row] += answer.result.own_seconds
            self._seat(_seconds(answer.ended_at))
            if answer.question.kind is not QuestionKind.REPLAY:
                self.queries += 1
                self.latest.append(answer)
            if answer.result.verdict in FAILED_VERDICTS:
                self.failure_count += 1
                self.failures.append(answer)
            self._end(row, asked, answer)

    def _seat(self, moment: float) -> None:
        """An answer joins the last sitting, unless that is long ago."""
        last = self.sittings[-1] if self.sittings else None
        if last is None or moment - last.ended > self._rest:
            self.sittings.append(Sitting(moment, moment))
        else:
            last.ended, last.answers = max(last.ended, moment), last.answers + 1

    def _end(self, row: int, asked: Search | None, answer: StoredResult) -> None:
        if self._is_done[row]:
            return
        is_over = asked is None or asked.next_question() is None
        if is_over or self._spent[row] >= self._budget:
            self._is_done[row] = True
            self.done += 1
            if answer.question.kind is not QuestionKind.REPLAY:  # misclassified inputs take no time
                self._ends.append(_seconds(answer.ended_at))

    def seconds_left(self, *, since: float, now: float) -> float | None:
        """At the pace of the latest instances that ended after `since`; None: too early to say.

        Both are seconds since 1970.
        """
        ends = sorted(end for end in self._ends if end >= since)
        if len(ends) < FEWEST_FINISHED:
            return None
        pace = (ends[-1] - ends[0]) / (len(ends) - 1)
        waited = (now - ends[0]) / len(ends)  # grows while nothing ends
        return (len(self._is_done) - self.done) * max(pace, waited)


def _searches(settings: StoredSettings, count: int) -> list[Search | None]:
    """The searches as the run makes them; None where a store does not say which."""
    name, grid = settings.search, settings.grid
    if not name or grid is None:
        return [None] * count
    k, cuts = settings.k, settings.cuts
    seconds = settings.budget or settings.timeout or math.inf
    return [strategy.make(name, grid, k=k, cuts=cuts, seconds=seconds) for _ in range(count)]


def _seconds(moment: str) -> float:
    return datetime.datetime.fromisoformat(moment).timestamp()
