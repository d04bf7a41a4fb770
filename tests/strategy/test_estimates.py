"""What a few instances tell of all: right where they are alike, and wide where they may not be."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from virtual_runs import GRID, Hardness, Run, instance

from radii.errors import ExperimentError
from radii.problem import Grid, Proof, Result, Verdict, Witness
from radii.strategy import (
    Agenda,
    Case,
    Linear,
    Native,
    Question,
    QuestionKind,
    RunEstimate,
    SamplingAgenda,
    estimate,
)


def sampled(run: Run, **options: Any) -> None:
    run.go(SamplingAgenda(**options))


def told_of(run: Run, *, limit: float = 64.0, jobs: int = 1) -> RunEstimate:
    names = dict.fromkeys([case.instance.network for case in run.cases])
    return estimate(run.cases, {name: name for name in names}, jobs=jobs, limit=limit)


def test_a_few_of_each_network_are_finished_and_no_more() -> None:
    run = Run([Hardness(0.1, 5.0)] * 60, ["a", "b"] * 30)
    sampled(run, fewest=5)
    done = Counter(
        case.instance.network for case in run.cases if case.search.next_question() is None
    )
    assert done == {"a": 5, "b": 5}
    sampled(run, fewest=5, seconds=0.0)
    assert sum(case.search.next_question() is None for case in run.cases) == 10, "they count"


def test_cheap_instances_are_tried_while_there_is_time() -> None:
    run = Run([Hardness(0.1, 0.05)] * 200)
    sampled(run, fewest=5, most=40, seconds=8.0)
    assert 12 <= sum(case.search.next_question() is None for case in run.cases) <= 40


def test_what_was_sampled_is_not_asked_again() -> None:
    run = Run([Hardness(0.1, 0.5)] * 30)
    sampled(run)
    run.go(Agenda())
    asked = Counter((case.instance.index, question.kind) for case, question, _ in run.told)
    assert set(asked.values()) == {1}
    assert len(asked) == 60


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_holds_what_the_whole_takes(seed: int) -> None:
    chance = random.Random(seed)
    run = Run([Hardness(0.1, 10 ** chance.uniform(-1, 1)) for _ in range(80)])
    sampled(run, fewest=12, seconds=0.0, seed=seed)
    before, found = run.executor.now, told_of(run)
    run.go(Agenda())
    took = run.executor.now - before
    assert found.seconds.low <= took <= found.seconds.high
    assert found.seconds.high < 4 * took
    share = sum(case.search.bracket.lower > 0.097 for case in run.cases) / 80
    assert found.networks[0].closed.low <= share <= found.networks[0].closed.high
    width = sum(case.search.bracket.width for case in run.cases) / 80
    assert found.networks[0].width.low <= width <= found.networks[0].width.high


def test_few_easy_ones_leave_room_for_hard_ones_that_were_missed() -> None:
    few, many = Run([Hardness(0.1, 0.1)] * 200), Run([Hardness(0.1, 0.1)] * 200)
    sampled(few, fewest=5, most=5)
    sampled(many, fewest=40, most=40)
    assert told_of(few).seconds.high > 5 * told_of(few).seconds.middle
    assert told_of(many).seconds.high < told_of(few).seconds.high / 2
    assert told_of(few).networks[0].closed.low < told_of(many).networks[0].closed.low < 1


def test_workers_share_the_work() -> None:
    run = Run([Hardness(0.1, 1.0)] * 40)
    sampled(run)
    assert told_of(run, jobs=4).seconds.middle == pytest.approx(told_of(run).seconds.middle / 4)


def test_when_all_is_done_nothing_is_left_to_guess() -> None:
    run = Run([Hardness(0.1, 0.1)] * 4)
    run.go(Agenda())
    found = told_of(run)
    (network,) = found.networks
    assert (found.seconds.low, found.seconds.high) == (0.0, 0.0)
    assert network.closed.low == network.closed.high == 1.0
    assert network.finished == network.inputs == 4


def test_misclassified_inputs_count_as_closed_and_cost_nothing() -> None:
    run = Run([Hardness(0.1, 1.0)] * 20)
    sampled(run)
    wrong = [_misclassified(place, GRID) for place in range(20, 40)]
    found = estimate([*run.cases, *wrong], {"n": "net"}, jobs=1, limit=64.0)
    (network,) = found.networks
    assert (network.inputs, network.misclassified) == (40, 20)
    assert found.seconds.middle == pytest.approx(told_of(run).seconds.middle)
    assert network.closed.low > 0.5


def test_an_instance_that_has_used_its_budget_is_finished() -> None:
    """Its search would go on asking, but nobody answers."""
    cases = [Case(instance(place), Linear(GRID), 0) for place in range(20)]
    for case in cases[:5]:
        question = Question(QuestionKind.PROVE, GRID[0])
        proof = Proof(GRID[0], 1e-6)
        case.search.tell(question, Result(Verdict.ROBUST, GRID[0], "v", "1", 3.0, proof))
        case.spent = 3.0
    found = estimate(cases, {"n": "net"}, jobs=1, limit=3.0, budget=3.0)
    (network,) = found.networks
    assert network.finished == 5
    assert found.seconds.middle == pytest.approx(15 * 3.0)
    assert network.closed.middle == 0.0


def test_nothing_finished_is_refused() -> None:
    with pytest.raises(ExperimentError, match="nothing can be estimated"):
        estimate([Case(instance(0), Native(GRID), 0)], {"n": "net"}, jobs=1, limit=1.0)


def _misclassified(place: int, grid: Grid) -> Case:
    case = Case(instance(place, holds=False), Native(grid), 0)
    case_input = case.instance.input
    witness = Witness(case_input, 0.0, 1, case.instance.outputs, "virtual")
    result = Result(Verdict.NOT_ROBUST, 0.0, "replay", "1", 0.0, witness=witness)
    case.search.tell(Question(QuestionKind.REPLAY, 0.0), result)
    return case
