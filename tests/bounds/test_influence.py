"""The looseness of a relaxation is attributed to the inputs that cause it."""

from __future__ import annotations

import numpy as np
import torch

from radii.bounds import Supports, fuse, input_influence, layered, propagate
from radii.problem import Box
from radii.testing import NetworkFamily, Sketch, random_network


def test_only_inputs_of_bent_units_count() -> None:
    """relu(x0 - x1 / 2) bends, relu(x2 + 2) does not, and x3 is fixed."""
    sketch = Sketch([1, 4])
    weight = np.array([[1.0, 0.0], [-0.5, 0.0], [0.0, 1.0], [5.0, 0.0]])
    bias = sketch.constant(np.array([0.0, 2.0]))
    hidden = sketch.apply("Relu", sketch.apply("Gemm", "x", sketch.constant(weight), bias))
    network = sketch.network(sketch.apply("MatMul", hidden, sketch.constant(np.ones((2, 1)))))
    box = Box(np.array([-1.0, -1.0, -1.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    with torch.no_grad():
        found = input_influence(propagate(layered(fuse(network)), Supports.of([box])))[0]
    assert found[2] == found[3] == 0
    assert found[0] > 0 and torch.isclose(found[0], 2 * found[1])


def test_every_kind_of_layer_is_passed() -> None:
    for family in NetworkFamily:
        network = random_network(family, 1)
        centre = np.full(network.input_shape, 0.5)
        boxes = [Box(centre - size, centre + size) for size in (0.0, 0.1, 0.5)]
        with torch.no_grad():
            found = input_influence(propagate(layered(fuse(network)), Supports.of(boxes)))
        assert found.shape == (3, centre.size)
        assert bool((found >= -1e-9).all()) and bool(torch.isfinite(found).all())
        assert found[0].abs().max() < 1e-9 < found[2].max()


def test_fewer_values_than_arguments() -> None:
    """ArgMax gives 2 values of 4 arguments: what any of them varies by counts for both."""
    sketch = Sketch([1, 3])
    weight = np.array([[1.0, 0.0, 2.0, 0.5], [0.0, 1.0, -1.0, 0.5], [0.0, 0.0, 0.0, 0.0]])
    argument = sketch.apply("MatMul", "x", sketch.constant(weight))
    shape = sketch.constant(np.array([1, 2, 2]))
    largest = sketch.apply("ArgMax", sketch.apply("Reshape", argument, shape), axis=2, keepdims=0)
    value = sketch.apply("Cast", largest, to=1)
    network = sketch.network(sketch.apply("MatMul", value, sketch.constant(np.eye(2))))
    box = Box(np.full(3, -1.0), np.ones(3))
    with torch.no_grad():
        state = propagate(layered(fuse(network)), Supports.of([box]))
        found = input_influence(state)[0]
    assert state.arguments[0].low.shape == (1, 4) and state.losses[0].shape == (1, 4)
    assert found[0] > found[1] > 0 == found[2]
