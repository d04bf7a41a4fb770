"""Piecewise-linear functions of each entry, as hinges: ReLU, leaky ReLU and clips.

A unit with one knee lies between a chord on one side and any line through the knee on the other:
CROWN (Zhang et al., 2018) picks one of these lines, alpha-CROWN (Xu et al., 2021) optimises it.
Trees split a unit at its knees, and certificates state each of its hinges as a ReLU unit.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from radii.errors import UnsupportedQuery
from radii.networks.operators._base import (
    Hinges,
    NumberType,
    OnnxNode,
    Operator,
    OperatorKind,
    Shape,
    broadcast,
    translates,
    with_rank,
)
from radii.networks.operators._intervals import Interval
from radii.networks.operators._lines import Pencil, Relaxation, UnitBand, UnitLines
from radii.networks.operators._relu_lines import chord, prefers_right
from radii.networks.operators._slopes import Float64, IntervalMatrix, Saturation

Integers = npt.NDArray[np.int64]

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

LOST_SLOPE = 2.0**-44
"""How far the slope of a leaky unit above its knee may be from 1: far less than sums over fused
maps are widened by, relative to what they add up."""


class _Hinged(Operator):
    """A function of each entry that consists of straight pieces."""

    kind = OperatorKind.PIECEWISE_LINEAR
    is_activation = True

    def hinges(self, shape: Shape, result: Shape) -> Hinges:
        entries = np.arange(math.prod(shape)).reshape(shape)
        return self._pieces(np.broadcast_to(entries, result).ravel(), result)

    def _pieces(self, sources: Integers, result: Shape) -> Hinges:
        raise NotImplementedError

    def has_slopes(self, shape: Shape) -> bool:
        return True

    def chain_rule(
        self, rows: IntervalMatrix, shape: Shape, low: Float64, high: Float64
    ) -> IntervalMatrix:
        hinges = self.hinges(shape, self.result_shape(shape))
        steep = rows.times(*_slopes(hinges, low[hinges.sources], high[hinges.sources]))
        return steep.gathered(hinges.sources, len(low))


@translates("Relu")
class Relu(_Hinged):
    """max(x, 0)."""

    inserts_constants = False

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)

    def saturation(self, shape: Shape) -> Saturation:
        return Saturation(torch.relu, limits=(0.0, math.inf))

    def enclosure(self, *inputs: Interval) -> Interval:
        return self._monotone_enclosure(*inputs)

    def _pieces(self, sources: Integers, result: Shape) -> Hinges:
        return _one_knee(sources, np.zeros(len(sources)))

    def value_error(self, *_: object) -> None:
        return None


class _Leaky(_Hinged):
    """x where x >= 0, else slope * x."""

    def enclosure(self, *inputs: Interval) -> Interval:
        """The extremes lie at the ends or, where the slope is negative, at 0."""
        (x,) = inputs
        left, right = self(x.low), self(x.high)
        ends = Interval(torch.minimum(left, right), torch.maximum(left, right)).widened(1)
        crosses = ((x.low < 0) & (x.high > 0)).expand_as(ends.low)
        low = torch.where(crosses, ends.low.clamp(max=0), ends.low)
        high = torch.where(crosses, ends.high.clamp(min=0), ends.high)
        return Interval(low, high).without_nan()

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        """One product."""
        unit, smallest = number.unit * widening, number.smallest * widening
        return values.magnitude * (2 * unit) + smallest


class LeakyRelu(_Leaky):
    """x where x >= 0, else slope * x."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.slope)

    def _pieces(self, sources: Integers, result: Shape) -> Hinges:
        return _one_knee(sources, np.full(len(sources), float(self.slope)))


class PRelu(_Leaky):
    """x where x >= 0, else slope * x; the slope broadcasts to x's shape."""

    slope: Tensor

    def __init__(self, slope: Tensor) -> None:
        super().__init__()
        self._constant("slope", slope)

    def result_shape(self, *shapes: Shape) -> Shape:
        return broadcast(shapes[0], tuple(self.slope.shape))

    def forward(self, x: Tensor) -> Tensor:
        x = with_rank(x, self.slope.dim())
        return torch.where(x < 0, x * self.slope, x)

    def _pieces(self, sources: Integers, result: Shape) -> Hinges:
        slope = self.slope.double().cpu().numpy()
        return _one_knee(sources, np.broadcast_to(slope, result).astype(np.float64).ravel())


