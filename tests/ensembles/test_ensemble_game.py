"""The game's value against closed forms and an independent linear program; coupling; sets."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from radii.ensembles import AllowedSets, ListedSets, couple, members, solve
from radii.ensembles._ensemble import full_set, heaviest, is_within, maximal, minimal, set_of
from radii.ensembles._game import Mix, value_of
from radii.errors import SpecificationError


def reference(families: list[tuple[int, ...]], classifiers: int) -> float:
    """The same program by another solver, with one column a set of every point."""
    masks = [(point, mask) for point, sets in enumerate(families) for mask in (*sets, 0)]
    above = [[-float(mask >> c & 1) for _, mask in masks] + [1.0] for c in range(classifiers)]
    sums = [[float(at == p) for at, _ in masks] + [0.0] for p in range(len(families))]
    cost = [0.0] * len(masks) + [-1.0]
    found = linprog(cost, above, np.zeros(classifiers), sums, np.ones(len(families)))
    value: float = -found.fun / len(families)
    return value


@pytest.mark.parametrize("count", range(2, 7))
def test_matching_pennies(count: int) -> None:
    """One classifier at a time: the attacker must guess which one defends."""
    singles = ListedSets(tuple(1 << c for c in range(count)))
    found = solve([singles], count)
    assert found.lower == found.upper == Fraction(1, count)
    assert found.defence == (Fraction(1, count),) * count
    assert len(couple(found.attack)) == count


@pytest.mark.parametrize("count", range(2, 7))
@pytest.mark.parametrize("size", range(1, 7))
def test_every_set_of_one_size(count: int, size: int) -> None:
    sets = ListedSets(
        tuple(set_of(chosen) for chosen in combinations(range(count), min(size, count)))
    )
    assert solve([sets], count).lower == Fraction(min(size, count), count)


def test_two_classifiers_on_two_sides() -> None:
    """The paper's first figure: left fools one classifier, right the other."""
    found = solve([ListedSets((0b01, 0b10))], 2)
    assert found.lower == Fraction(1, 2)
    assert found.attack == ({0b01: Fraction(1, 2), 0b10: Fraction(1, 2)},)


def test_one_point_a_classifier() -> None:
    """Point c fools only classifier c: every classifier is wrong on one point of four."""
    assert solve([ListedSets((1 << c,)) for c in range(4)], 4).lower == Fraction(1, 4)


def test_nothing_and_everything_can_be_fooled() -> None:
    assert solve([ListedSets(())] * 3, 2).upper == 0
    assert solve([ListedSets((0b11,))] * 3, 2).lower == 1
    with pytest.raises(SpecificationError):
        solve([], 2)


def test_a_mix_needs_both_points() -> None:
    """Each point alone gives 1/2; together a deterministic attack does as well."""
    found = solve([ListedSets((0b01, 0b10))] * 2, 2)
    assert found.lower == Fraction(1, 2)
    assert len(couple(found.attack)) <= 2


games = st.integers(2, 6).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(
            st.lists(st.integers(0, 2**count - 1), min_size=1, max_size=5).map(maximal),
            min_size=1,
            max_size=6,
        ),
    )
)


@settings(max_examples=60, deadline=None)
@given(games)
def test_value_and_play(game: tuple[int, list[tuple[int, ...]]]) -> None:
    count, families = game
    found = solve([ListedSets(sets) for sets in families], count)
    assert found.is_exact
    assert float(found.lower) == pytest.approx(reference(families, count), abs=1e-7)
    attempts = couple(found.attack)
    assert len(attempts) <= count
    assert sum(attempt.probability for attempt in attempts) == 1
    played: list[Mix] = []
    for point, sets in enumerate(families):
        shares: dict[int, Fraction] = {}
        for attempt in attempts:
            mask = attempt.sets[point]
            assert any(is_within(mask, larger) for larger in (*sets, 0))
            shares[mask] = shares.get(mask, Fraction(0)) + attempt.probability
        played.append(shares)
    assert value_of(played, count) == found.lower
    assert sum(found.defence) == 1


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 7),
    st.lists(st.integers(1, 127), max_size=6),
    st.lists(st.integers(0, 5), min_size=7, max_size=7),
)
def test_heaviest_allowed_set(count: int, masks: list[int], weights: list[int]) -> None:
    universe = full_set(count)
    forbidden = minimal(mask for mask in masks if is_within(mask, universe))
    shares = [Fraction(weight, 7) for weight in weights]
    family = AllowedSets(universe, forbidden)
    allowed = [mask for mask in range(universe + 1) if family.allows(mask)]
    best = max(sum(shares[c] for c in members(mask)) for mask in allowed)
    found = heaviest(shares, forbidden, universe)
    assert sum(shares[c] for c in members(found)) == best
    assert found in maximal(allowed)


@settings(max_examples=40, deadline=None)
@given(games)
def test_forbidden_sets_say_the_same_as_allowed_ones(
    game: tuple[int, list[tuple[int, ...]]],
) -> None:
    count, families = game
    unless = [AllowedSets(full_set(count), minimal(m for m in sets if m)) for sets in families]
    listed = [
        ListedSets(maximal(m for m in range(2**count) if family.allows(m))) for family in unless
    ]
    assert solve(unless, count).lower == solve(listed, count).lower
