"""Two distributions: tests hold their level, effects are bounded, leads are told in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from simulated_brackets import gridded, lognormal_brackets, widened

from radii.errors import DataError
from radii.statistics import (
    ComparisonOptions,
    Distribution,
    compare,
    compare_groups,
    compare_sides,
    dominance,
    spearman_matrix,
)
from radii.statistics._effects import chance_limit, cliffs_delta
from radii.statistics._pairs import paired_on
from radii.statistics._tests import (
    by_permutation,
    censored_scores,
    ks_test,
    location_p_value,
    mann_whitney_test,
    welch_test,
)


def two(scale: float, seed: int, *, size: int = 60, share: float = 0.0) -> list[Distribution]:
    """Two networks on the same inputs, whose radii go together."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 0.4, size)
    made = []
    for name, factor in (("a", 1.0), ("b", scale)):
        distances = 0.05 * factor * np.exp(hard + rng.normal(0, 0.3, size))
        lower, upper = widened(*gridded(distances, 0.002), 0.002, rng, share)
        made.append(Distribution.from_arrays(lower, upper, network=name, label=0, split="test"))
    return made


def test_scores_of_exact_values_are_centred_midranks() -> None:
    values = np.array([0.2, 0.1, 0.4, 0.2])
    ranks = stats.rankdata(values)
    np.testing.assert_allclose(
        censored_scores(values, values), 2 * (ranks - ranks.mean()) / 4, atol=1e-9
    )


@pytest.mark.parametrize("is_matched", [False, True])
def test_the_permutation_test_rejects_at_its_level(is_matched: bool) -> None:
    p_values = []
    for seed in range(100):
        a, b = two(1.0, seed, size=30, share=0.4)
        lower, upper = np.concatenate([a.lower, b.lower]), np.concatenate([a.upper, b.upper])
        if not is_matched:  # break the pairs
            order = np.random.default_rng(seed).permutation(30)
            lower[:30], upper[:30] = lower[:30][order], upper[:30][order]
        scores = censored_scores(lower, upper)
        p_values.append(
            location_p_value(
                scores[:30], scores[30:], is_matched=is_matched, permutations=199, seed=seed
            )
        )
    assert np.mean(np.array(p_values) <= 0.1) <= 0.16
    if is_matched:
        assert np.mean(np.array(p_values) <= 0.1) >= 0.04


def test_pairs_see_what_independent_tests_do_not() -> None:
    a, b = two(1.15, 3)
    found = compare(a, b, permutations=999)
    assert found.is_matched
    assert found.permutation.p_value < 0.05
    assert found.tests[0].p_value > 0.05
    assert found.means.proven + 2 * found.means.error < 0
    assert found.delta.low <= found.delta.least <= found.delta.most <= found.delta.high
    assert found.verdict().startswith("On the same inputs, b has the larger radii")
    assert len(found.all_tests) == 5


def test_inputs_that_either_misclassifies_are_left_out_of_pairs() -> None:
    a = Distribution.from_arrays([0.1, 0.0, 0.2], [0.2, 0.0, 0.3], network="a", input=[0, 1, 2])
    b = Distribution.from_arrays([0.3, 0.1, 0.0], [0.4, 0.2, 0.0], network="b", input=[2, 0, 1])
    pair = paired_on(a, b)
    assert pair.is_matched
    assert pair.first.lower.tolist() == [0.1, 0.2]
    assert pair.second.lower.tolist() == [0.1, 0.3]
    assert len(paired_on(a, b, "all").first) == 3
    other = Distribution.from_arrays([0.3], [0.4], network="c", input=[9])
    assert not paired_on(a, other).is_matched


def test_cliffs_delta_by_hand() -> None:
    a = Distribution.from_arrays([0.2, 0.1], [0.3, 0.2], network="a", input=[0, 1])
    b = Distribution.from_arrays([0.1, 0.0], [0.2, 0.1], network="b", input=[5, 6])
    # 0.2-0.3 is above both; 0.1-0.2 is above 0-0.1 and overlaps with 0.1-0.2.
    delta = cliffs_delta(paired_on(a, b))
    assert (delta.least, delta.most) == (0.5, 1.0)
    exact = cliffs_delta(
        paired_on(
            Distribution.from_arrays([0.1], [0.1], input=[0]),
            Distribution.from_arrays([0.1], [0.1], input=[1]),
        )
    )
    assert (exact.least, exact.most) == (0, 0)
    open_ended = Distribution.from_arrays([0.1], [math.inf], input=[3])
    assert cliffs_delta(paired_on(open_ended, b)).most == 1


