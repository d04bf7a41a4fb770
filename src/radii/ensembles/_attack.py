"""Looking for perturbations that fool many classifiers at once. Failing proves nothing.

Points and target sets go together in one batch: a row descends on the margins of all members of its
set. Whatever set of classifiers any row fools on its way is kept, target or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from radii.attacks import Clock, DomainRows, Geometry, geometry
from radii.ensembles._ensemble import Ensemble, Fooling, Point, is_within, maximal, members
from radii.problem import Ball, Norm

JOINT_STEPS = 40
JOINT_STARTS = 8
"""Rows for each target: half descend on the worst member's margin, half on the sum of all."""
JOINT_FIRST_STEP, JOINT_LAST_STEP = 0.5, 0.01
"""Lengths of a step, as parts of the ball's diameter."""
MOMENTUM = 0.75
JOINT_REPLAYS = 2
"""Candidates of each set that are replayed, the deepest first."""
CHUNK_BYTES = 64 * 2**20
"""Values of the networks that are held at once; more rows than that run one after the other."""
SMALLEST_NORM = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class JointTarget:
    """A point, by its place among those attacked, and a set of classifiers to fool there.

    `start`, where given, is an input to begin from, such as one that fools a part of the set.
    """

    place: int
    classifiers: int
    start: Fooling | None = None