@translates("Abs")
class Abs(_Hinged):
    """|x|."""

    inserts_constants = False

    def forward(self, x: Tensor) -> Tensor:
        return x.abs()

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        least = torch.maximum(x.low, -x.high).clamp(min=0)
        return Interval(least, x.magnitude)

    def _pieces(self, sources: Integers, result: Shape) -> Hinges:
        return _one_knee(sources, np.full(len(sources), -1.0))

    def value_error(self, *_: object) -> None:
        return None


class Clip(_Hinged):
    """min(max(x, low), high); either side may be infinite."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low = low
        self.high = high

    def forward(self, x: Tensor) -> Tensor:
        return torch.clamp(x, self.low, self.high)

    def saturation(self, shape: Shape) -> Saturation:
        return Saturation(self.forward, limits=(self.low, self.high))

    def enclosure(self, *inputs: Interval) -> Interval:
        return self._monotone_enclosure(*inputs)

    def _pieces(self, sources: Integers, result: Shape) -> Hinges:
        return _two_knees(sources, float(self.low), float(self.high))

    def value_error(self, *_: object) -> None:
        return None


def _one_knee(sources: Integers, slope: Float64) -> Hinges:
    """Slope 1 above 0, and the given one below."""
    change = 1.0 - slope
    # What float64 cannot hold of the change, exactly: above the knee both must add up to 1.
    negated = change - 1.0
    lost = np.abs((1.0 - (change - negated)) - (slope + negated))
    if not lost.max(initial=0.0) <= LOST_SLOPE:
        raise UnsupportedQuery(
            f"a leaky unit has slope {slope[lost.argmax()]:g}: too steep to be bounded in float64"
        )
    changes = change[None]
    return Hinges(sources, slope, np.zeros_like(slope), np.zeros_like(changes), changes)


def _two_knees(sources: Integers, low: float, high: float) -> Hinges:
    """Slope 1 between low and high, and 0 outside."""
    ones = np.ones(len(sources))
    if low >= high:  # ONNX takes the maximum with low first, so high wins
        return Hinges(
            sources, 0 * ones, high * ones, np.zeros((0, ones.size)), np.zeros((0, ones.size))
        )
    knees = [(knee, change) for knee, change in ((low, 1.0), (high, -1.0)) if math.isfinite(knee)]
    bounded_below = math.isfinite(low)
    return Hinges(
        sources,
        slope=0 * ones if bounded_below else ones,
        offset=low * ones if bounded_below else 0 * ones,
        knee=np.array([knee * ones for knee, _ in knees]).reshape(len(knees), ones.size),
        change=np.array([change * ones for _, change in knees]).reshape(len(knees), ones.size),
    )


def _slopes(hinges: Hinges, low: Float64, high: Float64) -> tuple[Float64, Float64]:
    """The least and the greatest slope of the pieces that each interval touches."""
    order = np.argsort(hinges.knee, axis=0)
    knees = np.take_along_axis(hinges.knee, order, 0)
    changes = np.take_along_axis(hinges.change, order, 0)
    slope = hinges.slope
    least, greatest = np.full_like(slope, np.inf), np.full_like(slope, -np.inf)
    begins = np.full_like(slope, -np.inf)
    for piece in range(len(knees) + 1):
        ends = knees[piece] if piece < len(knees) else np.full_like(slope, np.inf)
        is_touched = (high >= begins) & (low <= ends)
        least = np.where(is_touched, np.minimum(least, slope), least)
        greatest = np.where(is_touched, np.maximum(greatest, slope), greatest)
        if piece < len(knees):
            slope, begins = slope + changes[piece], knees[piece]
    return least, greatest


# Lines below and above them.


@dataclass(frozen=True, slots=True, eq=False)
class PiecewiseLinear(Relaxation):
    """Units with one bend or, for a clip, two: a chord on one side, a pencil through the bend."""

    lower: Pencil
    upper: Pencil
    choices: Tensor
    is_bent: Tensor

    @classmethod
    def of(cls, hinges: Hinges, arguments: Interval) -> PiecewiseLinear:
        pieces = _Pieces.of(hinges, arguments)
        lower, upper, choices, is_bent = _one_bend(pieces, arguments)
        found = cls(lower, upper, choices, is_bent)
        if len(hinges.knee) > 1:
            found = _with_both(found, hinges, arguments)
        return found._apart(_is_exact(hinges, arguments), arguments)

    def _apart(self, is_exact: Tensor, z: Interval) -> PiecewiseLinear:
        """Lines moved outward by what slopes and offsets that underflow lose over the arguments;
        those that are exact are not, chords excepted."""
        numbers = torch.finfo(z.low.dtype)
        reach = torch.where(torch.isfinite(z.magnitude), z.magnitude, 0.0)
        lost = 2 * numbers.tiny * (1 + reach)
        below, above = (
            torch.where(is_exact & ~(self.is_bent & (pencil.slope_span == 0)), 0.0, lost)
            for pencil in (self.lower, self.upper)
        )
        return replace(
            self,
            lower=replace(self.lower, offset=self.lower.offset - below),
            upper=replace(self.upper, offset=self.upper.offset + above),
        )

    @property
    def start(self) -> Tensor:
        return self.choices[:, :, None]

    @property
    def is_loose(self) -> Tensor:
        return self.is_bent

    def taken(self, index: Tensor) -> PiecewiseLinear:
        return PiecewiseLinear(
            self.lower.taken(index),
            self.upper.taken(index),
            self.choices[:, index],
            self.is_bent[index],
        )

    def lines(self, choices: Tensor | None = None) -> UnitLines:
        below, above = self.start if choices is None else choices
        return UnitLines(*self.lower.at(below), *self.upper.at(above))

    def band(self, arguments: Interval) -> UnitBand:
        """Between a chord and the line through the bend that is parallel to it."""
        below, above = self.choices
        below = _parallel(self.lower, self.upper, below)
        above = _parallel(self.upper, self.lower, above)
        chosen = self.lines(torch.stack([below, above])[:, :, None])
        return UnitBand.between(chosen, arguments)


def _parallel(pencil: Pencil, other: Pencil, choice: Tensor) -> Tensor:
    """The choice whose line has the other side's slope, if that side has only one."""
    is_free = (pencil.slope_span != 0) & (other.slope_span == 0)
    span = torch.where(is_free, pencil.slope_span, 1.0)
    return torch.where(is_free, ((other.slope - pencil.slope) / span).clamp(0, 1), choice)


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """The bend that matters of each unit: slopes left and right of it, and where it is."""

    left: Tensor
    right: Tensor
    x: Tensor
    y: Tensor

    @classmethod
    def of(cls, hinges: Hinges, arguments: Interval) -> _Pieces:
        def row(values: object) -> Tensor:
            return torch.as_tensor(values).to(arguments.low).expand_as(arguments.low)

        slope, offset = row(hinges.slope), row(hinges.offset)
        if len(hinges.knee) == 0:
            return cls(slope, slope, torch.zeros_like(slope), offset)
        first = cls(slope, row(hinges.slope + hinges.change[0]), row(hinges.knee[0]), offset)
        first = replace(first, y=slope * first.x + offset)
        if len(hinges.knee) == 1:
            return first
        # A clip: rising between two flat parts. Only units above the upper bend see that one.
        end = row(hinges.knee[1])
        is_high = arguments.high > end
        return cls(
            torch.where(is_high, first.right, first.left),
            torch.where(is_high, first.left, first.right),
            torch.where(is_high, end, first.x),
            torch.where(is_high, end, first.y),
        )


