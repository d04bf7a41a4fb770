"""Drives many searches at once through one executor.

Earlier cases go first, so that a run that is cut off has whole brackets and not a little of each.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from radii.execution._base import Executor, Task
from radii.queries import Instance, Query
from radii.search import Kind, Question, Search
from radii.verdicts import Result, Verdict

__all__ = ["Case", "drive"]

Told = Sequence[tuple["Case", Question, Result]]


@dataclass(slots=True, eq=False)
class Case:
    """One instance on its way to a bracket. `spent` counts wall seconds of its queries so far.

    Cases of one network with the same `batch` are attacked together.
    """

    instance: Instance
    search: Search
    batch: int
    spent: float = 0.0


def drive(
    cases: Sequence[Case],
    executor: Executor,
    *,
    timeout: float,
    budget: float,
    on_results: Callable[[Told], None],
    on_finished: Callable[[Case], None],
) -> None:
    """Run every search to its end, or to its budget.

    `on_results` gets the results that ended together, before the searches learn of them: what it
    has stored is never asked again.
    `timeout` is wall seconds a query, `budget` wall seconds a case.
    """
    _Drive(cases, executor, timeout, budget, on_results, on_finished).run()


class _Drive:
    def __init__(
        self,
        cases: Sequence[Case],
        executor: Executor,
        timeout: float,
        budget: float,
        on_results: Callable[[Told], None],
        on_finished: Callable[[Case], None],
    ) -> None:
        self.cases = cases
        self.executor = executor
        self.timeout = timeout
        self.budget = budget
        self.on_results = on_results
        self.on_finished = on_finished
        self.position = {id(case): place for place, case in enumerate(cases)}
        self.batches: dict[tuple[str, int], list[Case]] = {}
        for case in cases:
            self.batches.setdefault((case.instance.network, case.batch), []).append(case)
        self.waiting = list(range(len(cases)))  # a heap: the earliest case first
        self.idle = set(self.waiting)  # an entry of the heap that is not in here is stale
        self.running: dict[int, list[tuple[Case, Question]]] = {}
        self.numbers = itertools.count()

    def run(self) -> None:
        while True:
            while self.executor.has_room and (task := self._next_task()) is not None:
                self.executor.submit(task)
            if not self.running:
                return
            ended = self.executor.wait()
            if ended is not None:
                self._settle(*ended)

    def _next_task(self) -> Task | None:
        while self.waiting:
            place = heapq.heappop(self.waiting)
            if place not in self.idle:
                continue
            case = self.cases[place]
            question = self._ask(case)
            if question is None:
                continue
            asked = [(case, question)]
            if question.kind is Kind.ATTACK:
                asked.extend(self._companions(case, question))
            return self._task(asked)
        return None

    def _ask(self, case: Case) -> Question | None:
        """The case's next question; a case without one is finished, unless it waits for answers."""
        self.idle.discard(self.position[id(case)])
        question = case.search.ask() if case.spent < self.budget else None
        if question is None and not case.search.outstanding:
            self.on_finished(case)
        return question

    def _companions(self, first: Case, question: Question) -> Iterator[tuple[Case, Question]]:
        """The other cases of the batch that are waiting to ask for the same attack."""
        for case in self.batches[first.instance.network, first.batch]:
            is_idle = self.position[id(case)] in self.idle
            if is_idle and case.search.next_question() == question:
                asked = self._ask(case)
                if asked is not None:
                    yield case, asked

    def _task(self, asked: list[tuple[Case, Question]]) -> Task:
        first, question = asked[0]
        task = Task(
            number=next(self.numbers),
            network=first.instance.network,
            kind=question.kind,
            queries=tuple(Query(case.instance, q.eps) for case, q in asked),
            seconds=self._seconds(first, question.kind),
        )
        self.running[task.number] = asked
        return task

    def _seconds(self, case: Case, kind: Kind) -> float:
        """The wall time a task may take. A radius may use up the case's budget, if it has one."""
        left = self.budget - case.spent
        match kind:
            case Kind.PROVE:
                return min(self.timeout, left)
            case Kind.RADIUS:
                return left if left < math.inf else self.timeout
            case _:
                return math.inf

    def _settle(self, task: Task, results: list[Result]) -> None:
        asked = self.running.pop(task.number)
        told = [(case, q, result) for (case, q), result in zip(asked, results, strict=True)]
        self.on_results(told)
        for case, question, result in told:
            case.spent += result.seconds
            case.search.tell(question, result)
            if result.verdict is not Verdict.CANCELLED:
                self.idle.add(self.position[id(case)])
                heapq.heappush(self.waiting, self.position[id(case)])
