"""Bands and intervals cover at their level, also with wide brackets; Holm controls errors."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from scipy import stats
from simulated_brackets import gridded, widened

from radii.errors import DataError
from radii.statistics import (
    Distribution,
    clopper_pearson,
    dkw_half_width,
    holm,
    plan_samples,
    robust_accuracy_interval,
)

TRUE = stats.lognorm(0.5, scale=0.05)
SAMPLES = 500


def coverage(*, is_wide: bool, level: float) -> float:
    """How often the band holds the true robust accuracy at every eps of a fine mesh."""
    rng = np.random.default_rng(1)
    mesh = np.linspace(0.001, 0.3, 900)
    robust = TRUE.sf(mesh)
    held = 0
    for _ in range(SAMPLES):
        distances = TRUE.rvs(50, random_state=rng)
        lower, upper = distances, distances
        if is_wide:
            lower, upper = widened(*gridded(distances, 0.002), 0.002, rng)
        low, high = Distribution.from_arrays(lower, upper).band(level).at(mesh)
        held += bool(np.all((low <= robust) & (robust <= high)))
    return held / SAMPLES


def test_the_band_covers_at_its_level() -> None:
    covered = coverage(is_wide=False, level=0.9)
    assert 0.88 <= covered <= 0.95  # and is not much wider than it must be


def test_wide_brackets_only_widen_it() -> None:
    assert coverage(is_wide=True, level=0.9) >= 0.9


def test_one_sided_bands_cover() -> None:
    rng = np.random.default_rng(2)
    margin = dkw_half_width(50, 0.9, tail="lower")
    uniform = np.sort(rng.random((SAMPLES, 50)), axis=1)
    above = (np.arange(1, 51) / 50 - uniform).max(axis=1)
    assert 0.88 <= (above <= margin).mean() <= 0.95


@pytest.mark.parametrize(("tail", "level"), [("both", 0.9), ("lower", 0.9), ("upper", 0.9)])
def test_clopper_pearson_covers(tail: Literal["both", "lower", "upper"], level: float) -> None:
    for share in (0.03, 0.5, 0.95):
        chances = stats.binom(40, share).pmf(np.arange(41))
        limits = [clopper_pearson(k, 40, level, tail=tail) for k in range(41)]
        covered = sum(
            p for p, (low, high) in zip(chances, limits, strict=True) if low <= share <= high
        )
        assert covered >= level


def test_the_interval_at_one_eps_counts_brackets_on_the_safe_side() -> None:
    dist = Distribution.from_arrays([0.0, 0.1, 0.1, 0.3], [0.0, 0.2, 0.4, 0.4])
    low, high = robust_accuracy_interval(dist, 0.25)
    assert low == clopper_pearson(1, 4)[0]
    assert high == clopper_pearson(2, 4)[1]
    assert (
        robust_accuracy_interval(dist, 0.25, tail="lower")[1]
        == clopper_pearson(2, 4, tail="lower")[1]
    )


def test_brackets_of_one_input_are_not_independent() -> None:
    """Two networks, or nine targets, do not make two or nine samples of an input."""
    one = Distribution.from_arrays([0.1, 0.2], [0.2, 0.3], network="a", label=[0, 1])
    both = Distribution.union([one, one.labelled(network="b")])
    for asked in (both.band, lambda: robust_accuracy_interval(both, 0.1)):
        with pytest.raises(DataError, match="4 brackets are of 2 inputs"):
            asked()
    splits = Distribution.union([one.labelled(split="train"), one.labelled(split="test")])
    assert splits.band().half_width == dkw_half_width(4)


def test_how_many_inputs_a_band_needs() -> None:
    needed = plan_samples(0.05, 0.95).samples
    assert dkw_half_width(needed) <= 0.05 < dkw_half_width(needed - 1)
    with pytest.raises(DataError, match="confidence level is between 0 and 1"):
        dkw_half_width(10, 95)
    with pytest.raises(DataError, match="at least 50 %"):
        dkw_half_width(10, 0.3, tail="lower")


def test_holm_by_hand() -> None:
    adjusted = holm([0.01, np.nan, 0.04, 0.03])
    np.testing.assert_allclose(adjusted, [0.03, np.nan, 0.06, 0.06])
    assert holm([[0.5, 0.9]]).tolist() == [[1.0, 1.0]]


def test_holm_controls_the_family_error() -> None:
    """Nine true hypotheses and one false: how often is any true one rejected?"""
    rng = np.random.default_rng(3)
    raw = rng.random((4000, 10))
    raw[:, 0] *= 1e-4
    wrong = np.array([(holm(row)[1:] < 0.05).any() for row in raw])
    naive = (raw[:, 1:] < 0.05).any(axis=1)
    assert wrong.mean() <= 0.06
    assert naive.mean() > 0.3
