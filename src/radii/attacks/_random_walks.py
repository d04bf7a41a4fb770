"""Counterexamples without gradients: random changes of blocks of features, kept where they help.

Square Attack's idea (Andriushchenko et al., 2020) driven to the smallest distance. First a point
that breaks the property is looked for anywhere in the ball. Then the ball is drawn in just below
it, the point is projected into that ball, and blocks of its features are changed until it breaks
the property again; and so on, by steps that grow where they succeed and shrink where they fail.
Every query gets a fixed number of evaluations.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from radii.attacks._batches import Batch
from radii.attacks._geometry import Geometry
from radii.problem import Query

TOGETHER = 24
"""Changes of one point that are tried at once: enough to fill a batch of the runtime."""
FIRST_GAP, LEAST_GAP = 0.2, 5e-4
"""By which part the ball is drawn in below the best point: at first, and at least."""
LENGTH_ROUNDING = 1 + 1e-5
"""By which factor a length in float32 may be above the radius that a point was drawn into."""
REACH_ROUNDING = 1 + 1e-6
"""By which factor float32 may round a reach below the whole number that it reaches."""
PATIENCE = 12
"""Rounds without a success after which a smaller gap is tried."""
LARGEST_BLOCK = 0.5
"""The largest block, as a part of all features; sizes are drawn evenly on a logarithmic scale."""
SIGNED_SHARE, BACK_SHARE = 0.45, 0.15
"""Shares of the changes with one sign for each channel of the block, and those that put a block
back to the input; the others draw a sign for each feature."""
INNER_SHARE, LATER_INNER_SHARE = 0.2, 0.04
"""Shares of the changes to a random point of the ball, before and after there is a
counterexample."""


class RandomWalk:
    """A point for each query of a batch on its way through smaller and smaller balls.

    `depths` are those of the points; `best` the closest counterexamples and `lengths` their
    distances, which are the queries' radii while there is none.
    """

    def __init__(self, batch: Batch, seed: int) -> None:
        self.batch = batch
        self.points = batch.centers.clone()
        self.best = batch.centers.clone()
        self.lengths = batch.radii.clone()
        self.is_found = torch.zeros(len(batch.queries), dtype=torch.bool)
        self.gaps = torch.full_like(batch.radii, FIRST_GAP)
        self.failures = torch.zeros(len(batch.queries), dtype=torch.long)
        self._owners = torch.arange(len(batch.queries))
        self._blocks = [_Blocks(query, batch.geometry, seed) for query in batch.queries]
        self.depths = batch.objective.least_depths(self.points, self._owners)

    @property
    def radii(self) -> Tensor:
        """Radii of the balls that are searched: just below the best distances."""
        return torch.where(self.is_found, self.lengths * (1 - self.gaps), self.lengths)

    def begin_at(self, starts: Sequence[Tensor]) -> None:
        """Goes on from the closest of each query's rows that is a counterexample, or else from the
        one nearest to be one."""
        for owner, rows in enumerate(starts):
            owners = torch.full((len(rows),), owner)
            if len(rows):
                points = self._inside(rows, owners)
                depths = self._depths(points, owners)
                lengths = self.batch.geometry.lengths(points - self.batch.centers[owners])
                is_broken = depths <= 0
                ranks = lengths.masked_fill(~is_broken, math.inf) if is_broken.any() else depths
                self.points[owner] = points[ranks.argmin()]
                self.depths[owner] = depths[ranks.argmin()]
        self._settle(self.depths <= 0, self.points)

    def step(self) -> None:
        """One round: some changes for each query, of which the best is kept."""
        batch, count = self.batch, len(self.batch.queries)
        owners, radii = self._owners.repeat_interleave(TOGETHER), self.radii
        shares = torch.where(self.is_found, LATER_INNER_SHARE, INNER_SHARE).tolist()
        tried = torch.cat(
            [
                blocks.changed(self.points[place], batch.centers[place], radius, share)
                for place, (blocks, radius, share) in enumerate(
                    zip(self._blocks, radii.tolist(), shares, strict=True)
                )
            ]
        )
        tried = self._inside(tried, owners)
        depths = self._depths(tried, owners).reshape(count, TOGETHER)
        tried = tried.reshape(count, TOGETHER, -1)
        least, places = depths.min(dim=1)
        chosen = tried[self._owners, places]
        chosen, least = self._with_all_that_help(tried, depths, chosen, least)
        is_better = least <= self.depths  # ties move on: outputs may be constant in pieces
        self.points[is_better] = chosen[is_better]
        self.depths = torch.where(is_better, least, self.depths)
        self._settle(least <= 0, chosen)

    def _with_all_that_help(
        self, tried: Tensor, depths: Tensor, chosen: Tensor, least: Tensor
    ) -> tuple[Tensor, Tensor]:
        """All changes that help, at once, where that is better than the best of them: on a linear
        function their gains add up."""
        helps = (depths < self.depths[:, None]).to(tried.dtype)[:, :, None]
        moves = ((tried - self.points[:, None]) * helps).sum(dim=1)
        joint = self._inside(self.points + moves, self._owners)
        depth = self._depths(joint, self._owners)
        is_better = depth < least
        return torch.where(is_better[:, None], joint, chosen), torch.where(is_better, depth, least)

    def _settle(self, is_broken: Tensor, chosen: Tensor) -> None:
        """Counterexamples are drawn in, and the ball with them; where none comes, less of it."""
        batch = self.batch
        self.failures = torch.where(is_broken, 0, self.failures + 1)
        broken = is_broken.nonzero()[:, 0]
        if len(broken):
            points = self._valid(
                batch.shrunk_by(
                    chosen[broken],
                    broken,
                    lambda tried: self._depths(self._valid(tried, broken), broken),
                ),
                broken,
            )
            self.best[broken] = points
            self.lengths[broken] = batch.geometry.lengths(points - batch.centers[broken])
            self.is_found[broken] = True
            self.gaps[broken] = (1.5 * self.gaps[broken]).clamp(max=FIRST_GAP)
            self.points[broken] = starts = self._inside(points, broken)
            self.depths[broken] = self._depths(starts, broken)
        tired = self.is_found & (self.failures >= PATIENCE)
        self.gaps = torch.where(tired, (self.gaps / 2).clamp(min=LEAST_GAP), self.gaps)
        self.failures = torch.where(tired, 0, self.failures)

    def _inside(self, points: Tensor, owners: Tensor) -> Tensor:
        """The points drawn into the balls that are searched, and made valid there."""
        batch, radii = self.batch, self.radii[owners]
        drawn = batch.geometry.project(points, batch.centers[owners], radii, batch.room)
        return self._valid(drawn, owners)

    def _valid(self, points: Tensor, owners: Tensor) -> Tensor:
        return _valid_rows(self.batch, points, owners, self.radii[owners])

    def _depths(self, points: Tensor, owners: Tensor) -> Tensor:
        """Infinite where whole numbers or categories have led out of the ball again."""
        batch = self.batch
        depths = batch.objective.least_depths(points, owners)
        lengths = batch.geometry.lengths(points - batch.centers[owners])
        return depths.masked_fill(lengths > self.lengths[owners] * LENGTH_ROUNDING, math.inf)


class _Blocks:
    """Random blocks of one query's features: squares of images, stretches of signals, subsets.

    Of three axes the shortest are the channels, wherever it stands: a block holds all of them.
    """

    def __init__(self, query: Query, geometry: Geometry, seed: int) -> None:
        shape = query.instance.input.shape
        self._axes = tuple(size for size in shape if size > 1) or (1,)
        is_image = len(self._axes) > 2
        self._channel = self._axes.index(min(self._axes)) if is_image else None
        self._geometry = geometry
        digest = hashlib.sha256(f"{query.instance.key}:{seed}:blocks".encode()).digest()
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]) >> 1)

    def changed(self, point: Tensor, center: Tensor, radius: float, inner_share: float) -> Tensor:
        """`TOGETHER` changes of a point, a row each; they may leave the ball."""
        kinds = self._random(TOGETHER)
        inside, signs = self._blocks(), self._signs(kinds < SIGNED_SHARE)
        lengths = torch.ones(TOGETHER)
        is_inner = (kinds >= SIGNED_SHARE) & (kinds < SIGNED_SHARE + inner_share)
        signs[is_inner] *= self._random(int(is_inner.sum()), signs.shape[1])
        lengths[is_inner] = self._random(int(is_inner.sum())) ** (1 / inside[is_inner].sum(dim=1))
        lengths[kinds > 1 - BACK_SHARE] = 0.0
        directions = (signs * inside).to(point.dtype)
        moves = radius * lengths.to(point.dtype)[:, None] * self._geometry.outward(directions)
        return torch.where(inside, center + moves, point)

    def _signs(self, is_one: Tensor) -> Tensor:
        """A sign for each feature; where `is_one`, for each channel. A row each, flattened."""
        channels = [size if place == self._channel else 1 for place, size in enumerate(self._axes)]
        own, shared = self._random(TOGETHER, *self._axes), self._random(TOGETHER, *channels)
        drawn = torch.where(is_one.reshape(-1, *(1 for _ in channels)), shared, own)
        return torch.where(drawn < 0.5, -1.0, 1.0).flatten(1)

    def _blocks(self) -> Tensor:
        """Which features belong to each block, a row each, flattened."""
        features = math.prod(self._axes)
        shares = (LARGEST_BLOCK * features) ** self._random(TOGETHER) / features
        if len(self._axes) > 1:
            return torch.stack([self._window(share) for share in shares.tolist()])
        ranks = self._random(TOGETHER, features).argsort(dim=1).argsort(dim=1)
        inside: Tensor = ranks < (shares * features).round().clamp(min=1)[:, None]
        return inside

    def _window(self, share: float) -> Tensor:
        mask = torch.zeros(self._axes, dtype=torch.bool)
        spatial = [place for place in range(len(self._axes)) if place != self._channel]
        window = [slice(None)] * len(self._axes)
        for place in spatial:
            size = self._axes[place]
            side = min(size, max(1, round(size * share ** (1 / len(spatial)))))
            start = int(torch.randint(size - side + 1, (1,), generator=self._generator))
            window[place] = slice(start, start + side)
        mask[tuple(window)] = True
        return mask.flatten()

    def _random(self, *sizes: int) -> Tensor:
        return torch.rand(*sizes, generator=self._generator)


def _valid_rows(batch: Batch, points: Tensor, owners: Tensor, radii: Tensor) -> Tensor:
    """Points of balls with these radii, with whole numbers and categories where features ask."""
    features = batch.queries[0].instance.features  # one for all queries of a batch
    if features is None or not features.is_discrete:
        return points
    centers, valid = batch.centers[owners], points.clone()
    reach = batch.geometry.units(radii[:, None].expand_as(points)) * REACH_ROUNDING
    whole = torch.from_numpy(features.is_whole)
    low = torch.maximum(batch.room.low, centers - reach).ceil()
    high = torch.minimum(batch.room.high, centers + reach).floor()
    rounded = torch.minimum(torch.maximum(points.round(), low), high)
    valid[:, whole] = rounded[:, whole]
    for places in map(list, features.groups.values()):
        chosen = torch.zeros_like(points[:, places])
        chosen.scatter_(1, points[:, places].argmax(dim=1, keepdim=True), 1.0)
        may_change = reach[:, places[:1]] >= 1
        valid[:, places] = torch.where(may_change, chosen, centers[:, places])
    return valid
