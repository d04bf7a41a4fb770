"""Histograms and densities of radii known as intervals, by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from radii.errors import DataError
from radii.statistics import Distribution, clopper_pearson
from radii.views import radius_densities, radius_histograms


def test_bars_by_hand() -> None:
    """Two brackets within the second bin, one over both, one exact on an edge, one without end."""
    made = Distribution.from_arrays(
        [0.1, 0.12, 0.05, 0.1, 0.3, 0.0], [0.2, 0.15, 0.2, 0.1, math.inf, 0.0]
    )
    (found,) = radius_histograms(made, bins=[0.0, 0.1, 0.2], confidence=0.9)
    assert found.inputs == 5  # a misclassified input has no radius
    assert found.least.tolist() == [1 / 5, 2 / 5]
    assert found.most.tolist() == [2 / 5, 3 / 5]
    assert np.all((found.least <= found.likely + 1e-9) & (found.likely <= found.most + 1e-9))
    assert found.beyond == pytest.approx(1 / 5)
    assert found.low is not None and found.high is not None
    assert found.low[1] == clopper_pearson(2, 5, 0.95)[0]
    assert found.high[0] == clopper_pearson(2, 5, 0.95)[1]


def test_exact_radii_make_a_plain_histogram() -> None:
    radii = np.random.default_rng(0).lognormal(-3, 0.5, 200)
    (found,) = radius_histograms(Distribution.from_arrays(radii, radii))
    counts, _ = np.histogram(radii, found.edges)
    for share in (found.least, found.likely, found.most):
        np.testing.assert_allclose(share, counts / 200, atol=1e-9)
    assert len(found.edges) == 13  # 2 * 200^(1/3)


def test_bins_are_not_much_narrower_than_brackets_and_alike_for_all() -> None:
    lower = np.linspace(0.0, 0.8, 50)
    wide = Distribution.from_arrays(lower, lower + 0.2, network="wide")
    one, two = radius_histograms(Distribution.union([wide, wide.labelled(network="other")]))
    assert np.array_equal(one.edges, two.edges)
    assert np.diff(one.edges).min() >= 0.2
    assert len(radius_histograms(wide, bins=7)[0].edges) == 8
    for bad in (0, [0.1], [0.2, 0.1], [-0.1, 0.1]):
        with pytest.raises(DataError):
            radius_histograms(wide, bins=bad)


def test_limits_hold_in_all_bins_at_once() -> None:
    rng = np.random.default_rng(1)
    edges = np.linspace(0.0, 1.0, 6)
    false = 0
    for _ in range(200):
        radii = 1e-9 + rng.random(40)
        lower = np.maximum(radii - 0.2 * rng.random(40), 0.0)
        made = Distribution.from_arrays(lower, radii + 0.2 * rng.random(40), correct=True)
        (found,) = radius_histograms(made, bins=edges, confidence=0.9)
        assert found.low is not None and found.high is not None
        false += bool(np.any((found.low > 0.2) | (found.high < 0.2)))
    assert stats.binom.sf(false - 1, 200, 0.1) > 1e-4


def test_a_density_has_the_area_of_what_is_not_beyond_and_nears_the_truth() -> None:
    true = stats.lognorm(0.5, scale=0.05)
    radii = true.rvs(3000, random_state=2)
    lower = np.floor(radii / 0.002) * 0.002
    is_beyond = radii > 0.15
    upper = np.where(is_beyond, np.inf, lower + 0.002)
    made = Distribution.from_arrays(np.where(is_beyond, 0.15, lower), upper, correct=True)
    (found,) = radius_densities(made)
    assert found.beyond == pytest.approx(is_beyond.mean(), abs=1e-3)
    area = np.trapezoid(found.density, found.eps)
    assert area == pytest.approx(1 - found.beyond, abs=0.01)
    inner = (found.eps > 0.02) & (found.eps < 0.12)
    error = np.abs(found.density - true.pdf(found.eps))[inner]
    assert error.max() < 0.1 * true.pdf(0.04)
    with pytest.raises(DataError, match="no input has a counterexample"):
        radius_densities(Distribution.from_arrays([0.1], [math.inf]))
