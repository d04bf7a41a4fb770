"""The driver with an executor on a virtual clock: any duration, any order, no processes."""

from __future__ import annotations

import heapq
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import radii.strategy
from radii.problem import (
    Bracket,
    Domain,
    Grid,
    Instance,
    Norm,
    OneToAny,
    Proof,
    Result,
    Verdict,
    Witness,
)
from radii.runs import Executor, drive
from radii.strategy import (
    AttackGuided,
    AttackOnly,
    Case,
    KBinary,
    Native,
    Question,
    QuestionKind,
    Schedule,
    ScheduleLimits,
    Search,
    Task,
)

GRID = Grid.parse("mnist")


def instance(place: int) -> Instance:
    return Instance(
        network="n",
        index=place,
        input=np.array([0.5, 0.1], np.float32),
        label=0,
        outputs=np.array([1.0, 0.0]),
        property=OneToAny(),
        norm=Norm.LINF,
        domain=Domain(np.float64(0), np.float64(1)),
    )


class Virtual(Executor):
    """Queries take as long as `duration` says, on a clock that only `wait` moves."""

    def __init__(
        self, jobs: int, radii: dict[int, float], duration: Callable[[int, float], float]
    ) -> None:
        self.now = 0.0
        self.jobs = jobs
        self.radii = radii
        self.duration = duration
        self.cpu = 0.0
        self.events: list[tuple[float, int]] = []
        self.tasks: dict[int, tuple[Task, float]] = {}
        self.cancelled: set[int] = set()
        self.at_once: Counter[int] = Counter()
        self.most_at_once: Counter[int] = Counter()
        self.most_tasks = 0

    @property
    def has_room(self) -> bool:
        return len(self.tasks) < self.jobs

    def submit(self, task: Task) -> None:
        assert self.has_room
        length = sum(self.duration(query.instance.index, query.eps) for query in task.queries)
        length = min(length, task.seconds)
        self.tasks[task.number] = (task, self.now)
        heapq.heappush(self.events, (self.now + length, task.number))
        for query in task.queries:
            self.at_once[query.instance.index] += 1
        self.most_at_once |= self.at_once
        self.most_tasks = max(self.most_tasks, len(self.tasks))

    def cancel(self, task: Task) -> None:
        assert task.number in self.tasks
        assert task.number not in self.cancelled, "cancelled twice"
        self.cancelled.add(task.number)
        heapq.heappush(self.events, (self.now + 0.1, task.number))

    def wait(self) -> tuple[Task, list[Result]]:
        while True:
            self.now, number = heapq.heappop(self.events)
            if number in self.tasks:
                break
        task, began = self.tasks.pop(number)
        self.cpu += self.now - began
        for query in task.queries:
            self.at_once[query.instance.index] -= 1
        share = (self.now - began) / len(task.queries)
        return task, [
            self._answer(task, number, query.instance.index, query.eps, share)
            for query in task.queries
        ]

    def _answer(self, task: Task, number: int, index: int, eps: float, seconds: float) -> Result:
        radius = self.radii[index]
        if number in self.cancelled:
            return Result(Verdict.CANCELLED, eps, "virtual", "1", seconds, cpu_seconds=seconds)
        if seconds >= task.seconds:
            return Result(Verdict.TIMEOUT, eps, "virtual", "1", seconds, cpu_seconds=seconds)
        if eps < radius and task.kind is QuestionKind.PROVE:
            proof = Proof(eps, 1e-6)
            return Result(Verdict.ROBUST, eps, "virtual", "1", seconds, proof, cpu_seconds=seconds)
        found = Witness(np.zeros(2), min(eps, radius), 1, np.zeros(2), "virtual")
        return Result(
            Verdict.NOT_ROBUST, eps, "virtual", "1", seconds, None, found, cpu_seconds=seconds
        )

    def close(self) -> None:
        self.tasks.clear()


