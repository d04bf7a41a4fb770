"""The graph: what verifiers and attacks ask of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radii.networks import Clip, Graph, MaxPool, Network, OperatorKind, Window
from radii.testing import NetworkFamily, Sketch, random_network


def residual() -> Network:
    sketch = Sketch([1, 3])
    product = sketch.apply("MatMul", "x", sketch.constant(np.eye(3) / 3))
    value = sketch.apply("Relu", product)
    return sketch.network(sketch.apply("Add", value, "x"))


def test_adjacency_and_kinds() -> None:
    graph = residual().graph
    assert [node.inputs for node in graph.nodes] == [(), (0,), (1,), (2, 0)]
    assert graph.consumers == ((1, 3), (2,), (3,), ())
    assert graph.is_affine == (True, True, False, True)
    assert graph.nodes[2].kind is OperatorKind.PIECEWISE_LINEAR
    assert graph.output == 3
    assert graph.output_shape == (1, 3)
    assert [node.size for node in graph.nodes] == [3, 3, 3, 3]
    assert len({node.name for node in graph.nodes}) == len(graph.nodes)


def test_copies_in_another_dtype_are_exact_and_made_once() -> None:
    network = residual()
    graph = network.graph
    double, single = graph.in_dtype(torch.float64), graph.in_dtype(torch.float32)
    assert single is graph
    assert double.in_dtype(torch.float32) is graph
    assert graph.in_dtype(torch.float64) is double
    weight = double.nodes[1].operator.weight
    assert isinstance(weight, torch.Tensor) and weight.dtype == torch.float64
    assert torch.equal(weight, torch.eye(3, dtype=torch.float64) * float(np.float32(1 / 3)))


def test_derived_constants_keep_their_digits() -> None:
    """What is computed at load time is not rounded to the network's own precision."""
    sketch = Sketch([1, 1, 2])
    vectors = [sketch.constant(np.array([v])) for v in (1.0, 0.0, 0.0, 3.0)]
    value = sketch.apply("BatchNormalization", "x", *vectors, epsilon=0.0)
    graph: Graph = sketch.network(value).graph
    scales = [each.nodes[1].operator.scale for each in (graph, graph.in_dtype(torch.float64))]
    single, double = (float(scale) for scale in scales if isinstance(scale, torch.Tensor))
    assert double == 1 / np.sqrt(3.0)
    assert single == np.float32(1 / np.sqrt(3.0))


def test_the_output_need_not_be_the_last_node() -> None:
    sketch = Sketch([1, 2])
    first, second = sketch.apply_many("Split", 2, "x", axis=1)
    sketch.apply("Relu", second)
    network = sketch.network(first)
    assert network(torch.tensor([[1.0, 2.0]])).tolist() == [[1.0]]


def test_open_sides_of_clip_are_infinite() -> None:
    sketch = Sketch([1, 2], opset=6 + 4)
    value = sketch.apply("Clip", "x", min=0.0, max=float(np.finfo(np.float32).max))
    operator = sketch.network(value).graph.nodes[1].operator
    assert isinstance(operator, Clip)
    assert (operator.low, operator.high) == (0.0, np.inf)


@pytest.mark.parametrize("pads", [((0, 0), (0, 0)), ((1, 0), (0, 2)), ((1, 1), (1, 1))])
def test_candidates_of_max_pool(pads: tuple[tuple[int, int], ...]) -> None:
    window = Window(kernel=(2, 3), strides=(2, 1), dilations=(1, 2), pads=pads)
    operator = MaxPool(window)
    x = torch.rand(5, 2, 3, 6, 7)
    candidates = operator.candidates(tuple(x.shape[1:]))
    padded = torch.cat([x.flatten(1), torch.full((5, 1), -torch.inf)], dim=1)
    expected = padded[:, candidates].amax(-1)
    assert torch.equal(operator(x).flatten(1), expected)


@pytest.mark.parametrize("family", list(NetworkFamily))
def test_random_networks_of_every_family(family: NetworkFamily) -> None:
    network = random_network(family, 0, outputs=4)
    x = np.random.default_rng(0).random((3, *network.input_shape), dtype=np.float32)
    np.testing.assert_allclose(
        network(torch.from_numpy(x)).numpy(), network.replay(x), rtol=1e-4, atol=1e-5
    )
    assert network.is_piecewise_linear
    assert not all(network.graph.is_affine)


def test_an_addition_behind_a_product_becomes_its_bias() -> None:
    sketch = Sketch([1, 3])
    product = sketch.apply("MatMul", "x", sketch.constant(np.ones((3, 2))))
    value = sketch.apply("Add", product, sketch.constant(np.array([[1.0, 2.0]])))
    network = sketch.network(sketch.apply("Relu", value))
    assert [type(node.operator).__name__ for node in network.graph.nodes] == [
        "Input",
        "Dense",
        "Relu",
    ]
    assert network(torch.zeros(2, 3)).tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_a_product_that_is_read_twice_keeps_its_value() -> None:
    sketch = Sketch([1, 3])
    product = sketch.apply("MatMul", "x", sketch.constant(np.ones((3, 2))))
    value = sketch.apply("Add", product, sketch.constant(np.array([1.0, 2.0])))
    network = sketch.network(sketch.apply("Mul", value, product))
    assert network(torch.ones(1, 3)).tolist() == [[12.0, 15.0]]
