"""Rows as windows of feature maps give the bounds of whole rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from radii.bounds import Supports, fuse, layered, propagate
from radii.bounds._crown import bound_rows, output_rows
from radii.bounds._linear import Gathered, LinearFunctions, State, backward, window_bounds
from radii.bounds._windows import WindowRows, feature_maps
from radii.networks import ConvolutionMap, Network, Window, from_torch
from radii.problem import REAL, Ball, Box, Norm
from radii.testing import Sketch


class Residual(nn.Module):
    """A block with a strided shortcut, and one without: sums of windows of several sizes."""

    def __init__(self, strided: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 3, 3, 2 if strided else 1, 1)
        self.second = nn.Conv2d(3, 3, 3, 1, 1)
        self.around = nn.Conv2d(3, 3, 1, 2) if strided else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))) + self.around(x))


class Third(nn.Module):
    """A factor that makes the weights behind it numbers which float32 cannot hold."""

    def forward(self, x: Tensor) -> Tensor:
        return x / 3


class Late(nn.Module):
    """Values that skip a nonlinear layer and pass two convolutions without any between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 3, 3, padding=1)
        self.second = nn.Conv2d(3, 4, 3, padding=1)
        self.third = nn.Conv2d(4, 3, (1, 3), padding=(0, 2), dilation=(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.third(self.second(torch.relu(self.first(x)) + x))
        return result


MODULES: dict[str, Callable[[], list[nn.Module]]] = {
    "plain": lambda: [nn.Conv2d(3, 4, 3, 1, 1), nn.ReLU(), nn.Conv2d(4, 3, 3, 1, 1)],
    "strided": lambda: [nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 3, 2, 2, 1)],
    "grouped": lambda: [nn.Conv2d(3, 6, 3, groups=3), nn.LeakyReLU(), nn.Conv2d(6, 4, 3, groups=2)],
    "dilated": lambda: [nn.Conv2d(3, 4, 3, dilation=2), nn.ReLU6(), nn.Conv2d(4, 3, 3, padding=2)],
    "normed": lambda: [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 3, 3)],
    "pooled": lambda: [nn.Conv2d(3, 4, 3), nn.AvgPool2d(2), nn.Tanh(), nn.Conv2d(4, 3, 2)],
    "largest": lambda: [nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.Conv2d(4, 3, 2)],
    "residual": lambda: [nn.Conv2d(3, 3, 3, 1, 1), nn.ReLU(), Residual(True), Residual(False)],
    "late": lambda: [nn.Conv2d(3, 3, 3), nn.ReLU(), Late(), nn.ReLU(), nn.Conv2d(3, 2, 3)],
}


@pytest.fixture(autouse=True)
def _structured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps as small as here would be dense."""
    shares = {torch.float64: 10.0, torch.float32: 10.0}
    monkeypatch.setattr("radii.bounds._affine_maps.DENSE_ENTRIES", 0)
    monkeypatch.setattr("radii.bounds._affine_maps.DENSE_SHARE", shares)
    monkeypatch.setattr("radii.bounds._affine_maps.FLOAT32_FIRST_UNITS", 0)
    monkeypatch.setattr("radii.bounds._affine_maps.COMPOSED_WORK", 0)


def network_of(name: str) -> Network:
    torch.manual_seed(0)
    module = nn.Sequential(*MODULES[name](), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    module(torch.zeros(2, 3, 10, 9))
    return from_torch(module.eval(), input_shape=(3, 10, 9), domain=(0, 1))


def whole_rows(state: State, number: int, loss: Tensor, region: int) -> Tensor:
    layer = state.network.layers[number]
    units = torch.arange(layer.size)[None]
    rows = LinearFunctions.of_units(layer, loss, torch.tensor([region]), units)
    return backward(state, rows).values.reshape(2, -1)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L2])
@pytest.mark.parametrize("share", [0.3, 0.5, 10.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_windows_give_the_bounds_of_whole_rows(
    name: str, dtype: torch.dtype, share: float, norm: Norm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they become whole rows soon, or never."""
    monkeypatch.setattr("radii.bounds._windows.LARGEST_SHARE", share)
    network = network_of(name)
    rng = np.random.default_rng(1)
    points = rng.uniform(0.2, 0.8, (2, *network.input_shape))
    balls = [
        Ball(point, 0.05 if norm is Norm.LINF else 0.3, norm, network.domain) for point in points
    ]
    ready = layered(fuse(network), dtype, arithmetic=REAL)
    state = propagate(ready, Supports.of(balls, dtype))
    checked = 0
    for number, layer in enumerate(ready.layers):
        shape = feature_maps(layer)
        if shape is None:
            continue
        checked += 1
        _, loss = layer.arguments(state.values, state.errors)
        before = State(ready, state.supports, state.values, state.errors, state.all_errors)
        before.losses, before.lines = state.losses[:number], state.lines[:number]
        before.arguments = state.arguments[:number]
        count = math.prod(shape[1:])
        places = torch.randperm(count)
        channels = torch.arange(shape[0]).expand(count, -1)
        found = window_bounds(before, layer, loss, 1, places, channels, Gathered())
        expected = whole_rows(before, number, loss, 1).reshape(2, shape[0], count)
        expected = expected[:, :, places].transpose(1, 2)
        tolerance = 1e-9 if dtype == torch.float64 else 1e-3
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    assert checked >= 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_single_points_test_the_rounding_of_windows(name: str, dtype: torch.dtype) -> None:
    """What is left of a region that is one point is rounding, and holds the value itself."""
    network = network_of(name)
    points = np.random.default_rng(2).uniform(0, 1, (4, *network.input_shape))
    ready = layered(fuse(network), dtype, arithmetic=REAL)
    boxes = [Box(point, point) for point in points]
    state = propagate(ready, Supports.of(boxes, dtype))
    values = network.graph.values(torch.from_numpy(points))
    for layer, held in zip(ready.layers, state.arguments, strict=True):
        exact = values[layer.rounding.stage.source].reshape(len(points), -1)
        assert bool((held.low.double() <= exact + 1e-12).all())
        assert bool((held.high.double() >= exact - 1e-12).all())


