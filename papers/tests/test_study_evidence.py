"""Verdicts about claims of papers: what each needs, and what can never happen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii_papers._evidence import (
    FEWEST_INSTANCES,
    FEWEST_SEEDS,
    VERDICTS,
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimInterval,
    ClaimScope,
    ClaimVerdict,
    StudyClaim,
    alike,
    differing,
    fact,
    unclear,
    verdict_of,
    within,
)
from radii_papers._intervals import (
    mean_interval,
    paired_p_value,
    rank_interval,
    share_interval,
)
from radii_papers._page import evidence_table
from radii_papers.properties._verdicts import gain_case, share_case

THEIRS, OURS = ClaimBasis.THEIRS, ClaimBasis.OURS
HOLDS, FAILS, UNCLEAR = CaseOutcome.HOLDS, CaseOutcome.FAILS, CaseOutcome.UNCLEAR


def case(
    outcome: CaseOutcome = HOLDS, basis: ClaimBasis = THEIRS, n: int = 100, seeds: int = 0
) -> ClaimCase:
    return ClaimCase(name="a", basis=basis, n=n, shows="1", rule="2", outcome=outcome, seeds=seeds)


def verdict(*cases: ClaimCase, scope: ClaimScope = ClaimScope.ALL) -> str:
    return verdict_of(cases, scope).value


def test_every_verdict_has_a_meaning() -> None:
    assert list(VERDICTS) == list(ClaimVerdict)


def test_a_claim_about_all_cases() -> None:
    assert verdict(case(), case()) == "confirmed"
    assert verdict(case(), case(FAILS)) == "in part"
    assert verdict(case(), case(UNCLEAR)) == "open"
    assert verdict(case(UNCLEAR), case(FAILS)) == "not borne out"
    assert verdict() == "open"


def test_a_claim_about_most_or_some_cases() -> None:
    most, some = ClaimScope.MOST, ClaimScope.SOME
    assert verdict(case(), case(), case(FAILS), scope=most) == "confirmed"
    assert verdict(case(), case(FAILS), case(FAILS), scope=most) == "not borne out"
    assert verdict(case(), case(UNCLEAR), case(FAILS), scope=most) == "open"
    assert verdict(case(), case(FAILS), scope=some) == "confirmed"
    assert verdict(case(FAILS), case(UNCLEAR), scope=some) == "open"
    assert verdict(case(FAILS), case(FAILS), scope=some) == "not borne out"


def test_few_instances_decide_nothing() -> None:
    """One image of 16: 8.1 % against 6.2 %."""
    few = case(n=FEWEST_INSTANCES - 1)
    assert verdict(few) == verdict(case(FAILS, n=16)) == "open"
    assert verdict(case(), few) == "open"
    assert verdict(case(n=FEWEST_INSTANCES)) == "confirmed"


def test_networks_trained_by_the_papers_settings_need_several_seeds() -> None:
    settings = ClaimBasis.SETTINGS
    assert verdict(case(basis=settings, seeds=FEWEST_SEEDS)) == "confirmed"
    assert verdict(case(basis=settings, seeds=FEWEST_SEEDS - 1)) == "open"


def test_material_of_ours_decides_nothing() -> None:
    """Not the paper's networks, and not our encoding of its method."""
    assert verdict(case(basis=OURS, n=10**6, seeds=99)) == "not testable here"
    assert verdict(case(FAILS, OURS)) == "not testable here"
    assert verdict(case(), case(FAILS, OURS)) == "confirmed"


def test_a_fact_refutes_and_a_test_does_not() -> None:
    assert verdict(fact("a", False, "720 for 1000")) == "refuted"
    assert verdict(fact("a", False, "1910 of 5496"), fact("b", None, "0 of 30")) == "refuted"
    assert verdict(fact("a", False, ""), fact("b", True, "")) == "in part"
    assert verdict(fact("rests on an assumption", None, "")) == "open"
    assert verdict(case(FAILS)) == "not borne out"


cases = st.builds(
    case,
    st.sampled_from(CaseOutcome),
    st.sampled_from(ClaimBasis),
    st.integers(0, 60),
    st.integers(0, 5),
)


@given(st.lists(cases, max_size=6), st.sampled_from(ClaimScope))
def test_no_verdict_is_more_than_its_evidence(given_cases: list[ClaimCase], s: ClaimScope) -> None:
    found = verdict_of(given_cases, s)
    deciding = [each for each in given_cases if each.basis is not OURS]
    enough = [
        each
        for each in deciding
        if each.basis is ClaimBasis.FACT
        or (each.n >= FEWEST_INSTANCES and (each.seeds == 0 or each.seeds >= FEWEST_SEEDS))
    ]
    failing = [each for each in enough if each.outcome is FAILS]
    holding = [each for each in enough if each.outcome is HOLDS]
    if found is ClaimVerdict.REFUTED:
        assert any(each.basis is ClaimBasis.FACT for each in failing)
    if found in (ClaimVerdict.REFUTED, ClaimVerdict.NOT_BORNE_OUT):
        assert failing and (not holding or s is ClaimScope.MOST)
    if found is ClaimVerdict.CONFIRMED:
        assert holding and (s is not ClaimScope.ALL or len(holding) == len(deciding))
    if found is ClaimVerdict.IN_PART:
        assert holding and failing
    assert (found is ClaimVerdict.NOT_TESTABLE) == (bool(given_cases) and not deciding)


