"""Smooth functions of each entry, bounded by lines of any slope.

A line with slope k lies below f on [low, high] if its offset is at most the least value of
f(z) - k z, and above f if it is at least the greatest one. Both are at an end of the interval, at
a bend of f, or where the slope of f is k. So an operator says where its slope has a value
(`turning_points`), every slope is valid, and only offsets have to be widened by what they round.

The slopes to choose from are those of the tangents of the convex hull of f on the interval; to
begin with, the one that is closest to f in the middle. For a convex f that is the tangent there,
and the chord above it (Zhang et al., 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from radii.networks.operators._base import (
    NumberType,
    OnnxNode,
    Operator,
    OperatorKind,
    Shape,
    translates,
)
from radii.networks.operators._intervals import ELEMENTARY_ULPS, Interval
from radii.networks.operators._kernel_errors import measured
from radii.networks.operators._lines import Relaxation, UnitLines
from radii.networks.operators._piecewise_linear import Relu
from radii.networks.operators._slopes import CURVE_SLACK, Float64, IntervalMatrix, Saturation

HULL_HALVINGS = 16
"""To find a slope of the hull; the offset follows from the slope, so this is precision only."""

HULL_AIMS = 0.001, 0.5, 0.999
"""Where in the interval the first and the last slope touch the hull, and in the middle the one to
begin with."""

SLACK_ULPS = 32
"""f is off by 8 units in the last place, k z by one, their difference by one. Where the turning
point is off by some units, f(z) - k z changes by their square, since its slope is 0 there."""


class SmoothFunction(Operator):
    """A function of each entry that never decreases, convex or concave between its bends.

    Its values and turning points are accurate to some units in the last place, of numbers of the
    size of `scale` or of their own.
    """

    kind = OperatorKind.SMOOTH
    is_activation = True
    bends: ClassVar[tuple[float, ...]] = (0.0,)
    scale = 1.0

    def slopes(self, x: Interval) -> Interval:
        """Between which its slopes are over each interval."""
        raise NotImplementedError

    def turning_points(self, slope: Tensor) -> tuple[Tensor, ...]:
        """All arguments at which it has this slope; any number where there is none."""
        raise NotImplementedError

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        return Interval(self(x.low), self(x.high)).widened(ELEMENTARY_ULPS).without_nan()

    def contacts(
        self, low: Tensor, high: Tensor, slope: Tensor, sign: float
    ) -> tuple[list[Tensor], Tensor | float]:
        """Where sign * (f(z) - slope * z) may be least in [low, high], and by how much it may be
        less than at these points."""
        between = (*self.turning_points(slope), *(slope.new_tensor(z) for z in self.bends))
        return [low, high, *(torch.minimum(torch.maximum(z, low), high) for z in between)], 0.0

    def relaxation(self, shape: Shape, arguments: Interval) -> SlopedLines:
        return SlopedLines.of(self, arguments)

    def has_slopes(self, shape: Shape) -> bool:
        return True

    def chain_rule(
        self, rows: IntervalMatrix, shape: Shape, low: Float64, high: Float64
    ) -> IntervalMatrix:
        steep = self.slopes(Interval(torch.from_numpy(low), torch.from_numpy(high)))
        slack = CURVE_SLACK * self.scale
        return rows.times(steep.low.numpy() - slack, steep.high.numpy() + slack)


@translates("Elu")
class Elu(SmoothFunction):
    """x where x >= 0, else alpha * (exp(x) - 1), with alpha > 0."""

    kernel_error = measured("Elu", 1.154, at=-0.3107737)

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha
        self.scale = max(1.0, alpha)

    @classmethod
    def translate(cls, call: OnnxNode) -> int:
        alpha = call.float_attribute("alpha", 1.0)
        if not 0 <= alpha < math.inf:
            raise call.unsupported(f"with alpha {alpha:g}")
        return call.emit(cls(alpha) if alpha else Relu(), call.node(0))

    def forward(self, x: Tensor) -> Tensor:
        return F.elu(x, self.alpha)

    def slopes(self, x: Interval) -> Interval:
        """alpha exp(x) where x <= 0, 1 where x >= 0."""
        least, most = (self.alpha * side.clamp(max=0).exp() for side in (x.low, x.high))
        low = torch.where(x.low > 0, 1.0, torch.where(x.high < 0, least, least.clamp(max=1)))
        high = torch.where(x.low > 0, 1.0, torch.where(x.high < 0, most, most.clamp(min=1)))
        return Interval(low, high)

    def turning_points(self, slope: Tensor) -> tuple[Tensor, ...]:
        return ((slope / self.alpha).log().clamp(max=0),)

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        """Of exp, of the difference and of the product."""
        units = self.alpha * (self.kernel_error.units(number.unit) + 2) + 1
        return torch.full_like(arguments.low, units * number.unit * widening)

    def saturation(self, shape: Shape) -> Saturation:
        return Saturation(self.forward, inverse=self._inverse)

    def _inverse(self, value: float) -> float:
        if value >= 0:
            return value
        return math.log1p(value / self.alpha) if value > -self.alpha else math.nan


# Lines of any slope.


@dataclass(frozen=True, slots=True, eq=False)
class SlopedLines(Relaxation):
    """Lines around a function over intervals (regions, units) of its argument, by their slopes.

    `first` and `last` are slopes (2, regions, units), below and above; a choice of 0 takes the
    first one, 1 the last.
    """

    function: SmoothFunction
    arguments: Interval
    first: Tensor
    last: Tensor
    choices: Tensor

    @classmethod
    def of(cls, function: SmoothFunction, arguments: Interval) -> SlopedLines:
        first, middle, last = _hull_slopes(function, arguments)
        span = last - first
        choices = torch.where(span != 0, (middle - first) / torch.where(span != 0, span, 1.0), 0.5)
        return cls(function, arguments, first, last, choices.clamp(0, 1))

    @property
    def start(self) -> Tensor:
        return self.choices[:, :, None]

    @property
    def is_loose(self) -> Tensor:
        steep = self.function.slopes(self.arguments)
        return ~(steep.low >= steep.high)  # also where it is not known

    def taken(self, index: Tensor) -> SlopedLines:
        arguments = Interval(self.arguments.low[index], self.arguments.high[index])
        held = (self.first, self.last, self.choices)
        return SlopedLines(self.function, arguments, *(each[:, index] for each in held))

    def lines(self, choices: Tensor | None = None) -> UnitLines:
        chosen = self.start if choices is None else choices
        slope = self.first[:, :, None] + chosen * (self.last - self.first)[:, :, None]
        low, high = self.arguments.low[:, None], self.arguments.high[:, None]
        is_finite = torch.isfinite(low) & torch.isfinite(high)
        slope = torch.where(is_finite, slope, 0.0)
        below, above = slope
        values = self.function.enclosure(Interval(low, high))
        _, least, slack = _least(self.function, low, high, below, 1.0)
        lower = torch.where(is_finite, least - slack, values.low)
        _, least, slack = _least(self.function, low, high, above, -1.0)
        upper = torch.where(is_finite, slack - least, values.high)
        return UnitLines(below, lower, above, upper)


def _least(
    function: SmoothFunction, low: Tensor, high: Tensor, slope: Tensor, sign: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Where sign * (f(z) - slope * z) is least in [low, high], that value, and what it is off."""
    with torch.no_grad():  # where it turns, the value does not depend on where exactly that is
        places, less = function.contacts(low, high, slope, sign)
        points = torch.stack(torch.broadcast_tensors(*places, slope)[:-1])
        values = function(points)
    numbers = torch.finfo(slope.dtype)
    products = slope * points
    least, place = (sign * (values - products)).min(0)
    size = function.scale + (values.abs() + products.detach().abs()).amax(0)
    slack = SLACK_ULPS * (numbers.eps * size + numbers.tiny) + less
    return points.gather(0, place[None])[0], least, slack


