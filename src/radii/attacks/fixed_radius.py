"""Attacks within a given radius: one signed step, projected descent, and descent that adapts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from radii.attacks._base import Attack
from radii.attacks.batches import Batch, Clock, batches
from radii.networks import Network
from radii.queries import Query
from radii.verdicts import Array

__all__ = ["Apgd", "Fgsm", "Pgd"]

STARTS = ("center", "inner", "corner")
"""Where restarts begin, in turn: the input itself, a random point, a random extreme point."""


class _FixedRadius(Attack):
    """Moves a row for every task and restart, and keeps what broke a task closest to the input."""

    def __init__(self, *, restarts: int = 1, seconds: float = math.inf) -> None:
        self.restarts = restarts
        self.seconds = seconds

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        candidates: list[Sequence[Array]] = [()] * len(queries)
        clock = Clock.of(self.seconds)
        todo = batches(network, queries, rows=1)
        for done, batch in enumerate(todo):
            best = _Closest(batch)
            within = clock.share(len(todo) - done)
            for restart in range(self.restarts):
                if within.is_over and restart:
                    break
                self.descend(batch, self._start(batch, seed, restart), best, within)
            for member, found in zip(batch.members, best.candidates(), strict=True):
                candidates[member] = found
        return candidates

    @abstractmethod
    def descend(self, batch: Batch, points: Tensor, best: _Closest, clock: Clock) -> None:
        """Move the points, a row a task, telling `best` of every place."""

    def _start(self, batch: Batch, seed: int, restart: int) -> Tensor:
        owners = batch.owners
        centers, radii = batch.centers[owners], batch.radii[owners]
        kind = STARTS[min(restart, 1 + restart % 2) if restart else 0]
        if kind == "center":
            return centers.clone()
        noise = batch.noise(torch.arange(len(owners)), seed, f"{self.name}.{restart}")
        geometry = batch.geometry
        offsets = geometry.inner(noise) if kind == "inner" else geometry.corners(noise)
        return geometry.project(centers + radii[:, None] * offsets, centers, radii, batch.room)


class _Closest:
    """The broken point closest to each query's input."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.lengths = torch.full((len(batch.queries),), math.inf)
        self.points = batch.centers.clone()

    def take(self, points: Tensor, depths: Tensor) -> None:
        """Points of all tasks, in order, with their depths."""
        for row in (depths <= 0).nonzero()[:, 0].tolist():
            owner = int(self.batch.owners[row])
            offset = points[row] - self.batch.centers[owner]
            length = float(self.batch.geometry.lengths(offset[None])[0])
            if length < self.lengths[owner]:
                self.lengths[owner] = length
                self.points[owner] = points[row]

    def candidates(self) -> list[Sequence[Array]]:
        found = self.lengths.isfinite().tolist()
        points = self.batch.points(self.points)
        return [(point,) if is_found else () for is_found, point in zip(found, points, strict=True)]


class Fgsm(_FixedRadius):
    """One step of steepest descent, as long as the radius."""

    name: ClassVar[str] = "fgsm"

    def descend(self, batch: Batch, points: Tensor, best: _Closest, clock: Clock) -> None:
        tasks = torch.arange(len(batch.owners))
        centers, radii = batch.centers[batch.owners], batch.radii[batch.owners]
        depths, _, gradients = batch.objective.gradients(points, tasks)
        best.take(points, depths)
        moved = batch.geometry.step(points, gradients, radii, batch.room)
        points = batch.geometry.project(moved, centers, radii, batch.room)
        best.take(points, batch.objective.depths(points, tasks))


class Pgd(_FixedRadius):
    """Projected gradient descent on every task, with random and corner restarts.

    `step` is the length of a step as a part of the radius.
    """

    name: ClassVar[str] = "pgd"

    def __init__(
        self,
        *,
        steps: int = 40,
        step: float = 0.1,
        restarts: int = 3,
        seconds: float = math.inf,
    ) -> None:
        super().__init__(restarts=restarts, seconds=seconds)
        self.steps = steps
        self.step = step

    def descend(self, batch: Batch, points: Tensor, best: _Closest, clock: Clock) -> None:
        tasks = torch.arange(len(batch.owners))
        centers, radii = batch.centers[batch.owners], batch.radii[batch.owners]
        for _ in range(self.steps):
            if clock.is_over:
                break
            depths, _, gradients = batch.objective.gradients(points, tasks)
            best.take(points, depths)
            moved = batch.geometry.step(points, gradients, self.step * radii, batch.room)
            points = batch.geometry.project(moved, centers, radii, batch.room)
        best.take(points, batch.objective.depths(points, tasks))


class Apgd(_FixedRadius):
    """Descent with momentum whose steps are halved, row by row, where it has stopped to gain.

    A row that is halved goes on from the best place it has seen.
    """

    name: ClassVar[str] = "apgd"

    MOMENTUM: ClassVar[float] = 0.75
    FIRST_STEP: ClassVar[float] = 0.5
    PATIENCE: ClassVar[int] = 8

    def __init__(self, *, steps: int = 80, restarts: int = 3, seconds: float = math.inf) -> None:
        super().__init__(restarts=restarts, seconds=seconds)
        self.steps = steps

    def descend(self, batch: Batch, points: Tensor, best: _Closest, clock: Clock) -> None:
        tasks = torch.arange(len(batch.owners))
        centers, radii = batch.centers[batch.owners], batch.radii[batch.owners]
        sizes, before = self.FIRST_STEP * radii, points
        record, record_points = torch.full_like(radii, math.inf), points.clone()
        at_check = record.clone()
        for turn in range(self.steps):
            if clock.is_over:
                break
            depths, guides, gradients = batch.objective.gradients(points, tasks)
            best.take(points, depths)
            is_best = guides < record
            record = torch.where(is_best, guides, record)
            record_points[is_best] = points[is_best]
            if turn % self.PATIENCE == self.PATIENCE - 1:
                has_stopped = record >= at_check
                sizes = torch.where(has_stopped, sizes / 2, sizes)
                points = torch.where(has_stopped[:, None], record_points, points)
                at_check = record.clone()
            moved = batch.geometry.step(points, gradients, sizes, batch.room)
            carried = (
                points + self.MOMENTUM * (moved - points) + (1 - self.MOMENTUM) * (points - before)
            )
            before = points
            points = batch.geometry.project(carried, centers, radii, batch.room)
        best.take(points, batch.objective.depths(points, tasks))
