"""Sigmoid and tanh, and lines around them that are proven valid, rounding included.

tanh is odd, convex left of 0 and concave right of it, and sigmoid(x) = 1/2 + tanh(x / 2) / 2. So
one question is left: lines below tanh on [low, high].

- A tangent at t <= 0 is below tanh left of 0 (convex); right of 0 the difference is concave, so it
  is below wherever it is below at 0 and at `high`. The offset is lowered until that holds.
- A line that rises no faster than tanh does at `low` has its least distance to tanh at one of the
  two ends (increasing difference left of 0, concave right of it); so has any line where low >= 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from radii.networks.operators._base import (
    NumberType,
    Operator,
    OperatorKind,
    Shape,
    translates,
)
from radii.networks.operators._intervals import ELEMENTARY_ULPS, Interval
from radii.networks.operators._kernel_errors import KernelError, measured
from radii.networks.operators._lines import Lines, Relaxation, UnitLines
from radii.networks.operators._slopes import CURVE_SLACK, Float64, IntervalMatrix, Saturation

TANGENT_HALVINGS = 14
"""To find the tangent through an end; the offset is corrected, so this is precision only."""

SLACK_ULPS = 32
"""tanh is off by 8 units in the last place, its slope by 18; times 1 + the largest argument."""


@dataclass(frozen=True, slots=True)
class TanhCurve:
    """offset + scale * tanh(pace * z), all powers of two or 0, so that scaling is exact."""

    offset: float
    scale: float
    pace: float


class _ScaledTanh(Operator):
    """A tanh up to scaling, with values in a fixed range."""

    kind = OperatorKind.SMOOTH
    is_activation = True
    curve: TanhCurve
    kernel_error: KernelError
    least: float
    greatest = 1.0

    def enclosure(self, *inputs: Interval) -> Interval:
        (x,) = inputs
        sides = Interval(self(x.low), self(x.high)).widened(ELEMENTARY_ULPS)
        return sides.clamped(self.least, self.greatest)

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        error = self.kernel_error.units(number.unit) * number.unit * widening
        return torch.full_like(arguments.low, error)

    def relaxation(self, shape: Shape, arguments: Interval) -> TanhLines:
        return TanhLines.of(self.curve, arguments)

    def has_slopes(self, shape: Shape) -> bool:
        return True

    def chain_rule(
        self, rows: IntervalMatrix, shape: Shape, low: Float64, high: Float64
    ) -> IntervalMatrix:
        """The slope scale * pace * (1 - tanh^2) falls with the distance from 0."""
        low, high = low * self.curve.pace, high * self.curve.pace
        nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        farthest = np.maximum(np.abs(low), np.abs(high))
        least, most = (
            self.curve.scale * self.curve.pace * (1 - np.tanh(z) ** 2) for z in (farthest, nearest)
        )
        return rows.times(np.maximum(least - CURVE_SLACK, 0.0), most + CURVE_SLACK)


@translates("Sigmoid")
class Sigmoid(_ScaledTanh):
    """1 / (1 + exp(-x)) = 1/2 + tanh(x / 2) / 2."""

    curve = TanhCurve(0.5, 0.5, 0.5)
    kernel_error = measured("Sigmoid", 2.985, at=15.93479)
    least = 0.0

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    def saturation(self, shape: Shape) -> Saturation:
        return Saturation(torch.sigmoid, inverse=logit)


@translates("Tanh")
class Tanh(_ScaledTanh):
    """The hyperbolic tangent."""

    curve = TanhCurve(0.0, 1.0, 1.0)
    kernel_error = measured("Tanh", 5.459, at=-8.47554)
    least = -1.0

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x)

    def saturation(self, shape: Shape) -> Saturation:
        return Saturation(torch.tanh, inverse=_artanh)


def logit(probability: float) -> float:
    return float(np.log(probability / (1 - probability))) if 0 < probability < 1 else math.nan


def _artanh(value: float) -> float:
    return float(np.arctanh(value)) if -1 < value < 1 else math.nan


@dataclass(frozen=True, slots=True, eq=False)
class TanhLines(Relaxation):
    """Lines around a curve over intervals of its argument times its pace, by their tangents."""

    curve: TanhCurve
    low: Tensor
    high: Tensor
    below_end: Tensor
    above_end: Tensor

    @classmethod
    def of(cls, curve: TanhCurve, arguments: Interval) -> TanhLines:
        low, high = arguments.low * curve.pace, arguments.high * curve.pace
        return cls(curve, low, high, _last_tangent(low, high), _last_tangent(-high, -low))

    @property
    def start(self) -> Tensor:
        """The middle of a convex stretch; the tangent through the far end where it bends both ways.

        The choice runs from the near end (0) to the last tangent (1).
        """
        half = torch.full_like(self.low, 0.5)
        below, above = torch.where(self.high <= 0, half, 1.0), torch.where(self.low >= 0, half, 1.0)
        return torch.stack([below, above])[:, :, None]

    @property
    def is_loose(self) -> Tensor:
        return self.low < self.high

    def taken(self, index: Tensor) -> TanhLines:
        held = (self.low, self.high, self.below_end, self.above_end)
        return TanhLines(self.curve, *(each[index] for each in held))

    def lines(self, choices: Tensor | None = None) -> Lines:
        below, above = self.start if choices is None else choices
        low, high = self.low[:, None], self.high[:, None]
        lower_slope, lower_offset = _below_tanh(low, high, self.below_end[:, None], below)
        upper_slope, upper_offset = _below_tanh(-high, -low, self.above_end[:, None], above)
        curve = self.curve
        steep = curve.scale * curve.pace
        return UnitLines(
            steep * lower_slope,
            curve.offset + curve.scale * lower_offset,
            steep * upper_slope,
            curve.offset - curve.scale * upper_offset,
        )


def _slope(tanh: Tensor) -> Tensor:
    return (1 - tanh) * (1 + tanh)


def _last_tangent(low: Tensor, high: Tensor) -> Tensor:
    """Nearly the largest t <= 0 whose tangent is still below tanh at `high`; `high` if < 0.

    For high > 0 it lies between -high and 0, and depends on `high` alone.
    """
    end = high.clamp(max=0)
    crosses = ((low < 0) & (high > 0)).nonzero(as_tuple=True)
    far = high[crosses].clamp(max=1e4)
    left, right = -far, torch.zeros_like(far)
    goal = torch.tanh(far)
    for _ in range(TANGENT_HALVINGS):
        middle = (left + right) / 2
        value = torch.tanh(middle)
        is_below = value + _slope(value) * (far - middle) <= goal
        left = torch.where(is_below, middle, left)
        right = torch.where(is_below, right, middle)
    return end.index_put(crosses, left)


def _below_tanh(low: Tensor, high: Tensor, end: Tensor, choice: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and offset of a line below tanh on [low, high]; `end` is the last tangent point."""
    eps = torch.finfo(low.dtype).eps
    furthest = torch.maximum(low.abs(), high.abs())
    slack = SLACK_ULPS * eps * (1 + furthest)
    at_low, at_high = torch.tanh(low), torch.tanh(high)

    is_tangent = (low < 0) & (end > low)
    point = (low + choice * (end - low)).clamp(max=0)
    at_point = torch.tanh(point)
    slope = _slope(at_point)
    offset = at_point - slope * point
    offset = torch.where(high > 0, torch.minimum(offset, at_high - slope * high), offset)

    rise = (at_high - at_low) / torch.where(high > low, high - low, 1.0)
    safe = torch.where(low < 0, _slope(at_low) - SLACK_ULPS * eps, 1.0)
    chord = torch.minimum(rise, safe).clamp(0, 1)
    held = torch.minimum(at_low - chord * low, at_high - chord * high)

    slope, offset = torch.where(is_tangent, slope, chord), torch.where(is_tangent, offset, held)
    is_finite = torch.isfinite(furthest)
    flat = at_low - SLACK_ULPS * eps
    return torch.where(is_finite, slope, 0.0), torch.where(is_finite, offset - slack, flat)
