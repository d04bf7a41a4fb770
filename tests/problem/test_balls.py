from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from radii.errors import SpecificationError
from radii.problem import Ball, Box, Domain, Features, Norm

UNIT = Domain(np.float64(0), np.float64(1))
POINTS = npst.arrays(np.float32, (2, 3), elements=st.floats(0, 1, width=32))
ANYWHERE = npst.arrays(np.float64, (2, 3), elements=st.floats(-2, 3))


@given(
    POINTS,
    ANYWHERE,
    st.floats(0, 2),
    st.sampled_from(list(Norm)),
    st.sampled_from([np.float32, np.float64]),
)
def test_projection_lands_inside_and_is_exact(
    center: np.ndarray, point: np.ndarray, eps: float, norm: Norm, dtype: type
) -> None:
    ball = Ball(center, eps, norm, UNIT)
    inside = ball.project(point, dtype)
    assert inside.dtype == dtype
    assert ball.contains(inside)


@given(POINTS, st.floats(1e-3, 2), st.sampled_from(list(Norm)), st.integers(0, 2**32))
def test_samples_and_box(center: np.ndarray, eps: float, norm: Norm, seed: int) -> None:
    ball = Ball(center, eps, norm, UNIT)
    low, high = ball.box()
    for point in ball.sample(np.random.default_rng(seed), 20):
        assert np.all(point >= low)
        assert np.all(point <= high)
        assert ball.distance(point) <= eps * (1 + 1e-12)
    assert np.all(low >= 0)
    assert np.all(high <= 1)


def test_projection_keeps_a_point_that_is_inside() -> None:
    ball = Ball(np.full(3, 0.5), 0.2, Norm.L2, UNIT)
    point = np.array([0.5, 0.6, 0.4])
    assert np.array_equal(ball.project(point), point)


def test_projection_into_a_ball_finer_than_float32_ends_at_the_centre() -> None:
    ball = Ball(np.full(2, 0.5), 1e-12, Norm.LINF, UNIT)
    assert np.array_equal(ball.project(np.array([0.9, 0.1]), np.float32), [0.5, 0.5])


def test_a_coarse_value_does_not_shrink_the_others() -> None:
    """Half a unit in the last place of 40 in float32 is as far as its feature may move."""
    features = Features.of(["a", "b"], [1e-6, 1.0])
    domain = Domain(np.array([0.0, -10.0]), np.array([100.0, 10.0]))
    ball = Ball(np.array([40.0, 0.5]), 1.93, Norm.LINF, domain, features)
    inside = ball.project(np.array([41.0, 2.43]), np.float32)
    assert ball.contains(inside)
    assert inside.tolist() == [40.0, np.nextafter(np.float32(2.43), np.float32(0))]


def test_lengths() -> None:
    difference = np.array([3.0, -4.0])
    assert Norm.LINF.length(difference) == 4
    assert Norm.L2.length(difference) == 5
    assert Norm.L1.length(difference) == 7
    assert Norm.L1.length([]) == 0


def test_domain_per_channel() -> None:
    domain = Domain.parse("0,-1:1,2")
    low, high = domain.box((2, 3, 3))
    assert low[1].min() == -1
    assert high[1].max() == 2
    with pytest.raises(SpecificationError, match="does not fit"):
        domain.box((3, 3, 3))


@pytest.mark.parametrize("text", ["", "1", "1:0", "0:nan", "0:inf", "0,0:1", "a:b", "0:1:2"])
def test_bad_domains(text: str) -> None:
    with pytest.raises(SpecificationError):
        Domain.parse(text)


@pytest.mark.parametrize("eps", [-1.0, np.nan, np.inf])
def test_bad_eps(eps: float) -> None:
    with pytest.raises(SpecificationError, match="eps"):
        Ball(np.zeros(2), eps, Norm.LINF, UNIT)


def test_a_box_rounds_inward() -> None:
    box = Box(np.array([0.1]), np.array([0.1000000001]))
    single = np.float32(0.1)  # lies above 0.1000000001
    assert not box.contains(single)
    assert box.contains(box.project(single))


def test_unknown_norm_is_named() -> None:
    with pytest.raises(SpecificationError, match="'l3' is not one of linf, l2, l1"):
        Norm.parse("l3")
