"""How many inputs a statement needs: known numbers, worst cases by enumeration, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from radii.errors import InputError
from radii.statistics import Population, Range, plan_samples, reachable_confidence, reachable_error


def test_the_papers_number() -> None:
    assert plan_samples(0.05, 0.95).samples == 738


@pytest.mark.parametrize(("error", "confidence"), [(0.1, 0.9), (0.02, 0.99), (0.01, 0.95)])
def test_hoeffding_is_the_least_number(error: float, confidence: float) -> None:
    samples = plan_samples(error, confidence).samples
    tail = [2 * math.exp(-2 * error**2 * count) for count in (samples, samples - 1)]
    assert tail[0] <= 1 - confidence < tail[1]


def test_a_range_scales_the_number() -> None:
    assert plan_samples(0.1, 0.95, values=Range(-1, 1)).samples == 738
    assert plan_samples(0.05, 0.95, values=Range(0, 2)).samples == 2952


@pytest.mark.parametrize("error", [0.05, 0.1])
def test_exact_plan_holds_for_every_share(error: float) -> None:
    plan = plan_samples(error, 0.95, method="exact")
    assert plan.samples < plan_samples(error, 0.95).samples
    shares = np.linspace(0.001, 0.999, 997)[:, None]
    seen = np.arange(plan.samples + 1)[None]
    off = np.abs(seen / plan.samples - shares) > error
    missed = np.where(off, binom.pmf(seen, plan.samples, shares), 0.0).sum(axis=1)
    assert missed.max() <= 0.05


@pytest.mark.parametrize("method", ["hoeffding", "exact"])
def test_finite_plan_holds_for_every_set(method: str) -> None:
    population = Population("a set", 200)
    plan = plan_samples(0.08, 0.9, method=method, population=population)
    assert plan.samples < plan_samples(0.08, 0.9, method=method).samples
    successes, seen = np.arange(201)[:, None], np.arange(plan.samples + 1)[None]
    off = np.abs(seen / plan.samples - successes / 200) > 0.08 + 1e-12
    chances = hypergeom.pmf(seen, 200, successes, plan.samples)
    assert np.where(off, chances, 0.0).sum(axis=1).max() <= 0.1


def test_a_whole_set_is_always_enough() -> None:
    assert plan_samples(1e-9, 0.95, population=Population("a set", 360)).samples <= 360


def test_what_a_set_allows() -> None:
    source = Population("the source of digits")
    with pytest.raises(InputError, match=r"needs 738 inputs but digits:test has 360: .* ±0\.0716"):
        plan_samples(0.05, 0.95, population=source).check_available(360, "digits:test")
    plan_samples(0.05, 0.95, population=source).check_available(738, "digits:test")
    error = reachable_error(360, 0.95, "hoeffding", source, Range())
    sure = reachable_confidence(360, error, "hoeffding", source, Range())
    assert sure == pytest.approx(0.95, abs=1e-9)
    assert plan_samples(error, 0.95).samples == 360


@pytest.mark.parametrize(
    ("error", "confidence", "values"),
    [
        (0.0, 0.95, Range()),
        (-0.1, 0.95, Range()),
        (math.nan, 0.95, Range()),
        (1.0, 0.95, Range()),
        (2.0, 0.95, Range(0, 2)),
        (0.05, 0.0, Range()),
        (0.05, 1.0, Range()),
        (0.05, 95.0, Range()),
        (1e-9, 0.95, Range()),
    ],
)
def test_bad_input(error: float, confidence: float, values: Range) -> None:
    with pytest.raises(InputError):
        plan_samples(error, confidence, values=values)


@pytest.mark.parametrize("text", ["1:0", "0:inf", "0", "a:b", "nan:1", "0:1:2"])
def test_bad_ranges(text: str) -> None:
    with pytest.raises(InputError, match="range"):
        Range.parse(text)


def test_unknown_and_unplannable_methods() -> None:
    with pytest.raises(InputError, match="'bayes' is not one of exact, hoeffding"):
        plan_samples(0.05, 0.95, method="bayes")
    with pytest.raises(InputError, match="plan with another method"):
        plan_samples(0.05, 0.95, method="bernstein")
