"""The least value of linear functions over one region of inputs, and where it is attained.

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

from radii.bounds._regions import box_of, least_by_budget, least_by_length
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
        # min over |d| <= 1 of a d = -|a|_1, at d = -sign(a): the dual norm.
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
    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        values, _, steps = least_by_budget(rows, self.down, self.up, self.eps)
        return values, steps


class _L2Support(_BallSupport):
    def least(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        if self.eps <= 0:
            return rows.new_zeros(len(rows)), torch.zeros_like(rows)
        found = least_by_length(rows, self.down, self.up, self.eps, BALL_BISECTIONS)
        return found[0], found[2]


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
