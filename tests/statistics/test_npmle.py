"""Turnbull's estimate: by hand, against optimality, and as it recovers what is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from simulated_brackets import gridded, widened

from radii.statistics import Distribution
from radii.statistics._npmle import turnbull_of


def test_by_hand() -> None:
    """Two of (0, 1], one of (0, 2], one of (1, 3]: all mass lies on (0, 1] and (1, 2]."""
    found = turnbull_of(np.array([0.0, 0.0, 0.0, 1.0]), np.array([1.0, 1.0, 2.0, 3.0]))
    assert found.left.tolist() == [0, 1]
    assert found.right.tolist() == [1, 2]
    # The likelihood p^2 * 1 * (1 - p) is largest at p = 2 / 3.
    np.testing.assert_allclose(found.mass, [2 / 3, 1 / 3], atol=1e-3)
    assert found.loglikelihood == pytest.approx(math.log(4 / 27), abs=1e-6)


def test_exact_data_give_the_empirical_distribution() -> None:
    values = np.array([0.3, 0.1, 0.2, 0.2])
    found = turnbull_of(values, values)
    assert found.left.tolist() == [0.1, 0.2, 0.3]
    np.testing.assert_allclose(found.mass, [0.25, 0.5, 0.25])
    low, high = found.broken([0.05, 0.1, 0.25, 0.3])
    np.testing.assert_allclose(low, [0, 0.25, 0.75, 1])
    np.testing.assert_allclose(high, low)


def test_right_censored_data_give_the_product_limit() -> None:
    """Kaplan and Meier's example by hand: 1, 2+, 3, 4+ leave 3/4, then 3/8."""
    found = turnbull_of(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, math.inf, 3.0, math.inf]))
    low, _ = found.broken([1.0, 3.0])
    np.testing.assert_allclose(1 - low, [3 / 4, 3 / 8], atol=1e-6)
    assert found.right[-1] == math.inf


def test_a_misclassified_input_is_mass_at_zero() -> None:
    found = Distribution.from_arrays([0.0, 0.1], [0.0, 0.2]).turnbull()
    low, high = found.broken(0.0)
    assert (float(low), float(high)) == (0.5, 0.5)


@pytest.mark.parametrize("is_wide", [False, True])
def test_a_known_distribution_is_recovered(is_wide: bool) -> None:
    rng = np.random.default_rng(5)
    true = stats.lognorm(0.5, scale=0.05)
    lower, upper = gridded(true.rvs(4000, random_state=rng), 0.002)
    if is_wide:
        lower, upper = widened(lower, upper, 0.002, rng, share=0.6)
    found = turnbull_of(lower, upper)
    assert found.shortfall <= 1e-6
    assert found.mass.sum() == pytest.approx(1)
    grid = np.arange(1, 120) * 0.002 + 1e-9
    low, high = found.broken(grid)
    error = np.maximum(low - true.cdf(grid), true.cdf(grid) - high)
    assert error.max() < 0.05
    # The naive curves of the two sides are off by much more, once brackets are wide.
    if is_wide:
        naive = np.searchsorted(np.sort(upper), grid, side="right") / len(upper)
        assert np.abs(naive - true.cdf(grid)).max() > 0.03
        middle = (low + high) / 2
        assert np.abs(middle - true.cdf(grid)).max() < np.abs(naive - true.cdf(grid)).max()
    assert found.quantile(0.5)[0] == pytest.approx(0.05, abs=0.003)
    assert found.mean()[0] <= true.mean() + 0.001
    assert found.mean()[1] >= true.mean() - 0.001


def test_it_lies_between_the_sides_and_beats_other_masses() -> None:
    rng = np.random.default_rng(8)
    lower = rng.uniform(0, 1, 60)
    upper = lower + rng.uniform(0, 0.5, 60)
    upper[::7] = math.inf
    found = turnbull_of(lower, upper)
    at = np.linspace(0, 1.6, 40)
    dist = Distribution.from_arrays(lower, upper)
    proven, not_refuted = dist.shares(at)
    low, high = found.broken(at)
    assert np.all(low >= 1 - not_refuted - 1e-5)
    assert np.all(high <= 1 - proven + 1e-5)
    covers = (found.left[None] >= lower[:, None]) & (found.right[None] <= upper[:, None])
    for _ in range(200):
        other = 0.9 * found.mass + 0.1 * rng.dirichlet(np.ones(len(found.mass)))
        assert np.log(covers @ other).sum() <= found.loglikelihood + 1e-6


def test_ten_thousand_brackets_converge() -> None:
    rng = np.random.default_rng(2)
    distances = rng.lognormal(-3, 0.5, 10_000)
    lower = np.maximum(distances - rng.uniform(0, 0.02, 10_000), 0)
    upper = np.where(rng.random(10_000) < 0.1, math.inf, distances + rng.uniform(0, 0.02, 10_000))
    found = turnbull_of(lower, upper)
    assert found.shortfall <= 1e-6
    assert found.iterations < 200
