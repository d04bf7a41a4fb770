"""Workers that are really killed from outside: what nobody answered is asked again."""

from __future__ import annotations

import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from radii.errors import RadiiError
from radii.problem import Result, Verdict
from radii.runs import Experiment, LocalWorkers, Plan, prepare
from radii.runs import _plan as plans
from radii.runs.executors._local import _Worker
from radii.store import Store
from radii.strategy import Question, QuestionKind, Task

START_SECONDS = 120.0


class Doomed(LocalWorkers):
    """Somebody kills its workers as they begin a task of the kind, `left` times."""

    kind: ClassVar[QuestionKind] = QuestionKind.RADIUS
    left: ClassVar[float] = 0

    def submit(self, task: Task) -> None:
        if task.kind is not self.kind or type(self).left <= 0:
            super().submit(task)
            return
        type(self).left -= 1
        worker = self._ready_worker()
        os.kill(worker.child.process.pid, signal.SIGSTOP)  # or it might be faster than we are
        worker.give(task, self._tools.memory_bytes)
        self._busy.append(worker)
        os.kill(worker.child.process.pid, signal.SIGKILL)

    def _ready_worker(self) -> _Worker:
        worker = self._free_worker()
        if not worker.child.is_ready:
            if not worker.child.connection.poll(START_SECONDS):
                raise RadiiError("a worker did not start")
            assert worker.child.receive() is None
            assert worker.child.is_ready
        return worker


@pytest.fixture
def doomed(monkeypatch: pytest.MonkeyPatch) -> type[Doomed]:
    """In place of the workers of a run."""
    chosen = type("Chosen", (Doomed,), {})
    monkeypatch.setattr(plans, "LocalWorkers", chosen)
    return chosen


@pytest.fixture
def plan(linear_file: Path, points_file: Path) -> Plan:
    """One input, with radius 0.1; its attack is no probe, which would be all that is asked."""
    options = {"networks": [str(linear_file)], "data": f"{points_file}[0:1]", "domain": "0:1"}
    return prepare(Experiment.from_options({**options, "grid": "0.01:0.4:0.02", "attack": "apgd"}))


def run(plan: Plan, out: Path) -> list[tuple[Question, Result]]:
    """Run, or go on; all that the store holds then."""
    with Store.create_or_open(out) as store:
        plan.run(store, jobs=1)
    with Store.open(out) as store:
        return [answer for told in store.results().values() for answer in told]


def measured(out: Path) -> tuple[float, float, int]:
    """Both sides of the bracket, and how many answers are missing."""
    with Store.open(out) as store:
        (m,) = store.measurements()
    return m.bracket.lower, round(m.bracket.upper, 1), m.missing


def test_a_worker_that_is_killed_is_no_permanent_error(
    plan: Plan, doomed: type[Doomed], tmp_path: Path
) -> None:
    doomed.left = math.inf
    killed = run(plan, tmp_path)
    verdicts = [
        result.verdict for question, result in killed if question.kind is QuestionKind.RADIUS
    ]
    assert verdicts == [Verdict.ERROR] * 2, "it is asked once more, and then no more"
    assert measured(tmp_path) == (0.0, 0.1, 1)

    doomed.left = 0
    resumed = run(plan, tmp_path)
    assert len(resumed) == len(killed) + 1, "only what nobody answered is asked again"
    assert measured(tmp_path) == (0.09, 0.1, 0)
    assert len(run(plan, tmp_path)) == len(resumed), "a third run asks nothing"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [QuestionKind.ATTACK, QuestionKind.RADIUS])
def test_a_worker_that_is_killed_once_changes_no_bracket(
    plan: Plan, doomed: type[Doomed], tmp_path: Path, kind: QuestionKind
) -> None:
    doomed.kind, doomed.left = kind, 1
    told = run(plan, tmp_path)
    assert measured(tmp_path) == (0.09, 0.1, 0)
    assert [question.kind for question, r in told if r.verdict is Verdict.ERROR] == [kind]
    assert len(told) == 3


def test_a_probe_that_killed_its_worker_is_asked_once_more(
    plan: Plan, doomed: type[Doomed], tmp_path: Path
) -> None:
    probing = replace(plan, settings=replace(plan.settings, attack="minimum-norm"))
    doomed.kind, doomed.left = QuestionKind.PROBE, 1
    verdicts = [(question.kind, result.verdict) for question, result in run(probing, tmp_path)]
    assert verdicts == [
        (QuestionKind.PROBE, Verdict.ERROR),
        (QuestionKind.PROBE, Verdict.ROBUST),
    ]
    assert measured(tmp_path) == (0.09, 0.1, 0)


def test_what_was_too_much_memory_without_a_stated_limit_is_asked_again(plan: Plan) -> None:
    """What a machine could spare is no answer; what an experiment states is one."""
    asked = Question(QuestionKind.RADIUS, 0.39)
    full = Result(Verdict.MEMOUT, 0.39, "native", "1", 1.0, message="out of memory")
    for memory, is_open in ((None, True), (2**30, False)):
        limited = replace(plan, settings=replace(plan.settings, memory=memory))
        with Store.in_memory() as store:
            limited.begin(store)
            for instance in limited.instances:
                store.record([(instance.key, asked, full)])
            for case in limited.cases(store):
                assert (asked not in case.search.answers) is is_open
                assert case.spent == (0.0 if is_open else 1.0)
