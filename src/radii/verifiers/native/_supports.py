"""The least value of linear functions over a region of inputs, and where it is attained.

A region is seen from its centre: an input is `centre + scale * step`, and a support works on steps,
so that in a box every step lies in [-1, 1] and needs no arithmetic of its own. Every value is a
valid lower bound, and exact but for rounding; the steps that attain it drive the optimisation of
multipliers and are candidates for counterexamples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor

from radii.bounds import box_of, scale_of_small
from radii.problem import Ball, Box, Norm

BALL_BISECTIONS = 24
"""Halvings of the multiplier of an L2 ball; any multiplier is sound, so this is precision only."""


class Support(ABC):
    """A region of flattened inputs. Called with rows of coefficients on steps (R, inputs)."""

    def __init__(self, centre: Tensor, scale: Tensor, down: Tensor, up: Tensor) -> None:
        self.centre, self.scale, self.down, self.up = centre, scale, down, up

    @property
    def low(self) -> Tensor:
        return self.centre + self.scale * self.down

    @property
    def high(self) -> Tensor:
        return self.centre + self.scale * self.up

    @property
    def sizes(self) -> Tensor:
        """The absolute values that computing an input adds up, at most."""
        return self.centre.abs() + self.scale * self.step_sizes

    @property
    def step_sizes(self) -> Tensor:
        return torch.maximum(self.down.abs(), self.up.abs())

    def inputs(self, steps: Tensor) -> Tensor:
        return self.centre + self.scale * steps

    @abstractmethod
    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Each row's least value over the region, and steps (R, inputs) that attain it."""

    def to(self, dtype: torch.dtype, device: torch.device | str) -> Self:
        """The same region in another type; rounding is covered by the caller's slack."""
        parts = (self.centre, self.scale, self.down, self.up)
        return type(self)(*(part.to(device, dtype) for part in parts))


class _BoxSupport(Support):
    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return -rows.abs().sum(1), rows.sign().neg_()


class _BallSupport(Support):
    def __init__(
        self, centre: Tensor, scale: Tensor, down: Tensor, up: Tensor, eps: float = 0.0
    ) -> None:
        super().__init__(centre, scale, down, up)
        self.eps = eps

    def to(self, dtype: torch.dtype, device: torch.device | str) -> Self:
        moved = super().to(dtype, device)
        moved.eps = self.eps
        return moved


class _L1Support(_BallSupport):
    """The budget goes to the steepest inputs first, each as far as the domain lets it."""

    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        reach = torch.where(rows > 0, -self.down, self.up)
        order = rows.abs().argsort(dim=1, descending=True)
        sorted_reach = reach.gather(1, order)
        spent = sorted_reach.cumsum(1) - sorted_reach
        lengths = torch.minimum((self.eps - spent).clamp_min(0), sorted_reach)
        taken = torch.zeros_like(rows).scatter(1, order, lengths)
        steps = -torch.sign(rows) * taken
        return (rows * steps).sum(1), steps


class _L2Support(_BallSupport):
    """By a multiplier for the length: each input then has a parabola of its own."""

    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        scale = scale_of_small(rows)
        rows = rows / scale
        weight = self._multiplier(rows)
        steps = self._steps_at(rows, weight)
        budget = weight.squeeze(1) * self.eps * self.eps
        values = ((rows + weight * steps) * steps).sum(1) - budget
        return values * scale.squeeze(1), steps

    def _steps_at(self, rows: Tensor, weight: Tensor) -> Tensor:
        free = -rows / (2 * weight).clamp_min(torch.finfo(rows.dtype).tiny)
        return torch.minimum(torch.maximum(free, self.down), self.up)

    def _multiplier(self, rows: Tensor) -> Tensor:
        if self.eps <= 0:
            return rows.abs().sum(1, keepdim=True) * 1e6 + 1
        high: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True) / (2 * self.eps)
        low = torch.zeros_like(high)
        for _ in range(BALL_BISECTIONS):
            middle = (low + high) / 2
            steps = self._steps_at(rows, middle)
            is_long = torch.linalg.vector_norm(steps, dim=1, keepdim=True) > self.eps
            low, high = torch.where(is_long, middle, low), torch.where(is_long, high, middle)
        return high


def support_of(region: Ball | Box) -> Support:
    """The region in float64 on the CPU."""
    low, high = (torch.from_numpy(side) for side in box_of(region))
    if isinstance(region, Box) or region.norm is Norm.LINF:
        one = torch.ones_like(low)
        return _BoxSupport((low + high) / 2, (high - low) / 2, -one, one)
    centre = torch.from_numpy(region.center.ravel().copy()).double()
    down, up = (low - centre).clamp_max(0), (high - centre).clamp_min(0)
    kind = _L1Support if region.norm is Norm.L1 else _L2Support
    return kind(centre, torch.ones_like(centre), down, up, region.eps)
