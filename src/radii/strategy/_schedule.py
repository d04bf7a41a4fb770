"""The schedule of a run: which instance asks next, and how long its question may take.

`Schedule` drives the searches of many instances at once, and is itself pure ask and tell: it knows
the time only as a number that each call is given. While there is room, the driver calls `ask` and
starts the task that it returns. When a task has ended, `received` makes answers of its results;
once these are stored, `tell` passes them on to the searches and returns the tasks that nobody needs
any more.

Earlier cases go first, so that a run that is cut off leaves whole brackets and not a little of
each: the earliest case that has a question asks it, and then its next one, as many side by side as
its search allows; the room that is left goes to the cases after it. An agenda may change that
order, and the time that questions may take.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from radii.problem import Instance, Query, Result, Verdict
from radii.processes import Ending
from radii.strategy._base import Question, QuestionKind, Search


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

        The time of a result that `is_lost` is no part of `spent`: the second try may take as long
        as the first.
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


CaseAnswers = Sequence[tuple[Case, Question, Result]]


@dataclass(frozen=True, slots=True)
class Task:
    """Queries on one network that are answered together.

    A proof may take `seconds` of wall time and `cpu_seconds` of all its threads and processes; an
    attack ends by itself after `attack_seconds` of wall time a query, and so does a probe's proof.
    """

    number: int
    network: str
    kind: QuestionKind
    queries: tuple[Query, ...]
    seconds: float = math.inf
    cpu_seconds: float = math.inf
    attack_seconds: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleLimits:
    """Seconds of a query, on the wall and of processors, and wall seconds of a case.

    `probe_share` and `attack_share` are parts of the budget that a case has left: for the attack of
    a probe, and its proof as well; and for the thorough attack. Most of a budget is for proofs: on
    wide networks with many classes attacks would take all of it (gtsrb_cnn_deep_game: 88 s for a
    probe).
    """

    timeout: float = math.inf
    cpu_timeout: float = math.inf
    budget: float = math.inf
    probe_share: float = 0.1
    attack_share: float = 0.25

    def seconds(self, case: Case, kind: QuestionKind, allowed: float | None) -> float:
        """The wall time that a query may take: `allowed` by the agenda, or by the run's own limits.

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
        """Wall seconds after which an attack ends by itself."""
        share = self.probe_share if kind is QuestionKind.PROBE else self.attack_share
        share = share if case.search.needs_verifier else 1.0
        return min(share * (self.budget - case.spent), math.inf if allowed is None else allowed)

    def cpu_seconds(self, kind: QuestionKind) -> float:
        """Processor time of a proof; attacks have no such limit."""
        return self.cpu_timeout if kind in (QuestionKind.PROVE, QuestionKind.RADIUS) else math.inf


class Agenda:
    """Which case asks next, what its questions may take, and when it is enough.

    This one is that of a plain run: earlier cases first, each to its end. A schedule calls `begin`
    once; `is_over` and `admits` before each question, `rank` when a case may ask again, `seconds`
    when it does, and `renews` when it has no question left. `now` is in seconds, on any clock.
    """

    def begin(self, cases: Sequence[Case], now: float) -> None:
        """These are all cases, in the order of the selection; they may be changed."""

    def is_over(self, now: float) -> bool:
        """Nothing more is asked."""
        return False

    def admits(self, case: Case, now: float) -> bool:
        """The case may ask now; if not, it never will."""
        return True

    def rank(self, case: Case) -> float:
        """Smaller ones ask first; of equal ones, the earlier case."""
        return 0.0

    def seconds(self, case: Case, kind: QuestionKind, now: float) -> float | None:
        """Wall seconds for a question of this kind in place of the run's own limit; None: that."""
        return None

    def held(self, is_held: bool, now: float) -> None:
        """The run is paused, or goes on."""

    def renews(self, case: Case) -> bool:
        """The case got something new to ask; if not, it is finished."""
        return False


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


