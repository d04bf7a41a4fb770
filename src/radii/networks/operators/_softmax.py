"""Softmax and log-softmax, and what their rounding does to comparisons of probabilities."""

from __future__ import annotations

import math
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from radii.networks.operators._arrangement import Reshape
from radii.networks.operators._base import (
    NumberType,
    OnnxNode,
    Operator,
    OperatorKind,
    Shape,
    translates,
)
from radii.networks.operators._intervals import ELEMENTARY_ULPS, Interval, sum_slack
from radii.networks.operators._kernel_errors import FLOAT32_ROUNDOFF, ErrorMeasure, measured
from radii.networks.operators._slopes import CURVE_SLACK, Float64, IntervalMatrix, Saturation
from radii.networks.operators._softmax_lines import SoftmaxLines
from radii.networks.operators._tanh import logit

Sizes = TypeVar("Sizes", float, Tensor)

SOFTMAX_ERROR = measured("Softmax", 3.375, at=-8.126971, measure=ErrorMeasure.RESULT)
"""Of a softmax of two numbers."""

EXPONENT_RANGE = {True: 88.0, False: 709.0}
"""Down to which argument exp gives a normal number, in float32 (True) and in float64, about."""

ONE_AXIS_OPSET = 13
"""From this opset on, Softmax normalises one axis; before, all axes from the given one on."""


class Softmax(Operator):
    """Softmax along one axis, counted without the batch axis and never negative."""

    kind = OperatorKind.SMOOTH

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x, self.axis + 1)

    def saturation(self, shape: Shape) -> Saturation | None:
        if not self.has_slopes(shape):
            return None
        return Saturation(partial(torch.softmax, dim=1), inverse=logit, is_joint=True)

    def has_slopes(self, shape: Shape) -> bool:
        """One softmax over all entries."""
        return shape[self.axis] == math.prod(shape)

    def chain_rule(
        self, rows: IntervalMatrix, shape: Shape, low: Float64, high: Float64
    ) -> IntervalMatrix:
        """Slopes are p_i (1 - p_i) on the diagonal and -p_i p_j beside it."""
        count = len(low)
        is_other = ~np.eye(count, dtype=np.bool_)
        with np.errstate(over="ignore"):
            most = np.where(is_other, np.exp(high[None, :] - low[:, None]), 0.0).sum(axis=1)
            least = np.where(is_other, np.exp(low[None, :] - high[:, None]), 0.0).sum(axis=1)
        below, above = 1 / (1 + most) * (1 - CURVE_SLACK), 1 / (1 + least) * (1 + CURVE_SLACK)
        ends = np.stack([below * (1 - below), above * (1 - above)])
        peak = np.where((below <= 0.5) & (above >= 0.5), 0.25, ends.max(axis=0))
        slope_low, slope_high = -np.outer(above, above), -np.outer(below, below)
        np.fill_diagonal(slope_low, ends.min(axis=0) - CURVE_SLACK)
        np.fill_diagonal(slope_high, peak + CURVE_SLACK)
        middle, half = slope_low / 2 + slope_high / 2, (slope_high - slope_low) / 2
        radius = rows.radius @ (np.abs(middle) + half) + np.abs(rows.centre) @ half
        return IntervalMatrix(rows.centre @ middle, radius)

    def enclosure(self, *inputs: Interval) -> Interval:
        logarithms = _log_softmax_enclosure(inputs[0], self.axis + 1)
        sides = Interval(logarithms.low.exp(), logarithms.high.exp()).widened(ELEMENTARY_ULPS)
        return sides.clamped(0.0, 1.0)

    def relaxation(self, shape: Shape, arguments: Interval) -> SoftmaxLines:
        held = Interval(*(side.reshape(-1, *shape) for side in (arguments.low, arguments.high)))
        logarithms = _log_softmax_enclosure(held, self.axis + 1)
        flat = Interval(logarithms.low.flatten(1), logarithms.high.flatten(1))
        numbers = torch.arange(math.prod(shape)).reshape(shape).movedim(self.axis, -1)
        return SoftmaxLines.of(numbers.reshape(-1, shape[self.axis]), arguments, flat)

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        """The same for all, or relative to each probability: whichever is less."""
        axis = self.axis + 1
        length = arguments.low.shape[axis]
        error = softmax_error(length, number.unit) * widening
        span = arguments.high.amax(axis, keepdim=True) - arguments.low.amin(axis, keepdim=True)
        relative = softmax_relative_error(span, length, number.unit) * widening
        own = values.magnitude * relative + 4 * length * number.smallest * widening
        return torch.where(own < error, own, error)


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


# What runtimes round.


def softmax_error(count: int, unit: float) -> float:
    """The largest absolute error of one of `count` probabilities, given exact arguments.

    p = q_i / sum q_j, q_j = exp(z_j - m): each q is off by the kernel's relative error and, since
    z_j - m is rounded, by unit |z_j - m|. Weighed by p that is at most unit (1/e + log count). The
    sum adds a rounding for each term, the division one.
    """
    relative = 2 * SOFTMAX_ERROR.units(unit) + count + 8
    return unit * (relative + 2 * (1 + math.log(count)))


def softmax_relative_error(span: Tensor, count: int, unit: float) -> Tensor:
    """The same relative to the probability, where arguments are at most `span` apart: each q is off
    by unit |z_j - m| of itself, and so is the sum of them."""
    return unit * (2 * SOFTMAX_ERROR.units(unit) + count + 8 + 2 * span)


def softmax_ratio(unit: float) -> float:
    """A probability is strictly above another one, as floats, if its argument is larger by this.

    Both are divided by the same sum, so only their own errors count: the kernel's, that of z - m,
    which is at most the argument at which exp vanishes, and of the division.
    """
    relative = SOFTMAX_ERROR.units(unit) + EXPONENT_RANGE[unit == FLOAT32_ROUNDOFF] + 4
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


# Translators.


@translates("Softmax", "LogSoftmax", kind=OperatorKind.SMOOTH)
def _softmax(call: OnnxNode) -> int:
    make = Softmax if call.proto.op_type == "Softmax" else LogSoftmax
    shape = call.shape(0)
    if call.opset >= ONE_AXIS_OPSET:
        return call.emit(make(call.axis(call.int_attribute("axis", -1), len(shape))), call.node(0))
    axis = call.axis(call.int_attribute("axis", 1), len(shape))
    if math.prod(shape[axis + 1 :]) == 1:
        return call.emit(make(axis), call.node(0))
    rows = call.emit(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), call.node(0))
    return call.emit(Reshape(shape), call.emit(make(1), rows))
