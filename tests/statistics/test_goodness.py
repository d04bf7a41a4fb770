"""The Monte-Carlo test rejects at its level under ties and fitted parameters; plain KS does not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from simulated_brackets import gridded, lognormal_brackets, widened

from radii.errors import DataError
from radii.statistics import Distribution, fit_on_grid, goodness_of_fit


def rejections(
    size: int, step: float, samples: int, *, is_wide: bool = False, seed: int = 0
) -> tuple[float, float]:
    """How often the plain check and the Monte-Carlo test reject a true log-normal at 5 %."""
    rng = np.random.default_rng(seed)
    plain = monte_carlo = 0
    for sample in range(samples):
        lower, upper = gridded(rng.lognormal(np.log(0.05), 0.5, size), step)
        if is_wide:
            lower, upper = widened(lower, upper, step, rng)
        part = Distribution.from_arrays(lower, upper, correct=True)
        monte_carlo += fit_on_grid(part, "lognormal", simulations=99, seed=sample).p_value <= 0.05
        proven = goodness_of_fit(part.select(lower > 0), simulations=19).ks_p_value
        assert proven is not None
        plain += proven < 0.05
    return plain / samples, monte_carlo / samples


def test_level_on_a_fine_grid() -> None:
    """The plain check takes fitted parameters as known, and hardly ever rejects."""
    plain, monte_carlo = rejections(100, 0.002, 30)
    assert plain <= 0.04
    assert monte_carlo <= 0.12


def test_level_under_many_ties() -> None:
    """On a coarse grid with many inputs the plain check nearly always rejects what is true."""
    plain, monte_carlo = rejections(400, 0.01, 30)
    assert plain > 0.9
    assert monte_carlo <= 0.12


def test_level_with_wide_brackets() -> None:
    _, monte_carlo = rejections(100, 0.01, 25, is_wide=True)
    assert monte_carlo <= 0.15


@pytest.mark.slow
@pytest.mark.parametrize("is_wide", [False, True])
def test_level_at_length(is_wide: bool) -> None:
    _, monte_carlo = rejections(100, 0.005, 500, is_wide=is_wide, seed=1)
    assert 0.02 <= monte_carlo <= 0.08


@pytest.mark.parametrize("family", ["lognormal", "gamma"])
def test_a_wrong_family_is_found(family: str) -> None:
    modes = np.concatenate(
        [
            stats.norm(0.03, 0.004).rvs(100, random_state=1),
            stats.norm(0.09, 0.004).rvs(100, random_state=2),
        ]
    )
    dist = Distribution.from_arrays(*gridded(modes, 0.002))
    found = goodness_of_fit(dist, family, simulations=99)
    assert found.p_value == 0.01
    assert found.ks_p_value is not None
    assert found.assumption == "every bracket is one step of the grid"
    assert "rejects" in found.verdict()


def test_disagreement_is_said_plainly() -> None:
    dist = lognormal_brackets(2000, 3, step=0.01)
    dist = dist.select(dist.lower > 0)
    found = goodness_of_fit(dist, simulations=99, grid=np.arange(1, 60) * 0.01)
    assert found.ks_p_value is not None
    assert found.ks_p_value < 0.05 <= found.p_value
    assert found.verdict().startswith("The tests disagree: the Monte-Carlo test does not reject")
    assert "trust the Monte-Carlo test" in found.verdict()


def test_agreement_both_ways() -> None:
    found = goodness_of_fit(lognormal_brackets(80, 4, step=0.003), simulations=99)
    assert "does not reject log-normal" in found.verdict()
    assert "and neither does the plain check" in found.verdict()


def test_the_plain_check_is_invalid_with_a_radius_of_zero() -> None:
    dist = Distribution.from_arrays([0.0, 0.02, 0.04, 0.04], [0.02, 0.04, 0.06, 0.06])
    found = goodness_of_fit(dist, simulations=19)
    assert found.ks_p_value is None
    assert "invalid here" in found.verdict()
    assert goodness_of_fit(dist, "normal", simulations=19).ks_p_value is not None


def test_exact_values_on_no_grid() -> None:
    values = np.random.default_rng(6).lognormal(-3, 0.5, 150)
    found = goodness_of_fit(Distribution.from_arrays(values, values), simulations=99)
    assert found.p_value > 0.05
    assert "no grid" in found.assumption
    skewed = np.random.default_rng(6).exponential(1, 150)
    other = goodness_of_fit(Distribution.from_arrays(skewed, skewed), "normal", simulations=99)
    assert other.p_value == 0.01


def test_the_same_seed_gives_the_same_answer() -> None:
    dist = lognormal_brackets(60, 7)
    assert (
        goodness_of_fit(dist, simulations=49).p_value
        == goodness_of_fit(dist, simulations=49).p_value
    )
    with pytest.raises(DataError, match="at least 19 simulations"):
        goodness_of_fit(dist, simulations=5)
