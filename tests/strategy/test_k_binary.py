"""k-binary search: every order of answers, every radius, up to three answers that never come."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache

import pytest

from radii.problem import Grid, Proof, Result, Verdict
from radii.statistics import theoretical_maximum
from radii.strategy import Binary, Cuts, KBinary, Linear, Question, QuestionKind, Search
from radii.strategy._scans import GOLDEN_CUTS, CuttingRules, Situation
from radii.testing import SimulatedInstance
from radii.testing import simulated_witness as witness

PATIENCE = CuttingRules().patience

# --- exhaustive: the game between a search and all that can happen to it


Ends = Callable[[list[int]], list[int]]
"""Which of the queries that run, in the order of their eps, may end next."""

ORDERS: dict[str, Ends] = {
    "smallest": lambda running: running[:1],
    "largest": lambda running: running[-1:],
    "middle": lambda running: [running[len(running) // 2]] if running else [],
}


def worst_case(
    values: int, k: int, missing: int, cuts: Cuts = Cuts.EQUAL, ends: Ends = lambda every: every
) -> int:
    """The most queries that are ever asked, over every radius, every order in which answers come
    (or those that `ends` leaves), and every choice of at most `missing` of them that never come.

    On the way: nothing known, implied, running or missing is asked, at most k run at once, and the
    end is reached only when every open value is one whose answer is missing.
    """

    @cache
    def most(last: int, running: tuple[int, ...], lost: tuple[int, ...], left: int) -> int:
        active = list(running)
        while len(active) < k:
            situation = Situation(0, last, tuple(sorted(active)), lost)
            index = situation.next_index(k, cuts)
            if index is None:
                break
            assert 0 <= index < last
            assert index not in active
            assert index not in lost
            active.append(index)
        if not active:
            assert len(lost) == last, "the bracket could be tighter"
        asked, most_after = len(active) - len(running), 0
        for index in ends(sorted(active)):
            above = [i - index - 1 for i in active if i > index]
            below = [i for i in active if i < index]
            after = [
                most(
                    last - index - 1,
                    tuple(sorted(above)),
                    tuple(i - index - 1 for i in lost if i > index),
                    left,
                ),
                most(index, tuple(sorted(below)), tuple(i for i in lost if i < index), left),
            ]
            if left:
                others = tuple(sorted(i for i in active if i != index))
                after.append(most(last, others, tuple(sorted((*lost, index))), left - 1))
            most_after = max(most_after, *after)
        return asked + most_after

    assert missing <= PATIENCE
    return most(values, (), (), missing)


MAXIMA = {
    (1, Cuts.EQUAL): (8, 10),
    (2, Cuts.EQUAL): (14, 16),
    (2, Cuts.GOLDEN): (11, 16),
    (3, Cuts.EQUAL): (16, 21),
    (4, Cuts.EQUAL): (20, 22),
}
"""For 200 values: the most queries without and with one missing answer, as docs/search.md says."""


@pytest.mark.parametrize(("k", "cuts"), MAXIMA)
def test_table_of_maxima(k: int, cuts: Cuts) -> None:
    found = tuple(worst_case(200, k, missing, cuts) for missing in (0, 1))
    assert found == MAXIMA[k, cuts]
    assert found[0] >= (theoretical_maximum(200, k) or 0)


def test_golden_cuts_need_what_the_theory_says() -> None:
    for values in range(1, 200, 7):
        best = theoretical_maximum(values + 1, 2)  # n values have n + 1 outcomes
        assert best is not None
        assert best <= worst_case(values, 2, 0, Cuts.GOLDEN) <= best + 1
    assert worst_case(200, 2, 0, Cuts.GOLDEN) == 11 == theoretical_maximum(200, 2)


def test_every_order_of_answers_on_small_grids() -> None:
    for values in range(1, 9):
        for k in range(1, 17):
            for missing in range(PATIENCE + 1):
                assert worst_case(values, k, missing) <= values
    for k in GOLDEN_CUTS:
        assert worst_case(20, k, 2, Cuts.GOLDEN) <= 20


@pytest.mark.parametrize("k", range(1, 5))
def test_every_order_of_answers_on_64_values(k: int) -> None:
    missing = PATIENCE if k < 3 else 1
    assert worst_case(64, k, missing) <= 6 * (k + 1) // 2 + k + 4 * missing


@pytest.mark.sampled(16)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("k", range(1, 17))
def test_every_radius_and_pattern_of_three_missing_on_64_values(k: int, order: str) -> None:
    assert worst_case(64, k, PATIENCE, ends=ORDERS[order]) <= 64


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("k", range(1, 17))
def test_every_radius_and_pattern_of_three_missing_at_length(k: int, order: str) -> None:
    for values in range(1, 64):
        assert worst_case(values, k, PATIENCE, ends=ORDERS[order]) <= values


@pytest.mark.slow
@pytest.mark.parametrize("k", range(1, 17))
def test_every_order_and_three_missing_answers_at_length(k: int) -> None:
    values = {1: 64, 2: 64, 3: 64, 4: 48, 5: 32}.get(k, 16)
    worst_case(values, k, PATIENCE)


@pytest.mark.slow
def test_maxima_for_four_golden_and_for_eight() -> None:
    assert [worst_case(200, 4, missing, Cuts.GOLDEN) for missing in (0, 1)] == [19, 23]
    assert [worst_case(200, 8, missing) for missing in (0, 1)] == [31, 34]


# --- the search itself, asked and told


def grid_of(values: int) -> Grid:
    return Grid("0.001", f"0.{values * 2 + 1:03d}", "0.002")


def play(search: Search, simulation: SimulatedInstance, order: random.Random, limit: int) -> None:
    """Answer in random order, cancel what is settled, and check what the search promises."""
    told: set[Question] = set()
    while True:
        while (question := search.ask()) is not None:
            assert search.bracket.lower < question.eps < search.bracket.upper, "implied"
            assert question not in told
            told.add(question)
        assert len(search.outstanding) <= limit
        if not search.outstanding:
            break
        question = order.choice(sorted(search.outstanding, key=lambda q: q.eps))
        search.tell(question, simulation.answer(question))
        for settled in search.settled():
            assert not search.bracket.lower < settled.eps < search.bracket.upper
            search.tell(settled, Result(Verdict.CANCELLED, settled.eps, "verifier", "1", 0.0))
    assert search.done


def check_tightest(search: Search, grid: Grid, radius: float, missing: set[float]) -> None:
    """As tight as asking every value would make it."""
    answered = [value for value in grid if value not in missing]
    assert search.bracket.lower == max((v for v in answered if v < radius), default=0.0)
    assert search.bracket.upper == min((v for v in answered if v >= radius), default=math.inf)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("k", range(1, 17))
@pytest.mark.parametrize("make", [KBinary, Linear])
def test_the_bracket_is_the_tightest_that_the_answers_allow(
    make: Callable[..., KBinary | Linear], k: int
) -> None:
    order = random.Random(k)
    for _ in range(40):
        grid = grid_of(order.randint(1, 64))
        radius = 0.002 * order.randint(0, len(grid))
        values = order.sample(grid.values, k=min(len(grid), order.randint(0, PATIENCE)))
        near = [v for v in grid if abs(v - radius) < 0.01][:PATIENCE]
        missing = set(values if order.random() < 0.5 else near)
        search = make(grid, k=k)
        play(search, SimulatedInstance(radius, grid, missing=missing), order, limit=k)
        check_tightest(search, grid, radius, missing)


@pytest.mark.slow
@pytest.mark.parametrize("k", range(1, 17))
def test_every_radius_and_random_patterns_at_length(k: int) -> None:
    order = random.Random(100 + k)
    for size in (1, 2, 3, 5, 17, 33, 64):
        grid = grid_of(size)
        for place in range(len(grid) + 1):
            for count in range(PATIENCE + 1):
                missing = set(order.sample(grid.values, k=min(len(grid), count)))
                search = KBinary(grid, k=k)
                play(
                    search,
                    SimulatedInstance(0.002 * place, grid, missing=missing),
                    order,
                    limit=k,
                )
                check_tightest(search, grid, 0.002 * place, missing)


@pytest.mark.parametrize("k", [1, 2, 4, 16])
def test_a_hard_zone_is_closed_in_on_and_not_crept_through(k: int) -> None:
    grid = grid_of(64)
    for low in range(0, 44, 4):
        missing = set(grid.values[low : low + 20])
        radius = grid[low + 10]
        search, simulation = (
            KBinary(grid, k=k),
            SimulatedInstance(radius, grid, missing=missing),
        )
        play(search, simulation, random.Random(low), limit=k)
        timeouts = sum(question.eps in missing for question in simulation.questions)
        assert timeouts <= 2 * math.log2(20) + k + PATIENCE
        check_tightest(search, grid, radius, missing)


def test_one_query_at_a_time_is_binary_search() -> None:
    grid, order = grid_of(64), random.Random(0)
    for place in range(0, 65, 4):
        for missing in (set(), {grid[31]}, {grid[32]}, {grid[15], grid[32], grid[47]}):
            asked = []
            for search in (Binary(grid), KBinary(grid, k=1)):
                simulation = SimulatedInstance(0.002 * place, grid, missing=missing)
                play(search, simulation, order, limit=1)
                asked.append(simulation.questions)
            assert asked[0] == asked[1]


def test_the_first_cuts_are_equal_parts_and_the_middle_ones_come_first() -> None:
    grid = grid_of(64)
    for k in range(1, 17):
        search = KBinary(grid, k=k)
        asked = [search.ask() for _ in range(k)]
        assert search.ask() is None
        indices = [grid.count_below(question.eps) for question in asked if question is not None]
        assert sorted(indices) == [i * 64 // (k + 1) for i in range(1, k + 1)]
        distances = [abs(2 * index + 1 - 64) for index in indices]
        assert distances == sorted(distances)


def test_an_answer_settles_what_it_implies() -> None:
    grid = grid_of(64)
    search = KBinary(grid, k=3)
    asked = sorted((q for _ in range(3) if (q := search.ask())), key=lambda q: q.eps)
    low, middle, high = asked
    proof = Proof(middle.eps, 1e-6)
    search.tell(middle, Result(Verdict.ROBUST, middle.eps, "verifier", "1", 0.0, proof=proof))
    assert search.settled() == {low}
    assert len(search.outstanding) == 2, "it runs until it is told"
    following = search.ask()
    assert following is not None
    assert middle.eps < following.eps < 0.129
    assert search.ask() is None
    refuted = Result(Verdict.NOT_ROBUST, high.eps, "verifier", "1", 0.0, witness=witness(high.eps))
    search.tell(high, refuted)
    assert search.settled() == {low} | ({following} if following.eps > high.eps else set())


def test_a_closer_witness_tightens_further_than_the_grid_asked() -> None:
    grid = grid_of(64)
    search = KBinary(grid, k=3)
    asked = sorted((q for _ in range(3) if (q := search.ask())), key=lambda q: q.eps)
    closer = Result(Verdict.NOT_ROBUST, asked[2].eps, "verifier", "1", 0.0, witness=witness(0.02))
    search.tell(asked[2], closer)
    assert search.settled() == {asked[0], asked[1]}
    assert search.bracket.upper == 0.02
    following = search.ask()
    assert following is not None
    assert following.eps < 0.02


def test_what_was_cancelled_is_asked_again_when_a_lie_is_found_out() -> None:
    grid = grid_of(64)
    search = KBinary(grid, k=2)
    low, high = sorted((q for _ in range(2) if (q := search.ask())), key=lambda q: q.eps)
    claim = Result(Verdict.ROBUST, high.eps, "liar", "1", 0.0, proof=Proof(high.eps, 0.0))
    search.tell(high, claim)
    assert search.settled() == {low}
    search.tell(low, Result(Verdict.CANCELLED, low.eps, "liar", "1", 0.0))
    found = Result(Verdict.NOT_ROBUST, 0.4, "attack", "1", 0.0, witness=witness(0.03))
    search.tell(Question(QuestionKind.ATTACK, 0.4), found)
    assert (search.bracket.lower, search.bracket.upper) == (0.0, 0.03)
    assert search.ask() is not None
