"""Anytime validity under optional stopping, and how early clear cases end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from radii.errors import InputError
from radii.statistics import (
    BettingLimit,
    Population,
    Range,
    SequentialEstimate,
    StoppingRule,
    estimate_mean,
    plan_samples,
)
from radii.statistics._sequences import MEAN_ROUNDING, STAKES, growth, remaining_means

PATHS = 2000
MISS = 0.1
STEPS = 300


def check_level(failures: int, miss: float) -> None:
    """So many failures are no surprise (1 in 10,000) if each has probability at most `miss`."""
    assert binom.sf(failures - 1, PATHS, miss) > 1e-4, f"{failures} of {PATHS} failed"


def ever_refused(values: np.ndarray, mean: float, population: int | None = None) -> int:
    """In how many rows the true mean is refused at any time: the worst that stopping can do."""
    means, totals = np.full(len(values), mean), np.zeros(len(values))
    capital = np.ones((len(STAKES), len(values)))
    richest = np.zeros(len(values))
    for seen, drawn in enumerate(values.T):
        left = means if population is None else remaining_means(means, population, seen, totals)
        with np.errstate(over="ignore"):
            capital *= growth(drawn, np.maximum(left, MEAN_ROUNDING))
        totals += drawn
        richest = np.maximum(richest, capital.mean(axis=0))
    return int((richest >= 1 / MISS).sum())


@pytest.mark.parametrize("mean", [0.03, 0.5, 0.9])
def test_limits_hold_at_all_times_at_once(mean: float) -> None:
    rng = np.random.default_rng(int(100 * mean))
    values = (rng.random((PATHS, STEPS)) < mean).astype(float)
    check_level(ever_refused(values, mean), MISS)


def test_limits_hold_for_any_values() -> None:
    rng = np.random.default_rng(4)
    check_level(ever_refused(rng.beta(0.2, 0.8, (PATHS, STEPS)), 0.2), MISS)


@pytest.mark.parametrize("successes", [7, 80, 190])
def test_limits_hold_without_replacement_to_the_last_input(successes: int) -> None:
    rng = np.random.default_rng(successes)
    inputs = np.tile(np.repeat([1.0, 0.0], [successes, 200 - successes]), (PATHS, 1))
    check_level(ever_refused(rng.permuted(inputs, axis=1), successes / 200, 200), MISS)


def test_a_biased_source_is_refused() -> None:
    """The level is kept because nothing is there to find, not because nothing is ever found."""
    rng = np.random.default_rng(9)
    values = (rng.random((PATHS, STEPS)) < 0.65).astype(float)
    assert ever_refused(values, 0.5) > 0.95 * PATHS


@pytest.mark.parametrize("population", [None, 120])
def test_the_limit_is_the_largest_mean_refused(population: int | None) -> None:
    """Inspected after every input, as the simulations above do."""
    values = np.random.default_rng(6).beta(2, 3, 80)
    limit = BettingLimit(MISS, population)
    for value in values:
        limit.add(value)
    grid = np.arange(1, 1000) / 1000
    refused = [mean for mean in grid[::50] if ever_refused(values[None], mean, population)]
    assert refused[-1] <= limit.limit < refused[-1] + 0.05


def test_refusing_a_mean_refuses_all_smaller_ones() -> None:
    """What makes a grid of candidates valid: capital falls with the candidate."""
    rng = np.random.default_rng(2)
    values = rng.beta(2, 3, 80)
    for population in (None, 100):
        fine = BettingLimit(MISS, population)
        fine.add(values)
        for mean in (0.05, 0.2, 0.3, 0.35, 0.4):
            alone = BettingLimit(MISS, population, candidates=np.array([mean]))
            alone.add(values)
            assert (alone.limit == mean) == (mean <= fine.limit)


def run(sequential: SequentialEstimate, values: np.ndarray, batch: int = 16) -> SequentialEstimate:
    for start in range(0, len(values), batch):
        sequential.add(values[start : start + batch])
        if sequential.reason_to_stop is not None:
            break
    return sequential


def test_stopped_estimates_cover_as_often_as_stated() -> None:
    """With both goals, so that stopping depends on what was seen, and with the last look."""
    rng = np.random.default_rng(11)
    failures, paths = 0, 150
    for place in range(paths):
        mean = (0.5, 0.86, 0.97)[place % 3]
        values = (rng.random(260) < mean).astype(float)
        goal = StoppingRule(error=0.1, threshold=0.9)
        sequential = SequentialEstimate(goal, Population("a source"), confidence=1 - MISS)
        found = run(sequential, values, 32).estimate
        failures += not found.low <= mean <= found.high
    assert binom.sf(failures - 1, paths, MISS) > 1e-4


CLEAR_CASES = [
    (StoppingRule(error=0.05), 1.0, 0.25),
    (StoppingRule(error=0.05), 0.97, 0.6),
    (StoppingRule(threshold=0.9), 1.0, 0.15),
    (StoppingRule(threshold=0.9), 0.97, 0.5),
    (StoppingRule(threshold=0.9), 0.5, 0.1),
]


@pytest.mark.parametrize(("goal", "mean", "share"), CLEAR_CASES)
def test_clear_cases_need_fewer_inputs_than_the_plan(
    goal: StoppingRule, mean: float, share: float
) -> None:
    planned = plan_samples(0.05, 0.95).samples
    rng = np.random.default_rng(0)
    needed = [
        len(run(SequentialEstimate(goal, Population("s")), (rng.random(2000) < mean) * 1.0))
        for _ in range(2)
    ]
    assert np.mean(needed) < share * planned


def test_no_share_needs_more_inputs_than_the_plan() -> None:
    """The last look keeps even the hardest case, a share of one half, below Hoeffding's plan."""
    sequential = SequentialEstimate(StoppingRule(error=0.05), Population("s"))
    assert sequential.needed is not None
    assert sequential.needed < plan_samples(0.05, 0.95).samples
    values = np.tile([0.0, 1.0], 500)
    found = run(sequential, values, 1).estimate
    assert found.samples <= sequential.needed
    assert found.error <= 0.05


