"""Square Attack within a given radius: windows of an image changed at random, kept where they help.

Written from Andriushchenko, Croce, Flammarion and Hein (ECCV 2020): the Linf and the L2 version,
with their schedule of window sizes. Only outputs are asked for. An input that is not an image is a
row of features, and its windows are runs of neighbours.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from radii.attacks._batches import Batch, Clock
from radii.problem import Norm, Query

FIRST_SHARE = 0.8
"""The part of an image that the first windows cover (p_init of AutoAttack)."""
HALVED_AT = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)
"""Of 10,000 evaluations, those after which that part is halved."""
TILES = 5
"""Bumps along the shorter side of the first point of L2."""


def square_search(
    batch: Batch, owners: Sequence[int], evaluations: int, seed: int, clock: Clock
) -> tuple[Tensor, Tensor]:
    """The points of some queries that came nearest to breaking them, and their least depths."""
    rows = torch.tensor(owners)
    walks = [_windows(batch, owner, seed) for owner in owners]
    points = _projected(batch, rows, torch.stack([walk.first() for walk in walks]))
    depths = batch.objective.least_depths(points, rows)
    for step in range(1, evaluations):
        going = (depths > 0).nonzero()[:, 0]
        if len(going) == 0 or clock.is_over:
            break
        share = window_share(step / evaluations)
        tried = torch.stack([walks[row].changed(points[row], share) for row in going.tolist()])
        tried = _projected(batch, rows[going], tried)
        tried_depths = batch.objective.least_depths(tried, rows[going])
        better = going[tried_depths < depths[going]]
        is_better = tried_depths < depths[going]
        points[better], depths[better] = tried[is_better], tried_depths[is_better]
    return points, depths


def window_share(progress: float) -> float:
    """The part of an image that a window covers, after this part of all evaluations."""
    halvings = sum(10_000 * progress > place for place in HALVED_AT)
    return FIRST_SHARE / 2.0**halvings


def _projected(batch: Batch, owners: Tensor, points: Tensor) -> Tensor:
    return batch.geometry.project(points, batch.centers[owners], batch.radii[owners], batch.room)


def _windows(batch: Batch, owner: int, seed: int) -> _LinfWindows | _L2Windows:
    query = batch.queries[owner]
    kind = _LinfWindows if query.instance.norm is Norm.LINF else _L2Windows
    radius, center = float(batch.radii[owner]), batch.centers[owner]
    reach = batch.geometry.units(torch.full_like(center, radius))
    return kind(center, radius, reach, query, seed)


class _Image:
    """A flat row of features as channels, rows and columns; each may move by its `reach` alone."""

    def __init__(
        self, center: Tensor, radius: float, reach: Tensor, query: Query, seed: int
    ) -> None:
        axes = tuple(size for size in query.instance.input.shape if size > 1)
        self._axes, self._channel = axes, axes.index(min(axes)) if len(axes) == 3 else None
        if len(axes) not in (2, 3):
            self._axes = (1, center.numel())
        self.radius = radius
        self.center, self.reach = self.folded(center), self.folded(reach)
        self.channels, self.height, self.width = self.center.shape
        digest = hashlib.sha256(f"{query.instance.key}:{seed}:square".encode()).digest()
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]) >> 1)

    def folded(self, row: Tensor) -> Tensor:
        image = row.reshape(self._axes)
        return image[None] if self._channel is None else image.movedim(self._channel, 0)

    def flat(self, image: Tensor) -> Tensor:
        return (image if self._channel is None else image.movedim(0, self._channel)).flatten()

    def window(self, share: float, least: int) -> tuple[int, int]:
        """Height and width of a window that covers this part: a square where there is room."""
        if self.height == 1:
            return 1, min(self.width, max(least, round(share * self.width)))
        side = max(least, round(math.sqrt(share * self.height * self.width)))
        return min(self.height, side), min(self.width, side)

    def place(self, size: tuple[int, int]) -> tuple[slice, slice]:
        top, left = (self.below(all_ - one + 1) for all_, one in self._fits(size))
        return slice(top, top + size[0]), slice(left, left + size[1])

    def _fits(self, size: tuple[int, int]) -> list[tuple[int, int]]:
        return [(self.height, size[0]), (self.width, size[1])]

    def below(self, count: int) -> int:
        return int(torch.randint(count, (1,), generator=self._generator))

    def signs(self, *sizes: int) -> Tensor:
        drawn = torch.rand(*sizes, generator=self._generator) < 0.5
        return torch.where(drawn, -1.0, 1.0).to(self.center.dtype)


class _LinfWindows(_Image):
    """Every feature stays at one of the two ends of its interval."""

    def first(self) -> Tensor:
        """Vertical stripes."""
        stripes = self.signs(self.channels, 1, self.width)
        return self.flat(self.center + self.reach * stripes)

    def changed(self, point: Tensor, share: float) -> Tensor:
        """One window, one sign for each channel."""
        image = self.folded(point).clone()
        rows, columns = self.place(self.window(share, least=1))
        moves = self.reach[:, rows, columns] * self.signs(self.channels, 1, 1)
        image[:, rows, columns] = self.center[:, rows, columns] + moves
        return self.flat(image)


class _L2Windows(_Image):
    """Changes are bumps; each step moves the budget of one window into another."""

    def first(self) -> Tensor:
        """A grid of bumps with random signs, as long as the radius."""
        side = max(1, min(self.height, self.width) // TILES)
        if self.height == 1:
            side = max(1, self.width // TILES**2)
        tall = min(side, self.height)
        offset = torch.zeros_like(self.center)
        for top in range(0, self.height - tall + 1, tall):
            for left in range(0, self.width - side + 1, side):
                bump = self._bump((tall, side)) * self.signs(self.channels, 1, 1)
                offset[:, top : top + tall, left : left + side] += bump
        return self.flat(self.center + self.radius * _unit(offset))

    def changed(self, point: Tensor, share: float) -> Tensor:
        offset = self.folded(point) - self.center
        size = self.window(share, least=min(3, self.width))
        into, out_of = self.place(size), self.place(size)
        unused = max(0.0, self.radius**2 - float(offset.square().sum()))
        bump = self._bump(size)
        moved = offset.clone()
        for channel in range(self.channels):
            here = offset[channel, into[0], into[1]]
            both = torch.zeros_like(offset[channel], dtype=torch.bool)
            both[into], both[out_of] = True, True
            budget = float(offset[channel][both].square().sum()) + unused / self.channels
            mixed = self.signs(1) * bump + _unit(here)
            moved[channel, out_of[0], out_of[1]] = 0.0
            moved[channel, into[0], into[1]] = _unit(mixed) * math.sqrt(budget)
        return self.flat(self.center + moved)

    def _bump(self, size: tuple[int, int]) -> Tensor:
        """Two bumps side by side or one above the other, of opposite signs; of length 1."""
        height, width = size
        if height == 1 or self.below(2):
            half = width // 2
            parts = [_hill(height, half), -_hill(height, width - half)]
            return _unit(torch.cat(parts, dim=1)).to(self.center.dtype)
        half = height // 2
        parts = [_hill(half, width), -_hill(height - half, width)]
        return _unit(torch.cat(parts, dim=0)).to(self.center.dtype)


def _unit(values: Tensor) -> Tensor:
    """Scaled to length 1; zeros stay."""
    length = float(values.square().sum()) ** 0.5
    return values / length if length > 0 else values


@functools.lru_cache(maxsize=256)
def _hill(height: int, width: int) -> Tensor:
    """Falls from the middle to the edges, in rings: ring k adds 1 / (n + 1 - k)^2."""
    n = max(height, width) // 2
    rows = (torch.arange(height) - height // 2).abs()
    columns = (torch.arange(width) - width // 2).abs()
    ring = n - torch.maximum(rows[:, None], columns[None, :])
    heights = torch.tensor([1.0 / (n + 1 - k) ** 2 for k in range(n + 1)]).cumsum(0)
    return heights[ring.clamp(min=0)]
