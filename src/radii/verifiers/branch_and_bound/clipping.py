"""Boxes against linear functions: where a violation may be, and where it cannot be.

A violation needs several functions of the input to be <= 0 at once. Linear functions below them
then cut the box: to a smaller one, or to nothing, which proves it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Cuts", "Weighed", "clipped", "hull", "weighed"]

ROUNDING = 2.0**-40
"""What float64 sums over a few inputs may be off, relative to the absolute values they add up."""

WEIGHINGS = 12
STEP = 0.5
"""Steps of ascent of the weights of a conjunction, and their size at first."""


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Functions slopes @ x + constants that are <= 0 at every violation in a box.

    `slopes` is (boxes, cuts, inputs), `constants` (boxes, cuts), in float64.
    """

    slopes: Tensor
    constants: Tensor

    def __post_init__(self) -> None:
        unknown = ~(torch.isfinite(self.slopes).all(2) & torch.isfinite(self.constants))
        if bool(unknown.any()):
            slopes = torch.where(unknown[..., None], 0.0, self.slopes)
            object.__setattr__(self, "slopes", slopes)
            object.__setattr__(self, "constants", torch.where(unknown, -1.0, self.constants))

    def chosen(self, cuts: Tensor) -> Cuts:
        return Cuts(self.slopes[:, cuts], self.constants[:, cuts])

    def taken(self, boxes: Tensor) -> Cuts:
        return Cuts(self.slopes[boxes], self.constants[boxes])

    def least(self, low: Tensor, high: Tensor) -> Tensor:
        """The least value of each cut over its box, less its rounding."""
        middle, reach = (low + high)[:, None] / 2, (high - low)[:, None] / 2
        magnitude = self.slopes.abs()
        size = (magnitude * (middle.abs() + reach)).sum(2) + self.constants.abs()
        values = (self.slopes * middle - magnitude * reach).sum(2) + self.constants
        return values - ROUNDING * size


def clipped(cuts: Cuts, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest box around what each cut alone leaves; empty (low > high) where nothing is left.

    slope_j x_j <= -constant - the least of the others, so x_j is bounded on one side.
    """
    at_low, at_high = cuts.slopes * low[:, None], cuts.slopes * high[:, None]
    smallest = torch.minimum(at_low, at_high)
    total = smallest.sum(2) + cuts.constants
    size = torch.maximum(at_low.abs(), at_high.abs()).sum(2) + cuts.constants.abs()
    room = smallest - (total - ROUNDING * size)[..., None]  # what slope_j x_j may be at most
    steep = cuts.slopes.abs() > 0
    limit = room / torch.where(steep, cuts.slopes, 1.0)
    limit = torch.where(torch.isfinite(limit), limit, torch.inf * torch.sign(cuts.slopes))
    slack = ROUNDING * limit.abs()
    tops = torch.where(steep & (cuts.slopes > 0), limit + slack, torch.inf).amin(1)
    bottoms = torch.where(steep & (cuts.slopes < 0), limit - slack, -torch.inf).amax(1)
    # A cut without slope leaves all or nothing.
    is_empty = (total - ROUNDING * size > 0).any(1)[:, None]
    low = torch.where(is_empty, torch.inf, torch.maximum(low, bottoms))
    return low, torch.minimum(high, tops)


def hull(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The smallest box around several, of which some may be empty; empty if all are."""
    lows, highs = (torch.stack(sides) for sides in zip(*parts, strict=True))
    is_empty = (lows > highs).any(2, keepdim=True)
    low = torch.where(is_empty, torch.inf, lows).amin(0)
    return low, torch.where(is_empty, -torch.inf, highs).amax(0)


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """The best mixture of cuts found: its least value in the box (> 0: no violation), and where."""

    values: Tensor
    points: Tensor
    slopes: Tensor

    def taken(self, boxes: Tensor) -> Weighed:
        return Weighed(self.values[boxes], self.points[boxes], self.slopes[boxes])


def weighed(cuts: Cuts, low: Tensor, high: Tensor) -> Weighed:
    """Weights >= 0 of all cuts that make the least value of their mixture large, by ascent."""
    single = cuts.least(low, high)
    best, place = single.max(1)
    weights = torch.zeros_like(single).scatter(1, place[:, None], 1.0)
    mixture = _mixed(cuts, weights, low, high)
    if single.shape[1] == 1:
        return Weighed(best, mixture.points, mixture.slopes)
    found = Weighed(best, mixture.points, mixture.slopes)
    weights = torch.full_like(single, 1 / single.shape[1])
    scale = single.abs().amax(1, keepdim=True).clamp_min(1e-12)
    for count in range(WEIGHINGS):
        mixture = _mixed(cuts, weights, low, high)
        wins = mixture.values > found.values
        found = Weighed(
            torch.where(wins, mixture.values, found.values),
            torch.where(wins[:, None], mixture.points, found.points),
            torch.where(wins[:, None], mixture.slopes, found.slopes),
        )
        gains = (cuts.slopes * mixture.points[:, None]).sum(2) + cuts.constants
        weights = weights * torch.exp((STEP * 0.85**count * 4) * (gains / scale).clamp(-5, 5))
        weights = weights / weights.sum(1, keepdim=True)
    return found


def _mixed(cuts: Cuts, weights: Tensor, low: Tensor, high: Tensor) -> Weighed:
    slopes = (weights[..., None] * cuts.slopes).sum(1, keepdim=True)
    constants = (weights * cuts.constants).sum(1, keepdim=True)
    sizes = (weights[..., None] * cuts.slopes.abs()).sum(1) * torch.maximum(low.abs(), high.abs())
    slack = ROUNDING * (sizes.sum(1) + (weights * cuts.constants.abs()).sum(1))
    values = Cuts(slopes, constants).least(low, high).squeeze(1) - slack
    slopes = slopes.squeeze(1)
    return Weighed(values, torch.where(slopes > 0, low, high), slopes)
