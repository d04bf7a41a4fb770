"""Every search against simulated verifiers: any radius, any pattern of missing answers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.errors import SpecificationError
from radii.problem import Grid, Proof, Result, Verdict
from radii.strategy import (
    SEARCHES,
    AttackGuided,
    AttackOnly,
    Binary,
    Linear,
    Native,
    Question,
    QuestionKind,
    Search,
    get,
    make,
)
from radii.testing import SimulatedInstance, simulated_witness

GRID = Grid("0.001", "0.129", "0.002")  # 64 values


def simulated(radius: float, missing: set[float], luck: float = 1.0) -> SimulatedInstance:
    return SimulatedInstance(radius, GRID, missing=missing, luck=luck)


COMPLETE = [search for search in SEARCHES if search.needs_verifier]
QUICK = [search for search in COMPLETE if search is not Linear]
"""A number of queries that grows with the logarithm of the grid's length."""


@pytest.mark.parametrize("kind", COMPLETE)
@pytest.mark.parametrize("luck", [1.0, 1.1, 2.0, math.inf])
def test_brackets_every_radius_to_one_step(kind: type[Search], luck: float) -> None:
    for place in range(len(GRID) + 1):
        radius = 0.0005 + 0.002 * place
        search, simulation = kind(GRID), simulated(radius, set(), luck)
        simulation.finish(search)
        below = GRID.count_below(radius)
        assert search.bracket.lower == (GRID[below - 1] if below else 0.0)
        assert search.bracket.upper > search.bracket.lower
        if below < len(GRID):
            assert search.bracket.upper <= GRID[below]
        proofs = [q for q in simulation.questions if q.kind is not QuestionKind.ATTACK]
        assert kind not in QUICK or len(proofs) <= 2 * math.log2(len(GRID)) + 1


def test_binary_search_needs_log2_queries() -> None:
    for place in range(len(GRID) + 1):
        simulation = simulated(0.0005 + 0.002 * place, set())
        simulation.finish(Binary(GRID))
        assert len(simulation.questions) <= math.ceil(math.log2(len(GRID) + 1))


def test_a_perfect_attack_leaves_one_proof() -> None:
    for place in range(1, len(GRID)):
        simulation = simulated(0.0005 + 0.002 * place, set(), luck=1.0)
        simulation.finish(AttackGuided(GRID))
        assert [q.kind for q in simulation.questions] == [QuestionKind.ATTACK, QuestionKind.PROVE]


@pytest.mark.parametrize("is_easy", [True, False])
def test_a_probe_that_closes_a_bracket_is_all_that_is_asked(is_easy: bool) -> None:
    simulation, search = SimulatedInstance(0.0305, GRID, is_easy=is_easy), Native(GRID)
    search.probes = True
    simulation.finish(search)
    first, *others = (question.kind for question in simulation.questions)
    assert first is QuestionKind.PROBE
    assert others == ([] if is_easy else [QuestionKind.ATTACK, QuestionKind.RADIUS])
    assert search.bracket.lower == GRID[GRID.count_below(0.0305) - 1]


def test_no_probe_follows_an_attack_of_an_earlier_run() -> None:
    search, attack = Native(GRID), Question(QuestionKind.ATTACK, GRID[len(GRID) - 1])
    search.probes = True
    search.tell(attack, SimulatedInstance(0.0305, GRID).answer(attack))
    question = search.ask()
    assert question is not None
    assert question.kind is QuestionKind.RADIUS


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(COMPLETE),
    radius=st.floats(0.0, 0.15, exclude_min=True),
    missing=st.sets(st.sampled_from(GRID.values), max_size=20),
    luck=st.sampled_from([1.0, 1.05, 1.5, math.inf]),
)
def test_missing_answers_stay_conservative_and_do_not_crawl(
    kind: type[Search], radius: float, missing: set[float], luck: float
) -> None:
    search, simulation = kind(GRID), simulated(radius, missing, luck)
    simulation.finish(search)
    assert search.bracket.lower < radius
    assert search.bracket.upper >= radius
    timeouts = [
        q for q in simulation.questions if q.eps in missing and q.kind is QuestionKind.PROVE
    ]
    assert kind not in QUICK or len(timeouts) <= 2 * math.log2(len(GRID)) + 2
    assert len(set(simulation.questions)) == len(simulation.questions)


