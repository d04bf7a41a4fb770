"""Nonlinear functions of one value, and how far ONNX Runtime's are from the true ones."""

from __future__ import annotations

import math
import sys
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from radii.errors import UnsupportedQuery
from radii.networks.operators._arrangement import Reshape
from radii.networks.operators._base import (
    Hinges,
    NumberType,
    OnnxNode,
    Operator,
    OperatorKind,
    Shape,
    TanhCurve,
    broadcast,
    translates,
    with_rank,
)
from radii.networks.operators._intervals import ELEMENTARY_ULPS, Interval, sum_slack

Float64 = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

LOST_SLOPE = 2.0**-44
"""How far the slope of a leaky unit above its knee may be from 1: far less than sums over fused
maps are widened by, relative to what they add up."""

SOFTMAX_ALONG_ONE_AXIS = 13
"""From this opset on, Softmax normalises one axis; before, all axes from the given one on."""


class _Hinged(Operator):
    """A function of each entry that consists of straight pieces."""

    kind = OperatorKind.PIECEWISE_LINEAR

    def hinges(self, shape: Shape, result: Shape) -> Hinges:
        entries = np.arange(math.prod(shape)).reshape(shape)
        return self._pieces(np.broadcast_to(entries, result).ravel(), result)

    def _pieces(self, sources: Integers, result: Shape) -> Hinges:
        raise NotImplementedError


@translates("Relu")
class Relu(_Hinged):
    """max(x, 0)."""

    inserts_constants = False

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)

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


