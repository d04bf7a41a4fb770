"""Attacks within a given radius: one step, projected descent, and APGD.

`descend` moves the rows of any of them, those of AutoAttack's parts included.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from radii.attacks._base import BatchAttack
from radii.attacks._batches import Batch, Clock
from radii.attacks._geometry import DomainRows
from radii.errors import SpecificationError

FIRST_STEP = 2.0
"""Length of APGD's first steps, as a part of the radius."""
MOMENTUM = 0.75
"""Weight of the new step in APGD; the rest is that of the last one."""
RISING_SHARE = 0.75
"""With fewer successful steps than this share between two checkpoints, APGD halves its steps."""
FIRST_PERIOD, SHORTER_BY, LEAST_PERIOD = 0.22, 0.03, 0.06
"""Parts of all steps: the first checkpoint, how much shorter each period is, and the shortest."""


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
    def descent(self, batch: Batch, points: Tensor, radii: Tensor) -> ConstantSteps:
        """How rows move that begin at `points`."""

    @property
    def rows(self) -> int:
        return self.restarts

    def search(self, batch: Batch, seed: int, clock: Clock) -> dict[int, Tensor]:
        tasks = torch.arange(len(batch.owners)).repeat(self.restarts)
        points = torch.cat([self._start(batch, seed, turn) for turn in range(self.restarts)])
        closest = descend(
            batch,
            tasks,
            self.descent(batch, points, batch.radii_of(tasks)),
            steps=self.steps,
            clock=clock,
            evaluate=batch.objective.gradients,
            depths_of=lambda some: functools.partial(batch.objective.depths, tasks=some),
        )
        return {owner: point for owner, (_, point) in closest.items()}

    def _start(self, batch: Batch, seed: int, turn: int) -> Tensor:
        centers, tasks = batch.centers[batch.owners], torch.arange(len(batch.owners))
        if turn == 0:
            return centers.clone()
        radii = batch.radii_of(tasks)
        noise = batch.noise(tasks, seed, f"{self.name}.{turn}")
        spread = batch.geometry.inner if turn % 2 else batch.geometry.corners
        points = centers + radii[:, None] * spread(noise)
        return batch.geometry.project(points, centers, radii, batch.room)