class Run:
    """A drive of searches on the virtual clock, and all that it said."""

    def __init__(
        self,
        make: Callable[[], Search],
        count: int,
        jobs: int,
        seed: int = 0,
        duration: Callable[[int, float], float] | None = None,
        timeout: float = math.inf,
        budget: float = math.inf,
    ) -> None:
        chance = random.Random(seed)
        radii = {place: chance.uniform(0.01, 0.39) for place in range(count)}

        def random_duration(place: int, eps: float) -> float:
            near = 1 / (0.02 + abs(eps - radii[place]))  # hard near the radius
            return near * random.Random(f"{seed} {place} {eps}").uniform(0.5, 1.5)

        self.radii = radii
        self.cases = [Case(instance(place), make(), batch=0) for place in range(count)]
        self.told: list[tuple[Case, Question, Result]] = []
        self.finished: list[Case] = []
        self.executor = Virtual(jobs, radii, duration or random_duration)
        drive(
            Schedule(self.cases, ScheduleLimits(timeout=timeout, budget=budget)),
            self.executor,
            on_results=self.told.extend,
            on_finished=self.finished.append,
            clock=lambda: self.executor.now,
        )


@pytest.mark.parametrize("k", range(1, 17))
def test_every_case_ends_with_its_bracket(k: int) -> None:
    for jobs in (1, 3, 20):
        run = Run(lambda: KBinary(GRID, k=k), 8, jobs, seed=k)
        assert sorted(run.finished, key=run.cases.index) == run.cases
        assert len(run.finished) == len(run.cases)
        for case in run.cases:
            radius = run.radii[case.instance.index]
            below = GRID.count_below(radius)
            assert case.search.bracket.lower == (GRID[below - 1] if below else 0.0)
            assert radius <= case.search.bracket.upper <= GRID[below]
        assert max(run.executor.most_at_once.values()) <= k
        assert run.executor.most_tasks == min(jobs, 8 * k)


def test_what_is_implied_is_cancelled_and_reported_once() -> None:
    run = Run(lambda: KBinary(GRID, k=8), 5, jobs=8)
    cancelled = [r for _, _, r in run.told if r.verdict is Verdict.CANCELLED]
    assert len(cancelled) > 10
    assert len(cancelled) == len(run.executor.cancelled)
    asked = Counter((case.instance.index, question) for case, question, _ in run.told)
    assert set(asked.values()) == {1}


def test_earlier_cases_go_first_and_share_the_room() -> None:
    order: list[int] = []

    def constant(place: int, eps: float) -> float:
        order.append(place)
        return 1.0

    Run(lambda: KBinary(GRID, k=2), 4, jobs=6, duration=constant)
    assert order[:6] == [0, 0, 1, 1, 2, 2]


def test_wall_time_falls_and_cpu_time_grows_with_k() -> None:
    walls, cpus = {}, {}
    for k in (1, 2, 4, 8, 16):
        runs = [Run(partial(KBinary, GRID, k=k), 1, jobs=k, seed=seed) for seed in range(40)]
        walls[k] = sum(run.executor.now for run in runs)
        cpus[k] = sum(run.executor.cpu for run in runs)
    assert list(walls.values()) == sorted(walls.values(), reverse=True)
    assert list(cpus.values()) == sorted(cpus.values())
    assert walls[16] < walls[1] / 2


def test_an_instance_spends_wall_time_once_however_many_queries_run() -> None:
    run = Run(lambda: KBinary(GRID, k=4), 1, jobs=4)
    (case,) = run.cases
    assert case.spent == pytest.approx(run.executor.now)
    assert sum(r.own_seconds for _, _, r in run.told) == pytest.approx(case.spent)
    assert sum(r.cpu_seconds or 0.0 for _, _, r in run.told) == pytest.approx(run.executor.cpu)
    assert run.executor.cpu > 1.5 * run.executor.now


def test_time_between_queries_is_not_spent() -> None:
    case = Case(instance(0), KBinary(GRID), batch=0)

    def ends(seconds: float, now: float) -> float:
        result = Result(Verdict.TIMEOUT, 0.1, "virtual", "1", seconds)
        return case.spend(result, now).own_seconds

    assert ends(1.0, now=6.0) == 1.0
    assert ends(2.0, now=10.0) == 2.0
    assert ends(10.0, now=10.0) == 7.0  # from 0 to 10, of which 3 were counted
    assert ends(1.0, now=9.0) == 0.0
    assert ends(2.0, now=11.0) == 1.0
    assert case.spent == 11.0


def test_a_budget_is_of_wall_time() -> None:
    run = Run(lambda: KBinary(GRID, k=4), 3, jobs=4, duration=lambda *_: 10.0, budget=25.0)
    for case in run.cases:
        assert 20.0 <= case.spent <= 25.0 + 1e-9
        assert case.search.bracket.lower < run.radii[case.instance.index]


