"""The errors E and D of floating point are never exceeded, and closed forms of both."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.soundness.executions import SummationOrder, execute
from benchmarks.soundness.observed_errors import (
    ObservedKind,
    ObservedRegion,
    Runtime,
    ShownValues,
    every_execution,
    sampled_box,
    sampled_points,
)
from benchmarks.soundness.operator_models import OPERATOR_MODELS, operator_models
from benchmarks.soundness.rounding_networks import ROUNDING_NETWORKS
from radii.bounds import StageBounds, alpha_crown_bounds, crown_bounds, fuse, stage_bounds
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.problem import FLOAT, REAL, Arithmetic, Box
from radii.testing import NetworkFamily, Sketch, random_network

UNIT = 2.0**-24
RELAXED = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


# Coverage of the statement


def exceeded(network: Network, seed: int, *, boxes: int, points: int) -> list[str]:
    """Where an execution is further off than allowed, or outside the interval of its stage."""
    rng = np.random.default_rng(seed)
    executions = list(every_execution(network))
    found = []
    for _ in range(boxes):
        low, high = sampled_box(network, rng)
        region = ObservedRegion(network, low, high)
        for x in sampled_points(low, high, points, rng):
            for name, values in executions:
                for each in region.compared(values(x)):
                    if each.exceeded or each.outside:
                        found.append(f"{name}: {each.kind} of node {each.stage.node} at {x}")
    return found


@pytest.mark.parametrize("name", ROUNDING_NETWORKS)
def test_no_execution_exceeds_the_errors(name: str) -> None:
    network = ROUNDING_NETWORKS[name](0)
    assert exceeded(network, 0, boxes=2, points=3) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDING_NETWORKS)
def test_no_execution_of_many_networks_exceeds_the_errors(name: str) -> None:
    for seed in range(1, 40):
        assert exceeded(ROUNDING_NETWORKS[name](seed), seed, boxes=4, points=6) == []


def of_one_operator(operator: str, data: st.DataObject) -> None:
    model = data.draw(operator_models(operator))
    network = Network.from_bytes(model.SerializeToString(), domain=(-2, 2), name=operator)
    try:
        fuse(network)
    except UnsupportedQuery:
        return
    assert exceeded(network, data.draw(st.integers(0, 1000)), boxes=1, points=2) == []


@pytest.mark.parametrize("operator", sorted(OPERATOR_MODELS))
@settings(RELAXED, max_examples=3)
@given(data=st.data())
def test_no_operator_exceeds_the_errors(operator: str, data: st.DataObject) -> None:
    of_one_operator(operator, data)


@pytest.mark.slow
@pytest.mark.parametrize("operator", sorted(OPERATOR_MODELS))
@settings(RELAXED, max_examples=150)
@given(data=st.data())
def test_no_operator_of_many_models_exceeds_the_errors(operator: str, data: st.DataObject) -> None:
    of_one_operator(operator, data)


def test_what_exceeds_is_told() -> None:
    """In real arithmetic nothing rounds: executions do, and leave the intervals of a point."""
    network = random_network(NetworkFamily.LEAKY, 1)
    low, _ = sampled_box(network, np.random.default_rng(0))
    region = ObservedRegion(network, low, low, REAL)
    told = list(region.compared(execute(network, low, SummationOrder.FORWARD).nodes))
    assert {each.kind for each in told if each.exceeded} == {
        ObservedKind.ARGUMENT,
        ObservedKind.VALUE,
    }
    assert any(each.outside for each in told)
    shown = ShownValues(network, Runtime.FUSED).nodes(low)
    assert any(e.exceeded for e in region.compared(shown) if e.kind is ObservedKind.RANGE)


# Closed forms


def bounds_of(network: Network, low: npt.ArrayLike, high: npt.ArrayLike) -> list[StageBounds]:
    lows, highs = (np.asarray(side, np.float64).ravel() for side in (low, high))
    return stage_bounds(fuse(network), lows, highs)


def product(weights: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> Network:
    column = np.asarray(weights, np.float64)[:, None]
    sketch = Sketch([1, len(column)], dtype=dtype)
    return sketch.network(sketch.apply("MatMul", "x", sketch.constant(column)), domain=(-4, 4))


def seen_and_allowed(network: Network, x: npt.NDArray[np.floating], y: float) -> tuple[float, ...]:
    """The error of a product's result at a point, exactly, and E there."""
    column = network.graph.nodes[1].operator.get_buffer("weight").numpy().ravel()
    pairs = zip(x.ravel(), column, strict=True)
    exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in pairs)
    (bounds,) = bounds_of(network, x, x)
    return float(abs(Fraction(float(y)) - exact)), float(bounds.error[0])