Evaluation = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""Of points and their tasks: depths, what is lowered, and its gradients."""


def descend(
    batch: Batch,
    tasks: Tensor,
    descent: ConstantSteps,
    *,
    steps: int,
    clock: Clock,
    evaluate: Evaluation,
    depths_of: Callable[[Tensor], Callable[[Tensor], Tensor]],
) -> dict[int, tuple[float, Tensor]]:
    """Of each query that a row breaks the closest point, drawn to the input, and its distance.

    All rows of a query stop once one of them breaks it. `depths_of` gives for tasks the depths by
    which their points are broken.
    """
    closest: dict[int, tuple[float, Tensor]] = {}
    for step in range(steps + 1):
        if clock.is_over or len(tasks) == 0:
            break
        depths, values, gradients = evaluate(descent.points, tasks)
        if bool((depths <= 0).any()):
            broken = (depths <= 0).nonzero()[:, 0]
            owners = batch.owners[tasks[broken]]
            closest |= batch.closest(descent.points[broken], owners, depths_of(tasks[broken]))
            going = ~torch.isin(batch.owners[tasks], torch.tensor(list(closest)))
            tasks, values, gradients = tasks[going], values[going], gradients[going]
            descent.keep(going)
        if step < steps and len(tasks):
            descent.step(batch, tasks, values, gradients)
    return closest


class ConstantSteps:
    """Rows that move by steps of a constant length."""

    def __init__(self, points: Tensor, sizes: Tensor) -> None:
        self.points, self.sizes = points, sizes

    def keep(self, going: Tensor) -> None:
        """Forget the rows that have stopped."""
        for name, values in vars(self).items():
            if isinstance(values, Tensor):
                setattr(self, name, values[going])

    def step(self, batch: Batch, tasks: Tensor, values: Tensor, gradients: Tensor) -> None:
        """One step against the gradients of the values, which are to be lowered."""
        moved = batch.geometry.step(self.points, gradients, self.sizes, batch.room)
        self.points = batch.projected(moved, tasks)


class AdaptiveSteps(ConstantSteps):
    """APGD's steps with momentum, halved at checkpoints where too little was gained.

    Croce and Hein, "Reliable evaluation of adversarial robustness with an ensemble of diverse
    parameter-free attacks" (ICML 2020), section 3. A row whose steps are halved returns to its best
    point, whose gradient it has kept. `room` is what steps may count as the domain.
    """

    def __init__(self, points: Tensor, radii: Tensor, steps: int, room: DomainRows) -> None:
        super().__init__(points, FIRST_STEP * radii)
        self._looks, self._room = checkpoints(steps), room
        self._done = self._looked_at = 0
        self.before = points
        self.best_points, self.best_gradients = points.clone(), torch.zeros_like(points)
        self.best = torch.full_like(radii, math.inf)
        self.best_then, self.last = self.best.clone(), self.best.clone()
        self.successes = torch.zeros_like(radii)
        self.has_halved = torch.ones_like(radii, dtype=torch.bool)

    def step(self, batch: Batch, tasks: Tensor, values: Tensor, gradients: Tensor) -> None:
        self._weigh(values, gradients)
        if self._done in self._looks:
            gradients = self._look(gradients)
        moved = batch.geometry.step(self.points, gradients, self.sizes, self._room)
        moved = batch.projected(moved, tasks)
        if self._done:
            new, last = moved - self.points, self.points - self.before
            carried = self.points + MOMENTUM * new + (1 - MOMENTUM) * last
            moved = batch.projected(carried, tasks)
        self.before, self.points = self.points, moved
        self._done += 1

    def _weigh(self, values: Tensor, gradients: Tensor) -> None:
        self.successes += values < self.last
        self.last = values
        is_better = values < self.best
        self.best = torch.where(is_better, values, self.best)
        self.best_points = torch.where(is_better[:, None], self.points, self.best_points)
        self.best_gradients = torch.where(is_better[:, None], gradients, self.best_gradients)

    def _look(self, gradients: Tensor) -> Tensor:
        """Halve where too few steps were successful, or nothing was gained at a kept length; the
        gradients at the points where the rows are then."""
        few = self.successes < RISING_SHARE * (self._done - self._looked_at)
        stuck = ~self.has_halved & (self.best >= self.best_then)
        self.has_halved = few | stuck
        self.sizes = torch.where(self.has_halved, self.sizes / 2, self.sizes)
        again = self.has_halved[:, None]
        self.points = torch.where(again, self.best_points, self.points)
        self.last = torch.where(self.has_halved, self.best, self.last)
        self.best_then = self.best.clone()
        self.successes = torch.zeros_like(self.successes)
        self._looked_at = self._done
        return torch.where(again, self.best_gradients, gradients)


def checkpoints(steps: int) -> list[int]:
    """The steps after which APGD looks at what was gained."""
    places, before, at = [], 0.0, FIRST_PERIOD
    while (step := math.ceil(round(at * steps, 9))) < steps:
        places.append(step)
        before, at = at, at + max(at - before - SHORTER_BY, LEAST_PERIOD)
    return list(dict.fromkeys(places))


class Fgsm(_FixedRadius):
    """One step of steepest descent from the input, as long as the radius, for every task."""

    name: ClassVar[str] = "fgsm"

    def __init__(self, *, seconds: float = math.inf) -> None:
        super().__init__(steps=1, restarts=1, seconds=seconds)

    def descent(self, batch: Batch, points: Tensor, radii: Tensor) -> ConstantSteps:
        return ConstantSteps(points, radii)


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

    def descent(self, batch: Batch, points: Tensor, radii: Tensor) -> ConstantSteps:
        return ConstantSteps(points, self.step * radii)


class Apgd(_FixedRadius):
    """APGD on the guides of all tasks: from long steps, which are halved where gains end."""

    name: ClassVar[str] = "apgd"

    def __init__(self, *, steps: int = 80, restarts: int = 3, seconds: float = math.inf) -> None:
        super().__init__(steps=steps, restarts=restarts, seconds=seconds)

    def descent(self, batch: Batch, points: Tensor, radii: Tensor) -> ConstantSteps:
        return AdaptiveSteps(points, radii, self.steps, batch.room)
