"""Executions in other orders: near float64 all of them, on every operator, and not the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.soundness.executions import Execution, SummationOrder, execute, without_rounding
from benchmarks.soundness.operator_models import OPERATOR_MODELS, operator_models
from radii.networks import Network
from radii.testing import NetworkFamily, Sketch, random_network

RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def near(network: Network, x: np.ndarray, execution: Execution) -> None:
    exact = network.graph.values(torch.from_numpy(x[None]).double())
    tolerance = 1e-5 if network.input_dtype == np.float32 else 1e-13
    for index, value in execution.nodes.items():
        expected = exact[index][0].numpy()
        size = 1 + np.abs(expected).max(initial=0)
        assert np.abs(value - expected).max(initial=0) <= tolerance * size
    assert network.graph.output in execution.nodes
    replayed = network.replay(x[None])[0]
    size = 1 + np.abs(replayed).max(initial=0)
    assert execution.outputs.dtype == replayed.dtype
    assert np.abs(execution.outputs - replayed).max(initial=0) <= tolerance * size


@pytest.mark.parametrize("operator", sorted(OPERATOR_MODELS))
@settings(RELAXED, max_examples=3, derandomize=True)
@given(data=st.data())
def test_every_operator_is_executed_in_every_order(operator: str, data: st.DataObject) -> None:
    model = data.draw(operator_models(operator))
    network = Network.from_bytes(model.SerializeToString(), domain=(-2, 2), name=operator)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x = rng.uniform(-2, 2, network.input_shape).astype(network.input_dtype)
    for order in SummationOrder:
        near(network, x, execute(network, x, order))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("family", NetworkFamily)
@pytest.mark.parametrize("order", SummationOrder)
def test_whole_networks(family: NetworkFamily, order: SummationOrder) -> None:
    network = random_network(family, 3)
    x = np.random.default_rng(4).uniform(size=network.input_shape).astype(network.input_dtype)
    execution = execute(network, x, order)
    near(network, x, execution)
    assert len(execution.nodes) == len(network.graph.nodes)


def product(weights: list[float], dtype: type = np.float32) -> Network:
    sketch = Sketch([1, len(weights)], dtype=dtype)
    value = sketch.apply("MatMul", "x", sketch.constant(np.array(weights)[:, None]))
    return sketch.network(value, domain=(-1, 1))


@pytest.mark.parametrize(
    ("weights", "order", "total"),
    [
        ([2.0**25, -(2.0**25), 1.0, 0.0], SummationOrder.FORWARD, 1.0),
        ([2.0**25, -(2.0**25), 1.0, 0.0], SummationOrder.BACKWARD, 0.0),
        ([2.0**25, -(2.0**25), 1.0, 0.0], SummationOrder.FUSED, 1.0),
        # Pairwise: the first with the third, the second with the fourth.
        ([2.0**25, -(2.0**25), 1.0, 0.0], SummationOrder.PAIRWISE, 0.0),
        ([2.0**25, 1.0, -(2.0**25), 0.0], SummationOrder.PAIRWISE, 1.0),
        ([2.0**25, 1.0, -(2.0**25), 0.0], SummationOrder.FORWARD, 0.0),
    ],
)
def test_orders_of_a_sum_whose_large_terms_cancel(
    weights: list[float], order: SummationOrder, total: float
) -> None:
    assert execute(product(weights), np.ones(4), order).outputs[0] == total


def test_products_are_rounded_unless_they_are_fused() -> None:
    x = np.float32(1 + 2.0**-23)
    network = product([float(x), -1.0])
    point = np.array([x, 1 + 2.0**-22], np.float32)
    exact = 2.0**-46  # x^2 - (1 + 2^-22)
    assert execute(network, point, SummationOrder.FORWARD).outputs[0] == 0.0
    assert execute(network, point, SummationOrder.BACKWARD).outputs[0] == 0.0
    # The first product is rounded as it enters the sum; the second one meets it exactly.
    assert execute(network, point[::-1].copy(), SummationOrder.FUSED).outputs[0] != exact
    reverse = product([-1.0, float(x)])
    assert execute(reverse, point[::-1].copy(), SummationOrder.FUSED).outputs[0] == exact


def test_a_random_order_follows_its_seed() -> None:
    rng = np.random.default_rng(0)
    network = product(list(rng.normal(size=200)))
    x = rng.uniform(-1, 1, 200).astype(np.float32)
    sums = {execute(network, x, SummationOrder.RANDOM, seed=s).outputs.item() for s in (1, 2, 3, 1)}
    assert 2 <= len(sums) <= 3


def test_affine_nodes_without_rounding_start_from_the_floats_of_nonlinear_ones() -> None:
    sketch = Sketch([1, 3], dtype=np.float64)
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(3, 4)), rng.normal(size=(5, 2))
    hidden = sketch.apply("Tanh", sketch.apply("MatMul", "x", sketch.constant(first)))
    joined = sketch.apply("Concat", hidden, sketch.constant(np.array([[1 / 3]])), axis=1)
    network = sketch.network(sketch.apply("MatMul", joined, sketch.constant(second)))
    x = rng.uniform(size=3)
    nodes = execute(network, x, SummationOrder.FORWARD).nodes
    exact = without_rounding(network, nodes)
    kinds = [type(node.operator).__name__ for node in network.graph.nodes]
    place = kinds.index("Tanh")
    given = [*nodes[place].ravel(), 1 / 3]
    for index, values, weights in ((place - 1, x, first), (network.graph.output, given, second)):
        for found, column in zip(exact[index].ravel(), weights.T, strict=True):
            pairs = zip(values, column, strict=True)
            terms = [Fraction(float(a)) * Fraction(float(b)) for a, b in pairs]
            upper = float(found)
            distance = abs(Fraction(upper) + Fraction(float(found - upper)) - sum(terms))
            assert distance <= Fraction(2) ** -60 * sum(map(abs, terms))
    assert np.array_equal(exact[place], nodes[place])


def test_no_number_is_too_large_or_too_small_without_rounding() -> None:
    sketch = Sketch([1, 2])
    value = sketch.apply("MatMul", "x", sketch.constant(np.array([[3e38], [3e38]])))
    value = sketch.apply("Mul", value, sketch.constant(np.array(1e38)))
    network = sketch.network(sketch.apply("Mul", value, sketch.constant(np.array(1e-38))))
    x = np.ones(2, np.float32)
    with np.errstate(all="ignore"):
        assert np.isinf(execute(network, x, SummationOrder.FORWARD).outputs).all()
    assert (
        abs(float(without_rounding(network, {0: x})[network.graph.output][0, 0]) / 6e38 - 1) < 1e-6
    )
