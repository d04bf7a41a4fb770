"""The lines around a unit with one bend: the one place that knows how ReLU is relaxed and split.

Where its argument z may lie on both sides of 0, low < 0 < high, the graph of ReLU lies in a
triangle (Ehlers 2017): above the two lines v >= 0 and v >= z, and below its chord,

    v <= high / (high - low) * (z - low).

Every line v >= alpha z with alpha in [0, 1] is below it as well, and alpha is free: CROWN takes the
steeper end where the triangle is smaller for it, alpha = 1 if high >= -low (Zhang et al. 2018),
alpha-CROWN optimises it (Xu et al. 2021). Everywhere else v is exactly 0 or z. Branching fixes one
side of the bend: z >= 0, where v = z, or z <= 0, where v = 0.

Functions of this file take z already shifted to its bend, as batches of any shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def may_bend(low: Tensor, high: Tensor) -> Tensor:
    """Whether a unit may be on either side of its bend: those alone are relaxed and split."""
    return (low < 0) & (high > 0)


def prefers_right(low: Tensor, high: Tensor) -> Tensor:
    """CROWN's choice of slope, 1 for that of the right-hand piece and 0 for the left-hand one, in
    the type of the bounds: the triangle that is left then has the smaller area."""
    return (high >= -low).to(low)


def chord(
    low: Tensor, at_low: Tensor | float, rise: Tensor, width: Tensor
) -> tuple[Tensor, Tensor]:
    """Slope and offset of the line through (low, at_low) that rises by `rise` along `width`."""
    slope = rise / width
    return slope, at_low - slope * low


@dataclass(frozen=True, slots=True, eq=False)
class ReluLines:
    """The lines of ReLU units over intervals of their arguments; all tensors are of one shape.

    Below: alpha z, with alpha free where `is_open` is 1, and `fixed_slope` where it is 0. Above:
    `upper_slope` z + `upper_offset`. `is_open` is 0 or 1 in the type of the bounds: products are
    far faster than selections.
    """

    is_open: Tensor
    fixed_slope: Tensor
    upper_slope: Tensor
    upper_offset: Tensor

    @classmethod
    def of(cls, low: Tensor, high: Tensor) -> ReluLines:
        is_active = low >= 0
        is_bent = ~is_active & (high > 0)
        fixed = is_active.to(low.dtype)
        slope, offset = chord(low, 0.0, high, high - low)
        return cls(
            is_bent.to(low.dtype),
            fixed,
            torch.where(is_bent, slope, fixed),
            torch.where(is_bent, offset, 0.0),
        )

    def lower_slope(self, alpha: Tensor) -> Tensor:
        """The slopes of the lines below for these choices of the free ones."""
        return torch.addcmul(self.fixed_slope, self.is_open, alpha)

    def values(self, z: Tensor, slopes: Tensor, on_values: Tensor, units: slice) -> Tensor:
        """What these units give on the lines that the coefficients on their values choose."""
        below = slopes[:, units] * z
        above = torch.addcmul(self.upper_offset[:, units], self.upper_slope[:, units], z)
        return torch.lerp(above, below, on_values.sign().clamp_min_(0))

    def backward(self, on_values: Tensor, slopes: Tensor, units: slice) -> tuple[Tensor, Tensor]:
        """Coefficients on some units' values as ones on their arguments, and the constants, <= 0,
        that the lines above add for each unit: what the relaxation loses there at most."""
        above = on_values.clamp_max(0)
        on_arguments = torch.addcmul(
            above * self.upper_slope[:, units], on_values - above, slopes[:, units]
        )
        return on_arguments, above * self.upper_offset[:, units]
