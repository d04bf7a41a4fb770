"""Functions of each entry by the pieces on which they bend one way.

On a piece where f is convex, a tangent of g(z) = f(z) - k z at any point t of the piece lies below
it, so that g is at least

    g(t) - max(0, g'(t)) (t - a) - max(0, -g'(t)) (b - t)

between a and b. Where t is the point at which f has slope k that is g(t), and where it is only near
it the two products are what that costs. So slopes are inverted by a table and two secant steps, and
nothing depends on how well that goes. Where f is concave on a piece, g is least at one of its ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from radii.networks.operators._base import NumberType
from radii.networks.operators._intervals import ELEMENTARY_ULPS, Interval
from radii.networks.operators._kernel_errors import ErrorMeasure, KernelError
from radii.networks.operators._slopes import CURVE_SLACK, Float64, IntervalMatrix
from radii.networks.operators._smooth import SmoothFunction

TABLE_POINTS = 4096
"""Of a table of slopes along one piece."""

TABLE_REACH = 12.0
"""Beyond, slopes of bounded pieces' functions differ from their limits by less than 2^-53 or so."""

SECANT_STEPS = 2
"""To find the point of a slope between two entries of the table."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the line that ends at `end` and begins where the one before ends.

    `bend` is 1 where the function is convex, -1 where it is concave, and 0 where it is straight,
    with this `slope`.
    """

    end: float
    bend: int
    slope: float = math.nan