@pytest.mark.parametrize("count", [2, 10, 100, 2000])
def test_a_sum_that_loses_every_term_but_one_comes_close(count: int) -> None:
    """1 + u is 1: so n - 1 terms of u are lost one by one, and E is gamma of n + 4 times S."""
    network = product(np.ones(count))
    x = np.full(count, UNIT, np.float32)
    x[0] = 1.0
    forward, backward = (
        execute(network, x, o).outputs[0] for o in (SummationOrder.FORWARD, SummationOrder.BACKWARD)
    )
    seen, allowed = seen_and_allowed(network, x, forward)
    assert seen == (count - 1) * UNIT
    assert seen <= allowed <= 1.01 * (count + 4) * UNIT
    assert seen_and_allowed(network, x, backward)[0] <= UNIT


def test_products_that_are_fused_and_that_are_not() -> None:
    root = 1 + 2.0**-12
    network = product([-1.0, root])
    x = np.array([1 + 2.0**-11, root], np.float32)
    errors = {}
    for order in (SummationOrder.FORWARD, SummationOrder.FUSED):
        seen, allowed = seen_and_allowed(network, x, execute(network, x, order).outputs[0])
        errors[order] = seen
        assert seen <= allowed
    assert errors == {SummationOrder.FORWARD: 2.0**-24, SummationOrder.FUSED: 0.0}


def test_products_that_underflow() -> None:
    network = product([2.0**-149, 2.0**-148])
    x = np.array([0.5, 0.25], np.float32)  # both products are half of the smallest number
    result = execute(network, x, SummationOrder.FORWARD).outputs[0]
    assert result == 0.0
    seen, allowed = seen_and_allowed(network, x, result)
    assert seen == 2.0**-149
    assert allowed >= seen > 1000 * UNIT * seen  # rounding alone would not explain it
    (bounds,) = bounds_of(network, x, x)
    assert bounds.error[0] >= 2 * 2.0**-126  # a runtime that takes all subnormal numbers for 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_factor_that_the_runtime_moves_behind_the_product(dtype: type) -> None:
    """(x 2^100) (w 2^-138) is x w 2^-38; 2^100 (x (w 2^-138)) underflows on the way in float32."""
    sketch = Sketch([1, 3], dtype=dtype)
    scaled = sketch.apply("Mul", "x", sketch.constant(np.array(2.0**100)))
    weight = np.array([[0.7], [0.9], [1.1]]) * 2.0**-138
    network = sketch.network(sketch.apply("MatMul", scaled, sketch.constant(weight)))
    x = np.array([0.3, 0.5, 0.7])
    region = ObservedRegion(network, x, x)
    for runtime in Runtime:
        shown = ShownValues(network, runtime).nodes(x)
        assert [each.exceeded for each in region.compared(shown)] == [0]


def test_a_factor_of_a_float64_file_that_the_runtime_keeps_in_float32() -> None:
    sketch = Sketch([1, 3], dtype=np.float64)
    scaled = sketch.apply("Mul", "x", sketch.constant(np.array(1 / 3)))
    value = sketch.apply("MatMul", scaled, sketch.constant(np.eye(3)))
    network = sketch.network(value)
    x = np.array([0.3, 0.5, 0.7])
    region = ObservedRegion(network, x, x)
    for runtime in Runtime:
        (compared,) = region.compared(ShownValues(network, runtime).nodes(x))
        assert compared.exceeded == compared.outside == 0
    assert 2.0**-26 * 0.3 < compared.allowed.max() < 2.0**-20


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_a_factor_that_is_no_float32(factor: float) -> None:
    sketch = Sketch([1, 2], dtype=np.float64)
    scaled = sketch.apply("Mul", "x", sketch.constant(np.array(factor)))
    network = sketch.network(sketch.apply("MatMul", scaled, sketch.constant(np.eye(2) / factor)))
    assert bounds_of(network, np.ones(2), np.ones(2))[-1].error.min() == np.inf


