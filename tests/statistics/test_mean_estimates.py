"""Estimates of R and D: 2,000 simulated populations each, and the limits' known relations."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from radii.errors import InputError
from radii.statistics import METHODS, Population, Range, Sample, estimate_mean, plan_samples
from radii.statistics._limits import Chernoff, Exact, Hoeffding

POPULATIONS = 2000
MISS = 0.1
"""Confidence is 90 %: a level at which failures would be frequent enough to be noticed."""

Values = npt.NDArray[np.float64]


def check_level(failures: int, trials: int, miss: float = MISS) -> None:
    """So many failures are no surprise (1 in 10,000) if each has probability at most `miss`."""
    assert binom.sf(failures - 1, trials, miss) > 1e-4, f"{failures} of {trials} failed"


def test_the_check_can_fail() -> None:
    check_level(190, POPULATIONS)
    with pytest.raises(AssertionError):
        check_level(260, POPULATIONS)


def populations(rng: np.random.Generator, kind: str, samples: int) -> tuple[Values, Values]:
    """Means, and the values of samples of independent inputs, a row each."""
    if kind == "share":
        means = rng.choice([0.5, 0.02, 0.98, 0.9, 0.3], POPULATIONS)
        return means, (rng.random((POPULATIONS, samples)) < means[:, None]).astype(float)
    a, b = rng.choice([0.05, 0.3, 1.0, 8.0], (2, POPULATIONS, 1))
    return (a / (a + b))[:, 0], rng.beta(a, b, (POPULATIONS, samples))


@pytest.mark.parametrize("kind", ["share", "change"])
def test_planned_estimates_keep_their_error(kind: str) -> None:
    """R and D of independent inputs, within the planned error as often as stated."""
    plan = plan_samples(0.05, 1 - MISS)
    means, values = populations(np.random.default_rng(1), kind, plan.samples)
    check_level(int((np.abs(values.mean(axis=1) - means) > plan.error).sum()), POPULATIONS)


def limits_of(rows: Values, population: Population, name: str) -> tuple[Values, Values]:
    """Both limits for each row; shares with as many successes have the same ones."""
    known: dict[bytes, tuple[float, float]] = {}
    is_binary = bool(np.isin(rows, (0.0, 1.0)).all())
    for row in np.sort(rows, axis=1) if is_binary else rows:
        if row.tobytes() not in known:
            found = estimate_mean(row, population=population, confidence=1 - MISS, method=name)
            known[row.tobytes()] = (found.low, found.high)
    ordered = np.sort(rows, axis=1) if is_binary else rows
    low, high = np.array([known[row.tobytes()] for row in ordered]).T
    return low, high


CASES = [
    *(("share", name, samples) for name in METHODS for samples in (10, 150)),
    *(("change", name, 60) for name in METHODS if name != "exact"),
]


@pytest.mark.parametrize(("kind", "name", "samples"), CASES)
def test_intervals_cover_as_often_as_stated(kind: str, name: str, samples: int) -> None:
    means, values = populations(np.random.default_rng(samples), kind, samples)
    low, high = limits_of(values, Population("a generator"), name)
    check_level(int(((low > means) | (high < means)).sum()), POPULATIONS)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, name, samples in CASES if samples != 10]
)
def test_intervals_of_finite_sets_cover(kind: str, name: str) -> None:
    """Without replacement, most of the set; the truth is the set's own mean."""
    rng = np.random.default_rng(5)
    _, sets = populations(rng, kind, 60)
    drawn = rng.permuted(sets, axis=1)[:, :40]
    low, high = limits_of(drawn, Population("a set", 60), name)
    truth = sets.mean(axis=1)
    check_level(int(((low > truth + 1e-12) | (high < truth - 1e-12)).sum()), POPULATIONS)


def test_brackets_cover_whatever_is_inside() -> None:
    """g is open for some inputs, in a way that depends on g; the interval still holds."""
    rng = np.random.default_rng(7)
    means, truth = populations(rng, "share", 100)
    is_open = rng.random(truth.shape) < np.where(truth == 1, 0.2, 0.05)
    source, failures = Population("a generator"), 0
    known = {
        (least, most): estimate_mean(
            np.arange(100) < least,
            np.arange(100) < most,
            population=source,
            confidence=1 - MISS,
        )
        for least, most in set(zip(*_counts(truth, is_open), strict=True))
    }
    for mean, least, most in zip(means, *_counts(truth, is_open), strict=True):
        found = known[least, most]
        failures += not found.low <= mean <= found.high
        assert found.bracket_width == pytest.approx((most - least) / 100)
        assert found.sampling_width + found.bracket_width == pytest.approx(found.high - found.low)
    check_level(failures, POPULATIONS)


