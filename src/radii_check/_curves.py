"""Lines around tanh and the logistic function."""

from __future__ import annotations

from typing import Any

import numpy as np

from radii_check._format import Array
from radii_check._network import Numbers

HALVINGS, SMALLEST_SLOPE = 14, 2.0**-40


def curve_lines(kind: str, low: Array, high: Array, num: Numbers) -> tuple[Any, Array, Array]:
    """Lines around tanh, or sigmoid(z) = (1 + tanh(z / 2)) / 2: slopes below and above, offsets
    below and above; and the range of values."""
    half = 0.5 if kind == "Sigmoid" else 1.0
    left, right, middle = half * num.below(low), -half * num.below(-high), 1.0 - half
    below, least = _line_below_tanh(left, right, num)
    above, most = _line_below_tanh(-right, -left, num)  # tanh(-z) = -tanh(z)
    lines = half * half * below, half * half * above, middle + half * least, middle - half * most
    ends = np.tanh(num.array(left)) - 64 * num.unit, np.tanh(num.array(right)) + 64 * num.unit
    low, high = (num.minimum(middle + half * end, 1.0) for end in ends)
    return lines, num.maximum(low, 2 * middle - 1.0), high


def _line_below_tanh(low: Array, high: Array, num: Numbers) -> tuple[Array, Array]:
    """Slope and offset of a line below tanh between these.

    A line of any slope k is, if its offset is the least value of tanh(z) - k z, which is at an end
    or where the derivative 1 - tanh(z)^2 is k: at z = +-log((1 + s)^2 / k) / 2, s = sqrt(1 - k).
    Points that are off by some units change that value by their square.
    """
    far = np.maximum(high, 0.0)
    left, right = -far, 0.0 * far
    for _ in range(HALVINGS):  # the tangent that goes through the curve at the far end
        middle = (left + right) / 2
        value = np.tanh(middle)
        is_below = value + (1 - value**2) * (far - middle) <= np.tanh(far)
        left, right = np.where(is_below, middle, left), np.where(is_below, right, middle)
    point = np.where(high > 0, left, (low + high) / 2)
    chord = (np.tanh(high) - np.tanh(low)) / np.where(high > low, high - low, 1.0)
    chord = np.minimum(chord, np.where(low < 0, 1 - np.tanh(low) ** 2, 1.0))
    slope = np.where((low < 0) & (point > low), 1 - np.tanh(point) ** 2, chord)
    k = num.array(np.clip(slope, SMALLEST_SLOPE, 1.0))
    turn = np.log((1 + np.sqrt(1 - k)) ** 2 / k) / 2
    points = [num.minimum(num.maximum(z, low), high) for z in (low, high, turn, -turn)]
    least = np.tanh(points[0]) - k * points[0]
    for z in points[1:]:
        least = num.minimum(least, np.tanh(z) - k * z)
    return k, least - 64 * num.unit * (1 + num.maximum(abs(points[0]), abs(points[1])))
