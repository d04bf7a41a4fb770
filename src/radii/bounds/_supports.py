"""The least value of linear functions over each region of a batch.

Boxes are exact but for rounding. Balls in L1 and L2, clipped to their domain, are bounded by a
multiplier for the length: every multiplier gives a valid bound, so its own rounding is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from radii.balls import Ball, Box, Norm
from radii.bounds._intervals import Interval
from radii.bounds._regions import box_of, centre_of
from radii.bounds._rounding import next_above

BISECTIONS = 12
"""Halvings of the multiplier of an L2 ball. Any is sound; what is lost is its error squared."""


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

    `box` has a row a region; `centre` and `eps` are those of the balls, None where there are none.
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

    def taken(self, index: Tensor) -> Supports:
        """Some of the regions."""
        box = Interval(self.box.low[index], self.box.high[index])
        if self.centre is None or self.eps is None:
            return Supports(box)
        return replace(self, box=box, centre=self.centre[index], eps=self.eps[index])

    def least(self, rows: Tensor) -> RowMinima:
        """The least value of each row of coefficients (regions, rows, inputs) over its region."""
        found = self._over_box(rows)
        if self.centre is None or self.eps is None:
            return found
        centre = self.centre[:, None]
        down = (self.box.low[:, None] - centre).clamp_max(0).expand_as(rows)
        up = (self.box.high[:, None] - centre).clamp_min(0).expand_as(rows)
        bound = _by_budget if self.norm is Norm.L1 else _by_length
        values, size, steps = bound(rows, down, up, self.eps[:, None, None])
        middle = (rows * centre).sum(2)
        size = size + (rows * centre).abs().sum(2)
        values = torch.where(torch.isfinite(values), middle + values, -torch.inf)
        is_better = values > found.values
        return RowMinima(
            torch.where(is_better, values, found.values),
            torch.maximum(found.size, size),
            centre + steps,
        )

    def _over_box(self, rows: Tensor) -> RowMinima:
        centre, radius = self.box.centred()
        magnitude = rows.abs()
        spread = (magnitude @ radius[..., None]).squeeze(2)
        values = (rows @ centre[..., None]).squeeze(2) - spread
        size = (magnitude @ centre.abs()[..., None]).squeeze(2) + spread
        return RowMinima(values, size, centre[:, None] - torch.sign(rows) * radius[:, None])


def _by_budget(
    rows: Tensor, down: Tensor, up: Tensor, eps: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """L1: the budget goes to the steepest inputs first; the last one's slope is the multiplier."""
    reach = torch.where(rows > 0, -down, up)
    gains, order = rows.abs().sort(dim=2, descending=True)
    sorted_reach = reach.gather(2, order)
    spent = sorted_reach.cumsum(2) - sorted_reach
    lengths = torch.minimum((eps - spent).clamp_min(0), sorted_reach)
    is_over = spent + sorted_reach >= eps
    last = is_over.to(torch.int8).argmax(2, keepdim=True)
    price = torch.where(is_over.any(2, keepdim=True), gains.gather(2, last), 0.0)
    terms = (rows.abs() - price).clamp_min(0) * reach
    total = terms.sum(2) + (price * eps).squeeze(2)
    steps = -torch.sign(rows) * torch.zeros_like(rows).scatter(2, order, lengths)
    return -total, total + (rows.abs() * reach).sum(2), steps


def _by_length(
    rows: Tensor, down: Tensor, up: Tensor, eps: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """L2: with a price on the squared length, each input has a parabola of its own."""

    def steps_at(price: Tensor) -> Tensor:
        free = -rows / (2 * price).clamp_min(torch.finfo(rows.dtype).tiny)
        return torch.minimum(torch.maximum(free, down), up)

    with torch.no_grad():
        high = torch.linalg.vector_norm(rows, dim=2, keepdim=True) / (2 * eps)
        low = torch.zeros_like(high)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            lengths = torch.linalg.vector_norm(steps_at(middle), dim=2, keepdim=True)
            low = torch.where(lengths > eps, middle, low)
            high = torch.where(lengths > eps, high, middle)
    steps = steps_at(high)
    linear, square = rows * steps, high * steps * steps
    budget = (high * eps * eps).squeeze(2)
    size = (linear.abs() + square).sum(2) + budget
    return (linear + square).sum(2) - budget, size, steps
