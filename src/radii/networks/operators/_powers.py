"""Powers of each entry: squares, whole powers, roots and reciprocals.

They are functions with lines of any slope, as those of `_smooth`; where one is not defined on all
of an interval, nothing is known of it there.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from radii.networks.operators._arrangement import joined
from radii.networks.operators._base import (
    NumberType,
    OnnxNode,
    Operator,
    OperatorKind,
    Shape,
    translates,
)
from radii.networks.operators._intervals import Interval
from radii.networks.operators._lines import FirstEntries
from radii.networks.operators._pooling import ReduceMean, ReduceSum
from radii.networks.operators._smooth import SlopedLines, SmoothFunction

LARGEST_POWER = 16
"""Whole exponents up to this one are bounded."""

VARIANCE_EXTRA_TERMS = 8
"""Roundings of a variance beyond its sums: of the means, of their square, of the difference."""

POWER_ULPS = 4
"""What a power function of the C library is off, generously, in units of its last place."""


class _Power(SmoothFunction):
    """A power, with an interval of its derivative where it is defined."""

    is_activation = False
    bends: ClassVar[tuple[float, ...]] = ()
    roundings_of_value = 2
    """How often the value is rounded, generously."""

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        unit, smallest = number.unit * widening, number.smallest * widening
        error = values.magnitude * (self.roundings_of_value * unit * (1 + 2.0**-20)) + smallest
        return torch.where(values.magnitude < number.largest, error, torch.inf)


class _PartlyDefined(_Power):
    """A power that is not defined, or not steep in a known way, near 0."""

    def is_known(self, x: Interval) -> Tensor:
        raise NotImplementedError

    def relaxation(self, shape: Shape, arguments: Interval) -> SlopedLines:
        """Where it is not defined on all of an interval, its arguments count as unbounded."""
        known = self.is_known(arguments)
        low = torch.where(known, arguments.low, -torch.inf)
        high = torch.where(known, arguments.high, torch.inf)
        return SlopedLines.of(self, Interval(low, high))

    def has_slopes(self, shape: Shape) -> bool:
        return False

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        """Subnormal numbers may count as 0, so that nothing is known as near to it as they are."""
        error = super().value_error(arguments, values, number, widening)
        nearest = torch.maximum(arguments.low, -arguments.high)
        return torch.where(nearest > number.smallest * widening, error, torch.inf)

    def _unbounded_unless_known(self, x: Interval, sides: Interval) -> Interval:
        known = self.is_known(x)
        low = torch.where(known, sides.low, -torch.inf)
        return Interval(low, torch.where(known, sides.high, torch.inf)).without_nan()


class Square(_Power):
    """x * x."""

    def forward(self, x: Tensor) -> Tensor:
        return x * x

    def slopes(self, x: Interval) -> Interval:
        return Interval(2 * x.low, 2 * x.high)

    def turning_points(self, slope: Tensor) -> tuple[Tensor, ...]:
        return (slope / 2,)

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        nearest = torch.maximum(x.low, -x.high).clamp(min=0)
        return Interval(nearest.square(), x.magnitude.square()).widened(1).clamped(0.0, math.inf)


class SquaredDeviation(Operator):
    """d * d of a value's deviation d from its means over `count` entries.

    It reads d and the value itself, flattened, one behind the other: runtimes compute the variance
    as the mean of squares less the square of the mean as well, which rounds by a share of those.
    """

    kind = OperatorKind.SMOOTH

    def __init__(self, shape: Shape, count: int) -> None:
        super().__init__()
        self.shape, self.count = shape, count
        self._square = Square()

    def _deviation(self, values: Tensor) -> Tensor:
        half: Tensor = values.reshape(len(values), -1)[:, : math.prod(self.shape)]
        return half

    def result_shape(self, *shapes: Shape) -> Shape:
        if math.prod(shapes[0]) != 2 * math.prod(self.shape):
            raise ValueError(f"{shapes[0]} does not hold two values {self.shape}")
        return self.shape

    def forward(self, values: Tensor) -> Tensor:
        return self._deviation(values).square().reshape(-1, *self.shape)

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        squares = self._square.enclosure(Interval(self._deviation(x.low), self._deviation(x.high)))
        return Interval(*(side.reshape(-1, *self.shape) for side in (squares.low, squares.high)))

    def relaxation(self, shape: Shape, arguments: Interval) -> FirstEntries:
        size = math.prod(self.shape)
        own = Interval(arguments.low[:, :size], arguments.high[:, :size])
        others = arguments.low.shape[1] - size
        return FirstEntries(self._square.relaxation(self.shape, own), others)

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        unit, smallest = number.unit * widening, number.smallest * widening
        given = arguments.magnitude.reshape(len(arguments.low), -1)[:, math.prod(self.shape) :]
        added = given.square().reshape(values.low.shape)
        gamma = 2 * (self.count + VARIANCE_EXTRA_TERMS) * unit
        error = values.magnitude * (2 * unit) + added * gamma + self.count * smallest
        return torch.where(added < number.largest**0.75, error, torch.inf)


class WholePower(_Power):
    """x ** exponent for a whole exponent of at least 3."""

    bends = (0.0,)

    def __init__(self, exponent: int) -> None:
        super().__init__()
        self.exponent = exponent
        self.roundings_of_value = 2 * exponent + POWER_ULPS

    def forward(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def slopes(self, x: Interval) -> Interval:
        order, power = self.exponent, self.exponent - 1
        steep = order * torch.stack([x.low**power, x.high**power])
        if power % 2:
            return Interval(steep[0], steep[1])
        crosses = (x.low <= 0) & (x.high >= 0)
        return Interval(torch.where(crosses, 0.0, steep.amin(0)), steep.amax(0))

    def turning_points(self, slope: Tensor) -> tuple[Tensor, ...]:
        root = (slope.abs() / self.exponent) ** (1 / (self.exponent - 1))
        return root, -root

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        ends = torch.stack([self(x.low), self(x.high)])
        low, high = ends.amin(0), ends.amax(0)
        if self.exponent % 2 == 0:
            low = torch.where((x.low <= 0) & (x.high >= 0), 0.0, low)
        return Interval(low, high).widened(2 * self.exponent).without_nan()


@translates("Sqrt")
class SquareRoot(_PartlyDefined):
    """The square root, of positive numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sqrt()

    def is_known(self, x: Interval) -> Tensor:
        return x.low > 0

    def slopes(self, x: Interval) -> Interval:
        return Interval(0.5 * x.high.rsqrt(), 0.5 * x.low.rsqrt())

    def turning_points(self, slope: Tensor) -> tuple[Tensor, ...]:
        return (0.25 / slope.square(),)

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        sides = Interval(x.low.sqrt(), x.high.sqrt()).widened(1)
        return self._unbounded_unless_known(x, sides)


