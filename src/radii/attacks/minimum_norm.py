"""The closest counterexample: attack, shrink towards the input, attack again just below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from radii.attacks._base import Attack
from radii.attacks.batches import Batch, Clock, batches
from radii.networks import Network
from radii.queries import Query
from radii.verdicts import Array

__all__ = ["MinimumNorm", "Stage"]

MOMENTUM = 0.75
SHRINKINGS = 12
"""Halvings of the segment between an input and a counterexample."""
TINY = 1e-30
"""Keeps quotients finite where a gradient vanishes."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One pass over the most promising tasks of every query.

    `share` of a query's tasks move, from each of `starts`; over the `steps` the length of a step
    falls along a cosine from the first to the last of `sizes`, and the radius that is tried closes
    in on the closest counterexample so far from the first to the last of `gaps`; all as parts of
    that counterexample's distance. In the first `leaks` of the steps ReLUs that are off leak.
    """

    share: float
    starts: tuple[str, ...]
    steps: int
    leaks: float = 0.0
    sizes: tuple[float, float] = (1.0, 0.005)
    gaps: tuple[float, float] = (0.02, 0.0004)

    def size(self, progress: float) -> float:
        first, last = self.sizes
        return last + (first - last) * 0.5 * (1 + math.cos(math.pi * progress))

    def gap(self, progress: float) -> float:
        first, last = self.gaps
        return float(first * (last / first) ** progress)


STAGES = (
    Stage(1.0, ("center", "inner", "corner", "half"), 60),
    Stage(1.0, ("center", "half"), 60, leaks=0.6),
    Stage(0.5, ("near", "best"), 60, leaks=0.4),
    Stage(0.35, ("near", "inner", "corner", "best"), 60, sizes=(0.5, 0.005), gaps=(0.01, 0.0003)),
)


class MinimumNorm(Attack):
    """All targets at once, from several starts, always just below the best counterexample."""

    name: ClassVar[str] = "minimum-norm"

    def __init__(self, *, stages: tuple[Stage, ...] = STAGES, seconds: float = math.inf) -> None:
        self.stages = stages
        self.seconds = seconds

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        candidates: list[Sequence[Array]] = [()] * len(queries)
        clock = Clock.of(self.seconds)
        todo = batches(network, queries, rows=max(len(stage.starts) for stage in self.stages))
        for done, batch in enumerate(todo):
            pursuit = _Pursuit(batch, seed, clock.share(len(todo) - done))
            for number, stage in enumerate(self.stages):
                pursuit.run(stage, number)
            points = batch.points(pursuit.points)
            for member, is_found, point in zip(
                batch.members, pursuit.is_found.tolist(), points, strict=True
            ):
                if is_found:
                    candidates[member] = (point,)
        return candidates


class _Pursuit:
    """The closest counterexample of each query so far, and how promising each task is."""

    def __init__(self, batch: Batch, seed: int, clock: Clock) -> None:
        self.batch, self.seed, self.clock = batch, seed, clock
        self.best = batch.radii.clone()
        self.points = batch.centers.clone()
        self.is_found = torch.zeros(len(batch.queries), dtype=torch.bool)
        self.efforts = torch.zeros(len(batch.owners), dtype=batch.centers.dtype)

    def run(self, stage: Stage, number: int) -> None:
        chosen = self._promising(stage.share)
        starts = [self._start(kind, chosen, f"{number}.{i}") for i, kind in enumerate(stage.starts)]
        points, tasks = torch.cat(starts), chosen.repeat(len(stage.starts))
        owners = self.batch.owners[tasks]
        centers = self.batch.centers[owners]
        geometry, room = self.batch.geometry, self.batch.room
        momentum = torch.zeros_like(points)
        for step in range(stage.steps + 1):
            if self.clock.is_over:
                return
            leak = step < stage.leaks * stage.steps
            depths, guides, gradients = self.batch.objective.gradients(points, tasks, leak=leak)
            broken = (depths <= 0).nonzero()[:, 0]
            if len(broken):
                points[broken] = self._take(points[broken], tasks[broken])
            progress = step / stage.steps
            radii = (self.best * (1 - stage.gap(progress)))[owners]
            momentum = MOMENTUM * momentum + gradients / (
                gradients.abs().mean(dim=1, keepdim=True) + TINY
            )
            points = geometry.step(points, momentum, stage.size(progress) * radii, room)
            points = geometry.project(points, centers, radii, room)
        effort = (guides / (geometry.slopes(gradients) + TINY) / self.best[owners]).clamp(min=0)
        missed = torch.full_like(self.efforts, math.inf)
        least = missed.scatter_reduce(0, tasks, effort, "amin")
        self.efforts = torch.where(least.isfinite(), least, self.efforts + 1)

    def _promising(self, share: float) -> Tensor:
        """Each query's tasks that seemed closest to breaking, in order."""
        chosen = []
        for query in range(len(self.batch.queries)):
            mine = (self.batch.owners == query).nonzero()[:, 0]
            count = max(1, math.ceil(share * len(mine)))
            chosen.append(mine[self.efforts[mine].argsort(stable=True)[:count]])
        return torch.cat(chosen)

    def _start(self, kind: str, tasks: Tensor, purpose: str) -> Tensor:
        batch, owners = self.batch, self.batch.owners[tasks]
        centers, radii = batch.centers[owners], self.best[owners]
        noise = batch.noise(tasks, self.seed, purpose)
        inner, found = batch.geometry.inner(noise), self.points[owners] - centers
        reach = radii[:, None]
        offsets = {
            "center": lambda: torch.zeros_like(noise),
            "inner": lambda: inner * reach,
            "half": lambda: inner * reach / 2,
            "corner": lambda: batch.geometry.corners(noise) * reach,
            "best": lambda: found + inner * reach / 2,
            "near": lambda: found + inner * reach / 10,
        }[kind]()
        return batch.geometry.project(centers + offsets, centers, radii, batch.room)

    def _take(self, points: Tensor, tasks: Tensor) -> Tensor:
        """Broken points, shrunk towards their inputs; the closest ones are remembered."""
        owners = self.batch.owners[tasks]
        centers = self.batch.centers[owners]
        points = self._shrunk(points, tasks, centers)
        lengths = self.batch.geometry.lengths(points - centers)
        for row in lengths.argsort(descending=True).tolist():
            owner = int(owners[row])
            if lengths[row] < self.best[owner] or not self.is_found[owner]:
                self.best[owner] = lengths[row]
                self.points[owner] = points[row]
                self.is_found[owner] = True
        return points

    def _shrunk(self, points: Tensor, tasks: Tensor, centers: Tensor) -> Tensor:
        intact = torch.zeros(len(points), dtype=points.dtype)
        broken = torch.ones_like(intact)
        for _ in range(SHRINKINGS):
            middle = (intact + broken) / 2
            tried = centers + middle[:, None] * (points - centers)
            is_broken = self.batch.objective.depths(tried, tasks) <= 0
            broken = torch.where(is_broken, middle, broken)
            intact = torch.where(is_broken, intact, middle)
        return centers + broken[:, None] * (points - centers)
