"""Lines below and above smooth functions of one number.

CROWN uses such lines for smooth units (Zhang et al., "Efficient Neural Network Robustness
Certification with General Activation Functions", 2018). Any slope gives a valid line if its offset
is the least value of the function minus the line. So slopes are chosen in plain floating point, and
only the offset is bounded. Each function stands in its family's file in `operators/`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from radii_check._format import Array
from radii_check._numbers import Numbers

HALVINGS = 24
"""Of the interval in which a slope lies."""
SMALLEST_SLOPE = 2.0**-40
FEW_UNITS = 64
"""Bounds the rounding of tanh, exp and log, with what is computed of them, in units of float64."""
KERNEL_ERROR_MARGIN = 2
"""Twice the error counts that was measured of a kernel over all numbers of float32."""
KERNEL_ERROR_DOUBLE = 32.0
"""Of kernels in float64, in units of 2^-53."""


def kernel_units(measured: float, is_single: bool) -> float:
    """How far a runtime's elementary function may be off, in units of the number type. `measured`
    is the error of ONNX Runtime's kernel in float32, in units of 2^-24."""
    return KERNEL_ERROR_MARGIN * measured if is_single else KERNEL_ERROR_DOUBLE


class CurveLines(NamedTuple):
    """slope_below z + offset_below <= curve(z) <= slope_above z + offset_above, and the range of
    the curve; all are (entries, regions)."""

    slope_below: Array
    slope_above: Array
    offset_below: Array
    offset_above: Array
    low: Array
    high: Array


class Curve(ABC):
    """A function f of one number."""

    @abstractmethod
    def values(self, z: Array, num: Numbers) -> Array:
        """f(z)."""

    @abstractmethod
    def rounded_units(self, is_single: bool) -> float:
        """How far a runtime's values may be off, in units of the number type."""

    def error(
        self, reached: Array | float, size: Array, unit: Any, smallest: Any, is_single: bool
    ) -> Array:
        """How far a runtime's values may be off, for arguments up to `reached` and values up to
        `size`, where the number type has this unit and this smallest normal number."""
        return np.asarray(self.rounded_units(is_single) * unit + 0.0 * size)

    @abstractmethod
    def lines(self, low: Array, high: Array, num: Numbers) -> CurveLines:
        """Lines for arguments from `low` to `high`."""


class BentCurve(Curve):
    """A function that never decreases, convex or concave between its bends.

    The least value of f(z) - k z is at an end of an interval, at a bend, or at a turning point,
    where the slope of f is k. `scale` is the largest size that its rounding is relative to, beside
    that of its values.
    """

    bends: Sequence[float] = (0.0,)
    scale = 1.0

    @abstractmethod
    def slopes(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The least and the greatest slope between, about."""

    @abstractmethod
    def turning_points(self, slope: Array, num: Numbers) -> Sequence[Array]:
        """All z at which f has this slope, which is above 0; any number where there is none."""

    def lines(self, low: Array, high: Array, num: Numbers) -> CurveLines:
        left, right = num.floor(low), -num.floor(-high)
        below, above = (self.slope_of_line(left, right, sign) for sign in (1.0, -1.0))
        offset_below = self.least(left, right, below, 1.0, num)
        offset_above = -self.least(left, right, above, -1.0, num)
        values = [self.values(num.array(end), num) for end in (left, right)]
        rounding = [FEW_UNITS * num.unit * (self.scale + abs(value)) for value in values]
        return CurveLines(
            num.array(below),
            num.array(above),
            offset_below,
            offset_above,
            values[0] - rounding[0],
            values[1] + rounding[1],
        )

    def points(self, low: Array, high: Array, slope: Array, num: Numbers) -> list[Array]:
        """All points of [low, high] at which f(z) - slope z may be least or greatest."""
        between = [*self.turning_points(slope, num), *self.bends]
        return [num.minimum(num.maximum(z, low), high) for z in (low, high, *between)]

    def least(self, low: Array, high: Array, slope: Array, sign: float, num: Numbers) -> Array:
        """A lower bound of sign (f(z) - slope z). Where a turning point is off by some units, the
        value changes by their square, since the derivative is 0 there."""
        slope = num.array(slope)
        points = self.points(low, high, slope, num)
        values = [self.values(z, num) for z in points]
        gaps = [sign * (value - slope * z) for value, z in zip(values, points, strict=True)]
        sizes = [abs(value) + abs(slope * z) for value, z in zip(values, points, strict=True)]
        least, size = gaps[0], sizes[0]
        for gap, each in zip(gaps[1:], sizes[1:], strict=True):
            least, size = num.minimum(least, gap), num.maximum(size, each)
        return np.asarray(least - FEW_UNITS * num.unit * (self.scale + size))

    def slope_of_line(self, low: Array, high: Array, sign: float) -> Array:
        """A good slope of a line below (sign 1) or above f, in plain floating point.

        The line that is closest to f in the middle of the interval touches f there, or on both
        sides of it. The larger the slope of a line below, the further right it touches f.
        """
        num = Numbers()
        flat, steep = self.slopes(low, high)
        first, last = (low, high) if sign > 0 else (high, low)  # with these slopes it touches here
        middle = low / 2 + high / 2
        for _ in range(HALVINGS):
            slope = np.maximum(flat / 2 + steep / 2, SMALLEST_SLOPE)
            points = np.stack(self.points(low, high, slope, num))
            gaps = sign * (self.values(points, num) - slope * points)
            touched = np.take_along_axis(points, gaps.argmin(0)[None], 0)[0]
            is_flat = sign * touched < sign * middle
            flat, steep = np.where(is_flat, slope, flat), np.where(is_flat, steep, slope)
            first, last = np.where(is_flat, touched, first), np.where(is_flat, last, touched)
        width = last - first
        rise = self.values(last, num) - self.values(first, num)
        chord = rise / np.where(width == 0, 1.0, width)
        slope = np.where(width == 0, flat / 2 + steep / 2, chord)
        return np.maximum(np.where(np.isfinite(slope), slope, 1.0), SMALLEST_SLOPE)