def test_time_outs_are_missing_answers() -> None:
    run = Run(lambda: KBinary(GRID, k=4), 5, jobs=4, timeout=30.0)
    assert any(r.verdict is Verdict.TIMEOUT for _, _, r in run.told)
    for case in run.cases:
        radius = run.radii[case.instance.index]
        assert case.search.bracket.lower < radius <= case.search.bracket.upper


class Quitting(Virtual):
    """Every proof ends as cancelled, which nobody asked for."""

    def _answer(self, task: Task, number: int, index: int, eps: float, seconds: float) -> Result:
        return Result(Verdict.CANCELLED, eps, "virtual", "1", seconds, message="interrupted")


def test_a_verifier_that_quits_by_itself_is_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(globals(), "Virtual", Quitting)
    run = Run(lambda: KBinary(GRID, k=2), 1, jobs=2)
    assert len(run.finished) == 1
    assert {result.verdict for _, _, result in run.told} == {Verdict.ERROR}
    assert run.told[0][2].message == "it stopped as if it had been cancelled; interrupted"
    assert max(Counter(question for _, question, _ in run.told).values()) == 2


def test_cases_are_attacked_together() -> None:
    run = Run(lambda: AttackGuided(GRID), 6, jobs=2, duration=lambda *_: 1.0)
    attacks = [q for _, q, _ in run.told if q.kind is QuestionKind.ATTACK]
    assert len(attacks) == 6
    assert len(run.finished) == 6
    assert len(run.told) == 12, "a perfect attack leaves one proof a case"


class Mortal(Virtual):
    """The first `deaths` tries of each query end with the death of their worker, after a second.

    With `only`, those of that instance; a task with one of them takes all others with it.
    """

    deaths: ClassVar[int] = 1
    only: ClassVar[int | None] = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.tries: Counter[tuple[int, float]] = Counter()
        self.batches: list[int] = []

    def submit(self, task: Task) -> None:
        self.batches.append(len(task.queries))
        super().submit(task)

    def wait(self) -> tuple[Task, list[Result]]:
        task, results = super().wait()
        asked = [(query.instance.index, query.eps) for query in task.queries]
        self.tries.update(asked)
        doomed = [self.tries[one] <= self.deaths for one in asked if self._can_die(one[0])]
        if not any(doomed) or task.number in self.cancelled:
            return task, results
        return task, [
            Result(Verdict.ERROR, result.eps, "virtual", "1", result.seconds) for result in results
        ]

    def _can_die(self, index: int) -> bool:
        return self.only is None or index == self.only


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> type[Mortal]:
    """In place of the executor of `Run`."""
    chosen = type("Chosen", (Mortal,), {})
    monkeypatch.setitem(globals(), "Virtual", chosen)
    return chosen


@pytest.mark.parametrize("k", [1, 3])
def test_what_nobody_answered_is_asked_once_more(mortal: type[Mortal], k: int) -> None:
    run = Run(lambda: KBinary(GRID, k=k), 3, jobs=4, seed=k)
    lost = Counter(
        (case.instance.index, question)
        for case, question, result in run.told
        if result.verdict is Verdict.ERROR
    )
    assert lost
    assert set(lost.values()) == {1}
    for case in run.cases:
        below = GRID.count_below(run.radii[case.instance.index])
        assert case.search.bracket.lower == (GRID[below - 1] if below else 0.0), "as without deaths"
        assert case.search.bracket.upper <= GRID[below]
    answered = Counter(
        (case.instance.index, question)
        for case, question, result in run.told
        if not result.verdict.is_missing
    )
    assert set(answered.values()) == {1}, "nothing is done twice"


def test_what_kills_its_worker_each_time_is_not_asked_for_ever(mortal: type[Mortal]) -> None:
    mortal.deaths = 1000
    run = Run(lambda: KBinary(GRID, k=2), 2, jobs=2)
    assert len(run.finished) == 2
    asked = Counter((case.instance.index, question) for case, question, _ in run.told)
    assert max(asked.values()) == 2
    assert [case.search.bracket for case in run.cases] == [Bracket(), Bracket()]


def test_a_second_try_has_the_time_of_the_first(mortal: type[Mortal]) -> None:
    """But no more than one: a budget ends, whatever dies."""
    one = Run(lambda: KBinary(GRID, k=1), 1, jobs=1, duration=lambda *_: 10.0, budget=15.0)
    found = [(result.verdict.is_missing, result.own_seconds) for _, _, result in one.told]
    assert found == [(True, 10.0), (False, 10.0), (True, 5.0), (True, 5.0)]
    mortal.deaths = 1000
    run = Run(lambda: KBinary(GRID, k=1), 1, jobs=1, duration=lambda *_: 10.0, budget=25.0)
    assert run.cases[0].spent == 25.0
    assert run.executor.now == 50.0