# Overflow


def test_overflow_is_infinite_whatever_zeros_follow() -> None:
    sketch = Sketch([1, 2])
    value = sketch.apply("MatMul", "x", sketch.constant(np.full((2, 2), 1e38)))
    value = sketch.apply("MatMul", value, sketch.constant(np.zeros((2, 2))))
    value = sketch.apply("Relu", value)
    network = sketch.network(sketch.apply("MatMul", value, sketch.constant(np.zeros((2, 1)))))
    large, small = (bounds_of(network, np.zeros(2), np.full(2, side)) for side in (2.0, 1.0))
    assert all((bounds.error == np.inf).all() for bounds in large)
    assert np.isfinite(small[0].error).all()


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("AveragePool", {"kernel_shape": [2, 2]}),
        ("GlobalAveragePool", {}),
        ("ReduceMean", {"axes": [2, 3]}),
    ],
)
def test_a_mean_overflows_where_its_sum_does(operator: str, attributes: dict[str, Any]) -> None:
    sketch = Sketch([1, 1, 2, 2])
    value = sketch.apply("Mul", "x", sketch.constant(np.array(5e37)))
    network = sketch.network(sketch.apply(operator, value, **attributes))
    twice = np.full((1, 1, 2, 2), 2.0, np.float32)
    assert np.isinf(network.replay(twice.reshape(1, *network.input_shape))).all()
    assert bounds_of(network, twice, twice)[-1].error.min() == np.inf
    assert bounds_of(network, twice / 2, twice / 2)[-1].error.max() < np.inf


@pytest.mark.parametrize("activation", ["Tanh", "Sigmoid", "Clip", "Relu", "Softmax", "LeakyRelu"])
def test_nothing_is_known_behind_what_may_be_no_number(activation: str) -> None:
    """inf - inf is NaN, and so is every function of it, however bounded."""
    sketch = Sketch([1, 2])
    weight = np.full((2, 2), 3e38)
    both = [sketch.apply("MatMul", "x", sketch.constant(sign * weight)) for sign in (1, -1)]
    value = sketch.apply("Add", *both)
    limits = [sketch.constant(np.array(s)) for s in (-0.5, 0.5)] if activation == "Clip" else []
    value = sketch.apply(activation, value, *limits)
    ends = sketch.constant(np.array([[1.0, 2.0], [1.0, 1.0]])), sketch.constant([3.0, 0.0])
    network = sketch.network(sketch.apply("Gemm", value, *ends))
    assert np.isnan(network.replay(np.ones((1, 2), np.float32))).all()
    last = bounds_of(network, np.zeros(2), np.ones(2))[-1]
    assert (last.error == np.inf).all()
    assert (last.low == -np.inf).all() and (last.high == np.inf).all()
    box = Box(np.zeros(2), np.ones(2))
    for bound in (crown_bounds, alpha_crown_bounds):
        found = bound(network, [box])
        assert not (found.low > -np.inf).any() and not (found.high < np.inf).any()


@pytest.mark.parametrize(
    ("factor", "variance", "size"),
    [(1e-15, 1e-36, 1e21), (1e19, 3e38, 1e-21), (0.0, 1e-36, 1e21)],
    ids=["quotient overflows", "quotient underflows", "of 0"],
)
def test_a_batch_normalisation_in_any_order(factor: float, variance: float, size: float) -> None:
    sketch = Sketch([1, 2])
    parts = (sketch.constant(np.full(2, part)) for part in (factor, 0.0, 0.0, variance))
    value = sketch.apply("BatchNormalization", "x", *parts, epsilon=0.0)
    network = sketch.network(value, domain=(-1e25, 1e25))
    x = np.array([size, 0.77 * size], np.float32)
    region = ObservedRegion(network, -x.astype(np.float64), x.astype(np.float64))
    for order in SummationOrder:
        (compared,) = region.compared(execute(network, x, order).nodes)
        assert compared.exceeded == compared.outside == 0


