"""AutoAttack within a given radius: APGD-CE, targeted APGD-DLR, targeted FAB, Square, in turn.

Written from Croce and Hein, "Reliable evaluation of adversarial robustness with an ensemble of
diverse parameter-free attacks" (ICML 2020), with the parameters of its standard version, and from
their paper on FAB (ICML 2020). A part sees only what the parts before it have not broken.

A way to break a query stands for a class: for one-to-any robustness its guide is the difference
between the logit of the label and that of the class, and what follows is what the papers write.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from radii.attacks._base import BatchAttack
from radii.attacks._batches import Batch, Clock
from radii.attacks._fixed_radius import AdaptiveSteps, descend
from radii.attacks._geometry import SMALLEST_DIVISOR, DomainRows
from radii.attacks._objectives import PointLoss
from radii.attacks._square import square_search
from radii.errors import SpecificationError
from radii.problem import Norm

STEPS = 100
"""Steps of APGD and of FAB."""
TARGETS = 9
"""Classes that the targeted parts try: those with the largest logits at the input."""
EVALUATIONS = 5000
"""Evaluations of Square for each query."""
FAB_BIAS = 0.1
"""The largest weight of the step from the input in FAB's biased step."""
FAB_OVERSHOOT = 1.05
"""How far beyond the linearised boundary FAB steps."""
FAB_BACK = 0.9
"""Once over the boundary, FAB continues from this part of the way from the input."""

Found = dict[int, tuple[float, Tensor]]
"""For each broken query the length of its closest counterexample, and where it is."""


class AutoAttack(BatchAttack):
    """The four parts one after the other; `targets` classes, `evaluations` of Square.

    L1 is not searched: the paper defines the parts for Linf and L2. `seconds` stops early and
    keeps what it has found.
    """

    name: ClassVar[str] = "autoattack"
    norms = frozenset({Norm.LINF, Norm.L2})
    needs_gradient: ClassVar[bool] = True

    def __init__(
        self,
        *,
        steps: int = STEPS,
        targets: int = TARGETS,
        evaluations: int = EVALUATIONS,
        seconds: float = math.inf,
    ) -> None:
        if steps < 1 or targets < 1 or evaluations < 1:
            raise SpecificationError(
                f"attack '{self.name}' needs at least one step, target and evaluation, not "
                f"{steps}, {targets} and {evaluations}"
            )
        self.steps, self.targets, self.evaluations = steps, targets, evaluations
        self.seconds = seconds

    @property
    def rows(self) -> int:
        return 1

    def search(self, batch: Batch, seed: int, clock: Clock) -> dict[int, Tensor]:
        """Of each query the closest point of the first part that breaks it."""
        closest: Found = {}
        nearest = _nearest_tasks(batch, self.targets)
        for part in range(4):
            going = [owner for owner in range(len(batch.queries)) if owner not in closest]
            going = [owner for owner in going if nearest[owner]]
            if not going or clock.is_over:
                break
            limit = clock.share(4 - part)
            if part == 0:
                rows = [nearest[owner][0] for owner in going]
                closest |= descend_loss(batch, rows, _cross_entropy, self.steps, seed, limit)
                continue
            rows = [task for owner in going for task in nearest[owner]]
            if part == 1:
                closest |= descend_loss(batch, rows, _targeted_ratio, self.steps, seed, limit)
            elif part == 2:
                closest |= fast_boundary(batch, rows, self.steps, limit)
            else:
                points, depths = square_search(batch, going, self.evaluations, seed, limit)
                closest |= _closest(batch, points, torch.tensor(going), depths)
        return {owner: point for owner, (_, point) in closest.items()}


def _nearest_tasks(batch: Batch, count: int) -> list[list[int]]:
    """Of each query the tasks whose depth at the input is least, the least first."""
    tasks = torch.arange(len(batch.owners))
    owned: list[list[int]] = [[] for _ in batch.queries]
    if len(tasks) == 0:
        return owned
    depths = batch.objective.depths(batch.centers[batch.owners], tasks)
    for task in depths.argsort(stable=True).tolist():
        own = owned[int(batch.owners[task])]
        if len(own) < count:
            own.append(task)
    return owned


def _closest(batch: Batch, points: Tensor, owners: Tensor, depths: Tensor) -> Found:
    """Of each query's broken points the closest, after drawing them to the input."""
    broken = (depths <= 0).nonzero()[:, 0]
    if len(broken) == 0:
        return {}
    owners = owners[broken]
    least_depths = functools.partial(batch.objective.least_depths, owners=owners)
    return batch.closest(points[broken], owners, least_depths)


