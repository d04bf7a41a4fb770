"""A budget narrows fastest, never asks the same twice, and goes on where it ended."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from virtual_runs import TOP, Hardness, Run

from radii.problem import Result
from radii.strategy import Agenda, BudgetAgenda, Case, QuestionKind, is_closed, total_width


def spending(seconds: float, timeout: float = 64.0, longest: float = math.inf) -> Agenda:
    return BudgetAgenda(seconds, timeout=timeout, longest=longest)


class InOrder(Agenda):
    """A plain run that is cut off."""

    def __init__(self, seconds: float) -> None:
        self.left, self.end = seconds, math.inf

    def begin(self, cases: Sequence[Case], now: float) -> None:
        self.end = now + self.left

    def is_over(self, now: float) -> bool:
        return now >= self.end


class GivesUp(Hardness):
    """Half of it is all that it ever proves, after an eighth of the time."""

    def proven_in(self, seconds: float) -> float:
        return self.radius / 2


def mixed(count: int, seed: int = 0) -> list[Hardness]:
    """From easy to hopeless, in any order."""
    chance = random.Random(seed)
    return [
        Hardness(chance.uniform(0.02, 0.2), 10 ** chance.uniform(-2, 1.5)) for _ in range(count)
    ]


def widths(run: Run) -> float:
    return total_width((case.search.bracket for case in run.cases), TOP)


def test_attacks_first_then_short_proofs_then_longer_ones() -> None:
    run = Run(mixed(20))
    run.go(spending(60))
    kinds = [question.kind for _, question, _ in run.told]
    assert kinds[:20] == [QuestionKind.ATTACK] * 20
    allowed = [
        result.allowed_seconds or 0 for _, q, result in run.told if q.kind is QuestionKind.RADIUS
    ]
    assert set(allowed[:20]) == {1.0}
    assert max(allowed) > 1
    first = [case.instance.index for case, q, _ in run.told if q.kind is QuestionKind.RADIUS][:20]
    radii = [run.hardness[place].radius for place in first]
    assert radii == sorted(radii, reverse=True), "the widest first"


@pytest.mark.parametrize("seed", range(5))
def test_a_tenth_of_the_time_leaves_less_than_half_of_what_it_leaves_in_order(seed: int) -> None:
    hardness = mixed(50, seed)
    full = Run(hardness)
    full.go(Agenda())
    tenth = full.executor.now / 10
    ordered, spent = Run(hardness), Run(hardness)
    ordered.go(InOrder(tenth))
    spent.go(spending(tenth))
    assert spent.executor.now <= tenth * 1.001
    assert widths(full) <= widths(spent) < widths(ordered) / 2


def test_no_limit_is_tried_twice_and_a_longer_one_is() -> None:
    run = Run([Hardness(0.05 + place / 100, 10 ** (place / 4 - 2)) for place in range(10)])
    for _ in range(12):
        run.go(spending(20))
    for place in range(10):
        allowed = [seconds or 0 for seconds in run.asked(place)]
        assert all(longer >= 1.5 * shorter for shorter, longer in pairwise(allowed))
        assert len(run.asked(place, QuestionKind.ATTACK)) == 1
    assert all(is_closed(case.search) for case in run.cases), "16 s at most are needed"


def test_the_budget_ends_the_run_and_cuts_what_is_under_way() -> None:
    run = Run([Hardness(0.1, 1000.0)] * 3)
    run.go(spending(10.0))
    assert run.executor.now == pytest.approx(10.0, abs=0.3)
    assert not run.finished
    run.go(spending(100.0))
    assert run.executor.now == pytest.approx(110.0, abs=10)


@pytest.mark.parametrize("seconds", [10.0, 100.0])
def test_an_attack_that_the_budget_ends_is_made_again(seconds: float) -> None:
    run = Run([Hardness(0.1, 0.1, attack_seconds=3 * seconds)])
    run.go(spending(seconds))
    assert not run.asked(0)
    run.go(spending(10 * seconds))
    assert len(run.asked(0, QuestionKind.ATTACK)) == 2
    assert is_closed(run.cases[0].search)


def test_a_plain_run_goes_on_after_a_budget_and_a_budget_after_a_plain_run() -> None:
    run = Run([Hardness(0.1, 20.0), Hardness(0.1, 0.1)])
    run.go(spending(8))
    assert run.asked(0)[-1] is not None
    run.go(_Plain(64.0))
    assert run.asked(0)[-1] is None, "all of the run's own time"
    count = len(run.told)
    run.go(_Plain(64.0))
    assert len(run.told) == count, "and that only once"
    run.told = [(c, q, _with_limit(r, 64.0)) for c, q, r in run.told]
    run.go(spending(1000))
    assert run.asked(0)[-1] == 256.0
    assert is_closed(run.cases[0].search)


def test_limits_never_exceed_what_was_given() -> None:
    run = Run([Hardness(0.1, 1000.0)])
    run.go(spending(1000, longest=64.0))
    assert run.asked(0) == [1.0, 4.0, 16.0, 64.0]
    assert run.finished == run.cases
    assert run.executor.now < 100


def test_what_gives_up_by_itself_is_not_asked_again() -> None:
    run = Run([GivesUp(0.1, 0.02)])
    run.go(spending(1000))
    assert run.asked(0) == [1.0], "it stopped after 0.16 s of the second it had"


def test_a_pause_does_not_count() -> None:
    agenda = BudgetAgenda(10)
    agenda.begin([], 0.0)
    agenda.held(True, 4.0)
    agenda.held(False, 100.0)
    assert agenda.left(100.0) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("timeout", "first"), [(60.0, 60 / 64), (2.0, 0.5), (0.3, 0.3), (1e9, None)]
)
def test_the_first_limit_is_short_and_grows_through_the_timeout(
    timeout: float, first: float | None
) -> None:
    limit = BudgetAgenda(10, timeout=timeout).first_limit
    assert 0.5 <= limit < 2 or limit == timeout
    if first is not None:
        assert limit == pytest.approx(first)


def _with_limit(result: Result, seconds: float) -> Result:
    return (
        result if result.allowed_seconds is not None else replace(result, allowed_seconds=seconds)
    )


class _Plain(Agenda):
    """As a run without a budget makes its searches: with its own limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def begin(self, cases: Sequence[Case], now: float) -> None:
        for case in cases:
            case.search.allow(self._seconds)


def test_what_comes_before_the_first_question_does_not_count() -> None:
    agenda = BudgetAgenda(5.0)
    loaded = 60.0
    assert agenda.left(loaded) == 5.0 and not agenda.is_over(loaded)
    agenda.begin([], loaded)
    assert agenda.left(63.0) == 2.0
    assert agenda.is_over(65.0)