def attack_jointly(
    ensemble: Ensemble,
    points: Sequence[Point],
    targets: Sequence[JointTarget],
    *,
    norm: Norm,
    eps: float,
    seed: int = 0,
    seconds: float = math.inf,
    steps: int = JOINT_STEPS,
    starts: int = JOINT_STARTS,
) -> list[list[Fooling]]:
    """For each point what was found: inputs of its ball, replayed, that fool different sets."""
    clock = Clock.of(seconds)
    search = _JointDescent(ensemble, points, norm, eps, seed)
    sizes = sum(node.size for c in ensemble.classifiers for node in c.scores.graph.nodes)
    at_once = max(1, CHUNK_BYTES // (8 * sizes * starts))
    for first in range(0, len(targets), at_once):
        if clock.is_over:
            break
        search.run(targets[first : first + at_once], clock, steps=steps, starts=starts)
    return [search.replayed(place) for place in range(len(points))]


@dataclass(slots=True)
class _DeepestInputs:
    """The deepest inputs seen of each set of classifiers at one point."""

    best: dict[int, list[tuple[float, Tensor]]] = field(default_factory=dict)

    def add(self, mask: int, depth: float, row: Tensor) -> None:
        kept = self.best.setdefault(mask, [])
        if len(kept) < JOINT_REPLAYS or depth > kept[-1][0]:
            kept.append((depth, row.clone()))
            kept.sort(key=lambda entry: -entry[0])
            del kept[JOINT_REPLAYS:]


class _JointDescent:
    def __init__(
        self, ensemble: Ensemble, points: Sequence[Point], norm: Norm, eps: float, seed: int
    ) -> None:
        self.ensemble = ensemble
        self.points = points
        self.balls: list[Ball] = [ensemble.ball(point, norm, eps) for point in points]
        self.norm: Geometry = geometry(norm)
        first = ensemble.networks[0]
        self.dtype = first.torch_dtype
        low, high = (
            torch.from_numpy(np.array(side, first.input_dtype).ravel())
            for side in ensemble.domain.box(first.input_shape)
        )
        self.room = DomainRows(low, high)
        self.reach = min(eps, norm.length((high - low).numpy()))
        self.generator = torch.Generator().manual_seed(seed)
        self.seen = [_DeepestInputs() for _ in points]
        self.bits = torch.tensor([1 << place for place in range(len(ensemble))])

    def run(self, targets: Sequence[JointTarget], clock: Clock, *, steps: int, starts: int) -> None:
        """Descend on some targets at once."""
        rows = [target for target in targets for _ in range(starts)]
        owners = [row.place for row in rows]
        labels = torch.tensor([self.points[place].label for place in owners])
        wanted = torch.zeros(len(rows), len(self.ensemble), dtype=torch.bool)
        for number, row in enumerate(rows):
            wanted[number, list(members(row.classifiers))] = True
        centers = torch.stack([self._flat(self.points[place].input) for place in owners])
        radii = torch.full((len(rows),), self.reach, dtype=self.dtype)
        points = self._starts(rows, centers, radii, starts)
        by_worst = torch.arange(len(rows)) % 2 == 0
        momentum = torch.zeros_like(points)
        scale: Tensor | None = None
        for step in range(steps + 1):
            leaves = points.detach().requires_grad_()
            margins = self._margins(leaves, labels)
            if scale is None:
                scale = margins.detach().abs().clamp(min=SMALLEST_NORM)
            is_done = self._keep(points, margins.detach(), owners, wanted)
            if clock.is_over or step == steps or bool(is_done.all()):
                return
            relative = (margins / scale).masked_fill(~wanted, -math.inf)
            worst = relative.amax(dim=1)
            added = torch.where(wanted, (margins / scale).clamp(min=-0.1), 0.0).sum(dim=1)
            loss = torch.where(by_worst, worst, added).sum()
            (gradients,) = torch.autograd.grad(loss, leaves)
            gradients = torch.nan_to_num(gradients)
            norms = gradients.abs().mean(dim=1, keepdim=True) + SMALLEST_NORM
            momentum = MOMENTUM * momentum + gradients / norms
            cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
            size = JOINT_LAST_STEP + (JOINT_FIRST_STEP - JOINT_LAST_STEP) * cosine
            moved = self.norm.step(points, momentum, 2 * size * radii, self.room)
            points = self.norm.project(moved, centers, radii, self.room)

    def replayed(self, place: int) -> list[Fooling]:
        """What replays on ONNX Runtime, largest sets first; sets within found ones are skipped."""
        found: list[Fooling] = []
        seen = self.seen[place].best
        for mask in sorted(seen, key=lambda m: (-m.bit_count(), m)):
            for _, row in seen[mask]:
                if any(is_within(mask, other.fooled) for other in found):
                    break
                candidate = row.numpy().astype(np.float64)
                fooling = self.ensemble.replay(self.points[place], self.balls[place], candidate)
                if fooling is not None and fooling.fooled:
                    found.append(fooling)
        kept = set(maximal(fooling.fooled for fooling in found))
        return [fooling for fooling in found if fooling.fooled in kept]

    def _flat(self, values: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> Tensor:
        return torch.from_numpy(np.array(values).ravel()).to(self.dtype)

    def _starts(
        self, rows: Sequence[JointTarget], centers: Tensor, radii: Tensor, starts: int
    ) -> Tensor:
        """The point itself or what was given, and random inputs of the ball."""
        noise = 2 * torch.rand(centers.shape, generator=self.generator, dtype=self.dtype) - 1
        turns = torch.arange(len(rows)) % starts
        is_corner = (turns // 2) % 2 == 1
        offsets = torch.where(is_corner[:, None], self.norm.corners(noise), self.norm.inner(noise))
        offsets[turns < 2] = 0.0
        points = centers + radii[:, None] * offsets
        for number, row in enumerate(rows):
            if row.start is not None and number % starts < 2:
                points[number] = self._flat(row.start.input)
        return self.norm.project(points, centers, radii, self.room)

    def _margins(self, points: Tensor, labels: Tensor) -> Tensor:
        """For each row and classifier how far the label's score is above its rivals'."""
        columns = []
        for classifier in self.ensemble.classifiers:
            network = classifier.scores
            scores = network(points.reshape(len(points), *network.input_shape))
            own = scores.gather(1, labels[:, None])[:, 0]
            rivals = scores.scatter(1, labels[:, None], -math.inf).amax(dim=1)
            columns.append(own - (rivals.clamp(min=0.0) if classifier.has_floor else rivals))
        return torch.stack(columns, dim=1)

    def _keep(
        self, points: Tensor, margins: Tensor, owners: Sequence[int], wanted: Tensor
    ) -> Tensor:
        """Note what each row fools; which rows have reached their target."""
        is_fooled = margins <= 0
        masks = (is_fooled * self.bits).sum(dim=1).tolist()
        depths = torch.where(is_fooled, -margins, math.inf).amin(dim=1).tolist()
        for number, mask in enumerate(masks):
            if mask:
                self.seen[owners[number]].add(mask, depths[number], points[number])
        return (is_fooled | ~wanted).all(dim=1)
