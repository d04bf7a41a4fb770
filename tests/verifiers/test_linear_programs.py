"""Linear programs whose bounds rest on nothing but weak duality."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from radii.verifiers import Limits
from radii.verifiers._expressions import Affine, combined, unit_rows, with_data
from radii.verifiers._programs import LinearConstraints, LinearRelaxation, Program, program


def random_program(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(6, 5)) * (rng.uniform(size=(6, 5)) < 0.7)
    high = np.where(rng.uniform(size=6) < 0.7, rng.uniform(0, 1, 6), np.inf)
    low = np.where(rng.uniform(size=6) < 0.3, -rng.uniform(0, 1, 6), -np.inf)
    rows = LinearConstraints(csr_array(matrix), low, high)
    return program(-np.ones(5), 2 * np.ones(5), [rows], rng.normal(size=5), offset=0.25)


def least(p: Program) -> float:
    matrix = p.rows.matrix.toarray()
    above, below = np.isfinite(p.rows.high), np.isfinite(p.rows.low)
    found = linprog(
        p.cost,
        np.vstack([matrix[above], -matrix[below]]),
        np.concatenate([p.rows.high[above], -p.rows.low[below]]),
        bounds=list(zip(p.low, p.high, strict=True)),
    )
    return found.fun + p.offset if found.success else np.inf


@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_the_minimum_and_never_above(seed: int) -> None:
    p = random_program(seed)
    found = LinearRelaxation(p, Limits()).minimum()
    assert found.bound <= least(p) + 1e-12
    assert found.bound == pytest.approx(least(p), abs=1e-7)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 19), noise=st.integers(0, 10_000), size=st.sampled_from([1e-6, 1, 1e3]))
def test_a_solver_that_lies_about_multipliers_weakens_but_never_breaks_a_bound(
    seed: int, noise: int, size: float
) -> None:
    p = random_program(seed)
    duals = np.random.default_rng(noise).normal(size=len(p.rows)) * size
    assert LinearRelaxation(p, Limits())._bound(p.cost, p.offset, duals) <= least(p)


def test_nothing_is_proven_from_numbers_that_are_not() -> None:
    p = random_program(2)
    relaxation = LinearRelaxation(p, Limits())
    relaxation.high[0] = np.nan
    assert relaxation._bound(p.cost, p.offset, np.zeros(len(p.rows))) == -np.inf
    relaxation.high[0], relaxation.low[0] = np.inf, -np.inf
    assert relaxation._bound(p.cost, p.offset, np.zeros(len(p.rows))) == -np.inf


def test_an_infeasible_program_is_proven_so() -> None:
    rows = LinearConstraints(csr_array(np.array([[1.0, 1.0]])), np.array([3.0]), np.array([np.inf]))
    p = program(np.zeros(2), np.ones(2), [rows], np.ones(2))
    assert LinearRelaxation(p, Limits()).minimum().bound == np.inf
    close = LinearConstraints(rows.matrix, np.array([2.0 + 1e-13]), rows.high)
    barely = program(np.zeros(2), np.ones(2), [close], np.ones(2))
    assert LinearRelaxation(barely, Limits()).minimum().bound < np.inf


def test_bounds_and_aims_can_be_changed_and_changed_back() -> None:
    p = random_program(1)
    relaxation = LinearRelaxation(p, Limits())
    before = relaxation.minimum().bound
    relaxation.bound_column(0, 0.5, 0.5)
    fixed = relaxation.minimum().bound
    assert fixed >= before
    relaxation.aim(-p.cost)
    assert -relaxation.minimum().bound >= fixed - p.offset
    relaxation.aim(p.cost, p.offset)
    relaxation.bound_column(0, p.low[0], p.high[0])
    assert relaxation.minimum().bound == pytest.approx(before, abs=1e-9)


def test_entries_too_small_for_the_solver_become_slack() -> None:
    rows = LinearConstraints(csr_array(np.array([[1.0, 1e-10]])), np.array([0.5]), np.array([0.5]))
    p = program(np.zeros(2), np.array([1.0, 100.0]), [rows], np.zeros(2))
    assert p.rows.matrix.nnz == 1
    assert p.rows.low[0] <= 0.5 - 1e-8 and p.rows.high[0] >= 0.5 + 1e-8


def test_new_entries_never_reach_the_matrix_they_came_from() -> None:
    matrix = csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]]))
    before = matrix.toarray().copy()
    changed = with_data(matrix, np.array([0.0, 5.0, 0.0, 6.0]))
    changed.sort_indices()
    np.testing.assert_array_equal(matrix.toarray(), before)
    assert changed.nnz == 2


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10_000))
def test_the_error_of_combined_expressions_covers_exact_arithmetic(seed: int) -> None:
    """Two layers composed in float64, against the same in rational numbers."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-3, 4), rng.normal(size=(2, 4))
    shift = rng.normal(size=4)
    identity = Affine(unit_rows(np.arange(3), 3), np.zeros(3), np.zeros(3))
    sizes = np.ones(3)
    hidden = combined({0: csr_array(first)}, shift, {0: identity}, sizes)
    result = combined({1: csr_array(second)}, np.zeros(2), {1: hidden}, sizes)
    x = rng.uniform(-1, 1, 3)
    exact = [
        sum(
            Fraction(float(second[r, k]))
            * (
                Fraction(float(shift[k]))
                + sum(Fraction(float(first[k, j])) * Fraction(float(x[j])) for j in range(3))
            )
            for k in range(4)
        )
        for r in range(2)
    ]
    for found, true, error in zip(result.at(x), exact, result.error, strict=True):
        assert abs(Fraction(float(found)) - true) <= Fraction(float(error))
    low, high = result.range(-np.ones(3), np.ones(3))
    assert all(low[r] <= exact[r] <= high[r] for r in range(2))