def test_an_attack_that_killed_its_worker_is_repeated_alone(mortal: type[Mortal]) -> None:
    mortal.deaths, mortal.only = 1000, 2
    run = Run(lambda: AttackGuided(GRID), 6, jobs=2, duration=lambda *_: 1.0)
    attacks = [(case, result) for case, q, result in run.told if q.kind is QuestionKind.ATTACK]
    assert len(attacks) == 12
    assert [result.verdict for _, result in attacks[:6]] == [Verdict.ERROR] * 6
    again = {case.instance.index: result.verdict for case, result in attacks[6:]}
    assert again == {n: Verdict.ERROR if n == 2 else Verdict.NOT_ROBUST for n in range(6)}
    assert isinstance(run.executor, Mortal)
    assert run.executor.batches[0] == 6
    assert set(run.executor.batches[1:]) == {1}


def test_what_an_earlier_run_lost_is_open_again_and_what_it_found_counts() -> None:
    question = Question(QuestionKind.RADIUS, GRID[len(GRID) - 1])
    attacked = Result(Verdict.UNKNOWN, question.eps, "virtual", "1", 1.0)
    lost = Result(Verdict.ERROR, 0.041, "virtual", "1", 1.0, proof=Proof(0.041, 0.0))
    search = Native(GRID)
    search.tell(Question(QuestionKind.ATTACK, question.eps), attacked)
    search.recall(lost)
    assert search.bracket.lower == 0.041
    for _ in range(2):
        assert search.ask() == question
        search.tell(question, lost)
        search.allow(10.0)  # as an agenda does; it must not forget how often it was tried
    assert search.done


def test_a_schedule_knows_the_time_only_as_it_is_told() -> None:
    """One case by hand: ask, received, tell, without a driver, an executor or a clock."""
    case = Case(instance(0), KBinary(GRID, k=2), batch=0)
    schedule = Schedule([case], ScheduleLimits(timeout=5.0, budget=100.0))
    first, second = schedule.ask(0.0), schedule.ask(0.0)
    assert first is not None and second is not None
    assert schedule.ask(0.0) is None, "two at once are all that this search allows"
    low, high = sorted((first, second), key=lambda task: task.queries[0].eps)
    eps = low.queries[0].eps
    found = Witness(np.zeros(2), eps, 1, np.zeros(2), "virtual")
    answer = Result(Verdict.NOT_ROBUST, eps, "virtual", "1", 2.0, witness=found)
    answers = schedule.received(low, [answer], now=2.0)
    assert [result.added_seconds for _, _, result in answers] == [2.0]
    assert case.search.bracket.upper == math.inf, "it is stored before the search learns of it"
    assert schedule.tell(answers) == [high], "nobody needs the answer at the larger eps any more"
    assert case.search.bracket.upper == eps
    assert schedule.ask(2.0, is_paused=True) is None
    assert schedule.is_waiting and schedule.is_running
    third = schedule.ask(2.0)
    assert third is not None and third.queries[0].eps < eps


def test_strategy_has_no_processes_files_or_clocks() -> None:
    impure = {"time", "datetime", "os", "pathlib", "subprocess", "threading", "socket", "io"}
    for path in Path(radii.strategy.__file__).parent.glob("*.py"):
        imported = re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        assert impure.isdisjoint(imported), path.name


def test_attacks_leave_most_of_a_budget_to_proofs() -> None:
    case = Case(instance(0), Native(GRID), batch=0)
    limits = ScheduleLimits(timeout=10.0, budget=60.0)
    case.spent = 20.0
    assert limits.attack_seconds(case, QuestionKind.PROBE, None) == pytest.approx(4.0)
    assert limits.attack_seconds(case, QuestionKind.ATTACK, None) == pytest.approx(10.0)
    assert limits.attack_seconds(case, QuestionKind.ATTACK, 3.0) == 3.0
    alone = Case(instance(0), AttackOnly(GRID), batch=0)
    assert limits.attack_seconds(alone, QuestionKind.ATTACK, None) == 60.0
    boundless = ScheduleLimits(timeout=10.0, budget=math.inf)
    assert math.isinf(boundless.attack_seconds(case, QuestionKind.ATTACK, None))
