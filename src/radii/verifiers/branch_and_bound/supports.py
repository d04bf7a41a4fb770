"""The least value of linear functions over a region of inputs, and where it is attained.

Every value is a valid lower bound, and exact but for rounding; the points where it is attained
drive the optimisation of multipliers and are candidates for counterexamples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from radii.balls import Ball, Box, Norm
from radii.bounds import box_of

__all__ = ["Support", "support_of"]

BISECTIONS = 24
"""Halvings of the multiplier of an L2 ball; any multiplier is sound, so this is precision only."""


class Support(ABC):
    """A region of flattened inputs. Called with rows of coefficients (R, inputs)."""

    def __init__(self, low: Tensor, high: Tensor, centre: Tensor) -> None:
        self.low, self.high, self.centre = low, high, centre

    @property
    def sizes(self) -> Tensor:
        """The largest absolute value of each input."""
        return torch.maximum(self.low.abs(), self.high.abs())

    @abstractmethod
    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """For each row its least value over the region and a point (R, inputs) that attains it."""

    @abstractmethod
    def to(self, dtype: torch.dtype, device: torch.device | str) -> Support:
        """The same region in another type; rounding is covered by the caller's slack."""


class _BoxSupport(Support):
    def __init__(self, low: Tensor, high: Tensor) -> None:
        super().__init__(low, high, (low + high) / 2)
        self.reach = (high - low) / 2

    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        point = self.centre - torch.sign(rows) * self.reach
        return rows @ self.centre - rows.abs() @ self.reach, point

    def to(self, dtype: torch.dtype, device: torch.device | str) -> _BoxSupport:
        return _BoxSupport(self.low.to(device, dtype), self.high.to(device, dtype))


class _BallSupport(Support):
    def __init__(self, low: Tensor, high: Tensor, centre: Tensor, eps: float) -> None:
        super().__init__(low, high, centre)
        self.eps = eps
        self.down, self.up = (low - centre).clamp_max(0), (high - centre).clamp_min(0)

    def to(self, dtype: torch.dtype, device: torch.device | str) -> Support:
        low, high, centre = (t.to(device, dtype) for t in (self.low, self.high, self.centre))
        return type(self)(low, high, centre, self.eps)

    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        steps = self.steps(rows)
        return rows @ self.centre + self.value(rows, steps), self.centre + steps

    @abstractmethod
    def steps(self, rows: Tensor) -> Tensor:
        """From the centre to a point with the least value."""

    def value(self, rows: Tensor, steps: Tensor) -> Tensor:
        return (rows * steps).sum(1)


class _L1Support(_BallSupport):
    """The budget goes to the steepest inputs first, each as far as the domain lets it."""

    def steps(self, rows: Tensor) -> Tensor:
        reach = torch.where(rows > 0, -self.down, self.up)
        order = rows.abs().argsort(dim=1, descending=True)
        sorted_reach = reach.gather(1, order)
        spent = sorted_reach.cumsum(1) - sorted_reach
        lengths = torch.minimum((self.eps - spent).clamp_min(0), sorted_reach)
        taken = torch.zeros_like(rows).scatter(1, order, lengths)
        return -torch.sign(rows) * taken


class _L2Support(_BallSupport):
    """By a multiplier for the length: each input then has a parabola of its own."""

    def steps(self, rows: Tensor) -> Tensor:
        return self._steps_at(rows, self._multiplier(rows))

    def value(self, rows: Tensor, steps: Tensor) -> Tensor:
        weight = self._multiplier(rows)
        return ((rows + weight * steps) * steps).sum(1) - weight.squeeze(1) * self.eps**2

    def _steps_at(self, rows: Tensor, weight: Tensor) -> Tensor:
        free = -rows / (2 * weight).clamp_min(torch.finfo(rows.dtype).tiny)
        return torch.minimum(torch.maximum(free, self.down), self.up)

    def _multiplier(self, rows: Tensor) -> Tensor:
        if self.eps <= 0:
            return rows.abs().sum(1, keepdim=True) * 1e6 + 1
        high: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True) / (2 * self.eps)
        low = torch.zeros_like(high)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            steps = self._steps_at(rows, middle)
            is_long = torch.linalg.vector_norm(steps, dim=1, keepdim=True) > self.eps
            low, high = torch.where(is_long, middle, low), torch.where(is_long, high, middle)
        return high


def support_of(region: Ball | Box) -> Support:
    """The region in float64 on the CPU."""
    low, high = (torch.from_numpy(side) for side in box_of(region))
    if isinstance(region, Box) or region.norm is Norm.LINF:
        return _BoxSupport(low, high)
    centre = torch.from_numpy(region.center.ravel().copy())
    kind = _L1Support if region.norm is Norm.L1 else _L2Support
    return kind(low, high, centre, region.eps)
