"""Correlations and effects: known values, coverage of intervals, levels of tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from radii.errors import DataError
from radii_papers.tradeoff import StudyMember, Value, correlate, correlations, effects, expand


def members(count: int, slope: float, seed: int = 0) -> list[StudyMember]:
    rng = np.random.default_rng(seed)
    recipes = expand("deterministic", {"width": list(range(1, count // 2 + 1)), "depth": [1, 2]}, 0)
    found = []
    for recipe in recipes:
        accuracy = float(rng.uniform(0.8, 1.0))
        share = float(np.clip(0.5 + slope * (accuracy - 0.9) + rng.normal(0, 0.01), 0, 1))
        value = Value(share, share, share - 0.05, share + 0.05, 100)
        found.append(
            StudyMember(
                recipe=recipe, parameters=1, accuracy=accuracy, robustness=value, change=value
            )
        )
    return found


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_coefficients_and_fisher_are_scipys(method: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    y = np.round(0.5 * x + rng.normal(size=30), 1)  # with ties
    value, low, high, fisher_low, fisher_high, p = correlate(x, y, method)  # type: ignore[arg-type]
    expected = (stats.pearsonr if method == "pearson" else stats.spearmanr)(x, y)
    assert value == pytest.approx(expected.statistic)
    assert p == pytest.approx(expected.pvalue, abs=0.02)
    assert low < value < high
    if method == "pearson":
        interval = expected.confidence_interval(0.95)
        assert (fisher_low, fisher_high) == pytest.approx((interval.low, interval.high))


def test_a_constant_has_no_correlation() -> None:
    found = correlate(np.arange(6.0), np.ones(6), "spearman")
    assert all(math.isnan(number) for number in found)
    with pytest.raises(DataError, match="4 pairs"):
        correlate(np.arange(3.0), np.arange(3.0), "pearson")
    with pytest.raises(DataError, match="confidence"):
        correlate(np.arange(5.0), np.arange(5.0), "pearson", confidence=1.0)


def test_signs_are_seen() -> None:
    for slope, sign in ((-2.0, "negative"), (2.0, "positive")):
        found = [c for c in correlations(members(30, slope)) if c.measure == "R"]
        assert {c.sign for c in found} == {sign}
        assert all(c.p_value < 0.01 for c in found)


def test_effects_find_the_parameter_that_matters() -> None:
    made = [
        StudyMember(
            recipe=recipe,
            parameters=1,
            accuracy=0.9,
            robustness=Value(r := 0.4 * recipe.depth + 0.001 * place, r, r, r, 10),
        )
        for place, recipe in enumerate(
            expand("deterministic", {"depth": [1, 2], "seed": list(range(8))}, 0)
        )
    ]
    (effect,) = effects(made)
    assert effect.parameter == "depth"
    assert [name for name, _ in effect.groups] == ["1", "2"]
    assert effect.p_value <= effect.adjusted < 0.01


def test_networks_that_did_not_converge_do_not_count() -> None:
    recipes = expand("bayesian", {"width": [1, 2, 3, 4, 5]}, 0)
    value = Value(0.5, 0.5, 0.4, 0.6, 10)
    made = [
        StudyMember(recipe=r, parameters=1, accuracy=0.5, robustness=value, converged=place != 0)
        for place, r in enumerate(recipes)
    ]
    assert {c.networks for c in correlations(made)} == {4}
