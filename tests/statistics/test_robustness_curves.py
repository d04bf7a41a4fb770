"""R at every eps at once: the band's coverage over simulated populations, and its points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from radii.errors import InputError
from radii.statistics import Distribution, robustness_curve

EPS = np.linspace(0.0, 1.0, 21)


def brackets(rng: np.random.Generator, size: int) -> Distribution:
    """Radii uniform in [0, 1], known up to brackets; two classes, the second one half as robust."""
    label = rng.integers(0, 2, size)
    radius = rng.random(size) * np.where(label == 1, 0.5, 1.0)
    lower = np.maximum(radius - 0.1 * rng.random(size), 0.0)
    return Distribution.from_arrays(
        lower, radius + 0.1 * rng.random(size), label=label, input=np.arange(size), network="net"
    )


def truth(label: int | None, eps: float) -> float:
    shares = [max(0.0, 1 - eps), max(0.0, 1 - 2 * eps)]
    return sum(shares) / 2 if label is None else shares[label]


@pytest.mark.parametrize("by_class", [False, True])
def test_all_points_hold_together(by_class: bool) -> None:
    rng = np.random.default_rng(int(by_class))
    failures, runs = 0, 300
    for _ in range(runs):
        curve = robustness_curve(brackets(rng, 80), 0.8, eps=EPS, by_class=by_class)
        assert len(curve) == len(EPS) * (2 if by_class else 1)
        failures += any(not p.low <= truth(p.label, p.eps) <= p.high for p in curve)
    assert binom.sf(failures - 1, runs, 0.2) > 1e-4


def test_points_are_where_the_curve_moves() -> None:
    exact = Distribution.from_arrays([0.1, 0.3], [0.2, np.inf], input=[0, 1], network="net")
    assert [point.eps for point in robustness_curve(exact)] == [0.0, 0.1, 0.2, 0.3]
    large = brackets(np.random.default_rng(0), 500)
    assert len(robustness_curve(large)) == 200
    curve = robustness_curve(exact, eps=[0.15])
    assert (curve[0].proven, curve[0].not_refuted) == (0.5, 1.0)


def test_bad_input() -> None:
    two = Distribution.from_arrays([0.1, 0.1], [0.2, 0.2], input=[0, 0], network=["a", "b"])
    with pytest.raises(InputError, match="one network"):
        robustness_curve(two)
    one = Distribution.from_arrays([0.1], [0.2], network="a")
    with pytest.raises(InputError, match="confidence"):
        robustness_curve(one, 1.5)
