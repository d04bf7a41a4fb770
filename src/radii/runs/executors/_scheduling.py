"""Instances on their way to a bracket, and who of them goes first."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from radii.problem import Instance, Query, Result, Verdict
from radii.processes import Ending
from radii.runs.executors._base import Executor, Task
from radii.strategy import Question, QuestionKind, Search


@dataclass(slots=True, eq=False)
class Case:
    """One instance on its way to a bracket. `spent` counts the wall seconds in which at least one
    of its queries ran, except those that are asked once more because nobody answered.

    Cases of one network with the same `batch` are attacked together.
    """

    instance: Instance
    search: Search
    batch: int
    spent: float = 0.0
    _busy: list[tuple[float, float]] = field(default_factory=list)

    def spend(self, result: Result, now: float, *, is_lost: bool = False) -> Result:
        """Count the time of a result that ends now, once where queries ran side by side.

        What `is_lost` is no part of `spent`: the second try may take as long as the first.
        """
        begin, end, added = now - result.seconds, now, result.seconds
        apart = []
        for start, stop in self._busy:
            if stop < begin or start > end:
                apart.append((start, stop))
            else:
                added -= min(stop, now) - max(start, now - result.seconds)
                begin, end = min(begin, start), max(end, stop)
        self._busy = [*apart, (begin, end)]
        added = max(0.0, added)
        self.spent += 0.0 if is_lost else added
        return replace(result, added_seconds=added)


class Agenda:
    """Which case asks next, what its questions may take, and when it is enough.

    This one is that of a plain run: earlier cases first, each to its end. The driver calls `begin`
    once; `is_over` and `admits` before each question, `rank` when a case may ask again, `seconds`
    when it does, and `renews` when it has no question left.
    """

    def begin(self, cases: Sequence[Case]) -> None:
        """These are all cases, in the order of the selection; they may be changed."""

    def is_over(self) -> bool:
        """Nothing more is asked."""
        return False

    def admits(self, case: Case) -> bool:
        """The case may ask now; if not, it never will."""
        return True

    def rank(self, case: Case) -> float:
        """Smaller ones ask first; of equal ones, the earlier case."""
        return 0.0

    def seconds(self, case: Case, kind: QuestionKind) -> float | None:
        """Wall seconds for a question of this kind in place of the run's own limit; None: that."""
        return None

    def held(self, is_held: bool) -> None:
        """The run is paused, or goes on."""

    def renews(self, case: Case) -> bool:
        """The case got something new to ask; if not, it is finished."""
        return False


# Drives many searches at once through one executor.
#
# Earlier cases go first, so that a run that is cut off has whole brackets and not a little of each:
# while there is room, the earliest case that has a question asks it, and then its next one, as many
# side by side as its search allows; the room that is left goes to the cases after it. An agenda may
# change that order, and what questions may take.


PAUSE_SECONDS = 0.2
"""How often a run that is paused looks whether it may go on."""

CaseAnswers = Sequence[tuple[Case, Question, Result]]


def drive(
    cases: Sequence[Case],
    executor: Executor,
    *,
    timeout: float,
    budget: float,
    on_results: Callable[[CaseAnswers], None],
    on_finished: Callable[[Case], None],
    cpu_timeout: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
    is_paused: Callable[[], bool] = lambda: False,
    on_held: Callable[[bool], None] = lambda _: None,
    agenda: Agenda | None = None,
) -> None:
    """Run every search to its end, or to its budget, or as far as the agenda wants.

    `on_results` gets the results that ended together, before the searches learn of them: what it
    has stored is never asked again, but for a question that nobody answered (an ERROR), once. A
    query whose answer another one implies is cancelled.
    `timeout` is wall seconds a query, `cpu_timeout` CPU seconds, `budget` wall seconds a case.
    While `is_paused`, nothing new is asked; `on_held` is told when nothing runs any more, and when
    it goes on.
    """
    limits = _Limits(timeout, cpu_timeout, budget)
    pause = _Pause(is_paused, on_held)
    agenda = agenda or Agenda()
    agenda.begin(cases)
    _Drive(cases, executor, limits, on_results, on_finished, clock, pause, agenda).run()


