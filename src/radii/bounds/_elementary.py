"""How far ONNX Runtime's elementary functions are from the true ones.

The table is what `scripts/measure_elementary.py` prints: each float32 kernel on all 2^32 numbers.
Kernels of other processors differ in the last places, so that twice the measured error counts.
Kernels in float64 cannot be tried on all numbers: they are trusted to `DOUBLE_ULPS`.
"""

from __future__ import annotations

import math
from typing import TypeVar

from torch import Tensor

from radii.networks import Operator, Sigmoid, Tanh

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


def curve_error(operator: Operator, unit: float) -> float:
    """The largest absolute error of a Sigmoid or a Tanh in the type with this unit roundoff."""
    assert isinstance(operator, Sigmoid | Tanh)
    return _units(type(operator).__name__, unit) * unit


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
