"""Training's bounds against those that prove, on the exported network, and against samples."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from radii.bounds import (
    LinearBounds,
    LinearFunctions,
    State,
    Supports,
    backward,
    crown_bounds,
    fuse,
    interval_bounds,
    layered,
    linear_bounds,
    propagate,
)
from radii.errors import NetworkError
from radii.networks import Interval, from_torch
from radii.problem import REAL, Ball, Domain, Norm
from radii.training import Normalize, Residual
from radii.training._certified import Enclosure, ModuleBounds

EPS, SHAPE, CLASSES, BATCH = 0.06, (2, 6, 6), 4, 5


def conv_pools() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=1, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2, padding=1),
        nn.Conv2d(4, 6, 2, groups=2, bias=False),
        nn.LeakyReLU(0.1),
        nn.AvgPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(24, 8),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Linear(8, CLASSES),
    )


def residual() -> nn.Module:
    body = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, 1, 1))
    return nn.Sequential(
        Normalize([0.4, 0.6], [0.5, 0.25], SHAPE),
        nn.Conv2d(2, 3, 3, 1, 1),
        nn.ReLU(),
        Residual(body, nn.Conv2d(3, 4, 1, 2)),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(36, CLASSES),
        nn.Hardtanh(-0.3, 0.3),
    )


class Written(nn.Module):
    """Functions, methods and arithmetic instead of layers."""

    centre: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(72, 12)
        self.second = nn.Linear(12, 12)
        self.last = nn.Linear(12, CLASSES)
        self.register_buffer("centre", torch.full((1, 2, 1, 1), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        z = (2 * x - self.centre).view(x.size(0), -1)
        z = torch.relu(self.first(z))
        z = z + nn.functional.leaky_relu(self.second(z), 0.05) / 3
        z = 1 - torch.clamp(z, max=0.8)
        outputs: Tensor = self.last(torch.tanh(z) - z)
        return outputs


def one_hidden_layer() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(72, 20), nn.ReLU(), nn.Linear(20, CLASSES))


MODULES = (conv_pools, residual, Written, one_hidden_layer)


def made(build: object) -> tuple[nn.Module, nn.Module, Tensor, Tensor]:
    """The module in float32 and float64, in evaluation mode, with inputs and labels."""
    torch.manual_seed(0)
    assert callable(build)
    module: nn.Module = build()
    module(torch.rand(64, *SHAPE))  # running statistics of their own
    module.eval()
    labels = torch.tensor([0, 1, 2, 3, 0])
    return module, copy.deepcopy(module).double(), torch.rand(BATCH, *SHAPE).double(), labels


def box(inputs: Tensor) -> tuple[Tensor, Tensor]:
    return (inputs - EPS).clamp(0, 1), (inputs + EPS).clamp(0, 1)


def margin_rows(labels: Tensor) -> np.ndarray:
    eye = np.eye(CLASSES)
    return np.stack([eye[label][None] - eye for label in labels.tolist()])


def enclosed(module: nn.Module, inputs: Tensor) -> Enclosure:
    return ModuleBounds(module, SHAPE).enclosed(inputs, *box(inputs))


@pytest.mark.parametrize("build", MODULES)
def test_intervals_are_those_of_the_exported_network(build: object) -> None:
    module, exact, inputs, _ = made(build)
    found = enclosed(exact, inputs).outputs
    network = from_torch(module, input_shape=SHAPE, domain=(0, 1))
    proven = interval_bounds(network.graph, Interval(*box(inputs)))[network.graph.output]
    assert torch.allclose(found.value, exact(inputs), atol=1e-12)
    assert torch.allclose(found.low, proven.low.reshape(BATCH, -1), atol=2e-6)
    assert torch.allclose(found.high, proven.high.reshape(BATCH, -1), atol=2e-6)


@pytest.mark.parametrize("build", MODULES)
def test_margins_hold_on_samples(build: object) -> None:
    _, exact, inputs, labels = made(build)
    found = enclosed(exact, inputs)
    low, high = box(inputs)
    rows = torch.tensor(margin_rows(labels))
    noise = torch.rand(2000, *inputs.shape, dtype=torch.float64)
    corners = torch.where(torch.rand_like(noise) < 0.5, noise.round(), noise)
    points = (low + corners * (high - low)).flatten(0, 1)
    outputs = exact(points).reshape(2000, BATCH, CLASSES)
    least = torch.einsum("brc,nbc->nbr", rows, outputs).amin(0)
    for bounds in (found.interval_margins(labels), found.crown_margins(labels)):
        assert (bounds <= least + 1e-9).all()


def test_crown_margins_are_those_of_crown_behind_one_layer() -> None:
    """Intervals of the first layer are exact, so both relax the same units in the same way."""
    module, exact, inputs, labels = made(one_hidden_layer)
    network = from_torch(module, input_shape=SHAPE, domain=(0, 1))
    balls = [Ball(x.numpy(), EPS, Norm.LINF, Domain(0, 1)) for x in inputs]
    proven = crown_bounds(network, balls, margin_rows(labels), arithmetic=REAL).low
    found = enclosed(exact, inputs).crown_margins(labels)
    assert torch.allclose(found, proven, atol=1e-6)


def three_bends() -> nn.Module:
    """One affine map before each bend, so that fusing maps changes no interval.

    The maximum comes before the ReLU: behind it many entries of a window tie at 0.
    """
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, 1, 1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(4, 6, 2, 1),
        nn.LeakyReLU(0.1),
        nn.Flatten(),
        nn.Linear(24, CLASSES),
        nn.Hardtanh(-0.1, 0.1),
    )


def test_crown_margins_are_one_backward_pass_of_crown_on_intervals() -> None:
    module, exact, inputs, labels = made(three_bends)
    network = from_torch(module, input_shape=SHAPE, domain=(0, 1))
    balls = [Ball(x.numpy(), EPS, Norm.LINF, Domain(0, 1)) for x in inputs]

    def nothing(state: State, rows: LinearFunctions) -> LinearBounds:
        return replace(backward(state, rows), values=torch.full(rows.shape, -torch.inf).double())

    ready = layered(fuse(network), arithmetic=REAL)
    state = propagate(ready, Supports.of(balls), nothing)
    rows = torch.tensor(margin_rows(labels))
    _, loss = ready.output.arguments(state.values, state.errors)
    proven = linear_bounds(state, ready.output, loss, rows).values
    found = enclosed(exact, inputs).crown_margins(labels)
    assert torch.allclose(found, proven, atol=1e-6)
    assert (found != 0).sum() > 10


def test_margins_pass_gradients_to_every_parameter() -> None:
    _, exact, inputs, labels = made(conv_pools)
    exact.train()
    found = enclosed(exact, inputs)
    (found.crown_margins(labels).sum() + found.interval_margins(labels).sum()).backward()
    for name, parameter in exact.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
        # what shifts a whole batch is taken out again by the normalisation behind it
        assert parameter.grad.abs().max() > 0 or name == "0.bias"


def test_gradients_are_those_of_finite_differences() -> None:
    _, exact, inputs, labels = made(residual)
    weight: Tensor = exact.get_parameter("1.weight")
    step = torch.randn_like(weight)

    def total() -> Tensor:
        found = enclosed(exact, inputs)
        return found.crown_margins(labels).sum() + found.interval_margins(labels).sum()

    (gradient,) = torch.autograd.grad(total(), weight)
    values = []
    for side in (1, -1):
        with torch.no_grad():
            weight += side * 1e-7 * step
            values.append(float(total()))
            weight -= side * 1e-7 * step
    assert float((gradient * step).sum()) == pytest.approx((values[0] - values[1]) / 2e-7, rel=1e-4)


def test_batch_statistics_are_those_of_the_values_while_training() -> None:
    _, exact, inputs, _ = made(conv_pools)
    exact.train()
    twin = copy.deepcopy(exact)
    found = ModuleBounds(exact, SHAPE).enclosed(inputs, inputs, inputs).outputs
    assert torch.allclose(found.value, twin(inputs))
    assert torch.allclose(found.low, found.value) and torch.allclose(found.high, found.value)
    for name, buffer in twin.named_buffers():
        assert torch.allclose(exact.get_buffer(name), buffer), name


class Squares(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * x


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("module", "told"),
    [
        (nn.Sequential(nn.Flatten(), nn.Softmax(1)), "Softmax"),
        (nn.Sequential(nn.Dropout(0.5)), "Dropout"),
        (Squares(), "mul"),
        (Branches(), "cannot follow"),
    ],
)
def test_what_cannot_be_bounded_is_named(module: nn.Module, told: str) -> None:
    with pytest.raises(NetworkError, match=told):
        ModuleBounds(module, SHAPE)
    assert module.training