def test_brackets_are_told_apart_from_sampling() -> None:
    sequential = SequentialEstimate(StoppingRule(error=0.05), Population("s"))
    lower = np.tile([1.0, 1.0, 1.0, 0.0], 200)
    for start in range(0, 800, 4):
        sequential.add(lower[start : start + 4], np.ones(4))
        if sequential.reason_to_stop:
            break
    found = sequential.estimate
    assert found.bracket_width == pytest.approx(0.25)
    assert found.error <= 0.05
    assert found.low <= 0.75
    assert found.high == 1.0


def test_a_whole_set_is_known_exactly() -> None:
    sequential = SequentialEstimate(StoppingRule(threshold=0.5), Population("a set", 10))
    sequential.add(np.tile([0.0, 1.0], 5))
    assert (sequential.estimate.low, sequential.estimate.high) == (0.5, 0.5)
    assert sequential.estimate.is_at_least(0.5) is True
    with pytest.raises(InputError, match="all sampled already"):
        sequential.add([1.0])


def test_values_of_other_ranges() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(3, 4, 1000)
    sequential = SequentialEstimate(
        StoppingRule(error=0.3), Population("s"), values=Range(0, 10), is_share=False
    )
    found = run(sequential, values).estimate
    fixed = plan_samples(0.3, 0.95, values=Range(0, 10)).samples
    assert found.low <= 3.5 <= found.high
    assert found.samples < 0.5 * fixed
    whole = estimate_mean(values, population=Population("s"), values=Range(0, 10))
    assert whole.low < 3.5 < whole.high


def test_goals_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="an error or a threshold"):
        StoppingRule()
    with pytest.raises(InputError, match="error -1"):
        StoppingRule(error=-1)
    with pytest.raises(InputError, match="at least one input"):
        _ = SequentialEstimate(StoppingRule(error=0.1), Population("s")).estimate
