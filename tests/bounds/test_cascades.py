"""Maxima as cascades of ReLU units: the same function, sound bounds, the same errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from radii.bounds import (
    CrownPasses,
    Supports,
    crown_bounds,
    fuse,
    fuse_cascades,
    layered,
    propagate,
)
from radii.networks import ConvolutionMap, MaxPool, Network, Window, from_torch
from radii.problem import FLOAT, REAL, Arithmetic, Ball, Halfspaces, Norm
from radii.testing import Sketch
from radii.verifiers.native._mapped_reduction import keeps_structure, mapped_reduction
from radii.verifiers.native._settings import RootSettings

SHAPE = (2, 7, 6)


class Residual(nn.Module):
    """A sum in front of a maximum, whose ReLU something else reads as well."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.pool = nn.MaxPool2d(3, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        before = torch.relu(self.first(x))
        joined = torch.relu(self.second(before) + before)
        return torch.cat([self.pool(joined).flatten(1), joined.flatten(1)], 1)


MODULES: dict[str, Callable[[], list[nn.Module]]] = {
    "behind a ReLU": lambda: [nn.Conv2d(2, 3, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2)],
    "before a ReLU": lambda: [nn.Conv2d(2, 3, 3, 1, 1), nn.MaxPool2d(2), nn.ReLU()],
    "between two": lambda: [nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.ReLU()],
    "alone": lambda: [nn.Conv2d(2, 3, 3, 1, 1), nn.MaxPool2d(2)],
    "padded": lambda: [nn.Conv2d(2, 3, 3, 1, 1), nn.MaxPool2d(3, 2, 1)],
    "padded behind a ReLU": lambda: [nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)],
    "rounded up": lambda: [nn.Conv2d(2, 3, 3, 1, 1), nn.MaxPool2d(2, ceil_mode=True)],
    "dilated": lambda: [nn.Conv2d(2, 3, 3, 1, 1), nn.MaxPool2d(2, 1, 1, dilation=2)],
    "overlapping": lambda: [nn.Conv2d(2, 3, 3, 1, 1), nn.ReLU(), nn.MaxPool2d((3, 2), 1)],
    "global": lambda: [nn.Conv2d(2, 3, 3, 1, 1), nn.AdaptiveMaxPool2d(1)],
    "first": lambda: [nn.MaxPool2d(3, 2, 1), nn.Conv2d(2, 3, 2)],
    "twice": lambda: [nn.MaxPool2d(2, 1), nn.MaxPool2d(2), nn.Conv2d(2, 3, 2)],
    "normed": lambda: [nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(3)],
    "single": lambda: [nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(1, 2)],
    "residual": lambda: [Residual()],
    "last": lambda: [nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 3, 2, padding=1)],
}


