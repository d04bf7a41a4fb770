"""Functions of each entry that jump: signs, roundings to whole numbers, and comparisons.

Between two jumps such a function is constant. Where an interval holds one jump at k, from a to b >
a, the lines below are those through (k, a) with slopes from 0 to (b - a) / (high - k), and the
lines above those through (k, b) with slopes from 0 to (b - a) / (k - low). Arguments are known up
to what is rounded, so that near a jump both values count. Truth values are the numbers 0 and 1.

Derivatives are 0. Attacks follow secants, which see a jump from afar.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radii.networks.operators._arithmetic import Add, AddConstant, Cast, Subtract, scaled
from radii.networks.operators._base import OnnxNode, Operator, OperatorKind, Shape, translates
from radii.networks.operators._bilinear import multiplied
from radii.networks.operators._choices import choose
from radii.networks.operators._intervals import Interval
from radii.networks.operators._lines import Pencil, Relaxation
from radii.networks.operators._piecewise_linear import Abs, Clip, PiecewiseLinear, Relu

LARGEST_WHOLE = 2.0**31
"""Larger numbers wrap around in whole numbers of 32 bits."""


class StepFunction(Operator):
    """A function of each entry that is constant between its jumps, never decreases, and is computed
    exactly."""

    kind = OperatorKind.SMOOTH
    is_activation = True

    def jump(self, low: Tensor, high: Tensor) -> Tensor:
        """Where it jumps between two values that are next to each other, given the interval."""
        raise NotImplementedError

    def line(self) -> tuple[float, float] | None:
        """Two offsets a <= b of lines x + a <= f(x) <= x + b; None if there are none."""
        return None

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        return Interval(self(x.low), self(x.high)).without_nan()

    def value_error(self, *_: object) -> None:
        return None

    def relaxation(self, shape: Shape, arguments: Interval) -> Relaxation:
        z = arguments
        values = self.enclosure(z)
        is_finite = torch.isfinite(z.low) & torch.isfinite(z.high)
        jump = torch.minimum(torch.maximum(self.jump(z.low, z.high), z.low), z.high)
        rise = values.high - values.low
        after, before = z.high - jump, jump - z.low
        none = torch.zeros_like(rise)
        steep_below = torch.where(is_finite & (after > 0), rise / after, none)
        steep_above = torch.where(is_finite & (before > 0), rise / before, none)
        lower = _pencil(jump, values.low, steep_below, is_finite)
        upper = _pencil(jump, values.high, steep_above, is_finite)
        offsets = self.line()
        if offsets is not None:
            has_several = is_finite & (rise > 1)
            ones = torch.ones_like(rise)
            lower, upper = (
                side.where(has_several, Pencil.fixed(ones, torch.full_like(rise, offset)))
                for side, offset in zip((lower, upper), offsets, strict=True)
            )
        is_bent = rise > 0
        choices = torch.where(is_bent, 0.5, 0.0).to(rise)
        return PiecewiseLinear(lower, upper, torch.stack([choices, choices]), is_bent)


def _pencil(x: Tensor, y: Tensor, steep: Tensor, is_finite: Tensor) -> Pencil:
    """Lines through (x, y) with slopes from 0 to a little less than `steep`."""
    numbers = torch.finfo(x.dtype)
    place = torch.where(is_finite, x, 0.0)
    last = steep * (1 - 8 * numbers.eps)
    return Pencil.through(place, y, torch.zeros_like(last), last)


@translates("Sign")
class Sign(StepFunction):
    """-1, 0 or 1."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sign()

    def jump(self, low: Tensor, high: Tensor) -> Tensor:
        return torch.zeros_like(low)


class IsPositive(StepFunction):
    """1 where x > 0, or x >= 0 if 0 counts (`with_zero`), else 0."""

    def __init__(self, *, with_zero: bool) -> None:
        super().__init__()
        self.with_zero = with_zero

    def forward(self, x: Tensor) -> Tensor:
        return 1 + x.sign().clamp(max=0) if self.with_zero else x.sign().clamp(min=0)

    def jump(self, low: Tensor, high: Tensor) -> Tensor:
        return torch.zeros_like(low)


@translates("Floor")
class Floor(StepFunction):
    """The largest whole number that is at most x."""

    def forward(self, x: Tensor) -> Tensor:
        return x.floor()

    def jump(self, low: Tensor, high: Tensor) -> Tensor:
        return high.floor()

    def line(self) -> tuple[float, float]:
        return -1.0, 0.0


@translates("Ceil")
class Ceil(StepFunction):
    """The smallest whole number that is at least x."""

    def forward(self, x: Tensor) -> Tensor:
        return x.ceil()

    def jump(self, low: Tensor, high: Tensor) -> Tensor:
        return low.ceil()

    def line(self) -> tuple[float, float]:
        return 0.0, 1.0


@translates("Round")
class RoundHalfEven(StepFunction):
    """The nearest whole number, of two the even one."""

    def forward(self, x: Tensor) -> Tensor:
        return x.round()

    def jump(self, low: Tensor, high: Tensor) -> Tensor:
        return low.round() + 0.5

    def line(self) -> tuple[float, float]:
        return -0.5, 0.5