class InverseRoot(_PartlyDefined):
    """1 / sqrt(x), of positive numbers."""

    roundings_of_value = 4

    def forward(self, x: Tensor) -> Tensor:
        return x.sqrt().reciprocal()

    def is_known(self, x: Interval) -> Tensor:
        return x.low > 0

    def slopes(self, x: Interval) -> Interval:
        return Interval(-0.5 * x.low**-1.5, -0.5 * x.high**-1.5)

    def turning_points(self, slope: Tensor) -> tuple[Tensor, ...]:
        return ((-2 * slope) ** (-2 / 3),)

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        return self._unbounded_unless_known(x, Interval(self(x.high), self(x.low)).widened(4))


@translates("Reciprocal")
class Reciprocal(_PartlyDefined):
    """1 / x, of numbers on one side of 0."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reciprocal()

    def is_known(self, x: Interval) -> Tensor:
        return (x.low > 0) | (x.high < 0)

    def slopes(self, x: Interval) -> Interval:
        steep = -torch.stack([x.low, x.high]).square().reciprocal()
        return Interval(steep.amin(0), steep.amax(0))

    def turning_points(self, slope: Tensor) -> tuple[Tensor, ...]:
        point = (-slope).rsqrt()
        return point, -point

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        sides = Interval(x.high.reciprocal(), x.low.reciprocal()).widened(1)
        return self._unbounded_unless_known(x, sides)


# Translators.


def squared(call: OnnxNode, node: int) -> int:
    """The node of x * x."""
    given = _value_and_mean(call, node)
    if given is None:
        return call.emit(Square(), node)
    value, count = given
    square = SquaredDeviation(call.shape_of(node), count)
    return call.emit(square, joined(call, node, value))


def _value_and_mean(call: OnnxNode, node: int) -> tuple[int, int] | None:
    """The node whose deviation from its means this is, and how many entries a mean is of; None
    where it is something else."""
    nodes = call.translation.nodes
    inputs = nodes[node].inputs
    if len(inputs) != 2 or nodes[node].kind is not OperatorKind.AFFINE:
        return None
    value, mean = inputs
    is_mean = isinstance(nodes[mean].operator, ReduceMean) and nodes[mean].inputs == (value,)
    if not is_mean or call.shape_of(value) != call.shape_of(node):
        return None
    return value, max(1, nodes[value].size // max(1, nodes[mean].size))


@translates("Pow", kind=OperatorKind.SMOOTH, note="with exponents 1 to 16, 0.5, -0.5, -1 and -2")
def _power(call: OnnxNode) -> int:
    exponents = call.weight(1)
    if exponents.numel() == 0 or bool((exponents != exponents.flatten()[0]).any()):
        raise call.unsupported("with several exponents")
    if exponents.dim() > call.rank(0):
        raise call.unsupported("with an exponent of more axes than its base")
    exponent, base = float(exponents.flatten()[0]), call.node(0)
    if exponent == 1:
        return base
    if exponent == 2:
        return squared(call, base)
    if exponent == int(exponent) and 3 <= exponent <= LARGEST_POWER:
        return call.emit(WholePower(int(exponent)), base)
    if exponent == 0.5:
        return call.emit(SquareRoot(), base)
    if exponent == -0.5:
        return call.emit(InverseRoot(), base)
    if exponent in (-1, -2):
        root = base if exponent == -1 else squared(call, base)
        return call.emit(Reciprocal(), root)
    raise call.unsupported(f"with exponent {exponent:g}")


@translates("ReduceSumSquare", "ReduceL2", kind=OperatorKind.SMOOTH)
def _reduce_squares(call: OnnxNode) -> int:
    """As `ReduceSum` of squares; without axes, over all of them."""
    axes = call.axes(1, rank=call.rank(0))
    if not axes:
        if call.int_attribute("noop_with_empty_axes", 0):
            raise call.unsupported("over no axes")
        axes = list(range(call.rank(0)))
    add = ReduceSum(axes, keep=bool(call.int_attribute("keepdims", 1)))
    total = call.emit(add, squared(call, call.node(0)))
    return total if call.proto.op_type == "ReduceSumSquare" else call.emit(SquareRoot(), total)
