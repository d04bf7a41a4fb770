"""Forward affine forms: they hold what the network computes, and are exact where it is linear."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radii.bounds import LayeredNetwork, State, Supports, fuse, layered, propagate
from radii.bounds._forward_forms import FORM_INPUTS, ForwardForms
from radii.networks import Network
from radii.problem import Box
from radii.testing import Sketch


def random_network(seed: int, inputs: int) -> Network:
    """Layers of several kinds, some of which read two earlier ones."""
    rng = np.random.default_rng(seed)
    sketch = Sketch([1, inputs])

    def dense(value: str, width: int, size: int) -> str:
        weight = sketch.constant(rng.normal(0, 2 / np.sqrt(width), (width, size)))
        return sketch.apply("Gemm", value, weight, sketch.constant(rng.normal(0, 0.5, size)))

    kinds = rng.choice(["Relu", "Tanh", "Elu", "LeakyRelu", "Mul", "Clip", "Softmax", "Add"], 4)
    value, width = "x", inputs
    for kind in kinds:
        first, second = dense(value, width, 6), dense(value, width, 6)
        width = 6
        if kind in ("Mul", "Add"):
            value = sketch.apply(kind, sketch.apply("Relu", first), second)
        elif kind == "Clip":
            sides = (sketch.constant(np.float32(side)) for side in (-0.4, 0.7))
            value = sketch.apply("Clip", first, *sides)
        elif kind == "Softmax":
            value = sketch.apply("Softmax", first, axis=1)
        else:
            value = sketch.apply(kind, first)
    return sketch.network(dense(value, width, 3))


def boxes(inputs: int, seed: int) -> list[Box]:
    """One that is wide, one that is narrow, and one of which some sides have no width."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0.3, 0.7, (3, 1, inputs))
    radius = np.stack(
        [np.full((1, inputs), 0.3), np.full((1, inputs), 1e-3), np.zeros((1, inputs))]
    )
    radius[2, 0, : inputs // 2] = 0.2
    return [Box(c - r, c + r) for c, r in zip(centre, radius, strict=True)]


def samples(box: Box, count: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    share = rng.uniform(0, 1, (count, box.low.size))
    share[::2] = rng.integers(0, 2, share[::2].shape)
    return torch.from_numpy(box.low.ravel() + share * (box.high - box.low).ravel())


def argument_samples(network: LayeredNetwork, points: torch.Tensor) -> list[torch.Tensor]:
    values, arguments = {0: points}, []
    for layer in network.layers:
        given = layer.offset + sum(held.pushed(values[s]) for s, held in layer.maps.items())
        given = given.expand(len(points), -1)
        arguments.append(given)
        result = layer.operator(given.reshape(len(points), *layer.shape))
        values[layer.node] = result.reshape(len(points), -1)
    return arguments


def without_forms(
    monkeypatch: pytest.MonkeyPatch, network: LayeredNetwork, held: Supports
) -> State:
    with monkeypatch.context() as patch:
        patch.setattr(ForwardForms, "of", lambda *_: None)
        return propagate(network, held, None)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(40))
def test_samples_stay_inside(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = 1 + seed % 5
    network = random_network(seed, inputs)
    for dtype in (torch.float64, torch.float32):
        ready = layered(fuse(network), dtype)
        regions = boxes(inputs, seed)
        held = Supports.of(regions, dtype)
        state = propagate(ready, held, None)
        plain = without_forms(monkeypatch, ready, held)
        for number, box in enumerate(regions):
            points = samples(box, 2000, seed)
            given = argument_samples(layered(fuse(network)), points)
            for own, known, loose in zip(given, state.arguments, plain.arguments, strict=True):
                assert (own >= known.low[number].double()).all()
                assert (own <= known.high[number].double()).all()
                rounding = 4 * torch.finfo(dtype).eps * (1 + loose.magnitude)
                assert (known.low >= loose.low - rounding).all()
                assert (known.high <= loose.high + rounding).all()


def test_what_cancels_in_a_linear_network_is_gone() -> None:
    """x - x is 0, and a difference of two layers is bounded as the one layer that it is."""
    rng = np.random.default_rng(0)
    weight = rng.normal(0, 1, (3, 4))
    sketch = Sketch([1, 3])
    first = sketch.apply("MatMul", "x", sketch.constant(weight))
    big = sketch.apply("Add", first, sketch.constant(np.full(4, 100.0)))
    active = sketch.apply("Relu", big)
    network = sketch.network(sketch.apply("Relu", sketch.apply("Sub", active, first)))
    ready = layered(fuse(network))
    box = Box(np.full((1, 3), -1.0), np.full((1, 3), 1.0))
    state = propagate(ready, Supports.of([box]), None)
    last = state.arguments[-1]
    assert torch.allclose(last.low, torch.full((1, 4), 100.0).double(), atol=1e-6)
    assert torch.allclose(last.high, torch.full((1, 4), 100.0).double(), atol=1e-6)


def test_forms_settle_units_that_intervals_leave_open(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = []
    for seed in range(10):
        network = random_network(seed, 3)
        ready = layered(fuse(network))
        held = Supports.of(boxes(3, seed)[1:2])
        with_forms, plain = propagate(ready, held, None), without_forms(monkeypatch, ready, held)
        for own, loose in zip(with_forms.arguments, plain.arguments, strict=True):
            widths.append(float((own.high - own.low).mean() / (loose.high - loose.low).mean()))
    assert min(widths) < 0.3 and max(widths) <= 1.0


def test_networks_with_many_inputs_have_none() -> None:
    sketch = Sketch([1, FORM_INPUTS + 1])
    network = layered(fuse(sketch.network(sketch.apply("Relu", "x"))))
    low = torch.zeros(1, FORM_INPUTS + 1, dtype=torch.float64)
    assert ForwardForms.of(network, Supports.of([Box(low.numpy(), low.numpy() + 1)]).box) is None