def _hull_slopes(function: SmoothFunction, arguments: Interval) -> Tensor:
    """Slopes (3, 2, regions, units) with which lines touch the lower and the upper hull of f, at
    each of `HULL_AIMS`.

    The larger the slope, the further right a line from below touches f. So the slope is halved in
    until a line touches left of the aim with one, right of it with the other; through both points
    goes the line that touches there.
    """
    low, high = arguments.low, arguments.high
    steep = function.slopes(arguments)
    aims = torch.stack([low + (high - low) * share for share in HULL_AIMS])
    sides = []
    for sign in (1.0, -1.0):
        flat, most = (side.expand_as(aims) for side in (steep.low, steep.high))
        left, right = (low, high) if sign > 0 else (high, low)
        left, right = left.expand_as(aims), right.expand_as(aims)
        for _ in range(HULL_HALVINGS):
            middle = flat / 2 + most / 2
            touched, _, _ = _least(function, low, high, middle, sign)
            is_left = touched < aims if sign > 0 else touched > aims
            flat, most = torch.where(is_left, middle, flat), torch.where(is_left, most, middle)
            left, right = torch.where(is_left, touched, left), torch.where(is_left, right, touched)
        width = right - left
        rise = (function(right) - function(left)) / torch.where(width != 0, width, 1.0)
        is_chord = (width != 0) & torch.isfinite(rise)
        slope = torch.where(is_chord, rise, flat / 2 + most / 2)
        sides.append(torch.minimum(torch.maximum(slope, steep.low), steep.high))
    return torch.stack(sides, 1)
