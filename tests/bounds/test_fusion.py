"""A fused network computes what the network computes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from radii.bounds import Fusion, fuse, hinges_of, layered, windows_of
from radii.errors import UnsupportedQuery
from radii.networks import ComposedMap, ConvolutionMap, MaxPool, Network, from_torch
from radii.testing import NetworkFamily, Sketch, random_network


def run_fused(fusion: Fusion, x: np.ndarray) -> np.ndarray:
    """The output for one flattened input, from the stages alone."""
    values = {0: x}
    for stage in (*fusion.stages, fusion.output):
        read: np.ndarray = stage.offset + sum(
            matrix @ values[i] for i, matrix in stage.matrices.items()
        )
        if stage is fusion.output:
            return read
        result = fusion.graph.nodes[stage.node].shape
        hinges = hinges_of(stage.operator, stage.shape, result)
        if hinges is None:
            assert isinstance(stage.operator, MaxPool)
            windows = windows_of(stage.operator, stage.shape).candidates
            values[stage.node] = np.array([read[window].max() for window in windows])
        else:
            z = read[hinges.sources]
            rises = hinges.change * np.maximum(0.0, z - hinges.knee)
            values[stage.node] = hinges.slope * z + hinges.offset + rises.sum(axis=0)
    raise AssertionError


def assert_same(network: Network) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (20, *network.input_shape))
    with torch.no_grad():
        expected = network(torch.from_numpy(points)).numpy()
    fusion = fuse(network)
    found = np.stack([run_fused(fusion, point.ravel()) for point in points])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", list(NetworkFamily))
def test_fused_networks_are_the_same_function(family: NetworkFamily) -> None:
    for seed in range(4):
        assert_same(random_network(family, seed, domain=(-1.0, 1.0)))


def test_clips_open_on_a_side_and_the_wrong_way_round() -> None:
    for low, high in ((-np.inf, 0.2), (-0.1, np.inf), (-np.inf, np.inf), (0.5, -0.5)):
        sketch = Sketch([1, 6])
        sides = sketch.constant(np.array(low)), sketch.constant(np.array(high))
        assert_same(sketch.network(sketch.apply("Clip", "x", *sides), domain=(-1, 1)))


def test_slopes_that_broadcast_the_input() -> None:
    sketch = Sketch([1, 3])
    column = sketch.apply("Reshape", "x", sketch.constant(np.array([3, 1])))
    slopes = sketch.constant(np.array([[0.1, -0.5]]))
    wide = sketch.apply("Expand", column, sketch.constant(np.array([3, 2])))
    assert_same(sketch.network(sketch.apply("PRelu", wide, slopes), domain=(-1, 1)))


def test_branches_that_skip_nonlinear_nodes_and_dead_ends() -> None:
    sketch = Sketch([1, 4])
    first = sketch.apply("Relu", "x")
    sketch.apply("Sigmoid", first)  # not used by the output
    second = sketch.apply("Relu", sketch.apply("Sub", first, sketch.constant(np.full(4, 0.3))))
    total = sketch.apply("Add", sketch.apply("Add", first, second), "x")
    network = sketch.network(total, domain=(-1, 1))
    assert_same(network)
    assert len(fuse(network).stages) == 2
    assert set(fuse(network).output.maps) == {0, *(s.node for s in fuse(network).stages)}


def test_smooth_operators_have_no_pieces() -> None:
    sketch = Sketch([1, 4])
    network = sketch.network(sketch.apply("Tanh", "x"), domain=(-1, 1))
    stage = fuse(network).stages[0]
    with pytest.raises(UnsupportedQuery, match="Tanh"):
        hinges_of(stage.operator, stage.shape, stage.shape)


def test_structure_is_kept_and_small_chains_become_one_matrix() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Conv2d(4, 8, 3, 2, 1),
        torch.nn.AvgPool2d(2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 3),
    )
    network = from_torch(module.eval(), input_shape=(1, 16, 16), domain=(0, 1))
    first, second = fuse(network).stages
    assert {type(held) for held in first.maps.values()} == {ConvolutionMap}
    assert {type(held) for held in second.maps.values()} == {ComposedMap}
    (held,) = second.maps.values()
    assert second.rounded == held.rounded > 0
    assert_same(network)
    layers = layered(fuse(network)).layers
    assert type(next(iter(layers[1].maps.values()))) is not ComposedMap


def test_values_that_cancel_are_not_read() -> None:
    sketch = Sketch([1, 4])
    hidden = sketch.apply("Relu", "x")
    network = sketch.network(
        sketch.apply("Add", sketch.apply("Sub", "x", "x"), hidden), domain=(-1, 1)
    )
    output = fuse(network).output
    assert set(output.maps) == {1} and output.leaves == (0, 1)
    assert_same(network)


def test_a_fusion_travels_to_another_process() -> None:
    fusion = fuse(random_network(NetworkFamily.RESIDUAL, 0))
    again = pickle.loads(pickle.dumps(fusion))
    for stage, other in zip(fusion.stages, again.stages, strict=True):
        for source, matrix in stage.matrices.items():
            assert (other.matrices[source] != matrix).nnz == 0