# --- cases from numbers


def test_an_interval_on_either_side_is_unclear() -> None:
    def outcome(low: float, high: float) -> CaseOutcome:
        return within("a", THEIRS, 99, ClaimInterval(0, low, high), above=0).outcome

    assert [outcome(0.1, 0.2), outcome(-0.1, 0.2), outcome(-0.2, -0.1)] == [HOLDS, UNCLEAR, FAILS]
    assert outcome(0.0, 0.0) is UNCLEAR


def test_p_values_show_a_difference_and_never_that_there_is_none() -> None:
    assert [differing("a", THEIRS, 99, p).outcome for p in (0.01, 0.9)] == [HOLDS, UNCLEAR]
    assert [alike("a", THEIRS, 99, p).outcome for p in (0.01, 0.9)] == [FAILS, HOLDS]
    assert alike("a", THEIRS, 99, math.nan).outcome is UNCLEAR
    assert differing("a", THEIRS, 99, math.nan).outcome is UNCLEAR


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_a_tie_without_room_counts_for_neither_side(end: float) -> None:
    both = np.full((3, 50), end)
    assert gain_case("a", OURS, both, both, 1, above=0).outcome is UNCLEAR
    assert gain_case("a", OURS, both, both, 1, below=5).outcome is UNCLEAR
    other = gain_case("a", OURS, np.ones((3, 50)), np.zeros((3, 50)), 1, above=0)
    assert other.outcome is HOLDS and other.shows.startswith("100.0 % for 0.0 %: +100.0")


def test_a_network_that_learned_nothing_is_no_counterexample() -> None:
    nothing = np.full((3, 50), np.nan)
    assert gain_case("a", OURS, nothing, np.ones((3, 50)), 1, above=0).outcome is UNCLEAR
    assert share_case("a", OURS, nothing, 1, above=90).outcome is UNCLEAR
    some = np.vstack([np.ones((1, 50)), nothing[:2]])
    assert share_case("a", OURS, some, 1, above=90).seeds == 1
    assert unclear("a", OURS, 0, "–", "nearly constant").rule == "not judged: nearly constant"


def test_a_share_of_none_leaves_room_for_what_was_not_drawn() -> None:
    """By hand: 1 - 0.025^(1/40) = 8.8 % of the images may still be otherwise."""
    none = share_case("a", OURS, np.zeros((3, 40)), 1, below=1.5)
    assert none.shows == "0.0 [0.0, 8.8] %" and none.outcome is UNCLEAR


def test_images_under_many_networks_are_not_independent() -> None:
    """20 networks that see the same 40 images: a share of pairs would be far too narrow."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(60):
        image = rng.normal(size=(40, 1))
        values = image + 0.1 * rng.normal(size=(40, 20))
        found = mean_interval(values)
        missed += not found.low <= 0 <= found.high
    assert missed <= 8  # 5 % of 60 are 3; as independent pairs about 48 would miss


def test_seeds_that_differ_are_few_instances() -> None:
    """Three seeds, each right or wrong for all images: resampling three numbers is too narrow."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        found = mean_interval(rng.normal(size=(1, 3)) + 0.01 * rng.normal(size=(40, 3)))
        missed += not found.low <= 0 <= found.high
    assert missed <= 12  # 5 % of 100; the bootstrap alone misses in 21 to 25 %


def test_a_mean_over_seeds_by_hand() -> None:
    """Of 1, 2 and 3 on every image Student's 95 % limits are 2 -+ 4.303 / sqrt(3)."""
    found = mean_interval(np.tile([1.0, 2.0, 3.0], (40, 1)))
    assert (found.low, found.high) == pytest.approx((2 - 2.4843, 2 + 2.4843), abs=1e-3)


def test_intervals_by_hand() -> None:
    share = share_interval(10, 10)
    assert share.value == 100 and share.low == pytest.approx(100 * 0.025 ** (1 / 10))
    assert share_interval(10, 10, 2).low < share.low
    assert paired_p_value([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert paired_p_value(np.arange(1.0, 21), np.zeros(20)) < 1e-4
    rank = rank_interval(np.arange(30.0), np.arange(30.0) ** 3)
    assert (rank.value, rank.low, rank.high) == pytest.approx((1, 1, 1))


# --- how a claim is shown


def test_a_claim_says_what_was_tested_on_whose_material_and_how_much() -> None:
    cases = (case(n=97), case(n=1200), case(FAILS, OURS, n=5, seeds=2))
    claim = StudyClaim("c", "p", "t", cases, note="So it is.")
    assert claim.tested_on == "theirs and ours" and claim.instances == "97 to 1,200"
    assert claim.found == "a: 1 (holds); a: 1 (holds); a: 1 (unclear, n = 5)<br>So it is."
    assert StudyClaim("c", "p", "t", cases[2:]).instances == "5, 2 seeds"
    assert StudyClaim("c", "p", "t", (fact("a", True, "x"),)).instances == "–"
    assert StudyClaim("c", "p", "t", ()).found == "Nothing was measured."
    many = StudyClaim("c", "p", "t", (case(),) * 6 + (case(FAILS),))
    assert many.found == "7 cases: holds in 6, fails in 1. Fails: a."
    assert [row[0] for row in evidence_table([claim, many]).rows] == [1] * 3 + [2] * 7
