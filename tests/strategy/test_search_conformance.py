"""Every search of the registry passes the suite that plugins run."""

from __future__ import annotations

import pytest

from radii.problem import Grid
from radii.strategy import (
    SEARCHES,
    AttackGuided,
    AttackOnly,
    Binary,
    Cuts,
    KBinary,
    Linear,
    Native,
    Search,
)
from radii.testing import SearchConformance


@pytest.mark.sampled(8)
class TestNative(SearchConformance):
    def make(self, grid: Grid) -> Search:
        return Native(grid)


@pytest.mark.sampled(8)
class TestNativeWithProbes(SearchConformance):
    def make(self, grid: Grid) -> Search:
        search = Native(grid)
        search.probes = True
        return search


@pytest.mark.sampled(8)
class TestAttackGuided(SearchConformance):
    def make(self, grid: Grid) -> Search:
        return AttackGuided(grid)


@pytest.mark.sampled(8)
class TestBinary(SearchConformance):
    def make(self, grid: Grid) -> Search:
        return Binary(grid)


@pytest.mark.sampled(8)
class TestKBinary(SearchConformance):
    def make(self, grid: Grid) -> Search:
        return KBinary(grid)


@pytest.mark.sampled(8)
class TestKBinaryWithGoldenCuts(SearchConformance):
    """Four queries at once are more queries in all, in less time."""

    def most_proofs(self) -> float:
        return 2 * super().most_proofs()

    def make(self, grid: Grid) -> Search:
        return KBinary(grid, k=4, cuts=Cuts.GOLDEN)


@pytest.mark.sampled(8)
class TestLinear(SearchConformance):
    is_quick = False

    def make(self, grid: Grid) -> Search:
        return Linear(grid, k=3)


@pytest.mark.sampled(8)
class TestAttackOnly(SearchConformance):
    def make(self, grid: Grid) -> Search:
        return AttackOnly(grid)


def test_none_is_left_out() -> None:
    suites = (TestNative, TestAttackGuided, TestKBinary, TestBinary, TestLinear, TestAttackOnly)
    grid = SearchConformance.grid
    assert [type(suite().make(grid)) for suite in suites] == list(SEARCHES)
