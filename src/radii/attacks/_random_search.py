"""Counterexamples without gradients: random changes of blocks of features, kept where they help.

Square Attack's idea (Andriushchenko et al., 2020) driven to the smallest distance. First a point
that breaks the property is looked for anywhere in the ball. Then the ball is drawn in just below
it, the point is projected into that ball, and blocks of its features are changed until it breaks
the property again; and so on, by steps that grow where they succeed and shrink where they fail.
Every query keeps the number of evaluations that it was given.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from radii.attacks._base import TimedAttack
from radii.attacks._batches import Batch, Clock, batches
from radii.balls import Norm
from radii.networks import Network
from radii.queries import Query
from radii.verdicts import Array

EVALUATIONS = 6000
"""Of the network, for each query; about as many as the gradients of `minimum-norm`."""
TOGETHER = 24
"""Changes of one point that are tried at once: enough to fill a batch of the runtime."""
FIRST_GAP, LEAST_GAP = 0.2, 5e-4
"""By which part the ball is drawn in below the best point: at first, and at least."""
PATIENCE = 12
"""Rounds without a success after which a smaller gap is tried."""
LARGEST_BLOCK = 0.5
"""The largest block, as a part of all features; sizes are drawn evenly on a logarithmic scale."""
BACK_SHARE, SIGNED_SHARE = 0.15, 0.5
"""Of the changes: those that put a block back to the input, and those with one sign for each
channel of the block; the others draw a sign for each feature."""


class RandomSearch(TimedAttack):
    """Only asks for outputs, so that it attacks whatever runs; `evaluations` for each query.

    `seconds` stops early and keeps what was found.
    """

    name: ClassVar[str] = "random-search"

    def __init__(self, *, evaluations: int = EVALUATIONS, seconds: float = math.inf) -> None:
        self.evaluations = evaluations
        self.seconds = seconds

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        candidates: list[Sequence[Array]] = [()] * len(queries)
        clock = Clock.of(self.seconds)
        todo = batches(network, queries, rows=TOGETHER)
        for done, batch in enumerate(todo):
            walk = _Walk(batch, seed)
            limit = clock.share(len(todo) - done)
            for _ in range(max(1, self.evaluations // TOGETHER)):
                if limit.is_over:
                    break
                walk.step()
            points = batch.points(walk.best)
            for place, is_found in enumerate(walk.is_found.tolist()):
                if is_found:
                    candidates[batch.members[place]] = (points[place],)
        return candidates


class _Walk:
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
        self._blocks = [_Blocks(query, seed) for query in batch.queries]
        self.depths = batch.objective.least_depths(self.points, self._owners)

    @property
    def radii(self) -> Tensor:
        """Of the balls that are searched: just below what is known."""
        return torch.where(self.is_found, self.lengths * (1 - self.gaps), self.lengths)

    def step(self) -> None:
        """One round: some changes for each query, of which the best is kept."""
        batch, count = self.batch, len(self.batch.queries)
        owners = self._owners.repeat_interleave(TOGETHER)
        centers, radii = batch.centers[owners], self.radii
        tried = torch.cat(
            [
                blocks.changed(self.points[place], batch.centers[place], float(radii[place]))
                for place, blocks in enumerate(self._blocks)
            ]
        )
        tried = batch.geometry.project(tried, centers, radii[owners], batch.room)
        depths = batch.objective.least_depths(tried, owners).reshape(count, TOGETHER)
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
        batch = self.batch
        helps = (depths < self.depths[:, None]).to(tried.dtype)[:, :, None]
        moves = ((tried - self.points[:, None]) * helps).sum(dim=1)
        joint = batch.geometry.project(self.points + moves, batch.centers, self.radii, batch.room)
        depth = batch.objective.least_depths(joint, self._owners)
        is_better = depth < least
        return torch.where(is_better[:, None], joint, chosen), torch.where(is_better, depth, least)

    def _settle(self, is_broken: Tensor, chosen: Tensor) -> None:
        """Counterexamples are drawn in, and the ball with them; where none comes, less of it."""
        batch = self.batch
        self.failures = torch.where(is_broken, 0, self.failures + 1)
        broken = is_broken.nonzero()[:, 0]
        if len(broken):
            depths = functools.partial(batch.objective.least_depths, owners=broken)
            points = batch.shrunk_by(chosen[broken], broken, depths)
            self.best[broken] = points
            self.lengths[broken] = batch.geometry.lengths(points - batch.centers[broken])
            self.is_found[broken] = True
            self.gaps[broken] = (1.5 * self.gaps[broken]).clamp(max=FIRST_GAP)
            starts = batch.geometry.project(
                points, batch.centers[broken], self.radii[broken], batch.room
            )
            self.points[broken] = starts
            self.depths[broken] = batch.objective.least_depths(starts, broken)
        tired = self.is_found & (self.failures >= PATIENCE)
        self.gaps = torch.where(tired, (self.gaps / 2).clamp(min=LEAST_GAP), self.gaps)
        self.failures = torch.where(tired, 0, self.failures)


class _Blocks:
    """Random blocks of one query's features: squares of images, stretches of signals, subsets.

    Of three axes the shortest are the channels, wherever it stands: a block holds all of them.
    """

    def __init__(self, query: Query, seed: int) -> None:
        shape = query.instance.input.shape
        self._axes = tuple(size for size in shape if size > 1) or (1,)
        is_image = len(self._axes) > 2
        self._channel = self._axes.index(min(self._axes)) if is_image else None
        self._norm = query.instance.norm
        digest = hashlib.sha256(f"{query.instance.key}:{seed}:blocks".encode()).digest()
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]) >> 1)

    def changed(self, point: Tensor, center: Tensor, radius: float) -> Tensor:
        """`TOGETHER` changes of a point, a row each; they may leave the ball."""
        inside = torch.stack([self._block() for _ in range(TOGETHER)])
        kinds = self._random(TOGETHER)
        signs = torch.stack([self._signs(is_one=kind < SIGNED_SHARE) for kind in kinds.tolist()])
        counts = inside.sum(dim=1, keepdim=True).clamp(min=1).to(point.dtype)
        exponent = {Norm.LINF: 0.0, Norm.L2: 0.5, Norm.L1: 1.0}[self._norm]
        moves = signs.to(point.dtype) * radius / counts**exponent
        moves[kinds > 1 - BACK_SHARE] = 0.0
        return torch.where(inside, center + moves, point)

    def _signs(self, *, is_one: bool) -> Tensor:
        """For each feature, or one for each channel."""
        sizes = self._axes
        if is_one:
            places = range(len(sizes))
            sizes = tuple(sizes[place] if place == self._channel else 1 for place in places)
        signs = torch.where(self._random(*sizes) < 0.5, -1.0, 1.0)
        return signs.expand(self._axes).flatten()

    def _block(self) -> Tensor:
        """Which features belong to it, flattened."""
        features = math.prod(self._axes)
        share = (LARGEST_BLOCK * features) ** float(self._random(1)) / features
        mask = torch.zeros(self._axes, dtype=torch.bool)
        if len(self._axes) == 1:
            order = torch.randperm(features, generator=self._generator)
            mask[order[: max(1, round(share * features))]] = True
            return mask
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