# --- APGD: projected gradient steps with momentum, halved at checkpoints


def _cross_entropy(_: Tensor, guides: Tensor, __: Tensor) -> Tensor:
    """Less the cross-entropy of the label: log(1 + sum of exp(-guide)) over all classes."""
    return -softplus(torch.logsumexp(-guides, dim=1))


def _targeted_ratio(own: Tensor, _: Tensor, scores: Tensor) -> Tensor:
    """Less the targeted difference of logits ratio: the guide over z1 - (z3 + z4) / 2, sorted.

    With fewer than four outputs the ratio is not defined, and the difference itself is lowered.
    """
    if scores.shape[1] < 4:
        return own
    largest = scores.topk(4, dim=1).values
    spread = largest[:, 0] - (largest[:, 2] + largest[:, 3]) / 2
    return own / (spread + SMALLEST_DIVISOR)


def descend_loss(
    batch: Batch, rows: Sequence[int], loss: PointLoss, steps: int, seed: int, clock: Clock
) -> Found:
    """APGD, one row for each given task; those of a query stop once one of them breaks it."""
    tasks, objective = torch.tensor(rows), batch.objective
    wide = torch.full_like(batch.room.low, math.inf)
    points, radii = _starts(batch, tasks, seed), batch.radii_of(tasks)
    return descend(
        batch,
        tasks,
        AdaptiveSteps(points, radii, steps, DomainRows(-wide, wide)),
        steps=steps,
        clock=clock,
        evaluate=functools.partial(objective.losses, loss=loss),
        depths_of=lambda some: functools.partial(objective.least_depths, owners=batch.owners[some]),
    )


def _starts(batch: Batch, tasks: Tensor, seed: int) -> Tensor:
    """Random points at the whole radius from the inputs, then brought into the domain."""
    centers = batch.centers[batch.owners[tasks]]
    noise = batch.noise(tasks, seed, "autoattack")
    if batch.queries[0].instance.norm is Norm.L2:
        noise = batch.geometry.corners(noise)
    else:
        noise = batch.geometry.inner(noise)
    length = batch.geometry.lengths(noise) + SMALLEST_DIVISOR
    offsets = noise * (batch.radii_of(tasks) / length)[:, None]
    return batch.projected(centers + offsets, tasks)


# --- FAB: steps onto the linearised boundary, drawn towards the input


def fast_boundary(batch: Batch, rows: Sequence[int], steps: int, clock: Clock) -> Found:
    """Targeted FAB: the closest counterexample of each query, if it lies in the ball."""
    tasks = torch.tensor(rows)
    owners = batch.owners[tasks]
    centers, points = batch.centers[owners], batch.centers[owners].clone()
    closest = points.clone()
    lengths = torch.full((len(tasks),), math.inf, dtype=points.dtype)
    for _ in range(steps):
        if clock.is_over:
            break
        points = _fab_step(batch, points, centers, tasks)
        is_broken = batch.objective.least_depths(points, owners) <= 0
        away = batch.geometry.lengths(points - centers)
        is_closer = is_broken & (away < lengths)
        lengths = torch.where(is_closer, away, lengths)
        closest = torch.where(is_closer[:, None], points, closest)
        back = centers + FAB_BACK * (points - centers)
        points = torch.where(is_broken[:, None], back, points)
    known = torch.where(lengths.isfinite(), -1.0, 1.0)
    trimmed = _closest(batch, closest, owners, known)
    radii = batch.radii.tolist()
    return {owner: one for owner, one in trimmed.items() if one[0] <= radii[owner]}


def _fab_step(batch: Batch, points: Tensor, centers: Tensor, tasks: Tensor) -> Tensor:
    _, guides, gradients = batch.objective.gradients(points, tasks)
    at_centers = guides + (gradients * (centers - points)).sum(dim=1)
    here = _onto_boundary(batch, points, gradients, guides)
    there = _onto_boundary(batch, centers, gradients, at_centers)
    far, near = batch.geometry.lengths(here), batch.geometry.lengths(there)
    bias = (far / (far + near + SMALLEST_DIVISOR)).clamp(max=FAB_BIAS)[:, None]
    moved = (1 - bias) * (points + FAB_OVERSHOOT * here)
    return batch.room.clip(moved + bias * (centers + FAB_OVERSHOOT * there))


def _onto_boundary(batch: Batch, points: Tensor, gradients: Tensor, values: Tensor) -> Tensor:
    """The shortest way to where a linear function is 0 whose values at the points are given."""
    along = gradients * values.sign()[:, None]
    return batch.geometry.nearest(points, along, values.abs(), batch.room) - points
