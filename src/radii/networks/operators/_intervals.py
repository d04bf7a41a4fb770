"""Intervals of values, and the rounding of the arithmetic that computes them.

A sum of n products computed in any order is off by at most about n * u times the same sum of
absolute values, where u is the unit roundoff. Every enclosure is widened by that, so that the value
in real arithmetic is never outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

BOUND_EXTRA_TERMS = 8
"""Roundings beside the sum itself: centre, radius, bias, and the widening of the result."""

ELEMENTARY_ULPS = 8
"""exp, tanh and their like are accurate to a few units in the last place, vectorised or not."""


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """All values between `low` and `high`, entry by entry; a side may be infinite."""

    low: Tensor
    high: Tensor

    @classmethod
    def around(
        cls,
        low: npt.NDArray[np.float64],
        high: npt.NDArray[np.float64],
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> Interval:
        """A box of float64 arrays in another type, rounded outward where that cannot hold it."""
        held = cls(torch.tensor(low), torch.tensor(high)).outward(dtype)
        return cls(held.low.to(device), held.high.to(device))

    def outward(self, dtype: torch.dtype) -> Interval:
        """The same in another type, rounded outward where that cannot hold it."""
        low, high = self.low.to(dtype), self.high.to(dtype)
        low = torch.where(low.to(self.low.dtype) > self.low, next_below(low), low)
        high = torch.where(high.to(self.high.dtype) < self.high, next_above(high), high)
        return Interval(low, high)

    @property
    def magnitude(self) -> Tensor:
        """The largest absolute value in each interval."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def centred(self) -> tuple[Tensor, Tensor]:
        """A centre and a radius whose ball holds the interval in real arithmetic."""
        centre = self.low / 2 + self.high / 2
        radius = next_above(torch.maximum(self.high - centre, centre - self.low))
        return centre, radius

    def intersected(self, other: Interval) -> Interval:
        """The common part. Both hold the true value, so it is never empty."""
        low = torch.maximum(self.low, other.low.reshape(self.low.shape))
        high = torch.minimum(self.high, other.high.reshape(self.high.shape))
        return Interval(low, high)

    def widened(self, ulps: int) -> Interval:
        """Both sides moved outward by `ulps` units in the last place (relative), and by a
        subnormal number."""
        spread, tiny = torch.finfo(self.low.dtype).eps * ulps, torch.finfo(self.low.dtype).tiny
        return Interval(
            self.low - self.low.abs() * spread - tiny, self.high + self.high.abs() * spread + tiny
        )

    def clamped(self, least: float, greatest: float) -> Interval:
        """The same for values that are known to lie between `least` and `greatest`."""
        return Interval(self.low.clamp(min=least), self.high.clamp(max=greatest))

    def without_nan(self) -> Interval:
        """Infinite inputs may leave a NaN: nothing is known there."""
        low = torch.where(torch.isnan(self.low), -torch.inf, self.low)
        return Interval(low, torch.where(torch.isnan(self.high), torch.inf, self.high))


def sum_slack(magnitude: Tensor, terms: int) -> Tensor:
    """How far a sum of `terms` products may be off, given the sum of their absolute values."""
    unit = torch.finfo(magnitude.dtype).eps / 2
    tiny = torch.finfo(magnitude.dtype).tiny
    return magnitude * (2 * unit * (terms + BOUND_EXTRA_TERMS)) + tiny


def next_above(x: Tensor) -> Tensor:
    """The next larger number."""
    return torch.nextafter(x, torch.full_like(x, torch.inf))


def next_below(x: Tensor) -> Tensor:
    """The next smaller number."""
    return torch.nextafter(x, torch.full_like(x, -torch.inf))