class CurvedFunction(SmoothFunction):
    """height * base(pace * x) for a continuous function of one number that is known by its pieces.

    A class says `base`, `base_slope`, the `pieces` of the base, its `extrema` (arguments of local
    extreme values, to 2^-50 or better), and what it rounds. `scale` is what its values' absolute
    errors in torch are relative to, beside their own size.
    """

    pieces: tuple[Piece, ...]
    extrema: tuple[float, ...] = ()
    kernel_error: ClassVar[KernelError]
    extra_units: ClassVar[float] = 0.0
    """Roundings beside the kernel's, in units of the number type, of the same measure."""

    def __init__(self, *, pace: float = 1.0, height: float = 1.0) -> None:
        super().__init__()
        self.pace, self.height = pace, height

    def base(self, z: Tensor) -> Tensor:
        """The function where pace and height are 1."""
        raise NotImplementedError

    def base_slope(self, z: Tensor) -> Tensor:
        """Its derivative on pieces that bend; at their ends that of their own side."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        values = self.base(x if self.pace == 1.0 else self.pace * x)
        return values if self.height == 1.0 else self.height * values

    def slope_at(self, x: Tensor) -> Tensor:
        return self.height * self.pace * self.base_slope(self.pace * x)

    # The pieces as stretches of x.

    @property
    def stretches(self) -> list[tuple[float, float, Piece]]:
        """Each piece with its begin and end."""
        ends = [piece.end / self.pace for piece in self.pieces]
        return list(zip([-math.inf, *ends[:-1]], ends, self.pieces, strict=True))

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        inside = [x.low.new_tensor(z / self.pace) for z in self.extrema]
        points = [x.low, x.high, *(torch.minimum(torch.maximum(z, x.low), x.high) for z in inside)]
        values = torch.stack([self(point) for point in points])
        return self.widened(Interval(values.amin(0), values.amax(0)))

    def widened(self, values: Interval) -> Interval:
        """By what torch rounds in the type of the values."""
        spread = ELEMENTARY_ULPS * torch.finfo(values.low.dtype).eps * self.scale * self.height
        wide = values.widened(ELEMENTARY_ULPS)
        return Interval(wide.low - spread, wide.high + spread).without_nan()

    def slopes(self, x: Interval) -> Interval:
        low, high = torch.full_like(x.low, torch.inf), torch.full_like(x.low, -torch.inf)
        for begin, end, piece in self.stretches:
            is_touched = (x.high >= begin) & (x.low <= end)
            if piece.bend:
                each = [self.slope_at(side.clamp(begin, end)) for side in (x.low, x.high)]
                least, most = torch.minimum(*each), torch.maximum(*each)
            else:
                least = most = torch.full_like(x.low, piece.slope * self.pace * self.height)
            low = torch.where(is_touched, torch.minimum(low, least), low)
            high = torch.where(is_touched, torch.maximum(high, most), high)
        return Interval(low, high)

    def chain_rule(
        self, rows: IntervalMatrix, shape: tuple[int, ...], low: Float64, high: Float64
    ) -> IntervalMatrix:
        steep = self.slopes(Interval(torch.from_numpy(low), torch.from_numpy(high)))
        slack = CURVE_SLACK * (self.scale + steep.magnitude)
        return rows.times((steep.low - slack).numpy(), (steep.high + slack).numpy())

    # Where lines of a slope touch.

    def contacts(
        self, low: Tensor, high: Tensor, slope: Tensor, sign: float
    ) -> tuple[list[Tensor], Tensor | float]:
        points, lost = [low, high], torch.zeros_like(slope)
        for number, (begin, end, piece) in enumerate(self.stretches):
            if math.isfinite(end):
                points.append(low.new_tensor(end).maximum(low).minimum(high))
            if piece.bend * sign > 0:
                near = self.base_point(slope / (self.pace * self.height), number) / self.pace
                near = near.clamp(begin, end)
                near = torch.minimum(torch.maximum(near, low), high)
                points.append(near)
                lost = torch.maximum(lost, self._lost(low, high, slope, sign, number, near))
        return points, lost

    def _lost(
        self, low: Tensor, high: Tensor, slope: Tensor, sign: float, number: int, near: Tensor
    ) -> Tensor:
        """What the tangent at a point near the turning point is below the function minus a line;
        nothing where the interval does not meet the piece."""
        begin, end, _ = self.stretches[number]
        before = (near - low.clamp(min=begin)).clamp(min=0)
        behind = (high.clamp(max=end) - near).clamp(min=0)
        own = self.slope_at(near)
        rise = sign * (own - slope)
        rounding = ELEMENTARY_ULPS * torch.finfo(slope.dtype).eps
        off = rounding * (self.scale + own.abs() + slope.abs())
        lost = (rise + off).clamp(min=0) * before + (off - rise).clamp(min=0) * behind
        meets = (high > begin) & (low < end)
        return torch.where(meets, torch.nan_to_num(lost, nan=torch.inf), 0.0)

    def base_point(self, slope: Tensor, number: int) -> Tensor:
        """About where a piece of the base has this slope; by default from a table."""
        points, rises = self._derive(f"slopes of piece {number}", lambda: self._table(number))
        bend = self.pieces[number].bend
        points, rises = points.to(slope), rises.to(slope)
        aim = bend * slope
        right = torch.searchsorted(rises, aim.contiguous()).clamp(1, len(rises) - 1)
        first, last = points[right - 1], points[right]
        at_first, at_last = rises[right - 1], rises[right]
        near = _secant(first, last, at_first, at_last, aim)
        for _ in range(SECANT_STEPS):
            rise = bend * self.base_slope(near)
            is_left = rise < aim
            first, at_first = (
                torch.where(is_left, near, first),
                torch.where(is_left, rise, at_first),
            )
            last, at_last = torch.where(is_left, last, near), torch.where(is_left, at_last, rise)
            near = _secant(first, last, at_first, at_last, aim)
        return near

    def _table(self, number: int) -> tuple[Tensor, Tensor]:
        """Points of a piece of the base and its slopes there times its bend, which never
        decrease."""
        begin = self.pieces[number - 1].end if number else -math.inf
        piece = self.pieces[number]
        low, high = max(begin, -TABLE_REACH), min(piece.end, TABLE_REACH)
        points = torch.linspace(low, high, TABLE_POINTS, dtype=torch.float64)
        return points, (piece.bend * self.base_slope(points)).cummax(0).values

    # Rounding.

    def units(self, number: NumberType) -> float:
        """The error in units of the number type, in the measure of the kernel's."""
        return self.kernel_error.units(number.unit) + self.extra_units

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        match self.kernel_error.measure:
            case ErrorMeasure.ABSOLUTE:
                size = torch.full_like(arguments.low, self.height)
            case ErrorMeasure.ARGUMENT_OR_ONE:
                size = self.height * (self.pace * arguments.magnitude).clamp(min=1)
            case ErrorMeasure.RESULT_OR_ONE:
                size = values.magnitude.clamp(min=self.height)
            case ErrorMeasure.RESULT:
                size = values.magnitude
        unit, smallest = number.unit * widening, number.smallest * widening
        return size * (self.units(number) * unit) + smallest * max(1.0, self.height)


def _secant(first: Tensor, last: Tensor, at_first: Tensor, at_last: Tensor, aim: Tensor) -> Tensor:
    """Where the line through two points of a function reaches the aim, between the two."""
    rise = at_last - at_first
    share = (aim - at_first) / torch.where(rise > 0, rise, 1.0)
    return first + share.clamp(0, 1) * (last - first)