@pytest.mark.parametrize("pairs", [1, 2, 5, 20, 100])
def test_limits_of_a_chance_are_false_as_rarely_as_asked(pairs: int) -> None:
    """Where pairs decide for one network or the other, delta's estimate is binomial: the worst
    case, in which the limits are all but exact."""
    counts = np.arange(pairs + 1)
    limits = np.array([chance_limit(count / pairs, pairs, 0.05) for count in counts])
    false = [
        stats.binom(pairs, chance).pmf(counts)[limits > chance].sum()
        for chance in np.linspace(0.01, 0.99, 99)
    ]
    assert 0.035 <= max(false) <= 0.05


def test_five_inputs_that_all_say_the_same_do_not_prove_it() -> None:
    small = Distribution.from_arrays(np.full(5, 0.1), np.full(5, 0.1), input=np.arange(5))
    large = Distribution.from_arrays(np.full(5, 0.2), np.full(5, 0.2), input=np.arange(10, 15))
    delta = cliffs_delta(paired_on(small, large))
    assert delta.least == delta.most == delta.low == -1
    assert delta.high == pytest.approx(1 - 2 * 0.025 ** (1 / 5), abs=1e-6)


def test_classical_tests_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, 300), rng.normal(0.2, 1, 250)
    assert ks_test(x, y).statistic == pytest.approx(stats.ks_2samp(x, y).statistic)
    assert ks_test(x, y).p_value == pytest.approx(stats.ks_2samp(x, y).pvalue, rel=0.15)
    small = ks_test(x[:50], y[:40])
    assert small.p_value == pytest.approx(stats.ks_2samp(x[:50], y[:40]).pvalue)
    expected = stats.ttest_ind(x, y, equal_var=False)
    assert welch_test(x, y).p_value == pytest.approx(expected.pvalue)
    assert mann_whitney_test(x, y).p_value == pytest.approx(stats.mannwhitneyu(x, y).pvalue)
    assert not welch_test(x, np.append(y, math.inf)).is_made
    assert "no finite mean" in str(welch_test(x, np.append(y, math.inf)))
    assert not mann_whitney_test(np.ones(3), np.ones(3)).is_made
    for usual in (welch_test(x, y), mann_whitney_test(x, y)):
        permuted = by_permutation(usual, x, y, permutations=4999, seed=0)
        assert permuted.p_value == pytest.approx(usual.p_value, abs=0.003)  # large samples agree


def test_a_correlation_of_few_inputs_is_counted_out() -> None:
    """Of three inputs, 2 of 6 orders give a correlation of 1 or -1."""
    networks = [
        Distribution.from_arrays(values, values, network=name, correct=True)
        for name, values in (("a", [0.1, 0.2, 0.3]), ("b", [0.2, 0.4, 0.5]))
    ]
    found = spearman_matrix(Distribution.union(networks))
    assert (found.coefficients[0, 1], found.p_values[0, 1]) == pytest.approx((1, 1 / 3))


def test_sides_and_splits() -> None:
    dist = lognormal_brackets(80, 1, network="a", split=["train", "test"] * 40)
    t, ks = compare_sides(dist)
    assert t.is_made
    assert ks.p_value > 0.05
    nothing = Distribution.from_arrays([0.0, 0.0], [0.1, 0.2])
    assert not compare_sides(nothing)[0].is_made
    options = ComparisonOptions(by="split", permutations=199)
    (found,) = compare_groups(dist, options).comparisons
    assert found.names == ("split train", "split test")
    assert not found.is_matched
    assert found.permutation.p_value > 0.01
    with pytest.raises(DataError, match="some brackets have no split"):
        compare_groups(nothing, options)


def test_all_pairs_are_corrected() -> None:
    groups = Distribution.union(
        lognormal_brackets(30, seed, input=np.arange(30) + 100 * seed, network=str(seed))
        for seed in range(3)
    )
    compared = compare_groups(groups, ComparisonOptions(permutations=199))
    found, adjusted = compared.comparisons, compared.adjusted["permutation of scores"]
    assert [c.names for c in found] == [("0", "1"), ("0", "2"), ("1", "2")]
    assert all(p >= c.permutation.p_value for p, c in zip(adjusted, found, strict=True))
    assert "do not differ significantly" in found[0].verdict(adjusted=0.2)
    assert "0.2 after Holm's correction" in found[0].verdict(adjusted=0.2)


def test_crossing_leads_are_told_in_words() -> None:
    a = Distribution.from_arrays([0.05] * 10, [0.06] * 10, network="A")
    b = Distribution.from_arrays([0.01] * 3 + [0.1] * 7, [0.02] * 3 + [0.11] * 7, network="B")
    found = dominance(a, b)
    assert str(found) == "A is more robust below 0.05, B above 0.06."
    assert found.dominant is None
    assert [s.leader for s in found.stretches] == ["A", "B"]
    assert found.stretches[0].start == 0.02
    assert dominance(a, b, tolerance=0.5).stretches[0].leader == "B"
    with pytest.raises(DataError, match="tolerance"):
        dominance(a, b, tolerance=1)