def _is_exact(hinges: Hinges, z: Interval) -> Tensor:
    """Units whose pieces have slopes 0 and 1 and meet at 0, as a ReLU's: nothing is rounded."""
    slopes = (hinges.slope, hinges.slope + hinges.change.sum(0))
    is_exact = (hinges.offset == 0) & (hinges.knee == 0).all(0)
    for slope in slopes:
        is_exact &= (slope == 0) | (slope == 1)
    return torch.as_tensor(is_exact, device=z.low.device).expand_as(z.low)


def _width(z: Interval) -> Tensor:
    """No number where it overflows: divided by infinity, a chord would be flat."""
    width = z.high - z.low
    return torch.where(torch.isfinite(width), width, torch.nan)


def _one_bend(pieces: _Pieces, z: Interval) -> tuple[Pencil, Pencil, Tensor, Tensor]:
    is_right, is_left = z.low >= pieces.x, z.high <= pieces.x
    is_bent = ~(is_right | is_left) & (pieces.left != pieces.right)
    slope = torch.where(is_right, pieces.right, pieces.left)
    straight = Pencil.fixed(slope, pieces.y - slope * pieces.x)
    at_low = pieces.y + pieces.left * (z.low - pieces.x)
    at_high = pieces.y + pieces.right * (z.high - pieces.x)
    width = torch.where(is_bent, _width(z), 1.0)
    across = Pencil.fixed(*chord(z.low, at_low, at_high - at_low, width))
    pencil = Pencil.through(pieces.x, pieces.y, pieces.left, pieces.right)
    is_convex = pieces.right > pieces.left
    lower = straight.where(is_bent & is_convex, pencil).where(is_bent & ~is_convex, across)
    upper = straight.where(is_bent & is_convex, across).where(is_bent & ~is_convex, pencil)
    choice = prefers_right(z.low - pieces.x, z.high - pieces.x)
    return lower, upper, torch.stack([choice, choice]), is_bent