@pytest.mark.parametrize("kind", COMPLETE)
def test_all_answers_missing(kind: type[Search]) -> None:
    search, simulation = kind(GRID), simulated(0.06, set(GRID.values), luck=math.inf)
    simulation.finish(search)
    assert (search.bracket.lower, search.bracket.upper) == (0.0, math.inf)
    assert kind not in QUICK or len(simulation.questions) <= 2 * math.log2(len(GRID)) + 2


@pytest.mark.parametrize("kind", SEARCHES)
def test_resumes_from_told_results_in_any_order(kind: type[Search]) -> None:
    whole, simulation = kind(GRID), simulated(0.0405, {0.033}, luck=1.3)
    simulation.finish(whole)
    for cut in range(len(simulation.questions) + 1):
        resumed, again = kind(GRID), simulated(0.0405, {0.033}, luck=1.3)
        for question in reversed(simulation.questions[:cut]):
            resumed.tell(question, simulation.answer(question))
        again.finish(resumed)
        assert resumed.bracket == whole.bracket
        assert len(again.questions) == len(whole.answers) - cut


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_misclassified_input_asks_nothing(kind: type[Search]) -> None:
    search = kind(GRID)
    replay = Result(Verdict.NOT_ROBUST, 0.0, "replay", "1", 0.0, witness=simulated_witness(0.0))
    search.tell(Question(QuestionKind.REPLAY, 0.0), replay)
    assert search.done
    assert (search.bracket.lower, search.bracket.upper) == (0.0, 0.0)


def test_a_contradicted_claim_is_never_used() -> None:
    search = Binary(GRID)
    first = search.ask()
    assert first is not None
    claim = Result(Verdict.ROBUST, first.eps, "liar", "1", 0.0, proof=Proof(first.eps, 0.0))
    search.tell(first, claim)
    closer = Result(
        Verdict.NOT_ROBUST, first.eps, "attack", "1", 0.0, witness=simulated_witness(0.01)
    )
    search.tell(Question(QuestionKind.ATTACK, first.eps), closer)
    assert search.bracket.lower == 0.0
    assert search.bracket.upper == 0.01
    assert len(search.disagreements) == 1


def test_attack_only_never_raises_the_lower_side() -> None:
    for luck in (1.0, math.inf):
        search, simulation = AttackOnly(GRID), simulated(0.05, set(), luck)
        simulation.finish(search)
        assert search.bracket.lower == 0.0
        assert [q.kind for q in simulation.questions] == [QuestionKind.ATTACK]


def test_unknown_search_is_named() -> None:
    with pytest.raises(SpecificationError, match="'clever' is not one of native, attack-guided"):
        get("clever")


def test_a_linear_scan_asks_from_the_smallest_up_and_passes_over_missing_answers() -> None:
    search, simulation = Linear(GRID), simulated(0.0085, {0.003})
    simulation.finish(search)
    assert [q.eps for q in simulation.questions] == [0.001, 0.003, 0.005, 0.007, 0.009]
    assert (search.bracket.lower, search.bracket.upper) == (0.007, 0.009)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("k-binary", {"k": 0}, "k 0 must be at least 1"),
        ("linear", {"k": -1}, "k -1 must be at least 1"),
        ("binary", {"k": 2}, "search 'binary' asks one question at a time"),
        ("native", {"k": 1}, "search 'native' asks one question at a time"),
        ("k-binary", {"cuts": "silver"}, "cuts 'silver' are not one of equal, golden"),
        ("linear", {"cuts": "equal"}, "of search 'k-binary', not of 'linear'"),
        ("k-binary", {"k": 3, "cuts": "golden"}, "known for k 2 and 4, not for 3"),
    ],
)
def test_options_that_a_search_does_not_have(
    name: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SpecificationError, match=sentence):
        make(name, GRID, **options)
