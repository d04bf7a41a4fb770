"""An interval for each entry of a batch of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.bounds._rounding import next_above, next_below


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
        exact_low, exact_high = torch.tensor(low), torch.tensor(high)
        near_low, near_high = exact_low.to(dtype), exact_high.to(dtype)
        outer_low = torch.where(near_low.double() > exact_low, next_below(near_low), near_low)
        outer_high = torch.where(near_high.double() < exact_high, next_above(near_high), near_high)
        return cls(outer_low.to(device), outer_high.to(device))

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
