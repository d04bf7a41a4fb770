"""Attacks within a given radius: one step, projected descent, and descent that adapts its steps."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from radii.attacks._base import BatchAttack
from radii.attacks._batches import Batch, Clock
from radii.errors import SpecificationError


class _FixedRadius(BatchAttack):
    """Moves a row for every task and restart until one of a query's rows breaks its task.

    The first restart begins at the input, the others in turn at a random point of the ball and at
    a random extreme point. `seconds` stops early and keeps what was found.
    """

    needs_gradient: ClassVar[bool] = True

    def __init__(self, *, steps: int, restarts: int, seconds: float) -> None:
        if steps < 1 or restarts < 1:
            raise SpecificationError(
                f"attack '{self.name}' needs at least one step and one start, "
                f"not {steps} and {restarts}"
            )
        self.steps = steps
        self.restarts = restarts
        self.seconds = seconds

    @abstractmethod
    def descent(self, points: Tensor, radii: Tensor) -> _Descent:
        """How rows move that begin at `points`."""

    @property
    def rows(self) -> int:
        return self.restarts

    def search(self, batch: Batch, seed: int, clock: Clock) -> dict[int, Tensor]:
        tasks = torch.arange(len(batch.owners)).repeat(self.restarts)
        points = torch.cat([self._start(batch, seed, turn) for turn in range(self.restarts)])
        descent = self.descent(points, batch.radii_of(tasks))
        closest: dict[int, Tensor] = {}
        for step in range(self.steps + 1):
            if clock.is_over or len(tasks) == 0:
                break
            depths, guides, gradients = batch.objective.gradients(points, tasks)
            if bool((depths <= 0).any()):
                closest |= _closest_points(batch, points, tasks, depths)
                going = ~torch.isin(batch.owners[tasks], torch.tensor(list(closest)))
                points, tasks, guides, gradients = (
                    rows[going] for rows in (points, tasks, guides, gradients)
                )
                descent.keep(going)
            if step < self.steps:
                points = descent.step(batch, points, tasks, guides, gradients)
        return closest

    def _start(self, batch: Batch, seed: int, turn: int) -> Tensor:
        centers, tasks = batch.centers[batch.owners], torch.arange(len(batch.owners))
        if turn == 0:
            return centers.clone()
        radii = batch.radii_of(tasks)
        noise = batch.noise(tasks, seed, f"{self.name}.{turn}")
        spread = batch.geometry.inner if turn % 2 else batch.geometry.corners
        points = centers + radii[:, None] * spread(noise)
        return batch.geometry.project(points, centers, radii, batch.room)


def _closest_points(
    batch: Batch, points: Tensor, tasks: Tensor, depths: Tensor
) -> dict[int, Tensor]:
    """Of each query's rows that break their task the closest, after drawing them to the input."""
    broken = (depths <= 0).nonzero()[:, 0]
    own_depths = functools.partial(batch.objective.depths, tasks=tasks[broken])
    closest = batch.closest(points[broken], batch.owners[tasks[broken]], own_depths)
    return {owner: point for owner, (_, point) in closest.items()}


class _Descent:
    """Steps of a constant length."""

    def __init__(self, sizes: Tensor) -> None:
        self.sizes = sizes

    def keep(self, going: Tensor) -> None:
        """Forget the rows that have stopped."""
        self.sizes = self.sizes[going]

    def step(
        self, batch: Batch, points: Tensor, tasks: Tensor, guides: Tensor, gradients: Tensor
    ) -> Tensor:
        """The points after one step; `guides` are what the gradients are those of."""
        moved = batch.geometry.step(points, gradients, self.sizes, batch.room)
        return batch.projected(moved, tasks)


class _AdaptiveDescent(_Descent):
    """Steps with momentum, halved where they gain no more; the row then returns to its best."""

    MOMENTUM = 0.25
    """How much of the last step is added to the next."""
    PATIENCE = 8
    """Steps between two looks at what was gained."""

    def __init__(self, points: Tensor, sizes: Tensor) -> None:
        super().__init__(sizes)
        self.before = points
        self.best_points = points.clone()
        self.best = torch.full_like(sizes, math.inf)
        self.looked_at = self.best.clone()
        self.turn = 0

    def keep(self, going: Tensor) -> None:
        super().keep(going)
        self.before, self.best_points = self.before[going], self.best_points[going]
        self.best, self.looked_at = self.best[going], self.looked_at[going]

    def step(
        self, batch: Batch, points: Tensor, tasks: Tensor, guides: Tensor, gradients: Tensor
    ) -> Tensor:
        is_better = guides < self.best
        self.best = torch.where(is_better, guides, self.best)
        self.best_points = torch.where(is_better[:, None], points, self.best_points)
        self.turn += 1
        moved = super().step(batch, points, tasks, guides, gradients)
        carried = moved + self.MOMENTUM * (points - self.before)
        self.before = points
        if self.turn % self.PATIENCE == 0:
            carried = self._look(carried)
        return batch.projected(carried, tasks)

    def _look(self, points: Tensor) -> Tensor:
        has_stopped = self.best >= self.looked_at
        self.looked_at = self.best.clone()
        self.sizes = torch.where(has_stopped, self.sizes / 2, self.sizes)
        self.before = torch.where(has_stopped[:, None], self.best_points, self.before)
        return torch.where(has_stopped[:, None], self.best_points, points)


class Fgsm(_FixedRadius):
    """One step of steepest descent from the input, as long as the radius, for every task."""

    name: ClassVar[str] = "fgsm"

    def __init__(self, *, seconds: float = math.inf) -> None:
        super().__init__(steps=1, restarts=1, seconds=seconds)

    def descent(self, points: Tensor, radii: Tensor) -> _Descent:
        return _Descent(radii)


class Pgd(_FixedRadius):
    """Projected gradient descent; `step` is the length of a step as a part of the radius."""

    name: ClassVar[str] = "pgd"

    def __init__(
        self,
        *,
        steps: int = 40,
        step: float = 0.1,
        restarts: int = 3,
        seconds: float = math.inf,
    ) -> None:
        super().__init__(steps=steps, restarts=restarts, seconds=seconds)
        self.step = step

    def descent(self, points: Tensor, radii: Tensor) -> _Descent:
        return _Descent(self.step * radii)


class Apgd(_FixedRadius):
    """Descent with momentum, from long steps that are halved, row by row, where gains end."""

    name: ClassVar[str] = "apgd"

    def __init__(self, *, steps: int = 80, restarts: int = 3, seconds: float = math.inf) -> None:
        super().__init__(steps=steps, restarts=restarts, seconds=seconds)

    def descent(self, points: Tensor, radii: Tensor) -> _Descent:
        return _AdaptiveDescent(points, radii.clone())