def _with_both(one_bend: PiecewiseLinear, hinges: Hinges, z: Interval) -> PiecewiseLinear:
    """Where a clip may bend twice: lines through the bend on either side, up to the far end."""
    low, high = (torch.as_tensor(knee).to(z.low).expand_as(z.low) for knee in hinges.knee)
    is_both = (z.low < low) & (z.high > high)
    zero = torch.zeros_like(low)
    rise = torch.where(is_both, high - low, 0.0)
    below = rise / torch.where(is_both, z.high - low, 1.0)
    above = rise / torch.where(is_both, high - z.low, 1.0)
    starts = torch.stack([(z.high - low > low - z.low), (high - z.low > z.high - high)])
    return PiecewiseLinear(
        one_bend.lower.where(is_both, Pencil.through(low, low, zero, below)),
        one_bend.upper.where(is_both, Pencil.through(high, high, zero, above)),
        torch.where(is_both, starts.to(z.low), one_bend.choices),
        one_bend.is_bent | is_both,
    )


# Translators.


@translates("LeakyRelu", kind=OperatorKind.PIECEWISE_LINEAR)
def _leaky_relu(call: OnnxNode) -> int:
    return call.emit(LeakyRelu(call.float_attribute("alpha", 0.01)), call.node(0))


@translates("PRelu", kind=OperatorKind.PIECEWISE_LINEAR)
def _prelu(call: OnnxNode) -> int:
    return call.emit(PRelu(call.weight(1)), call.node(0))


@translates("Clip", kind=OperatorKind.PIECEWISE_LINEAR)
def _clip(call: OnnxNode) -> int:
    """Bounds are attributes before opset 11, inputs since."""
    low = call.constant(1).item() if call.has(1) else call.float_attribute("min", -math.inf)
    high = call.constant(2).item() if call.has(2) else call.float_attribute("max", math.inf)
    if math.isnan(low) or math.isnan(high):
        raise call.unsupported("with a bound that is NaN")
    if low == math.inf or high == -math.inf:  # runtimes differ in what they take as the other one
        raise call.unsupported("that gives nothing finite")
    # Exporters write the largest float of the type where they mean that a side is open.
    lowest, highest = (
        sys.float_info.max
        if call.has(place) and call.constant(place).dtype == np.float64
        else LARGEST_FLOAT32
        for place in (1, 2)
    )
    low = -math.inf if low <= -lowest else float(low)
    high = math.inf if high >= highest else float(high)
    return call.emit(Clip(low, high), call.node(0))
