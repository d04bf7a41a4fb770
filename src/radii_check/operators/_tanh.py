"""Tanh, and the logistic function, which is a tanh of half the argument."""

from __future__ import annotations

import numpy as np

from radii_check._builder import Reader
from radii_check._curves import FEW_UNITS, SMALLEST_SLOPE, Curve, CurveLines, kernel_units
from radii_check._format import Array
from radii_check._numbers import Numbers

TANGENT_HALVINGS = 14
"""Of the interval in which the point of tangency lies."""


class Tanh(Curve):
    """middle + half tanh(half z): tanh itself, with half = 1 and middle = 0; or the logistic
    function, with half = middle = 1/2."""

    half, middle = 1.0, 0.0
    kernel_error = 5.5
    """Of ONNX Runtime, measured over all numbers of float32, in units of 2^-24."""

    def values(self, z: Array, num: Numbers) -> Array:
        return np.asarray(self.middle + self.half * np.tanh(self.half * z))

    def rounded_units(self, is_single: bool) -> float:
        return kernel_units(self.kernel_error, is_single)

    def lines(self, low: Array, high: Array, num: Numbers) -> CurveLines:
        """With a line k w + d below tanh(w) at w = half z, the line below the curve is
        half^2 k z + middle + half d. A line above tanh is minus one below tanh(-w)."""
        half, middle = self.half, self.middle
        left, right = half * num.floor(low), -half * num.floor(-high)
        slope_below, offset_below = _line_below_tanh(left, right, num)
        slope_above, negated_offset = _line_below_tanh(-right, -left, num)
        rounding = FEW_UNITS * num.unit
        least, most = np.tanh(num.array(left)) - rounding, np.tanh(num.array(right)) + rounding
        value_low = num.minimum(middle + half * least, 1.0)
        value_high = num.minimum(middle + half * most, 1.0)
        return CurveLines(
            half * half * slope_below,
            half * half * slope_above,
            middle + half * offset_below,
            middle - half * negated_offset,
            num.maximum(value_low, 2 * middle - 1.0),
            value_high,
        )


class Sigmoid(Tanh):
    half, middle = 0.5, 0.5
    kernel_error = 3.0


def _line_below_tanh(low: Array, high: Array, num: Numbers) -> tuple[Array, Array]:
    """Slope and offset of a line below tanh between these.

    The offset for a slope k is the least value of tanh(z) - k z, which is at an end or where the
    derivative 1 - tanh(z)^2 is k: at z = +-log((1 + s)^2 / k) / 2 with s = sqrt(1 - k). Where that
    point is off by some units, the value changes by their square, since the derivative is 0 there.
    """
    slope = num.array(np.clip(_slope_below_tanh(low, high), SMALLEST_SLOPE, 1.0))
    turn = np.log((1 + np.sqrt(1 - slope)) ** 2 / slope) / 2
    points = [num.minimum(num.maximum(z, low), high) for z in (low, high, turn, -turn)]
    least = np.tanh(points[0]) - slope * points[0]
    for point in points[1:]:
        least = num.minimum(least, np.tanh(point) - slope * point)
    farthest = num.maximum(abs(points[0]), abs(points[1]))
    return slope, least - FEW_UNITS * num.unit * (1 + farthest)


def _slope_below_tanh(low: Array, high: Array) -> Array:
    """A good slope, in plain floating point. Where tanh is concave it is the chord's; where it is
    convex, that of the tangent in the middle; else that of the tangent through the curve's point at
    the upper end, or the chord's if that point of tangency lies below the interval."""
    far = np.maximum(high, 0.0)
    left, right = -far, 0.0 * far
    for _ in range(TANGENT_HALVINGS):  # the tangent at `left` that goes through the curve at `far`
        middle = (left + right) / 2
        value = np.tanh(middle)
        is_below = value + (1 - value**2) * (far - middle) <= np.tanh(far)
        left, right = np.where(is_below, middle, left), np.where(is_below, right, middle)
    point = np.where(high > 0, left, (low + high) / 2)
    chord = (np.tanh(high) - np.tanh(low)) / np.where(high > low, high - low, 1.0)
    chord = np.minimum(chord, np.where(low < 0, 1 - np.tanh(low) ** 2, 1.0))
    return np.where((low < 0) & (point > low), 1 - np.tanh(point) ** 2, chord)


READERS: dict[str, Reader] = {
    "Sigmoid": lambda builder, call: builder.unit("Sigmoid", call.first, curve=Sigmoid()),
    "Tanh": lambda builder, call: builder.unit("Tanh", call.first, curve=Tanh()),
}