@dataclass(frozen=True, slots=True)
class _Pause:
    is_wanted: Callable[[], bool]
    on_held: Callable[[bool], None]

    def wait(self) -> None:
        """Until the run may go on."""
        self.on_held(True)
        while self.is_wanted():
            time.sleep(PAUSE_SECONDS)
        self.on_held(False)


PROBE_SHARE, ATTACK_SHARE = 0.1, 0.25
"""Of the budget that a case has left: for the attack of a probe, and its proof as well; and for the
thorough attack."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """Seconds: of a query, on the wall and of processors, and of a case."""

    timeout: float
    cpu_timeout: float
    budget: float

    def seconds(self, case: Case, kind: QuestionKind, allowed: float | None) -> float:
        """The wall time a query may take: as the agenda says, or by the run's own limits.

        Then a radius may use up the case's budget, if it has one.
        """
        left = self.budget - case.spent
        match kind:
            case QuestionKind.PROVE | QuestionKind.RADIUS if allowed is not None:
                return min(allowed, left)
            case QuestionKind.PROVE:
                return min(self.timeout, left)
            case QuestionKind.RADIUS:
                return left if left < math.inf else self.timeout
            case _:
                return math.inf if allowed is None else allowed

    def attack_seconds(self, case: Case, kind: QuestionKind, allowed: float | None) -> float:
        """Wall seconds after which an attack ends by itself: most of the budget is for proofs.

        On wide networks with many classes attacks would take all of it (gtsrb_cnn_deep_game: 88 s
        for a probe).
        """
        share = PROBE_SHARE if kind is QuestionKind.PROBE else ATTACK_SHARE
        share = share if case.search.needs_verifier else 1.0
        return min(share * (self.budget - case.spent), math.inf if allowed is None else allowed)

    def cpu_seconds(self, kind: QuestionKind) -> float:
        return self.cpu_timeout if kind in (QuestionKind.PROVE, QuestionKind.RADIUS) else math.inf


@dataclass(slots=True, eq=False)
class _Running:
    task: Task
    questions: list[tuple[Case, Question]]
    allowed_seconds: float | None = None
    is_cancelled: bool = False

    def checked(self, result: Result) -> Result:
        """With the time that it had; a solver that stopped though nobody had cancelled it would be
        asked again for ever.
        """
        result = replace(result, allowed_seconds=self.allowed_seconds)
        if result.verdict is not Verdict.CANCELLED or self.is_cancelled:
            return result
        message = f"it stopped as if it had been cancelled; {result.message}".rstrip("; ")
        return replace(result, verdict=Verdict.ERROR, ending=Ending.FAILED, message=message)


class _Drive:
    def __init__(
        self,
        cases: Sequence[Case],
        executor: Executor,
        limits: _Limits,
        on_results: Callable[[CaseAnswers], None],
        on_finished: Callable[[Case], None],
        clock: Callable[[], float],
        pause: _Pause,
        agenda: Agenda,
    ) -> None:
        self.cases = cases
        self.executor = executor
        self.limits = limits
        self.on_results = on_results
        self.on_finished = on_finished
        self.clock = clock
        self.pause = pause
        self.agenda = agenda
        self.position = {id(case): place for place, case in enumerate(cases)}
        self.batches: dict[tuple[str, int], list[Case]] = {}
        for case in cases:
            self.batches.setdefault((case.instance.network, case.batch), []).append(case)
        # A heap: the earliest case first, unless the agenda says otherwise.
        self.waiting = [(agenda.rank(case), place) for place, case in enumerate(cases)]
        heapq.heapify(self.waiting)
        # By place, its rank: an entry of the heap that is not the same here is stale.
        self.idle = {place: rank for rank, place in self.waiting}
        self.running: dict[int, _Running] = {}
        self.numbers = itertools.count()

    def run(self) -> None:
        while True:
            while self.executor.has_room and (task := self._next_task()) is not None:
                self.executor.submit(task)
            if self.running:
                ended = self.executor.wait()
                if ended is not None:
                    self._settle(*ended)
            elif self.waiting:
                self.pause.wait()
            else:
                return

    def _next_task(self) -> Task | None:
        """None: nothing is left to ask, or the run is asked to pause."""
        while self.waiting:
            if self.agenda.is_over():
                self.waiting.clear()
                return None
            rank, place = heapq.heappop(self.waiting)
            if self.idle.get(place) != rank:
                continue
            case = self.cases[place]
            if self._has_question(case) and self.pause.is_wanted():
                heapq.heappush(self.waiting, (rank, place))
                return None
            if not self.agenda.admits(case):
                del self.idle[place]
                continue
            question = self._ask(case)
            if question is None:
                continue
            questions = [(case, question)]
            if question.kind.begins_with_attack and not case.search.is_repeated(question):
                questions.extend(self._companions(case, question))
            return self._task(questions)
        return None

    def _has_question(self, case: Case) -> bool:
        return case.spent < self.limits.budget and case.search.next_question() is not None

    def _ask(self, case: Case) -> Question | None:
        """The case's next question; a case without one is finished, unless it waits for answers."""
        question = case.search.ask() if case.spent < self.limits.budget else None
        if question is not None:
            self._wake(case)  # it may have another one
            return question
        self.idle.pop(self.position[id(case)], None)
        if case.search.outstanding:
            return None
        if case.spent < self.limits.budget and self.agenda.renews(case):
            self._wake(case)
        else:
            self.on_finished(case)
        return None

    def _wake(self, case: Case) -> None:
        """Let the case ask again when its turn comes."""
        place, rank = self.position[id(case)], self.agenda.rank(case)
        self.idle[place] = rank
        heapq.heappush(self.waiting, (rank, place))

    def _companions(self, first: Case, question: Question) -> Iterator[tuple[Case, Question]]:
        """The other cases of the batch that are waiting to ask for the same attack.

        An attack that nobody answered is repeated alone: what kills its worker takes no other case
        with it a second time.
        """
        for case in self.batches[first.instance.network, first.batch]:
            is_idle = self.position[id(case)] in self.idle
            is_alone = case is first or case.search.is_repeated(question)
            if is_idle and not is_alone and case.search.next_question() == question:
                own_question = self._ask(case)
                if own_question is not None:
                    yield case, own_question

    def _task(self, questions: list[tuple[Case, Question]]) -> Task:
        first, question = questions[0]
        allowed = self.agenda.seconds(first, question.kind)
        seconds = self.limits.seconds(first, question.kind, allowed)
        task = Task(
            number=next(self.numbers),
            network=first.instance.network,
            kind=question.kind,
            queries=tuple(Query(case.instance, q.eps) for case, q in questions),
            seconds=seconds if not question.kind.begins_with_attack else seconds / len(questions),
            cpu_seconds=self.limits.cpu_seconds(question.kind),
            attack_seconds=self.limits.attack_seconds(first, question.kind, allowed),
        )
        self.running[task.number] = _Running(task, questions, None if allowed is None else seconds)
        return task

    def _settle(self, task: Task, results: list[Result]) -> None:
        running, now = self.running.pop(task.number), self.clock()
        questions = running.questions
        answers = []
        for (case, question), result in zip(questions, results, strict=True):
            checked = running.checked(result)
            is_lost = case.search.is_first_loss(question, checked)
            answers.append((case, question, case.spend(checked, now, is_lost=is_lost)))
        self.on_results(answers)
        for case, question, result in answers:
            case.search.tell(question, _without_certificate(result))
            self._wake(case)
        self._cancel_settled({id(case) for case, _ in questions})

    def _cancel_settled(self, changed: set[int]) -> None:
        """Stop the queries of these cases that nobody needs any more."""
        for running in self.running.values():
            needs_nobody = all(
                id(case) in changed and question in case.search.settled()
                for case, question in running.questions
            )
            if needs_nobody and not running.is_cancelled:
                running.is_cancelled = True
                self.executor.cancel(running.task)


def _without_certificate(result: Result) -> Result:
    """A search needs to know what is proven; what shows it may be large, and is stored."""
    if result.proof is None or result.proof.certificate is None:
        return result
    return replace(result, proof=replace(result.proof, certificate=None))
