"""What every executor must do, as a class of tests.

A plugin's author writes

    class TestMine(ExecutorConformance):
        def make(self, toolbox: Toolbox) -> Executor:
            return Mine(toolbox)

and runs pytest. One verifier does it all: it proves, crashes, hangs or lies, as its script has it
at each eps. One executor serves all tests of a class, since starting one may take seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from radii.attacks import Fgsm
from radii.problem import Query, Result, Verdict
from radii.runs import Executor, Toolbox
from radii.strategy import QuestionKind, Task
from radii.testing._networks import LinearClassifier, instance_at
from radii.testing._simulated import Cooperating, Crashing, Hanging, Lying, Raising, Scripted
from radii.verifiers import BranchAndBound, Verifier

CLASSIFIER = LinearClassifier.random(3, dtype=np.float32)
INSTANCE = instance_at(CLASSIFIER.network, np.random.default_rng(3).normal(size=5))
RADIUS = CLASSIFIER.radius(INSTANCE.input, INSTANCE.label, INSTANCE.norm)
BELOW, ABOVE = 0.9 * RADIUS, 1.1 * RADIUS
"""Where the property holds, and where it is broken; both are decided."""
LIE, BUG, CRASH, WORK, HANG = (RADIUS * factor for factor in (2.0, 2.1, 2.2, 2.3, 2.4))
"""What the verifier does at these: answer at once, raise, die, work until it is stopped, hang."""
SCRIPT: dict[float, Verifier] = {
    BELOW: BranchAndBound(),
    ABOVE: BranchAndBound(),
    LIE: Lying(),
    BUG: Raising(),
    CRASH: Crashing(),
    WORK: Cooperating(),
    HANG: Hanging(),
}


class ExecutorConformance:
    """Subclass it, name it Test..., and return an executor from `make`."""

    is_hard = True
    """It ends a task that ignores its limits, or its process."""
    grace_seconds = 10.0
    """How late limits and cancellations may take effect: a second, and what a busy machine adds."""

    def make(self, toolbox: Toolbox) -> Executor:
        raise NotImplementedError

    def toolbox(self) -> Toolbox:
        networks = {CLASSIFIER.network.fingerprint: CLASSIFIER.network}
        return Toolbox(networks, Fgsm(), Scripted(SCRIPT))

    @pytest.fixture(scope="class")
    @classmethod
    def executor(cls) -> Iterator[Executor]:
        suite = cls()
        with suite.make(suite.toolbox()) as executor:
            yield executor

    def task(
        self,
        *eps: float,
        number: int = 0,
        kind: QuestionKind = QuestionKind.PROVE,
        seconds: float = 60.0,
    ) -> Task:
        queries = tuple(Query(INSTANCE, each) for each in eps)
        return Task(number, CLASSIFIER.network.fingerprint, kind, queries, seconds)

    def ended(self, executor: Executor) -> tuple[Task, list[Result]]:
        """The next task that ended, with a result for each of its queries, in their order."""
        while (ended := executor.wait()) is None:  # there is more room than before
            continue
        task, results = ended
        assert len(results) == len(task.queries)
        for query, result in zip(task.queries, results, strict=True):
            assert result.eps == query.eps
            assert result.verifier and result.seconds >= 0
            if result.verdict.is_missing:
                assert result.proof is None and result.witness is None
        return task, results

    def verdicts(self, executor: Executor, *tasks: Task) -> list[Verdict]:
        """Of tasks that run one after the other."""
        verdicts = []
        for task in tasks:
            assert executor.has_room
            executor.submit(task)
            ended, results = self.ended(executor)
            assert ended.number == task.number
            verdicts += [result.verdict for result in results]
        return verdicts

    def test_each_query_of_a_task_gets_its_own_answer(self, executor: Executor) -> None:
        verdicts = self.verdicts(executor, self.task(ABOVE, BELOW, ABOVE), self.task(BELOW))
        assert [verdict is Verdict.ROBUST for verdict in verdicts] == [False, True, False, True]
        assert Verdict.NOT_ROBUST in verdicts

    def test_attacks(self, executor: Executor) -> None:
        executor.submit(self.task(3 * RADIUS, 0.5 * RADIUS, kind=QuestionKind.ATTACK))
        _, results = self.ended(executor)
        assert [result.verdict for result in results] == [Verdict.NOT_ROBUST, Verdict.UNKNOWN]
        assert {result.verifier for result in results} == {Fgsm.name}

    def test_a_bug_in_a_tool_is_an_error_and_harms_nobody_else(self, executor: Executor) -> None:
        tasks = [self.task(eps, number=place) for place, eps in enumerate((BUG, LIE, BUG, LIE))]
        expected = [Verdict.ERROR, Verdict.ROBUST, Verdict.ERROR, Verdict.ROBUST]
        assert self.verdicts(executor, *tasks) == expected

    def test_a_crash_is_an_error_and_harms_nobody_else(self, executor: Executor) -> None:
        if not self.is_hard:
            pytest.skip("it runs tasks in this process")
        tasks = [self.task(eps, number=place) for place, eps in enumerate((CRASH, LIE))]
        assert self.verdicts(executor, *tasks) == [Verdict.ERROR, Verdict.ROBUST]

    @pytest.mark.parametrize("eps", [WORK, HANG], ids=["cooperating", "hanging"])
    def test_time_is_limited(self, executor: Executor, eps: float) -> None:
        if not self.is_hard and eps == HANG:
            pytest.skip("its limits hold as far as the verifier cooperates")
        executor.submit(self.task(eps, seconds=0.5))
        _, (result,) = self.ended(executor)
        assert result.verdict is Verdict.TIMEOUT
        assert 0.5 <= result.seconds < 0.5 + self.grace_seconds

    @pytest.mark.parametrize("eps", [WORK, HANG], ids=["cooperating", "hanging"])
    def test_a_cancelled_task_ends_soon(self, executor: Executor, eps: float) -> None:
        """Cancelled by another thread, while `wait` is waiting."""
        if not self.is_hard and eps == HANG:
            pytest.skip("it cancels as far as the verifier cooperates")
        self.verdicts(executor, self.task(LIE))  # whatever has to be loaded is loaded now
        task = self.task(eps)
        executor.submit(task)
        executor.cancel(self.task(eps, number=9))  # another one: no effect
        timer = threading.Timer(0.2, executor.cancel, [task])
        timer.start()
        started = time.monotonic()
        ended, (result,) = self.ended(executor)
        assert time.monotonic() - started < 0.2 + self.grace_seconds
        assert ended.number == task.number
        assert result.verdict is Verdict.CANCELLED
        timer.join()

    def test_it_goes_on_after_a_cancelled_task(self, executor: Executor) -> None:
        for number in range(10, 13):
            stopped = self.task(WORK, number=number)
            executor.submit(stopped)
            executor.cancel(stopped)
            assert self.ended(executor)[1][0].verdict is Verdict.CANCELLED
            assert self.verdicts(executor, self.task(LIE, number=number + 10)) == [Verdict.ROBUST]

    def test_every_task_ends_once_however_many_there_are(self, executor: Executor) -> None:
        """It takes as many at once as it has room for, and answers each of them."""
        waiting = [self.task(*[LIE] * (1 + number % 3), number=number) for number in range(30, 37)]
        numbers, running = [], 0
        while waiting or running:
            while waiting and executor.has_room:
                executor.submit(waiting.pop())
                running += 1
            task, results = self.ended(executor)
            running -= 1
            numbers.append(task.number)
            assert len(results) == 1 + task.number % 3
        assert sorted(numbers) == list(range(30, 37))

    def test_a_tool_that_is_missing_is_an_error(self) -> None:
        bare = Toolbox(self.toolbox().networks, None, None)
        with self.make(bare) as executor:
            assert self.verdicts(executor, self.task(LIE)) == [Verdict.ERROR]

    def test_closing_stops_what_runs(self) -> None:
        """At once; closing twice does no harm."""
        executor = self.make(self.toolbox())
        executor.submit(self.task(HANG))
        started = time.monotonic()
        executor.close()
        executor.close()
        assert time.monotonic() - started < 10.0