def _counts(truth: Values, is_open: npt.NDArray[np.bool_]) -> tuple[list[int], list[int]]:
    least = np.where(is_open, 0, truth).sum(axis=1).astype(int).tolist()
    most = np.where(is_open, 1, truth).sum(axis=1).astype(int).tolist()
    return least, most


shares = st.lists(st.booleans(), min_size=1, max_size=60).map(lambda v: np.array(v, float))
misses = st.floats(1e-4, 0.4)


@given(shares, misses)
@settings(max_examples=150, deadline=None)
def test_exact_is_never_wider(values: Values, miss: float) -> None:
    sample = Sample(values)
    exact, chernoff, hoeffding = (m.below(sample, miss) for m in (Exact(), Chernoff(), Hoeffding()))
    assert exact >= chernoff - 1e-9
    assert chernoff >= hoeffding - 1e-9


@given(shares, misses, st.integers(0, 100))
@settings(max_examples=150, deadline=None)
def test_exact_is_never_wider_for_sets(values: Values, miss: float, more: int) -> None:
    sample = Sample(values, len(values) + more)
    assert Exact().below(sample, miss) >= Hoeffding().below(sample, miss) - 1e-9


def test_bernstein_wins_where_values_vary_little() -> None:
    values = np.random.default_rng(3).uniform(0.48, 0.52, 2000)
    source = Population("a generator")
    widths = {
        name: estimate_mean(values, population=source, method=name)
        for name in ("hoeffding", "chernoff", "tightest")
    }
    assert widths["tightest"].sampling_width < 0.5 * widths["chernoff"].sampling_width
    assert widths["chernoff"].sampling_width <= widths["hoeffding"].sampling_width


def test_the_tightest_costs_little_where_bernstein_loses() -> None:
    values = np.tile([0.0, 1.0], 100) * 0.999
    source = Population("a generator")
    alone = estimate_mean(values, population=source, method="chernoff").sampling_width
    shared = estimate_mean(values, population=source, method="tightest").sampling_width
    assert alone <= shared <= 1.03 * alone


def test_a_whole_set_is_known_exactly() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.5])
    found = estimate_mean(values, population=Population("a set", 4))
    assert found.low == found.high == found.least == 0.625


def test_ranges_scale_values_and_refuse_what_leaves_them() -> None:
    source, span = Population("a generator"), Range(-2, 2)
    values = np.linspace(-1, 1, 50)
    found = estimate_mean(values, population=source, values=span)
    part = estimate_mean(values / 4 + 0.5, population=source)
    assert (found.low, found.high) == pytest.approx((4 * part.low - 2, 4 * part.high - 2))
    for outside in (2.5, math.nan):
        with pytest.raises(InputError, match="input 1 of the sample leaves the range"):
            estimate_mean([0.0, outside], population=source, values=span)


@pytest.mark.parametrize(
    ("lower", "upper"), [([], None), ([0.5], [0.4]), ([0.5, 0.5], [0.6]), ([[0.5]], None)]
)
def test_bad_values(lower: list[float], upper: list[float] | None) -> None:
    with pytest.raises(InputError):
        estimate_mean(lower, upper, population=Population("a generator"))


def test_more_than_the_set_has() -> None:
    with pytest.raises(InputError, match="3 inputs cannot be drawn without replacement from 2"):
        estimate_mean([0.0, 1.0, 1.0], population=Population("a set", 2))


def test_decisions_and_words() -> None:
    found = estimate_mean(np.ones(300), population=Population("mnist:test", 10000))
    assert found.is_at_least(0.95) is True
    assert found.is_at_least(0.999) is None
    assert estimate_mean(np.zeros(9), population=Population("x")).is_at_least(0.9) is False
    assert "finite-population statement" in str(found)
    assert "the 10000 inputs of mnist:test" in str(found)
    assert "i.i.d. statement" in str(estimate_mean([1.0], population=Population("a generator")))