def test_dominance_holds_for_these_inputs_and_not_yet_for_all() -> None:
    a = Distribution.from_arrays([0.05] * 10, [0.06] * 10, network="A")
    c = Distribution.from_arrays([0.02] * 10, [0.04] * 10, network="C")
    assert str(dominance(a, c)) == "A is at least as robust as C at every eps."
    assert dominance(c, a).dominant == "A"
    few = a.select(np.arange(5)), c.select(np.arange(5))
    sure = dominance(*few, level=0.95)
    assert (
        str(sure) == "Neither A nor C is shown to be more robust at any eps, with 95 % confidence."
    )
    rows = np.arange(100)
    many = [Distribution.union([each] * 10).labelled(input=rows) for each in (a, c)]
    assert [s.leader for s in dominance(*many, level=0.95).stretches] == ["A"]
    same = dominance(a, Distribution.from_arrays([0.05] * 10, [0.06] * 10, network="B"))
    assert not same.stretches


def test_a_difference_that_may_be_one_of_widths_is_said_to_rest_on_them() -> None:
    """The same radii, but one network's brackets are much wider: nothing is shown of radii."""
    radii = np.random.default_rng(5).lognormal(-3, 0.5, 80)
    narrow = Distribution.from_arrays(radii, radii * 1.01, network="narrow")
    wide = Distribution.from_arrays(radii * 0.2, radii * 1.01, network="wide")
    found = compare(narrow, wide, permutations=199)
    assert found.permutation.p_value < 0.05
    assert found.widths[1] > 10 * found.widths[0]
    assert "they alone leave open which is larger" in found.verdict()
    shown = compare(narrow, Distribution.from_arrays(radii / 10, radii / 9, network="small"))
    assert "leave open" not in shown.verdict()


def test_two_targets_of_the_same_inputs_are_matched() -> None:
    """Inputs of either target's own class have only one of the two brackets."""
    columns: dict[str, Any] = {"input": np.arange(30), "label": np.arange(30) % 10}
    one = lognormal_brackets(30, 1, target=1, property="one-to-one:1", **columns)
    two = lognormal_brackets(30, 2, target=2, property="one-to-one:2", **columns)
    first, second = (part.select(part.label != part.column("target")) for part in (one, two))
    pair = paired_on(first, second)
    assert pair.is_matched
    assert len(pair.first) == 24
    assert pair.first.column("input").tolist() == pair.second.column("input").tolist()


def test_a_single_lead_names_both_and_claims_no_gap() -> None:
    a = Distribution.from_arrays([0.1, 0.3, 0.3], [0.12, 0.4, 0.4], network="A")
    b = Distribution.from_arrays([0.04, 0.2, 0.2], [0.05, 0.25, 0.35], network="B")
    assert str(dominance(a, b)) == (
        "A is more robust than B at some eps between 0.05 and 0.3, and nowhere shown to be less so."
    )
    wide = Distribution.from_arrays([0.0, 0.2, 0.2], [0.2, 0.25, 0.25], network="B")
    assert str(dominance(a, wide)) == "A is more robust than B between 0.25 and 0.3."


def test_dominance_ends_where_the_other_may_hold_for_ever() -> None:
    a = Distribution.from_arrays([0.3, 0.3], [math.inf] * 2, network="A")
    b = Distribution.from_arrays([0.1, 0.1], [0.15, math.inf], network="B")
    found = dominance(a, b)
    assert found.dominant == "A"
    assert found.reach == 0.3
    assert str(found) == "A is at least as robust as B at every eps up to 0.3."


def test_spearman_is_that_of_scipy_on_what_both_classify_correctly() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.lognormal(-3, 0.5, 40), rng.lognormal(-3, 0.5, 40)
    y[:30] = x[:30] * rng.lognormal(0, 0.2, 30)
    wrong = np.arange(40) < 4
    a = Distribution.from_arrays(x, x * 1.1, network="a", correct=~wrong)
    b = Distribution.from_arrays(y, y * 1.1, network="b").select(np.arange(39, -1, -1))
    c = Distribution.from_arrays([0.1] * 40, [0.2] * 40, network="c")
    found = spearman_matrix(Distribution.union([a, b, c]))
    expected = stats.spearmanr(x[4:], y[4:])
    assert found.coefficients[0, 1] == pytest.approx(expected.statistic)
    assert found.p_values[1, 0] == pytest.approx(expected.pvalue)
    assert found.inputs[0, 1] == 36
    assert math.isnan(found.coefficients[0, 2])
    assert found.adjusted[0, 1] == pytest.approx(expected.pvalue)
    assert found.mean == pytest.approx(expected.statistic)
    assert found.frame().loc["a", "b"] == found.coefficients[0, 1]
    with pytest.raises(DataError, match="two networks"):
        spearman_matrix(a)