# Shapes and attributes


def test_values_that_are_single_numbers() -> None:
    sketch = Sketch([1, 3])
    value = sketch.apply("Gather", "x", sketch.constant(np.array(1)), axis=1)
    value = sketch.apply("Gather", value, sketch.constant(np.array(0)), axis=0)
    value = sketch.apply("Tanh", sketch.apply("Mul", value, sketch.constant(np.array(0.3))))
    network = sketch.network(sketch.apply("Add", value, sketch.constant(np.array(0.1))))
    assert network.graph.output_shape == ()
    assert exceeded(network, 0, boxes=2, points=3) == []


@pytest.mark.parametrize("operator", ["BatchNormalization", "LeakyRelu"])
def test_defaults_of_attributes_are_float32_in_float64_files(operator: str) -> None:
    sketch = Sketch([1, 2], dtype=np.float64)
    parts = [1.0, 0.0, 0.0, 0.0] if operator == "BatchNormalization" else []
    names = [sketch.constant(np.full(2, part)) for part in parts]
    network = sketch.network(sketch.apply(operator, "x", *names), domain=(-1, 1))
    assert exceeded(network, 0, boxes=3, points=3) == []


# Regions and arithmetics


def test_errors_grow_with_the_region() -> None:
    for family in (NetworkFamily.DENSE, NetworkFamily.RESIDUAL, NetworkFamily.POOLING):
        network = random_network(family, 5)
        low, high = (side.ravel() for side in network.domain.box(network.input_shape))
        middle, before = (low + high) / 2, None
        for share in (0.0, 0.01, 0.3, 1.0):
            reach = share * (high - low) / 2
            errors = [bounds.error for bounds in bounds_of(network, middle - reach, middle + reach)]
            if before is not None:
                assert all((a <= b).all() for a, b in zip(before, errors, strict=True))
            before = errors


def of_arithmetic(network: Network, arithmetic: Arithmetic) -> npt.NDArray[np.float64]:
    low, high = (side.ravel() for side in network.domain.box(network.input_shape))
    bounds = stage_bounds(fuse(network), low, high, arithmetic)
    return np.concatenate([each.error for each in bounds])


@pytest.mark.parametrize("family", NetworkFamily)
def test_wider_roundings_and_none(family: NetworkFamily) -> None:
    network = random_network(family, 6)
    once, eight, real = (
        of_arithmetic(network, a) for a in (FLOAT, Arithmetic.parse("float:8"), REAL)
    )
    # Operators that only move entries are exact in any arithmetic: what is left is what a check of
    # the proof may round.
    moved = once > 2 * real
    assert moved.any()
    np.testing.assert_allclose(eight[~moved], real[~moved], rtol=1e-3)
    np.testing.assert_allclose(eight[moved] / once[moved], 8, rtol=1e-3)
    # E is at least 5 units of all that is added up.
    assert (real[moved] <= 2.0**-39 * once[moved] / (5 * UNIT)).all()


@pytest.mark.parametrize("arithmetic", [FLOAT, REAL], ids=str)
def test_what_cancels_is_granted_to_whoever_checks(arithmetic: Arithmetic) -> None:
    """z - z is 0, and its fused map too; a sum of z and -z may be off by a few units of both."""
    sketch = Sketch([1, 2])
    value = sketch.apply("Relu", "x")
    network = sketch.network(sketch.apply("Sub", value, value), domain=(0, 4))
    x = np.array([3.0, 0.0])
    last = stage_bounds(fuse(network), x, x, arithmetic)[-1]
    assert last.error[0] >= 2.0**-40 * 6
    assert arithmetic.is_float or last.error[0] <= 1.01 * 2.0**-40 * 6
    assert last.low[0] <= -last.error[0] and last.error[0] <= last.high[0]
    assert last.error[1] < 1e-30