def test_what_is_gathered_from_maps_of_different_sizes_is_not_mixed_up() -> None:
    """Windows of two sources that are alike, in maps between convolutions that end differently."""
    rng = np.random.default_rng(1)
    sketch = Sketch([1, 1, 12, 12])

    def convolved(value: str, *pads: int) -> str:
        weight = sketch.constant(rng.normal(0, 0.6, (1, 1, 3, 3)))
        return sketch.apply("Conv", value, weight, pads=pads)

    first = sketch.apply("Relu", convolved("x", 1, 1, 1, 1))
    second = sketch.apply("Relu", convolved("x", 0, 0, 0, 0))
    longer = convolved(convolved(first, 1, 1, 1, 1), 1, 1, 1, 1)
    shorter = convolved(convolved(second, 1, 1, 1, 1), 1, 1, 3, 3)
    joined = sketch.apply("Relu", sketch.apply("Add", longer, shorter))
    network = sketch.network(sketch.apply("Flatten", joined))
    points = np.random.default_rng(2).uniform(0, 1, (4, *network.input_shape))
    ready = layered(fuse(network), arithmetic=REAL)
    state = propagate(ready, Supports.of([Box(point - 0.1, point + 0.1) for point in points]))
    values = network.graph.values(torch.from_numpy(points))
    for layer, held in zip(ready.layers, state.arguments, strict=True):
        exact = values[layer.rounding.stage.source].reshape(len(points), -1)
        assert bool((held.low <= exact).all())
        assert bool((held.high >= exact).all())


@pytest.mark.parametrize("pads", [((1, 0), (2, 1)), ((4, 5), (6, 4))])
def test_windows_stand_where_their_units_see(pads: tuple[tuple[int, int], ...]) -> None:
    """A window placed in a whole map is the unit's own row of the convolution's matrix; also where
    it sees padding alone."""
    window = Window((3, 2), (2, 1), (1, 2), pads)
    weight = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 3, 2)))
    held = ConvolutionMap(weight, (7, 6), window=window)
    _, channels, *sizes = held.result
    shape = (channels, *sizes)
    places = torch.arange(math.prod(sizes))
    every = torch.arange(channels).expand(len(places), -1)
    rows = WindowRows.of_units(shape, places, every, torch.float64, {}).pulled(held)
    assert rows is not None and rows.size == (3, 3)
    found = rows.whole().reshape(len(places), 2, channels, -1)
    expected = torch.from_numpy(held.matrix().toarray()).reshape(channels, len(places), -1)
    torch.testing.assert_close(found[:, 0], expected.transpose(0, 1))
    torch.testing.assert_close(found[:, 1], -expected.transpose(0, 1))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("name", sorted(MODULES))
def test_float32_settles_units_and_changes_no_bound(
    name: str, norm: Norm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is tried first or not: the same units stay open, and the same bounds follow."""
    monkeypatch.setattr("radii.bounds._crown.SINGLE_WORK", 0)
    monkeypatch.setattr("radii.bounds._crown.SETTLED_SHARE", 0.0)
    network = network_of(name)
    points = np.random.default_rng(1).uniform(0.2, 0.8, (2, *network.input_shape))
    regions = Supports.of(
        [Ball(point, 0.03 if norm is Norm.LINF else 0.2, norm, network.domain) for point in points]
    )
    ready = layered(fuse(network))
    assert ready.single is not None
    first, alone = propagate(ready, regions), propagate(replace(ready, single=None), regions)
    for one, other in zip(first.relaxations, alone.relaxations, strict=True):
        assert abs(int(one.is_loose.sum()) - int(other.is_loose.sum())) <= 1
    found, expected = (bound_rows(state, output_rows(state, None)) for state in (first, alone))
    torch.testing.assert_close(found.low, expected.low, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.high, expected.high, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e6, 1e30])
@pytest.mark.parametrize("name", ["residual", "late", "strided"])
def test_bounds_by_float32_hold_whatever_it_rounds(
    name: str, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights that float32 cannot hold, values that overflow it, and boxes as small as rounding."""
    monkeypatch.setattr("radii.bounds._crown.SINGLE_WORK", 0)
    monkeypatch.setattr("radii.bounds._crown.SETTLED_SHARE", 0.0)
    torch.manual_seed(1)
    layers = [Third(), *MODULES[name](), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3)]
    module = nn.Sequential(*layers)
    module(torch.zeros(2, 3, 10, 9))
    with torch.no_grad():
        next(module.parameters()).mul_(scale)
    network = from_torch(module.eval(), input_shape=(3, 10, 9), domain=(0, 1))
    rng = np.random.default_rng(3)
    centre = rng.uniform(0.2, 0.8, network.input_shape)
    ready = layered(fuse(network), arithmetic=REAL)
    for eps in (0.0, 1e-8, 1e-3):
        state = propagate(ready, Supports.of([Box(centre - eps, centre + eps)]))
        points = centre + eps * rng.uniform(-1, 1, (200, *centre.shape))
        values = network.graph.values(torch.from_numpy(points))
        for layer, held in zip(ready.layers, state.arguments, strict=True):
            exact = values[layer.rounding.stage.source].reshape(len(points), -1)
            margin = 1e-12 * (1 + exact.abs().amax())
            assert bool((held.low <= exact + margin).all())
            assert bool((held.high >= exact - margin).all())
