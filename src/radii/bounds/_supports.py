"""The least value of linear functions over regions of inputs, and where it is attained.

`Supports` are a batch of regions, with several rows for each. A `Support` is one region with many
rows, seen from its centre: an input is `centre + scale * step`, and it works on steps, so that in a
box every step lies in [-1, 1] and needs no arithmetic of its own. Every value is a valid lower
bound; the inputs that attain it drive the optimisation of multipliers and are candidates for
counterexamples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from radii.bounds._regions import box_of, centre_of, least_by_budget, least_by_length
from radii.networks import Interval, next_above
from radii.problem import Ball, Box, Norm

BATCH_BISECTIONS, BALL_BISECTIONS = 12, 24
"""Halvings of the multiplier of an L2 ball: in batches, whose bounds are intersected with others,
and in proofs. Any multiplier is sound, and what is lost is its error squared."""


@dataclass(frozen=True, slots=True, eq=False)
class RowMinima:
    """For each row a lower bound, the absolute values it adds up, and a point where it is low.

    (regions, rows), and (regions, rows, inputs) for the points.
    """

    values: Tensor
    size: Tensor
    points: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Supports:
    """A batch of regions of flattened inputs: boxes, or balls of one norm within boxes.

    `box` has one row for each region; `centre` and `eps` are those of the balls, None where there
    are none.
    """

    box: Interval
    norm: Norm = Norm.LINF
    centre: Tensor | None = None
    eps: Tensor | None = None

    @classmethod
    def of(
        cls,
        regions: Sequence[Ball | Box],
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> Supports:
        """The regions in another type, rounded outward. Balls in L1 or L2 must share the norm."""
        sides = [box_of(region) for region in regions]
        low, high = (np.stack([pair[side] for pair in sides]) for side in (0, 1))
        if not np.all(low <= high):
            raise ValueError("a region is empty: a ball that lies outside its domain")
        box = Interval.around(low, high, dtype, device)
        norms = {r.norm if isinstance(r, Ball) else Norm.LINF for r in regions}
        if norms == {Norm.LINF}:
            return cls(box)
        if len(norms) > 1:
            raise ValueError(f"a batch of regions needs one norm, not {sorted(norms)}")
        centre = torch.tensor(np.stack([centre_of(region) for region in regions]))
        eps = torch.tensor([r.eps for r in regions if isinstance(r, Ball)], dtype=torch.float64)
        return cls(box, norms.pop(), centre.to(device, dtype), next_above(eps.to(device, dtype)))

    def __len__(self) -> int:
        return len(self.box.low)

    def is_same(self, other: Supports) -> bool:
        """The very same regions, in the same type."""
        if self.norm is not other.norm or (self.centre is None) != (other.centre is None):
            return False
        return all(map(torch.equal, self._tensors, other._tensors))

    @property
    def _tensors(self) -> list[Tensor]:
        held = (self.box.low, self.box.high, self.centre, self.eps)
        return [each for each in held if each is not None]

    def outward(self, dtype: torch.dtype) -> Supports:
        """The same in another type. Centres of balls are rounded, which counts with what sums over
        them round: a share of the absolute values that are added up."""
        box = self.box.outward(dtype)
        if self.centre is None or self.eps is None:
            return Supports(box)
        eps = next_above(self.eps.to(dtype))
        return replace(self, box=box, centre=self.centre.to(dtype), eps=eps)

    def taken(self, index: Tensor) -> Supports:
        """Some of the regions."""
        box = Interval(self.box.low[index], self.box.high[index])
        if self.centre is None or self.eps is None:
            return Supports(box)
        return replace(self, box=box, centre=self.centre[index], eps=self.eps[index])

    def least(self, rows: Tensor) -> RowMinima:
        """The least value of each row of coefficients (regions, rows, inputs) over its region."""
        over_box = self._over_box(rows)
        if self.centre is None or self.eps is None:
            return over_box
        centre = self.centre[:, None]
        down = (self.box.low[:, None] - centre).clamp_max(0).expand_as(rows)
        up = (self.box.high[:, None] - centre).clamp_min(0).expand_as(rows)
        eps = self.eps[:, None, None]
        if self.norm is Norm.L1:
            values, size, steps = least_by_budget(rows, down, up, eps)
        else:
            values, size, steps = least_by_length(rows, down, up, eps, BATCH_BISECTIONS)
        middle = (rows * centre).sum(2)
        size = size + (rows * centre).abs().sum(2)
        values = torch.where(torch.isfinite(values), middle + values, -torch.inf)
        is_better = values > over_box.values
        return RowMinima(
            torch.where(is_better, values, over_box.values),
            torch.maximum(over_box.size, size),
            centre + steps,
        )

    def _over_box(self, rows: Tensor) -> RowMinima:
        centre, radius = self.box.centred()
        magnitude = rows.abs()
        spread = (magnitude @ radius[..., None]).squeeze(2)
        values = (rows @ centre[..., None]).squeeze(2) - spread
        size = (magnitude @ centre.abs()[..., None]).squeeze(2) + spread
        return RowMinima(values, size, centre[:, None] - torch.sign(rows) * radius[:, None])


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
