"""Functions of one number by their pieces: pieces as they are said, lines and intervals valid."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from benchmarks.soundness.observed_errors import (
    ObservedRegion,
    every_execution,
    sampled_box,
    sampled_points,
)
from benchmarks.soundness.operator_models._functions import COMPOSITES, composite_models
from radii.networks import (
    Atan,
    ClippedGate,
    Cos,
    CurvedFunction,
    Erf,
    Exp,
    ExponentialUnit,
    Gelu,
    Interval,
    Log,
    Mish,
    Network,
    Silu,
    Sin,
    SmoothFunction,
    Softplus,
    TanhGelu,
    UnitLines,
    from_torch,
)

CURVED: dict[str, CurvedFunction] = {
    "atan": Atan(),
    "celu": ExponentialUnit(1.0, pace=0.5, height=2.0),
    "elu of a large alpha": ExponentialUnit(3.0),
    "erf": Erf(),
    "exp": Exp(),
    "gelu": Gelu(),
    "gelu, scaled": Gelu(pace=3.0, height=0.25),
    "gelu by tanh": TanhGelu(),
    "hard swish": ClippedGate(1 / 6, 0.5, 0.0, 1.0),
    "clipped gate": ClippedGate(0.5, 1.0, 0.25, 3.0, height=2.0),
    "log": Log(),
    "mish": Mish(),
    "selu": ExponentialUnit(1.6732632, height=1.050701),
    "silu": Silu(),
    "silu, scaled": Silu(pace=1.702, height=1 / 1.702),
    "softplus": Softplus(),
}
FUNCTIONS: dict[str, SmoothFunction] = {**CURVED, "sin": Sin(), "cos": Cos()}
RELAXED = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
SIDES = st.one_of(
    st.floats(-10, 10),
    st.floats(-1e-6, 1e-6),
    st.floats(-1e5, 1e5),
    st.sampled_from([0.0, -3.0, 3.0, 1e-30, 80.0, -80.0]),
)


@pytest.mark.parametrize("name", CURVED)
def test_each_piece_bends_as_it_says(name: str) -> None:
    """Slopes never decrease, never increase, or are the one that is stated; so the pieces have
    one value where they meet, and derivatives are those of autograd."""
    function = CURVED[name]
    for begin, end, piece in function.stretches:
        low, high = max(begin, 1e-3 if name == "log" else -9.0), min(end, 9.0)
        z = torch.linspace(low, high, 5001, dtype=torch.float64)[1:-1].requires_grad_()
        (slope,) = torch.autograd.grad(function(z).sum(), z)
        if piece.bend:
            torch.testing.assert_close(function.slope_at(z.detach()), slope)
            assert bool((slope.diff() * piece.bend >= -1e-12).all())
        else:
            stated = piece.slope * function.pace * function.height
            torch.testing.assert_close(slope, torch.full_like(slope, stated))
    for place in function.extrema:
        z = place / function.pace + torch.tensor([-1e-4, 0.0, 1e-4], dtype=torch.float64)
        rises = function(z).diff().sign()
        kinks = {begin for begin, *_ in function.stretches}
        assert place / function.pace in kinks or bool(rises[0] * rises[1] <= 0)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_lines_and_intervals_are_valid(name: str, dtype: torch.dtype) -> None:
    function = FUNCTIONS[name]

    @RELAXED
    @given(first=SIDES, second=SIDES, below=st.floats(0, 1), above=st.floats(0, 1))
    def check(first: float, second: float, below: float, above: float) -> None:
        if name == "log":
            first, second = abs(first) + 1e-20, abs(second) + 1e-20
        ends = torch.tensor([[first], [second]], dtype=dtype)
        x = Interval(ends.amin(0, keepdim=True), ends.amax(0, keepdim=True))
        left, right = float(x.low), float(x.high)
        z = np.concatenate([np.linspace(left, right, 400), np.linspace(-8, 8, 400)])
        points = torch.from_numpy(np.clip(z, left, right))
        values = function(points)
        off = 4 * 2.0**-53 * (function.scale * getattr(function, "height", 1.0) + values.abs())
        held, steep = function.enclosure(x), function.slopes(x)
        assert bool((values >= held.low.double() - off).all())
        assert bool((values <= held.high.double() + off).all())
        relaxation = function.relaxation((1,), x)
        assert bool((steep.low <= steep.high).all())
        choices = torch.tensor([below, above], dtype=dtype).reshape(2, 1, 1, 1)
        for lines in (relaxation.lines(), relaxation.lines(choices)):
            assert isinstance(lines, UnitLines)
            sides = (lines.lower_slope, lines.lower_offset, lines.upper_slope, lines.upper_offset)
            slope, offset, upper_slope, upper_offset = (float(side) for side in sides)
            if not np.isfinite([slope, offset, upper_slope, upper_offset]).all():
                continue
            rounding = 2.0**-52 * (points.abs() * max(abs(slope), abs(upper_slope)))
            assert bool((slope * points + offset <= values + off + rounding).all())
            assert bool((upper_slope * points + upper_offset >= values - off - rounding).all())

    check()


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"log"}))
def test_lines_touch_the_function(name: str) -> None:
    """On [-2, 3] the lines of CROWN come as near as float64 lets them, below and above."""
    function = FUNCTIONS[name]
    z = torch.linspace(-2, 3, 20001, dtype=torch.float64)
    lines = function.relaxation((1,), Interval(z[:1, None], z[-1:, None])).lines()
    assert isinstance(lines, UnitLines)
    values = function(z)
    below = values - (lines.lower_slope * z + lines.lower_offset).flatten()
    above = (lines.upper_slope * z + lines.upper_offset).flatten() - values
    scale = 1e-6 * float(values.abs().max())
    assert 0 <= below.min() < scale and 0 <= above.min() < scale


def test_nothing_is_known_of_logarithms_of_what_may_not_be_positive() -> None:
    x = Interval(torch.tensor([[0.0, -1.0, 0.5]]), torch.tensor([[1.0, 1.0, 1.0]]))
    values = Log().enclosure(x)
    assert values.low[0, :2].tolist() == [-math.inf] * 2
    assert values.high[0, :2].tolist() == [math.inf] * 2
    assert -0.6932 < values.low[0, 2] <= math.log(0.5) and values.high[0, 2] < 1e-5


# Products that are one function.


@pytest.mark.parametrize("form", COMPOSITES)
@settings(RELAXED, max_examples=3)
@given(data=st.data())
def test_products_become_one_function(form: str, data: st.DataObject) -> None:
    """One nonlinear node, which gives what ONNX Runtime gives, and is off by what it says at most
    in every execution of the product."""
    model = data.draw(composite_models(form))
    network = Network.from_bytes(model.SerializeToString(), domain=(-3, 3), name=form)
    nonlinear = [node.operator for node in network.graph.nodes if node.kind.name != "AFFINE"]
    assert len(nonlinear) == 1 and isinstance(nonlinear[0], CurvedFunction)
    assert network.graph.joined
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x = rng.uniform(-3, 3, (2, *network.input_shape)).astype(np.float32)
    torch.testing.assert_close(
        network(torch.from_numpy(x)), torch.from_numpy(network.replay(x)), rtol=1e-5, atol=1e-5
    )
    low, high = sampled_box(network, rng)
    region = ObservedRegion(network, low, high)
    for name, values in every_execution(network):
        for point in sampled_points(low, high, 2, rng):
            for each in region.compared(values(point)):
                assert not (each.exceeded or each.outside), f"{name}: {each.kind}"


class Behind(nn.Module):
    def __init__(self, function: nn.Module) -> None:
        super().__init__()
        self.function, self.first, self.last = function, nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(self.function(self.first(x)))
        return result


class SlowHardSwish(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * F.relu6(x + 3) / 6


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (nn.GELU(), Gelu),
        (nn.GELU("tanh"), TanhGelu),
        (nn.SiLU(), Silu),
        (nn.Mish(), Mish),
        (nn.Hardswish(), ClippedGate),
        (SlowHardSwish(), ClippedGate),
    ],
)
def test_torch_modules_become_one_function(module: nn.Module, kind: type[CurvedFunction]) -> None:
    network = from_torch(Behind(module), input_shape=(3,), domain=(0, 1))
    kinds = [type(node.operator) for node in network.graph.nodes if node.kind.name == "SMOOTH"]
    assert kinds == [kind]


def test_other_products_stay_products() -> None:
    class Gated(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.sigmoid(x.flip(1)) + torch.tanh(x) * torch.sigmoid(x)

    network = from_torch(Gated(), input_shape=(3,), domain=(0, 1))
    assert not any(isinstance(node.operator, CurvedFunction) for node in network.graph.nodes)
    assert not network.graph.joined


def test_a_factor_that_others_read_stays() -> None:
    class Shared(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            gate = torch.sigmoid(x)
            return x * gate + gate

    network = from_torch(Shared(), input_shape=(3,), domain=(0, 1))
    kinds = [type(node.operator).__name__ for node in network.graph.nodes]
    assert kinds == ["Input", "Sigmoid", "Silu", "Add"]
    assert not any("Sigmoid" in name for name in network.graph.joined)
