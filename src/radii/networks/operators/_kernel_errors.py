"""How far ONNX Runtime's elementary functions are from the true ones.

An operator's file states what `scripts/measure_elementary.py` prints of it: each float32 kernel is
run on all 2^32 numbers. Kernels of other processors differ in the last places, so that twice the
measured error counts. Kernels in float64 cannot be tried on all numbers: they are trusted to
`DOUBLE_ULPS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

FLOAT32_ROUNDOFF = 2.0**-24
"""The unit roundoff of float32, in which errors are measured."""

KERNEL_FACTOR = 2.0
"""How many times the measured error counts."""

DOUBLE_ULPS = 32.0
"""Errors in float64, in units of its roundoff, of the same kinds."""


class ErrorMeasure(Enum):
    """What an error is relative to."""

    ABSOLUTE = "absolute"
    RESULT = "relative"
    """The result f, where that is a normal number."""
    ARGUMENT_OR_ONE = "by_argument"
    """max(1, |x|)."""
    RESULT_OR_ONE = "by_result"
    """max(1, |f|)."""


@dataclass(frozen=True, slots=True)
class KernelError:
    """The largest error of a kernel over all float32 values, which it has `at` this argument, in
    units of 2^-24 times what the `measure` says."""

    largest: float
    at: float
    measure: ErrorMeasure = ErrorMeasure.ABSOLUTE

    @property
    def stated(self) -> float:
        """The largest error, rounded up to halves."""
        return math.ceil(2 * self.largest) / 2

    def units(self, unit: float) -> float:
        """What counts in a number type of this unit roundoff, in units of it."""
        return KERNEL_FACTOR * self.stated if unit == FLOAT32_ROUNDOFF else DOUBLE_ULPS


MEASURED_ERRORS: dict[str, KernelError] = {}
"""The measured errors of all operators that state one, by their names in ONNX."""


def measured(
    operator: str, largest: float, at: float, measure: ErrorMeasure = ErrorMeasure.ABSOLUTE
) -> KernelError:
    """States the measured error of an ONNX operator."""
    MEASURED_ERRORS[operator] = KernelError(largest, at, measure)
    return MEASURED_ERRORS[operator]
