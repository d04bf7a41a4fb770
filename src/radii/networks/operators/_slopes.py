"""What is said of an operator's slopes: to bound Jacobians, and to attack where they vanish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

Float64 = npt.NDArray[np.float64]

CURVE_SLACK = 2.0**-40
"""What the rounding of a curve's slope may be: thousands of units in the last place."""


@dataclass(frozen=True, slots=True, eq=False)
class IntervalMatrix:
    """A matrix, each entry within `radius` of `centre`: rows are outputs, columns are values."""

    centre: Float64
    radius: Float64

    def times(self, low: Float64, high: Float64) -> IntervalMatrix:
        """Each column times a factor between low and high."""
        middle, half = low / 2 + high / 2, (high - low) / 2
        radius = self.radius * (np.abs(middle) + half) + np.abs(self.centre) * half
        return IntervalMatrix(self.centre * middle, radius)

    def gathered(self, sources: npt.NDArray[np.int64], count: int) -> IntervalMatrix:
        """Columns added up by the argument, of `count`, that each of them reads."""
        if len(sources) == count and np.array_equal(sources, np.arange(count)):
            return self
        parts = []
        for held in (self.centre, self.radius):
            total = np.zeros((len(held), count))
            np.add.at(total.T, sources, held.T)
            parts.append(total)
        return IntervalMatrix(parts[0], parts[1])


@dataclass(frozen=True, slots=True, eq=False)
class Saturation:
    """How an operator at the end of a network flattens the outputs, and what to follow instead.

    `function` maps its arguments, flattened behind the batch, to its values. It never decreases,
    and keeps the order of entries. `limits` are those of a function that is its argument in
    between; for others `inverse` gives the argument of a value, or NaN where there is none. Of a
    softmax (`is_joint`) that is the log-odds of the argument among all.
    """

    function: Callable[[Tensor], Tensor]
    limits: tuple[float, float] | None = None
    inverse: Callable[[float], float] | None = None
    is_joint: bool = False