class Truncate(StepFunction):
    """x without its fraction, towards 0; nothing is known where it may not fit into 32 bits."""

    def forward(self, x: Tensor) -> Tensor:
        return x.trunc()

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        fits = x.magnitude < LARGEST_WHOLE
        low, high = torch.where(fits, x.low.trunc(), -torch.inf), x.high.trunc()
        return Interval(low, torch.where(fits, high, torch.inf))

    def jump(self, low: Tensor, high: Tensor) -> Tensor:
        return torch.where(low.trunc() >= 0, high.floor(), low.ceil())

    def line(self) -> tuple[float, float]:
        return -1.0, 1.0


class IsNotZero(Operator):
    """1 where |x| is above `tolerance`, else 0: whole numbers may be off by what is rounded."""

    kind = OperatorKind.SMOOTH
    is_activation = True

    def __init__(self, tolerance: float) -> None:
        super().__init__()
        self.tolerance = tolerance

    def forward(self, x: Tensor) -> Tensor:
        return (x.abs() - self.tolerance).sign().clamp(min=0)

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        nearest = torch.maximum(x.low, -x.high).clamp(min=0)
        return Interval(self(nearest), self(x.magnitude)).without_nan()

    def value_error(self, *_: object) -> None:
        return None


# Comparisons and truth values.


WHOLE_TOLERANCE = 0.5
"""Two whole numbers are equal if they are nearer than this, whatever sums of them round."""


def difference(call: OnnxNode, first: int, second: int) -> int:
    """The node of one input minus another, of which at least one depends on the network's."""
    if call.is_constant(second):
        return call.emit(AddConstant(-call.weight(second)), call.node(first))
    if call.is_constant(first):
        return call.emit(AddConstant(call.weight(first)), scaled(call, call.node(second), -1.0))
    return call.emit(Subtract(), call.node(first), call.node(second))


@translates("Greater", "GreaterOrEqual", "Less", "LessOrEqual", kind=OperatorKind.SMOOTH)
def _order(call: OnnxNode) -> int:
    """x > y where x - y > 0."""
    kind = call.proto.op_type
    first, second = (0, 1) if kind.startswith("Greater") else (1, 0)
    return call.emit(IsPositive(with_zero="Equal" in kind), difference(call, first, second))


@translates("Equal", kind=OperatorKind.SMOOTH)
def _equal(call: OnnxNode) -> int:
    tolerance = WHOLE_TOLERANCE if call.is_whole(0) else 0.0
    return inverted(call, call.emit(IsNotZero(tolerance), difference(call, 0, 1)))


def inverted(call: OnnxNode, node: int) -> int:
    """1 - x."""
    one = torch.ones((), dtype=torch.float64)
    return call.emit(AddConstant(one), scaled(call, node, -1.0))


@translates("Not", kind=OperatorKind.AFFINE)
def _not(call: OnnxNode) -> int:
    return inverted(call, call.node(0))


@translates("And", "Or", "Xor", kind=OperatorKind.PIECEWISE_LINEAR)
def _combined(call: OnnxNode) -> int:
    """And is max(0, x + y - 1), Or is min(1, x + y), Xor is 1 - |x + y - 1|."""
    constants = [p for p in (0, 1) if call.is_constant(p)]
    if constants:
        total = call.emit(AddConstant(call.weight(constants[0])), call.node(1 - constants[0]))
    else:
        total = call.emit(Add(), call.node(0), call.node(1))
    if call.proto.op_type == "Or":
        return call.emit(Clip(-torch.inf, 1.0), total)
    less = call.emit(AddConstant(-torch.ones((), dtype=torch.float64)), total)
    if call.proto.op_type == "And":
        return call.emit(Relu(), less)
    return inverted(call, call.emit(Abs(), less))


@translates("Where", kind=OperatorKind.SMOOTH)
def _where(call: OnnxNode) -> int:
    """Where the condition is a constant, an affine map; else a choice."""
    return choose(call)


@translates("ThresholdedRelu", kind=OperatorKind.SMOOTH)
def _thresholded_relu(call: OnnxNode) -> int:
    """x where x > alpha, else 0."""
    alpha = call.float_attribute("alpha", 1.0)
    x = call.node(0)
    above = call.emit(AddConstant(torch.tensor(-alpha, dtype=torch.float64)), x)
    return multiplied(call, x, call.emit(IsPositive(with_zero=False), above))


def cast(call: OnnxNode, *, to_bool: bool, to_whole: bool) -> int:
    """To truth values and whole numbers, and from them to floats."""
    x = call.node(0)
    if to_bool:
        is_bool = call.is_bool(0)
        return x if is_bool else call.emit(IsNotZero(WHOLE_TOLERANCE * call.is_whole(0)), x)
    if to_whole:
        return x if call.is_whole(0) else call.emit(Truncate(), x)
    return x if call.is_bool(0) else call.emit(Cast(), x)