class Clip(_Hinged):
    """min(max(x, low), high); either side may be infinite."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low = low
        self.high = high

    def forward(self, x: Tensor) -> Tensor:
        return torch.clamp(x, self.low, self.high)

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


class _Curved(Operator):
    """A tanh up to scaling, with values in a fixed range."""

    kind = OperatorKind.SMOOTH
    least: float
    greatest = 1.0

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        sides = Interval(self(x.low), self(x.high)).widened(ELEMENTARY_ULPS)
        return sides.clamped(self.least, self.greatest)

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        name = type(self).__name__
        error = _units(name, number.unit) * number.unit * widening
        return torch.full_like(arguments.low, error)


@translates("Sigmoid")
class Sigmoid(_Curved):
    """1 / (1 + exp(-x)) = 1/2 + tanh(x / 2) / 2."""

    curve = TanhCurve(0.5, 0.5, 0.5)
    least = 0.0

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)


@translates("Tanh")
class Tanh(_Curved):
    """The hyperbolic tangent."""

    curve = TanhCurve(0.0, 1.0, 1.0)
    least = -1.0

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x)


class Softmax(Operator):
    """Softmax along one axis, counted without the batch axis and never negative."""

    kind = OperatorKind.SMOOTH

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x, self.axis + 1)

    def enclosure(self, *inputs: Interval) -> Interval:
        logarithms = _log_softmax_enclosure(inputs[0], self.axis + 1)
        sides = Interval(logarithms.low.exp(), logarithms.high.exp()).widened(ELEMENTARY_ULPS)
        return sides.clamped(0.0, 1.0)

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        length = arguments.low.shape[self.axis + 1]
        error = softmax_error(length, number.unit) * widening
        return torch.full_like(arguments.low, error)


class LogSoftmax(Operator):
    """The logarithm of Softmax along one axis, counted without the batch axis."""

    kind = OperatorKind.SMOOTH

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return torch.log_softmax(x, self.axis + 1)

    def enclosure(self, *inputs: Interval) -> Interval:
        return _log_softmax_enclosure(inputs[0], self.axis + 1)

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        axis = self.axis + 1
        largest = arguments.magnitude.amax(axis, keepdim=True).expand_as(arguments.low)
        count = arguments.low.shape[axis]
        of_sum = softmax_error(count, number.unit) * widening
        return log_softmax_error(largest, count, number.unit * widening) + of_sum


def _log_softmax_enclosure(x: Interval, axis: int) -> Interval:
    """x_i - log sum exp(x_j) grows with x_i and falls with every other x_j."""
    low = _own_against_others(x.low, x.high, axis)
    high = _own_against_others(x.high, x.low, axis).clamp(max=0)
    # exp and log of the sum act on differences of up to this size, each with a rounding of its own.
    slack = sum_slack(1 + x.magnitude.amax(axis, keepdim=True), x.low.shape[axis])
    return Interval(low - ELEMENTARY_ULPS * slack, (high + ELEMENTARY_ULPS * slack).clamp(max=0))


def _own_against_others(own: Tensor, others: Tensor, axis: int) -> Tensor:
    """log softmax of entry i where entry i is `own` and all the others are `others`."""
    own, others = own.movedim(axis, -1), others.movedim(axis, -1)
    diagonal = torch.eye(own.shape[-1], dtype=torch.bool, device=own.device)
    entries = torch.where(diagonal, own.unsqueeze(-2), others.unsqueeze(-2))
    return (own - torch.logsumexp(entries, -1)).movedim(-1, axis)


# Translators.


@translates("LeakyRelu")
def _leaky_relu(call: OnnxNode) -> int:
    return call.emit(LeakyRelu(call.float_attribute("alpha", 0.01)), call.node(0))


@translates("PRelu")
def _prelu(call: OnnxNode) -> int:
    return call.emit(PRelu(call.weight(1)), call.node(0))


@translates("Clip")
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


@translates("Max", "Min")
def _bound(call: OnnxNode) -> int:
    """Of one value and single numbers, which is a Clip with one side open."""
    variables = [p for p in range(len(call.proto.input)) if not call.is_constant(p)]
    constants = [p for p in range(len(call.proto.input)) if call.is_constant(p)]
    if len(variables) != 1 or any(call.constant(p).size != 1 for p in constants):
        raise call.unsupported("of more than one value that depends on the network's input")
    result = call.node(variables[0])
    rank = max(call.rank(p) for p in variables + constants)
    for position in constants:
        limit = float(call.weight(position))
        lowest, highest = (limit, torch.inf) if call.proto.op_type == "Max" else (-torch.inf, limit)
        result = call.emit(Clip(lowest, highest), result)
    missing = rank - call.rank(variables[0])
    if missing:
        result = call.emit(Reshape((1,) * missing + call.shape(variables[0])), result)
    return result


@translates("Softmax", "LogSoftmax")
def _softmax(call: OnnxNode) -> int:
    make = Softmax if call.proto.op_type == "Softmax" else LogSoftmax
    shape = call.shape(0)
    if call.opset >= SOFTMAX_ALONG_ONE_AXIS:
        return call.emit(make(call.axis(call.int_attribute("axis", -1), len(shape))), call.node(0))
    axis = call.axis(call.int_attribute("axis", 1), len(shape))
    if math.prod(shape[axis + 1 :]) == 1:
        return call.emit(make(axis), call.node(0))
    rows = call.emit(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), call.node(0))
    return call.emit(Reshape(shape), call.emit(make(1), rows))


# How far ONNX Runtime's elementary functions are from the true ones.
#
# The table is what `scripts/measure_elementary.py` prints: each float32 kernel on all 2^32 numbers.
# Kernels of other processors differ in the last places, so that twice the measured error counts.
# Kernels in float64 cannot be tried on all numbers: they are trusted to `DOUBLE_ULPS`.


Sizes = TypeVar("Sizes", float, Tensor)

FLOAT32_ROUNDOFF = 2.0**-24
"""The unit roundoff of float32, in which the table is."""

MEASURED_ERRORS: dict[str, float] = {"Sigmoid": 3.0, "Tanh": 5.5, "Softmax": 3.5}
"""The largest errors, in units of 2^-24: absolute ones of Sigmoid and Tanh, whose values are about
1 at most; relative ones of Softmax of two numbers, where its results are normal numbers."""

KERNEL_FACTOR = 2.0
"""How many times the measured error counts."""

DOUBLE_ULPS = 32.0
"""Errors in float64, in units of its roundoff, of the same kinds."""

EXPONENT_RANGE = {True: 88.0, False: 709.0}
"""Down to which argument exp gives a normal number, in float32 (True) and in float64, about."""


def softmax_error(count: int, unit: float) -> float:
    """The largest absolute error of one of `count` probabilities, given exact arguments.

    p = q_i / sum q_j, q_j = exp(z_j - m): each q is off by the kernel's relative error and, since
    z_j - m is rounded, by unit |z_j - m|. Weighed by p that is at most unit (1/e + log count). The
    sum adds a rounding for each term, the division one.
    """
    relative = 2 * _units("Softmax", unit) + count + 8
    return unit * (relative + 2 * (1 + math.log(count)))


def softmax_ratio(unit: float) -> float:
    """A probability is strictly above another one, as floats, if its argument is larger by this.

    Both are divided by the same sum, so only their own errors count: the kernel's, that of z - m,
    which is at most the argument at which exp vanishes, and of the division.
    """
    relative = _units("Softmax", unit) + EXPONENT_RANGE[unit == FLOAT32_ROUNDOFF] + 4
    return 2.5 * unit * relative


def log_softmax_error(largest: Sizes, count: int, unit: float) -> Sizes:
    """What a difference of two of `count` logarithms has of each: z - m, and that less the
    logarithm of the sum, which all entries share, are rounded. No |z| is above `largest`."""
    return unit * (4 * largest + math.log(count) + 2)


def smallest_exponent(count: int, unit: float) -> float:
    """How far below the largest argument one may be for its probability to be a normal number.

    Two below where exp itself leaves the normal numbers; and divided by a sum of up to `count`.
    """
    return EXPONENT_RANGE[unit == FLOAT32_ROUNDOFF] - 2.0 - math.log(count)


def _units(name: str, unit: float) -> float:
    return KERNEL_FACTOR * MEASURED_ERRORS[name] if unit == FLOAT32_ROUNDOFF else DOUBLE_ULPS
