"""Censored fits recover parameters, agree with scipy, and say when there is nothing to fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from simulated_brackets import gridded, lognormal_brackets

from radii.errors import DataError
from radii.statistics import FAMILIES, Distribution, fit, fit_all

TRUE = {
    "lognormal": (
        stats.lognorm(0.5, scale=0.05),
        {"log mean": math.log(0.05), "log deviation": 0.5},
    ),
    "normal": (stats.norm(0.06, 0.015), {"mean": 0.06, "deviation": 0.015}),
    "weibull": (stats.weibull_min(2.0, scale=0.06), {"scale": 0.06, "shape": 2.0}),
    "gamma": (stats.gamma(3.0, scale=0.02), {"scale": 0.02, "shape": 3.0}),
}


def censored(true: Any, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps of a coarse grid; some exact; some without a witness beyond a random time."""
    rng = np.random.default_rng(seed)
    distances = np.maximum(true.rvs(size, random_state=rng), 1e-4)
    lower, upper = gridded(distances, 0.01)
    end = rng.uniform(0.04, 0.3, size)
    upper = np.where(distances > end, math.inf, upper)
    lower = np.where(distances > end, end, lower)
    is_exact = (rng.random(size) < 0.1) & np.isfinite(upper)
    return np.where(is_exact, distances, lower), np.where(is_exact, distances, upper)


@pytest.mark.parametrize("family", TRUE)
def test_parameters_are_recovered(family: str) -> None:
    true, parameters = TRUE[family]
    found = fit(Distribution.from_arrays(*censored(true, 4000, 1)), family)
    for name, value in parameters.items():
        assert abs(found.parameters[name] - value) < 4 * found.standard_errors[name]
        assert found.standard_errors[name] < 0.1 * abs(value)
    assert found.quantile(0.5) == pytest.approx(true.median(), rel=0.05)
    assert found.broken(0.05) == pytest.approx(true.cdf(0.05), abs=0.03)
    assert found.mean() == pytest.approx(true.mean(), rel=0.05)


@pytest.mark.parametrize("family", ["lognormal", "weibull", "gamma"])
def test_agrees_with_scipy(family: str) -> None:
    lower, upper = censored(TRUE[family][0], 150, 2)
    is_exact, is_open = lower == upper, np.isinf(upper)
    data = stats.CensoredData(
        uncensored=lower[is_exact],
        interval=np.stack([lower, upper], axis=1)[~is_exact & ~is_open],
        right=lower[is_open],
    )
    shape, _, scale = getattr(stats, TRUE[family][0].dist.name).fit(data, floc=0)
    found = fit(Distribution.from_arrays(lower, upper), family)
    expected = [math.log(scale) if family == "lognormal" else scale, shape]
    np.testing.assert_allclose(list(found.parameters.values()), expected, rtol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_coordinates_are_those_of_scipy(family: str) -> None:
    known = FAMILIES[family]
    at, values = np.array([[0.3, -0.4]]), np.array([-np.inf, 0.2, 0.9, 1.7, 5.0, np.inf])
    np.testing.assert_allclose(known.below(at, values) + known.above(at, values), 1, atol=1e-12)
    np.testing.assert_allclose(known.frozen(at[0]).cdf(values), known.below(at, values)[0])
    step = np.array([[1e-6, 0.0]]), np.array([[0.0, 1e-6]])
    slopes = [
        (known.natural(at[0] + h[0])[0] - known.natural(at[0] - h[0])[0]).sum() / 2e-6 for h in step
    ]
    np.testing.assert_allclose(known.natural(at[0])[1], slopes, rtol=1e-6)
    twice = known.rescaled(at, 2.0)
    np.testing.assert_allclose(known.below(twice, 2 * values), known.below(at, values))


def test_standard_errors_have_the_right_size() -> None:
    """The estimate's own spread over many samples."""
    found = [fit(lognormal_brackets(100, seed, step=0.01)) for seed in range(150)]
    for name in ("log mean", "log deviation"):
        spread = np.std([f.parameters[name] for f in found])
        assert np.mean([f.standard_errors[name] for f in found]) == pytest.approx(spread, rel=0.2)


def test_the_right_family_has_the_smallest_aic() -> None:
    for family in ("lognormal", "weibull"):
        dist = Distribution.from_arrays(*gridded(TRUE[family][0].rvs(2000, random_state=3), 0.005))
        ranked = fit_all(dist)
        assert ranked[0].family == family
        assert [f.aic for f in ranked] == sorted(f.aic for f in ranked)


def test_what_carries_no_information_changes_nothing() -> None:
    lower, upper = censored(TRUE["lognormal"][0], 100, 4)
    bare = fit(Distribution.from_arrays(lower, upper))
    more = fit(
        Distribution.from_arrays(
            np.append(lower, [0.0, 0.0]),
            np.append(upper, [math.inf, 0.0]),
            correct=np.append(np.ones(101, bool), False),
        )
    )
    assert more.parameters == pytest.approx(bare.parameters)
    assert (more.misclassified, more.without_information, more.inputs) == (1, 1, 100)
    assert "log-normal fitted to 100 brackets (1 more without an answer): log mean" in str(more)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0.1, 0.2], [math.inf, math.inf], "one with a witness"),
        ([0.1, 0.1, 0.1], [0.2, 0.2, 0.2], "has no maximum"),
        ([0.0, 0.1], [0.0, 0.2], "1 correctly classified inputs have radius 0"),
    ],
)
def test_nothing_to_fit_is_one_sentence(lower: Any, upper: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fit(Distribution.from_arrays(lower, upper, correct=True))


def test_unknown_families_and_no_correct_input_are_named() -> None:
    with pytest.raises(DataError, match="family 'cauchy' is not one of lognormal"):
        fit(lognormal_brackets(10, 0), "cauchy")
    with pytest.raises(DataError, match="no input is classified correctly"):
        fit(Distribution.from_arrays([0.0], [0.0]))
