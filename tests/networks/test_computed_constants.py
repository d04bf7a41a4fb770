"""Constants that the file itself computes by sums are values with an error, not refusals."""

from __future__ import annotations

import numpy as np
import torch

from radii.bounds import crown_bounds, fuse, stage_bounds
from radii.networks import Network
from radii.problem import Box, Query, Verdict
from radii.testing import Sketch, instance_at
from radii.verifiers import BranchAndBound


def shifted(scale: float = 1.0) -> Network:
    """x minus a vector that a product of constants and a Relu give, as controllers hold it."""
    sketch, rng = Sketch([1, 3]), np.random.default_rng(0)
    row = sketch.constant(scale * rng.normal(size=(1, 40)))
    product = sketch.apply("MatMul", row, sketch.constant(rng.normal(size=(40, 3))))
    moved = sketch.apply("Sub", "x", sketch.apply("Relu", product))
    return sketch.network(
        sketch.apply("MatMul", moved, sketch.constant(np.eye(3))), domain=(-20, 20)
    )


def test_it_is_part_of_the_graph_with_its_error() -> None:
    network = shifted()
    assert network.graph.rounded_constants is None
    assert sum(node.kind.name == "PIECEWISE_LINEAR" for node in network.graph.nodes) == 1
    point = np.zeros(3)
    (hidden, _) = stage_bounds(fuse(network), point, point)
    size = np.abs(hidden.low).max()
    assert np.all(hidden.error > 20 * 2.0**-24 * 0.1 * size)  # a sum of forty terms
    bounds = crown_bounds(network, [Box(np.zeros((1, 3)), np.zeros((1, 3)))])
    exact = network(torch.zeros(1, *network.input_shape).double())[0]
    assert bool((bounds.low[0] <= exact).all() and (exact <= bounds.high[0]).all())
    assert bool((bounds.high - bounds.low < 1e-3).all())


def test_it_is_proven_and_refuted() -> None:
    """The largest of three wins: half of the gap to the second is the radius."""
    network = shifted()
    instance = instance_at(network, [5.0, -3.0, 0.0])
    first, second = np.sort(instance.outputs)[::-1][:2]
    radius = float(first - second) / 2
    verifier = BranchAndBound()
    assert verifier.verify(network, Query(instance, 0.999 * radius)).verdict is Verdict.ROBUST
    assert verifier.verify(network, Query(instance, 1.001 * radius)).verdict is Verdict.NOT_ROBUST


def test_large_computed_weights_stay_folded() -> None:
    sketch, rng = Sketch([1, 80]), np.random.default_rng(1)
    left, right = (sketch.constant(rng.normal(size=(80, 80))) for _ in range(2))
    weight = sketch.apply("MatMul", left, right)
    network = sketch.network(sketch.apply("MatMul", "x", weight))
    assert network.graph.rounded_constants is not None
