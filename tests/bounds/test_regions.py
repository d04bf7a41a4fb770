"""The range of linear functions over balls and boxes, against samples and linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from radii.bounds import linear_range
from radii.problem import Ball, Box, Domain, Norm


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10_000), norm=st.sampled_from(list(Norm)), eps=st.floats(0, 2))
def test_samples_stay_within_the_range(seed: int, norm: Norm, eps: float) -> None:
    rng = np.random.default_rng(seed)
    matrix, offset = rng.normal(size=(3, 6)), rng.normal(size=3)
    ball = Ball(rng.uniform(0, 1, 6), eps, norm, Domain(0.0, 1.0))
    low, high = linear_range(csr_array(matrix), offset, ball)
    values = ball.sample(rng, 300) @ matrix.T + offset
    assert np.all(values >= low) and np.all(values <= high)


@pytest.mark.parametrize("seed", range(10))
def test_l1_balls_in_a_domain_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row, centre, eps = rng.normal(size=5), rng.uniform(0, 1, 5), rng.uniform(0.1, 2)
    ball = Ball(centre, eps, Norm.L1, Domain(0.0, 1.0))
    _, high = linear_range(csr_array(row[None]), np.zeros(1), ball)
    bounds = [(0, 1 - c) for c in centre] + [(0, c) for c in centre]
    best = linprog(-np.concatenate([row, -row]), np.ones((1, 10)), [eps], bounds=bounds)
    assert high[0] == pytest.approx(row @ centre - best.fun, abs=1e-9)


def test_boxes_and_linf_balls_are_exact() -> None:
    row = csr_array(np.array([[1.0, -2.0]]))
    box = Box(np.array([0.0, 0.5]), np.array([1.0, 0.5]))
    low, high = linear_range(row, np.array([3.0]), box)
    np.testing.assert_allclose([low[0], high[0]], [2.0, 3.0], atol=1e-9)
    ball = Ball(np.array([0.5, 0.9]), 0.2, Norm.LINF, Domain(0.0, 1.0))
    low, high = linear_range(row, np.zeros(1), ball)
    np.testing.assert_allclose([low[0], high[0]], [0.3 - 2.0, 0.7 - 1.4], atol=1e-9)


def test_l2_balls_use_the_better_of_ball_and_box() -> None:
    row = csr_array(np.array([[3.0, 4.0]]))
    wide = Ball(np.zeros(2), 1.0, Norm.L2, Domain(-9.0, 9.0))
    assert linear_range(row, np.zeros(1), wide)[1][0] == pytest.approx(5.0, abs=1e-9)
    clipped = Ball(np.zeros(2), 1.0, Norm.L2, Domain(-0.1, 0.1))
    assert linear_range(row, np.zeros(1), clipped)[1][0] == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1.0, 1e170])
def test_rows_in_l2_whose_squares_are_no_normal_numbers(size: float) -> None:
    ball = Ball(np.zeros(2), 1.0, Norm.L2, Domain(np.array(-2.0), np.array(2.0)))
    _, high = linear_range(csr_array(np.array([[3 * size, 4 * size]])), np.zeros(1), ball)
    assert high[0] == pytest.approx(5 * size, rel=1e-9)
