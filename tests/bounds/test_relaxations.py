"""Lines around units are valid for every choice, measured in more precise arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from benchmarks.soundness.operator_models import OPERATOR_MODELS, operator_models
from radii.bounds import (
    Layer,
    Maxima,
    PiecewiseLinear,
    Relaxation,
    Supports,
    UnitLines,
    fuse,
    layered,
    propagate,
)
from radii.errors import UnsupportedQuery
from radii.networks import Interval, IntervalMatrix, Network, Relu, Sigmoid, Tanh
from radii.problem import Box

SIDES = st.one_of(
    st.floats(-30, 30),
    st.floats(-1e-6, 1e-6),
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, -0.0, 1e-300, 20.0, -20.0, float("inf"), float("-inf")]),
)


def exact(operator: Sigmoid | Tanh, z: np.ndarray) -> np.ndarray:
    """The operator in extended precision."""
    wide = z.astype(np.longdouble)
    return np.tanh(wide) if isinstance(operator, Tanh) else (1 + np.tanh(wide / 2)) / 2


@pytest.mark.parametrize("operator", [Tanh(), Sigmoid()], ids=["tanh", "sigmoid"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_lines_around_curves_are_valid(operator: Sigmoid | Tanh, dtype: torch.dtype) -> None:
    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(first=SIDES, second=SIDES, below=st.floats(0, 1), above=st.floats(0, 1))
    def check(first: float, second: float, below: float, above: float) -> None:
        ends = torch.tensor([[first], [second]], dtype=torch.float64).to(dtype)
        low, high = ends.amin(0, keepdim=True), ends.amax(0, keepdim=True)
        choices = torch.tensor([below, above], dtype=dtype).reshape(2, 1, 1)
        curves = operator.relaxation((1,), Interval(low, high))
        left, right = (min(max(float(side), -1e7), 1e7) for side in (low, high))
        if not (left >= float(low) and right <= float(high)):
            return  # a single infinite point
        near = np.clip(np.linspace(-12, 12, 400), left, right)
        z = np.concatenate([np.linspace(left, right, 400), near]).astype(np.longdouble)
        values = exact(operator, z)
        for lines in (curves.lines(), curves.lines(choices)):
            assert isinstance(lines, UnitLines)
            parts = (lines.lower_slope, lines.lower_offset, lines.upper_slope, lines.upper_offset)
            slope, offset, upper_slope, upper_offset = (np.longdouble(float(p)) for p in parts)
            assert np.all(slope * z + offset <= values)
            assert np.all(upper_slope * z + upper_offset >= values)

    check()


def test_lines_around_curves_touch_them() -> None:
    """On an interval around 0, the lower line touches tanh left of 0 and at the right end."""
    z = torch.linspace(-2, 3, 20001, dtype=torch.float64)
    curves = Tanh().relaxation((1,), Interval(z[:1, None], z[-1:, None]))
    lines = curves.lines()
    assert isinstance(lines, UnitLines)
    gap = torch.tanh(z) - (lines.lower_slope * z + lines.lower_offset).flatten()
    assert gap.min() >= 0
    assert gap[z < 0].min() < 1e-3 and gap[-1] < 1e-3


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_chords_over_more_than_the_largest_number_are_none(dtype: torch.dtype) -> None:
    """Divided by a width that is infinite they would be flat, below what units give."""
    most = torch.tensor([[0.9 * torch.finfo(dtype).max]], dtype=dtype)
    hinges = Relu().hinges((1,), (1,))
    assert hinges is not None
    lines = PiecewiseLinear.of(hinges, Interval(-most, most)).lines()
    assert isinstance(lines, UnitLines)
    assert bool(lines.upper_slope.isnan().all() and (lines.lower_offset == 0).all())
    maxima = Maxima.of(torch.tensor([[0]]), Interval(-most, most)).lines()
    assert bool(maxima.pulled(-torch.ones(1, 1, 1, dtype=dtype)).constant.isnan().all())


@pytest.mark.parametrize("operator", sorted(OPERATOR_MODELS))
@settings(max_examples=4, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_every_operator_lies_between_its_lines(operator: str, data: st.DataObject) -> None:
    """For the lines of CROWN and for others, and its derivatives within those of the chain rule."""
    model = data.draw(operator_models(operator))
    network = Network.from_bytes(model.SerializeToString(), domain=(-2, 2), name=operator)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    centre, radius = rng.uniform(-1, 1, network.input_shape), rng.uniform(0, 1)
    try:
        ready = layered(fuse(network))
        state = propagate(ready, Supports.of([Box(centre - radius, centre + radius)]), None)
    except UnsupportedQuery:
        return
    layers = zip(ready.layers, state.arguments, state.relaxations, strict=True)
    for layer, arguments, relaxation in layers:
        shares = torch.from_numpy(rng.uniform(0, 1, (50, layer.size))).clamp(0, 1)
        shares[:2] = torch.tensor([[0.0], [1.0]])
        points = arguments.low + shares * (arguments.high - arguments.low)
        values = layer.operator(points.reshape(50, *layer.shape)).reshape(50, -1)
        lie_between(relaxation, points, values, rng)
        if layer.operator.has_slopes(layer.shape):
            have_the_slopes(layer, arguments, points)


def lie_between(
    relaxation: Relaxation, points: Tensor, values: Tensor, rng: np.random.Generator
) -> None:
    start = relaxation.start
    chosen = [] if start is None else [torch.from_numpy(rng.uniform(0, 1, tuple(start.shape)))]
    rows = torch.eye(values.shape[1], dtype=torch.float64)[None]
    for choices in (None, *chosen):
        for sign in (1.0, -1.0):
            bound = relaxation.lines(choices).pulled(sign * rows)
            below = bound.constant + (0 if bound.rows is None else points @ bound.rows[0].T)
            slack = 1e-12 * (1 + bound.size)
            assert bool((below - slack <= sign * values).all())


def have_the_slopes(layer: Layer, arguments: Interval, points: Tensor) -> None:
    size = points.shape[1]
    count = math.prod(layer.operator.result_shape(layer.shape))
    rows = IntervalMatrix(np.eye(count), np.zeros((count, count)))
    low, high = (side[0].numpy() for side in (arguments.low, arguments.high))
    steep = layer.operator.chain_rule(rows, layer.shape, low, high)
    for point in points[2:7]:
        x = point.reshape(1, *layer.shape).requires_grad_()
        jacobian = torch.autograd.functional.jacobian(layer.operator, x).reshape(count, size)
        assert np.all(np.abs(jacobian.numpy() - steep.centre) <= steep.radius + 1e-9)
