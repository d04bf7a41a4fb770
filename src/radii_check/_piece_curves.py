"""Functions of one number by the pieces on which they bend one way.

On a piece where f is convex, every tangent of g(z) = f(z) - k z lies below it: between a and b g is
at least g(t) - max(0, g'(t)) (t - a) - max(0, -g'(t)) (b - t) for any t of the piece. So the point
t where g is least is searched by halving, and nothing depends on how well it is found. Where f is
concave on a piece, g is least at one of its ends.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from radii_check._curves import FEW_UNITS, Curve, CurveLines
from radii_check._format import Array
from radii_check._numbers import Numbers

HALVINGS = 40
SAMPLES = 17
"""Of the function over an interval, to choose slopes by."""

ABSOLUTE, BY_ARGUMENT, OF_VALUE, BY_VALUE = "absolute", "by argument", "of value", "by value"
"""What an error is relative to: 1, max(1, |z|), |f|, max(1, |f|)."""


class PieceCurve(Curve):
    """height * base(pace * z).

    pieces    (end, bend): the base is convex (1), concave (-1) or straight (0) up to there
    extrema   points at which the base may have an extreme value
    scale     what the rounding of its values is relative to, beside their own size
    """

    pieces: Sequence[tuple[float, int]]
    extrema: Sequence[float] = ()
    scale = 1.0
    measure = ABSOLUTE

    def __init__(self, pace: float = 1.0, height: float = 1.0) -> None:
        self.pace, self.height = pace, height

    @abstractmethod
    def base(self, z: Array, num: Numbers) -> Array:
        """The function where pace and height are 1."""

    @abstractmethod
    def base_slope(self, z: Array, num: Numbers) -> Array:
        """Its derivative on pieces that bend, at their ends that of their own side."""

    def values(self, z: Array, num: Numbers) -> Array:
        return np.asarray(self.height * self.base(self.pace * z, num))

    def slope_at(self, z: Array, num: Numbers) -> Array:
        return np.asarray(self.height * self.pace * self.base_slope(self.pace * z, num))

    def error(
        self, reached: Array | float, size: Array, unit: Any, smallest: Any, is_single: bool
    ) -> Array:
        match self.measure:
            case "by argument":
                relative = self.height * np.maximum(1.0, self.pace * np.asarray(reached, float))
            case "of value":
                relative = size
            case "by value":
                relative = np.maximum(self.height, np.asarray(size, float))
            case _:
                relative = self.height + 0.0 * size
        below_normal = smallest * max(1.0, self.height)
        return np.asarray(relative * (self.rounded_units(is_single) * unit) + below_normal)

    def stretches(self) -> Iterator[tuple[float, float, int]]:
        """Each piece with its begin and end."""
        begin = -math.inf
        for end, bend in self.pieces:
            yield begin, end / self.pace, bend
            begin = end / self.pace

    def lines(self, low: Array, high: Array, num: Numbers) -> CurveLines:
        left, right = num.floor(low), -num.floor(-high)
        below, above = (self.slope_of_line(left, right, sign) for sign in (1.0, -1.0))
        offset_below = self.least(left, right, below, 1.0, num)
        offset_above = -self.least(left, right, above, -1.0, num)
        inside = [np.clip(z / self.pace, left, right) for z in self.extrema]
        values = [self.values(num.array(z), num) for z in (left, right, *inside)]
        least, most = values[0], values[0]
        for value in values[1:]:
            least, most = num.minimum(least, value), num.maximum(most, value)
        rounding = FEW_UNITS * num.unit
        scale = self.scale * self.height
        return CurveLines(
            num.array(below),
            num.array(above),
            offset_below,
            offset_above,
            least - rounding * (scale + abs(least)),
            most + rounding * (scale + abs(most)),
        )

    def least(self, left: Array, right: Array, slope: Array, sign: float, num: Numbers) -> Array:
        """A lower bound of sign (f(z) - slope z) over each interval."""
        points, lost = [left, right], num.array(0.0 * left)
        for begin, end, bend in self.stretches():
            if math.isfinite(end):
                points.append(np.clip(end, left, right))
            if bend * sign > 0:
                first, last = np.maximum(left, begin), np.minimum(right, end)
                last = np.maximum(first, last)
                point = self.turning_point(first, last, slope, sign)
                meets = left < np.minimum(right, end)
                points.append(np.clip(np.where(meets, point, left), left, right))
                own = self.lost(first, last, point, slope, sign, num)
                lost = num.maximum(lost, own * meets)
        k = num.array(slope)
        least, size = self.gap(num.array(points[0]), k, sign, num)
        for each in points[1:]:
            gap, total = self.gap(num.array(each), k, sign, num)
            least, size = num.minimum(least, gap), num.maximum(size, total)
        rounding = FEW_UNITS * num.unit * (self.scale * self.height + size)
        return np.asarray(least - rounding - lost)

    def gap(self, z: Array, slope: Array, sign: float, num: Numbers) -> tuple[Array, Array]:
        """sign (f(z) - slope z), and the size of what that adds up."""
        value, product = self.values(z, num), slope * z
        return np.asarray(sign * (value - product)), np.asarray(abs(value) + abs(product))

    def turning_point(self, first: Array, last: Array, slope: Array, sign: float) -> Array:
        """About where sign (f' - slope), which never decreases there, passes through 0."""
        num = Numbers()
        low, high = first, last
        for _ in range(HALVINGS):
            middle = low / 2 + high / 2
            is_rising = sign * (self.slope_at(middle, num) - slope) > 0
            low, high = np.where(is_rising, low, middle), np.where(is_rising, middle, high)
        return np.asarray(low / 2 + high / 2)

    def lost(
        self, first: Array, last: Array, point: Array, slope: Array, sign: float, num: Numbers
    ) -> Array:
        """What the tangent at the point falls below it between `first` and `last`."""
        k = num.array(slope)
        own = self.slope_at(num.array(point), num)
        rise = sign * (own - k)
        off = FEW_UNITS * num.unit * (self.scale * self.height * self.pace + abs(own) + abs(k))
        before, behind = num.array(point - first), num.array(last - point)
        falls = num.maximum(rise + off, 0.0) * before + num.maximum(off - rise, 0.0) * behind
        return np.asarray(falls * (1 + FEW_UNITS * num.unit))

    def slope_of_line(self, low: Array, high: Array, sign: float) -> Array:
        """The slope at the middle of the hull of samples of the function, in plain floats."""
        num, middle = Numbers(), SAMPLES // 2
        width = high - low
        values = [
            sign * self.values(low + width * (place / (SAMPLES - 1)), num)
            for place in range(SAMPLES)
        ]
        best, rise = values[middle], sign * self.slope_at(low, num) * width / (SAMPLES - 1)
        for i in range(middle + 1):
            for j in range(max(middle, i + 1), SAMPLES):
                step = (values[j] - values[i]) / (j - i)
                chord = values[i] + step * (middle - i)
                is_lower = chord <= best
                best, rise = np.where(is_lower, chord, best), np.where(is_lower, step, rise)
        slope = sign * rise * (SAMPLES - 1) / np.where(width > 0, width, 1.0)
        return np.asarray(np.where((width > 0) & np.isfinite(slope), slope, 0.0))
