"""Which cases of a test `make test` runs where it runs a sample: see `sampled` in conftest.py."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import _left_out

FAMILIES = ("dense", "residual", "pooling", "clipped")
NORMS = ("linf", "l2", "l1")


def cases(count: int, *repeated: str, **parameters: tuple[object, ...]) -> list[Any]:
    """One for each combination of the parameters' values, as pytest collects them."""
    mark = pytest.mark.sampled(count, *repeated).mark
    return [
        SimpleNamespace(
            callspec=SimpleNamespace(params=dict(zip(parameters, values, strict=True))),
            get_closest_marker=lambda name: mark,
        )
        for values in product(*parameters.values())
    ]


def sample(every: list[Any], seed: str) -> list[tuple[object, ...]]:
    left_out = _left_out(every, seed)
    return [tuple(case.callspec.params.values()) for case in every if case not in left_out]


def test_every_value_is_tried_and_no_more_than_was_said() -> None:
    every = cases(6, family=FAMILIES, norm=NORMS, seed=tuple(range(10)))
    for seed in map(str, range(20)):
        chosen = sample(every, seed)
        assert len(chosen) == 6
        assert {family for family, _, _ in chosen} == set(FAMILIES)
        assert {norm for _, norm, _ in chosen} == set(NORMS)


def test_every_value_comes_before_the_count() -> None:
    chosen = sample(cases(1, family=FAMILIES, seed=tuple(range(10))), "1")
    assert sorted(str(family) for family, _ in chosen) == sorted(FAMILIES)


def test_values_that_a_mark_calls_repetitions_are_drawn_by_chance() -> None:
    every = cases(3, "family", family=FAMILIES, norm=NORMS)
    samples = [sample(every, str(seed)) for seed in range(40)]
    assert all({norm for _, norm in chosen} == set(NORMS) for chosen in samples)
    assert all(len(chosen) == len(NORMS) for chosen in samples)
    assert {family for chosen in samples for family, _ in chosen} == set(FAMILIES)


def test_seeds_alone_are_drawn_by_chance_and_each_is_drawn_by_some_seed() -> None:
    every = cases(3, seed=tuple(range(12)))
    samples = [sample(every, str(seed)) for seed in range(40)]
    assert all(len(chosen) == 3 for chosen in samples)
    assert {case for chosen in samples for case in chosen} == {(seed,) for seed in range(12)}
    assert sample(every, "7") == sample(every, "7")


def test_a_small_test_runs_whole() -> None:
    assert len(sample(cases(9, norm=NORMS), "1")) == len(NORMS)
