"""Interval bounds hold every value, for every operator, in float64 and float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.soundness.operator_models import OPERATOR_MODELS, operator_models
from radii.bounds import box_of, interval_bounds
from radii.networks import Interval, Network
from radii.problem import Ball, Box, Domain, Norm
from radii.testing import NetworkFamily, Sketch, random_network

RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def sampled_values(
    network: Network, low: np.ndarray, high: np.ndarray, count: int
) -> list[torch.Tensor]:
    """All node values, in float64, at random points and corners of a box."""
    rng = np.random.default_rng(0)
    shares = rng.uniform(size=(count, *low.shape))
    shares[: count // 2] = shares[: count // 2].round()
    points = np.clip(low + shares * (high - low), low, high)
    with torch.no_grad():
        return network.graph.values(torch.from_numpy(points))


def assert_enclosed(bounds: list[Interval], values: list[torch.Tensor]) -> None:
    for interval, value in zip(bounds, values, strict=True):
        # The values themselves are rounded: by some ulps of what was added up, at most.
        slack = 1e-12 * (1 + value.abs().amax())
        assert bool((value >= interval.low.double() - slack).all())
        assert bool((value <= interval.high.double() + slack).all())


@pytest.mark.sampled(43)
@pytest.mark.parametrize("operator", sorted(OPERATOR_MODELS))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_every_operator_is_enclosed(operator: str, dtype: torch.dtype) -> None:
    @settings(RELAXED, max_examples=4, database=None, derandomize=True)
    @given(model=operator_models(operator), seed=st.integers(0, 1000))
    def check(model: Any, seed: int) -> None:
        network = Network.from_bytes(model.SerializeToString(), domain=(-2, 2), name=operator)
        rng = np.random.default_rng(seed)
        centre = rng.uniform(-1, 1, network.input_shape)
        radius = rng.uniform(0, 0.7, network.input_shape) * rng.integers(0, 2)
        low, high = centre - radius, centre + radius
        box = Interval.around(low[None], high[None], dtype)
        bounds = interval_bounds(network.graph, box)
        assert all(bound.low.dtype == dtype for bound in bounds)
        assert_enclosed(bounds, sampled_values(network, low, high, 64))

    check()


@pytest.mark.parametrize("family", list(NetworkFamily))
def test_random_networks_stay_within_their_bounds(family: NetworkFamily) -> None:
    for seed in range(5):
        network = random_network(family, seed)
        rng = np.random.default_rng(seed)
        centre = rng.uniform(0, 1, network.input_shape)
        low, high = np.maximum(centre - 0.1, 0), np.minimum(centre + 0.1, 1)
        bounds = interval_bounds(network.graph, Interval.around(low[None], high[None]))
        assert_enclosed(bounds, sampled_values(network, low, high, 500))


def test_a_single_point_is_enclosed_tightly() -> None:
    network = random_network(NetworkFamily.RESIDUAL, 3)
    point = np.full((1, *network.input_shape), 0.3)
    bounds = interval_bounds(network.graph, Interval.around(point, point))
    width = max(float((b.high - b.low).max()) for b in bounds)
    assert 0 < width < 1e-10


def test_boxes_of_a_batch_do_not_mix() -> None:
    network = random_network(NetworkFamily.POOLING, 1)
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 0.5, (4, *network.input_shape))
    high = low + rng.uniform(0, 0.5, low.shape)
    together = interval_bounds(network.graph, Interval.around(low, high))[-1]
    for row in range(4):
        one = slice(row, row + 1)
        alone = interval_bounds(network.graph, Interval.around(low[one], high[one]))[-1]
        torch.testing.assert_close(together.low[one], alone.low, rtol=0, atol=1e-12)
        torch.testing.assert_close(together.high[one], alone.high, rtol=0, atol=1e-12)


def test_known_intervals_are_intersected_and_passed_on() -> None:
    sketch = Sketch([1, 2])
    weight = sketch.constant(np.array([[1.0, -1.0], [1.0, 1.0]]))
    hidden = sketch.apply("MatMul", "x", weight)
    network = sketch.network(sketch.apply("Relu", hidden), domain=(0, 1))
    box = Interval.around(np.zeros((1, 2)), np.ones((1, 2)))
    free = interval_bounds(network.graph, box)
    assert free[-1].high.max() >= 2
    limit = torch.full((1, 1, 2), 0.5, dtype=torch.float64)
    known = {1: Interval(-limit, limit)}
    held = interval_bounds(network.graph, box, known)
    assert held[1].high.max() <= 0.5
    assert held[-1].high.max() <= 0.5


def test_a_dense_layer_has_the_bounds_computed_by_hand() -> None:
    sketch = Sketch([1, 2], dtype=np.float64)
    weight = sketch.constant(np.array([[2.0, -1.0], [-3.0, 4.0]]))
    bias = sketch.constant(np.array([0.5, -0.5]))
    network = sketch.network(sketch.apply("Gemm", "x", weight, bias), domain=(-5, 5))
    box = Interval.around(np.array([[0.0, -1.0]]), np.array([[1.0, 1.0]]))
    result = interval_bounds(network.graph, box)[-1]
    np.testing.assert_allclose(result.low.ravel(), [0 - 3 + 0.5, -1 - 4 - 0.5], atol=1e-12)
    np.testing.assert_allclose(result.high.ravel(), [2 + 3 + 0.5, 0 + 4 - 0.5], atol=1e-12)


def test_float32_boxes_are_rounded_outward() -> None:
    low, high = np.array([0.1, 1 / 3]), np.array([0.2, 2 / 3])
    box = Interval.around(low, high, torch.float32)
    assert bool((box.low.double().numpy() <= low).all())
    assert bool((box.high.double().numpy() >= high).all())


def test_a_quotient_by_an_interval_around_zero_is_unbounded() -> None:
    sketch = Sketch([1, 2])
    network = sketch.network(sketch.apply("Reciprocal", "x"), domain=(-1, 1))
    box = Interval.around(np.array([[-1.0, 0.5]]), np.array([[1.0, 2.0]]))
    result = interval_bounds(network.graph, box)[-1]
    assert result.low[0, 0, 0] == -torch.inf and result.high[0, 0, 0] == torch.inf
    assert 0.49 < result.low[0, 0, 1] <= 0.5 and 2 <= result.high[0, 0, 1] < 2.01


def test_the_box_of_a_region_is_flat_and_clipped() -> None:
    ball = Ball(np.array([[0.05, 0.5]]), 0.1, Norm.LINF, Domain(0.0, 1.0))
    low, high = box_of(ball)
    np.testing.assert_allclose(low, [0.0, 0.4], atol=1e-9)
    np.testing.assert_allclose(high, [0.15, 0.6], atol=1e-9)
    np.testing.assert_array_equal(box_of(Box(np.zeros((2, 2)), np.ones((2, 2))))[1], np.ones(4))
