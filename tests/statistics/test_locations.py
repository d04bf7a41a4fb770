"""Families with a location of their own: found where there is one, and tested at their level."""

from __future__ import annotations

import numpy as np
import pytest

from radii.errors import DataError
from radii.statistics import Distribution, Float64, fit_on_grid


def gridded(values: Float64, step: float = 0.002) -> Distribution:
    lower = np.floor(values / step) * step
    return Distribution.from_arrays(lower, lower + step, network="a")


GRID = np.arange(0.002, 0.6, 0.002)


def test_a_location_is_found() -> None:
    values = 0.1 + np.random.default_rng(1).lognormal(-4, 0.7, 300)
    plain = fit_on_grid(gridded(values), "lognormal", GRID)
    shifted = fit_on_grid(gridded(values), "lognormal", GRID, is_shifted=True)
    assert shifted.location == pytest.approx(0.1, abs=0.01)
    assert shifted.aic < plain.aic - 20
    assert plain.location == 0 and shifted.parameters == 3
    assert shifted.broken([0.0, 10.0]) == pytest.approx([0.0, 1.0])


def test_without_a_shift_it_is_the_usual_fit() -> None:
    part = gridded(np.random.default_rng(2).weibull(2, 200) / 20)
    usual = part.fit("weibull")
    found = fit_on_grid(part, "weibull", GRID)
    assert found.loglikelihood == pytest.approx(usual.loglikelihood, abs=0.01)
    assert found.aic == pytest.approx(usual.aic, abs=0.02)


def test_the_test_with_a_location_has_its_level() -> None:
    """Of samples that follow a shifted distribution few are rejected; of others nearly all."""
    rng = np.random.default_rng(3)
    right = [0.02 + rng.lognormal(-3, 0.4, 40) for _ in range(10)]
    p_values = [
        fit_on_grid(gridded(v), "lognormal", GRID, is_shifted=True, simulations=19).p_value
        for v in right
    ]
    assert sum(p <= 0.1 for p in p_values) <= 4  # expected 1; more than 4 with chance 0.002
    two_humps = np.concatenate([rng.normal(0.05, 0.004, 60), rng.normal(0.3, 0.004, 60)])
    assert (
        fit_on_grid(gridded(two_humps), "lognormal", GRID, is_shifted=True, simulations=19).p_value
        <= 0.05
    )


def test_what_cannot_be_shifted_is_refused() -> None:
    part = gridded(np.random.default_rng(4).uniform(0.01, 0.1, 50))
    with pytest.raises(DataError, match="has a location already"):
        fit_on_grid(part, "normal", GRID, is_shifted=True)
    with pytest.raises(DataError, match="at least 19 simulations"):
        fit_on_grid(part, "normal", GRID, simulations=5)