@pytest.fixture(params=["dense", "structured"], autouse=True)
def _maps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With matrices, as maps as small as here are, and with structure and float32 first."""
    if request.param == "structured":
        shares = {torch.float64: 10.0, torch.float32: 10.0}
        monkeypatch.setattr("radii.bounds._affine_maps.DENSE_ENTRIES", 0)
        monkeypatch.setattr("radii.bounds._affine_maps.DENSE_SHARE", shares)
        monkeypatch.setattr("radii.bounds._affine_maps.FLOAT32_FIRST_UNITS", 0)
        monkeypatch.setattr("radii.bounds._affine_maps.COMPOSED_WORK", 0)
        monkeypatch.setattr("radii.bounds._crown.SINGLE_WORK", 0)


def network_of(name: str) -> Network:
    torch.manual_seed(0)
    module = nn.Sequential(*MODULES[name](), nn.Flatten(), nn.LazyLinear(4), nn.ReLU())
    module.append(nn.Linear(4, 3))
    module(torch.zeros(2, *SHAPE))
    return from_torch(module.eval(), input_shape=SHAPE, domain=(-1, 1))


def corners(ball: Ball, count: int) -> np.ndarray:
    """Samples of the ball, many of them corners of its box."""
    rng = np.random.default_rng(3)
    low, high = ball.box()
    signs = rng.integers(0, 2, (count, *low.shape))
    return np.concatenate([np.where(signs, high, low), ball.sample(rng, count)])


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_cascade_is_the_network(name: str) -> None:
    network = network_of(name)
    cascade = fuse_cascades(network)
    assert not any(isinstance(stage.operator, MaxPool) for stage in cascade.stages)
    points = 2 * torch.rand(200, *SHAPE, dtype=torch.float64) - 1
    torch.testing.assert_close(
        cascade.graph(points).flatten(1), network.graph(points).flatten(1), rtol=1e-12, atol=1e-12
    )


@pytest.mark.sampled(20)
@pytest.mark.parametrize("arithmetic", [FLOAT, REAL])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_sample_is_outside_the_bounds(name: str, arithmetic: Arithmetic) -> None:
    """Of the outputs, and of what every stage reads, by intervals and by CROWN."""
    network = network_of(name)
    cascade = fuse_cascades(network)
    point = np.random.default_rng(1).uniform(-0.9, 0.9, SHAPE)
    for eps in (0.02, 0.5):
        ball = Ball(point, eps, Norm.LINF, network.domain)
        points = torch.from_numpy(corners(ball, 200))
        values = cascade.graph.values(points)
        outputs = network.graph(points)
        for on_intervals in (True, False):
            found = crown_bounds(cascade, [ball], arithmetic=arithmetic, on_intervals=on_intervals)
            assert bool(
                (outputs >= found.low - 1e-12).all() & (outputs <= found.high + 1e-12).all()
            )
        state = propagate(layered(cascade, arithmetic=arithmetic), Supports.of([ball]))
        for stage, held in zip(cascade.stages, state.arguments, strict=True):
            read = values[stage.source].flatten(1)
            assert bool((read >= held.low - 1e-12).all() & (read <= held.high + 1e-12).all())


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", sorted(MODULES))
def test_floats_that_run_are_inside_at_one_point(name: str) -> None:
    """What is left of a region that is one point is rounding: float32 runs stay within it."""
    network = network_of(name)
    cascade = fuse_cascades(network)
    rng = np.random.default_rng(2)
    for point in rng.uniform(-1, 1, (8, *SHAPE)).astype(np.float32):
        ball = Ball(point.astype(np.float64), 0.0, Norm.LINF, network.domain)
        found = crown_bounds(cascade, [ball])
        run = network.graph(torch.from_numpy(point)[None]).double()
        assert bool((run >= found.low).all() & (run <= found.high).all())


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", sorted(MODULES))
def test_trees_on_maps_have_sound_roots(name: str) -> None:
    """Kept units have bounds that hold for all samples, in the order of their names."""
    network = network_of(name)
    cascade = fuse_cascades(network)
    point = np.random.default_rng(1).uniform(-0.9, 0.9, SHAPE)
    ball = Ball(point, 0.1, Norm.LINF, network.domain)
    violation = Halfspaces(np.array([[1.0, -1.0, 0.0]]), np.zeros(1))
    state = CrownPasses().state(cascade, [ball])
    settings = RootSettings(dense_gain=0.0)
    reduction = mapped_reduction(state, ball, [violation], root_seconds=5.0, settings=settings)
    points = torch.from_numpy(corners(ball, 300))
    values = cascade.graph.values(points)
    read = torch.cat([values[stage.source].flatten(1) for stage in cascade.stages], 1)
    own = read[:, reduction.names]
    assert bool((own >= reduction.lower - 1e-12).all() & (own <= reduction.upper + 1e-12).all())


def test_a_relu_in_front_goes_behind() -> None:
    behind, alone = (fuse_cascades(network_of(name)) for name in ("behind a ReLU", "alone"))
    before = fuse_cascades(network_of("before a ReLU"))
    assert len(behind.stages) == len(before.stages) == len(alone.stages)
    assert len(fuse(network_of("behind a ReLU")).stages) == 3


def test_a_network_without_maxima_is_not_fused_again() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(84, 3), nn.ReLU(), nn.Linear(3, 2))
    network = from_torch(module.eval(), input_shape=SHAPE, domain=(0, 1))
    assert fuse_cascades(network) is fuse(network)


def test_one_and_three_axes() -> None:
    for axes in (1, 3):
        shape = [1, 2, *(4,) * axes]
        sketch = Sketch(shape)
        pooled = sketch.apply("MaxPool", "x", kernel_shape=[2] * axes, strides=[2] * axes)
        network = sketch.network(sketch.apply("Flatten", pooled))
        cascade = fuse_cascades(network)
        points = torch.rand(50, *shape, dtype=torch.float64)
        assert torch.equal(
            cascade.graph(points).round(decimals=12), network.graph(points).round(decimals=12)
        )


@pytest.mark.sampled(16)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("pads", [(0, 0), (1, 0), (2, 1), (-1, 0)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_convolutions_of_few_weights(stride: int, pads: tuple[int, int], dilation: int) -> None:
    """Weight by weight they give what their matrix gives."""
    weight = torch.zeros(3, 2, 2, 3, dtype=torch.float64)
    for result, argument, *spot in ((0, 0, 0, 0), (0, 1, 1, 2), (1, 1, 0, 1), (2, 0, 1, 2)):
        weight[(result, argument, *spot)] = 1.0 - 2 * argument
    window = Window((2, 3), (stride, stride), (dilation, dilation), (pads, pads[::-1]))
    held = ConvolutionMap(weight, (8, 7), window=window, batch=2)
    matrix = torch.from_numpy(held.matrix().toarray())
    points = torch.rand(3, held.inputs, dtype=torch.float64)
    rows = torch.rand(2, 3, held.outputs, dtype=torch.float64)
    torch.testing.assert_close(held.pushed(points), points @ matrix.T)
    torch.testing.assert_close(held.pulled(rows), rows @ matrix)


def test_structure_is_kept_for_large_networks() -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.MaxPool2d(3, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 16, 5),
    )
    network = from_torch(module.eval(), input_shape=(3, 16, 16), domain=(0, 1))
    assert keeps_structure(fuse_cascades(network))
    assert not keeps_structure(fuse(network))


@pytest.mark.parametrize("name", ["padded", "padded behind a ReLU", "dilated", "rounded up"])
def test_padding_is_not_compared_with_itself(name: str) -> None:
    """Such units are 0 up to rounding; open ones would double a tree for nothing."""
    network = network_of(name)
    cascade = fuse_cascades(network)
    point = np.random.default_rng(1).uniform(-0.9, 0.9, SHAPE)
    ball = Ball(point, 0.1, Norm.LINF, network.domain)
    state = propagate(layered(cascade), Supports.of([ball]))
    for held in state.arguments:
        is_open = (held.low < 0) & (held.high > 0)
        assert not bool((is_open & (held.high - held.low < 1e-4)).any())