class Schedule:
    """Many searches at once; see above for the order of the calls."""

    def __init__(
        self,
        cases: Sequence[Case],
        limits: ScheduleLimits | None = None,
        agenda: Agenda | None = None,
        *,
        now: float = 0.0,
    ) -> None:
        self.cases = cases
        self.limits = limits or ScheduleLimits()
        self.agenda = agenda or Agenda()
        self.agenda.begin(cases, now)
        self._position = {id(case): place for place, case in enumerate(cases)}
        self._batches: dict[tuple[str, int], list[Case]] = {}
        for case in cases:
            self._batches.setdefault((case.instance.network, case.batch), []).append(case)
        # A heap: the earliest case first, unless the agenda says otherwise.
        self._waiting = [(self.agenda.rank(case), place) for place, case in enumerate(cases)]
        heapq.heapify(self._waiting)
        # By place, its rank: an entry of the heap that is not the same here is stale.
        self._idle = {place: rank for rank, place in self._waiting}
        self._running: dict[int, _Running] = {}
        self._numbers = itertools.count()
        self._finished: list[Case] = []

    @property
    def is_running(self) -> bool:
        """Some tasks have not been received yet."""
        return bool(self._running)

    @property
    def is_waiting(self) -> bool:
        """Some cases may still ask, once the run is no longer paused."""
        return bool(self._waiting)

    def ask(self, now: float, *, is_paused: bool = False) -> Task | None:
        """The task to start next; None: nothing is left to ask for now, or the run is paused."""
        while self._waiting:
            if self.agenda.is_over(now):
                self._waiting.clear()
                return None
            rank, place = heapq.heappop(self._waiting)
            if self._idle.get(place) != rank:
                continue
            case = self.cases[place]
            has_time = case.spent < self.limits.budget
            if is_paused and has_time and case.search.next_question() is not None:
                heapq.heappush(self._waiting, (rank, place))
                return None
            if not self.agenda.admits(case, now):
                del self._idle[place]
                continue
            question = self._question(case)
            if question is None:
                continue
            questions = [(case, question)]
            if question.kind.begins_with_attack and not case.search.is_repeated(question):
                questions.extend(self._companions(case, question))
            return self._task(questions, now)
        return None

    def take_finished(self) -> list[Case]:
        """The cases that have come to their end since this was last called."""
        finished, self._finished = self._finished, []
        return finished

    def received(self, task: Task, results: Sequence[Result], now: float) -> CaseAnswers:
        """The answers that a task's results are, with the time that they had and took.

        They are to be stored before `tell` lets the searches know: what is stored is never asked
        again, but for a question that nobody answered (an ERROR), once.
        """
        running = self._running.pop(task.number)
        answers = []
        for (case, question), result in zip(running.questions, results, strict=True):
            checked = running.checked(result)
            is_lost = case.search.is_first_loss(question, checked)
            answers.append((case, question, case.spend(checked, now, is_lost=is_lost)))
        return answers

    def tell(self, answers: CaseAnswers) -> list[Task]:
        """Let the searches learn of answers; the tasks that these imply are to be cancelled."""
        for case, question, result in answers:
            case.search.tell(question, _without_certificate(result))
            self._wake(case)
        return self._needless({id(case) for case, _, _ in answers})

    def _question(self, case: Case) -> Question | None:
        """The case's next question; a case without one is finished, unless it waits for answers."""
        question = case.search.ask() if case.spent < self.limits.budget else None
        if question is not None:
            self._wake(case)  # it may have another one
            return question
        self._idle.pop(self._position[id(case)], None)
        if case.search.outstanding:
            return None
        if case.spent < self.limits.budget and self.agenda.renews(case):
            self._wake(case)
        else:
            self._finished.append(case)
        return None

    def _wake(self, case: Case) -> None:
        """Let the case ask again when its turn comes."""
        place, rank = self._position[id(case)], self.agenda.rank(case)
        self._idle[place] = rank
        heapq.heappush(self._waiting, (rank, place))

    def _companions(self, first: Case, question: Question) -> Iterator[tuple[Case, Question]]:
        """The other cases of the batch that are waiting to ask for the same attack.

        An attack that nobody answered is repeated alone: what kills its worker takes no other case
        with it a second time.
        """
        for case in self._batches[first.instance.network, first.batch]:
            is_idle = self._position[id(case)] in self._idle
            is_alone = case is first or case.search.is_repeated(question)
            if is_idle and not is_alone and case.search.next_question() == question:
                own_question = self._question(case)
                if own_question is not None:
                    yield case, own_question

    def _task(self, questions: list[tuple[Case, Question]], now: float) -> Task:
        first, question = questions[0]
        allowed = self.agenda.seconds(first, question.kind, now)
        seconds = self.limits.seconds(first, question.kind, allowed)
        task = Task(
            number=next(self._numbers),
            network=first.instance.network,
            kind=question.kind,
            queries=tuple(Query(case.instance, q.eps) for case, q in questions),
            seconds=seconds if not question.kind.begins_with_attack else seconds / len(questions),
            cpu_seconds=self.limits.cpu_seconds(question.kind),
            attack_seconds=self.limits.attack_seconds(first, question.kind, allowed),
        )
        given = None if allowed is None else seconds
        self._running[task.number] = _Running(task, questions, given)
        return task

    def _needless(self, changed: set[int]) -> list[Task]:
        """The running tasks of these cases whose answers the brackets imply."""
        needless = []
        for running in self._running.values():
            needs_nobody = all(
                id(case) in changed and question in case.search.settled()
                for case, question in running.questions
            )
            if needs_nobody and not running.is_cancelled:
                running.is_cancelled = True
                needless.append(running.task)
        return needless


def _without_certificate(result: Result) -> Result:
    """A search needs to know what is proven; the certificate may be large, and is stored."""
    if result.proof is None or result.proof.certificate is None:
        return result
    return replace(result, proof=replace(result.proof, certificate=None))
