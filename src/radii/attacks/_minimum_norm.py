"""The attack `minimum-norm`: the closest counterexample to each query of a batch.

`Pursuit` attacks, shrinks what it meets towards the input, and attacks again just below that
distance. `STAGES` says from where, for how many steps and how far each pass of it moves.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from radii.attacks._base import BatchAttack
from radii.attacks._batches import Batch, Clock
from radii.attacks._random_search import RandomSearch
from radii.networks import Network
from radii.problem import Array, Query

MOMENTUM = 0.75
CONTRACTION_SHARE = 0.4
"""The part of a stage's steps during which a row that starts further out is drawn in."""
HORIZON = 2.0
"""How far beyond a query's radius points may go: what leads to a counterexample may lie outside."""
NARROWING_SHARE = 0.5
"""The part of a stage's steps during which secants narrow to gradients."""
STRIDES = (1.0, 0.5, 0.2, 0.05)
"""Which parts of the way to the foot of the linearised boundary are tried."""
TIMED_ROWS = 16
"""Rows whose gradient is timed to tell what a stage will take."""
THINNED_FROM = 0.5
"""A stage of which less than this part would be done in time gets fewer rows instead."""
SMALLEST_DIVISOR = 1e-30
"""Keeps quotients finite where a gradient vanishes."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a row begins.

    `kind` is center, inner (a random point of the ball), half (one of the ball half as large),
    corner (a random extreme point), best or near (the best counterexample with much or little
    noise). `reach` is the radius that the row may use at first, relative to the distance of the
    best counterexample: coming from further out it meets other parts of the boundary. `width` is
    that of the secants which stand for gradients at first; see `radii.attacks._secants`.
    """

    kind: str
    reach: float = 1.0
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class PursuitStage:
    """One pass over the most promising tasks of every query.

    A row for each start moves for `share` of a query's tasks. `rungs` are pairs of how many steps
    to do and which part of a query's rows, the most promising ones, to keep thereafter. Over all
    steps the length of a step falls along a cosine from the first to the last of `sizes`, and the
    radius closes in on the best counterexample from the first to the last of `gaps`, all as parts
    of that counterexample's distance.
    """

    starts: tuple[Start, ...]
    rungs: tuple[tuple[int, float], ...]
    share: float = 1.0
    sizes: tuple[float, float] = (1.0, 0.005)
    gaps: tuple[float, float] = (0.03, 0.001)

    @property
    def work(self) -> float:
        """Steps, as many as would cost the same with all rows."""
        total, kept = 0.0, 1.0
        for steps, share in self.rungs:
            total += steps * kept
            kept *= share
        return total

    def size(self, progress: float) -> float:
        first, last = self.sizes
        return last + (first - last) * 0.5 * (1 + math.cos(math.pi * progress))

    def gap(self, progress: float) -> float:
        first, last = self.gaps
        return float(first * (last / first) ** progress)


@dataclass(slots=True, eq=False)
class _MovingPoints:
    """Points on their way, each for one task, with what they carry along."""

    points: Tensor
    tasks: Tensor
    momentum: Tensor
    reaches: Tensor
    widths: Tensor

    def keep(self, chosen: Tensor) -> None:
        self.points, self.tasks = self.points[chosen], self.tasks[chosen]
        self.momentum = self.momentum[chosen]
        self.reaches, self.widths = self.reaches[chosen], self.widths[chosen]


PursuitStep = Callable[[_MovingPoints, PursuitStage, float], None]
"""Moves the rows once; the number is the part of the stage's steps that is done."""


class Pursuit:
    """The closest counterexample of each query so far, and how promising each task is.

    `best` is its distance, or the horizon while there is none; `points` and `tasks` are the
    counterexample and the task that it breaks. It may lie outside the query's ball.
    """

    def __init__(self, batch: Batch, seed: int, clock: Clock) -> None:
        self.batch, self.seed, self.clock = batch, seed, clock
        self.row_seconds: float | None = None
        self.horizon = HORIZON * batch.radii
        self.best = self.horizon.clone()
        self.points = batch.centers.clone()
        self.tasks = torch.zeros(len(batch.queries), dtype=torch.long)
        self.is_found = torch.zeros(len(batch.queries), dtype=torch.bool)
        self._efforts = torch.zeros(len(batch.owners), dtype=batch.centers.dtype)

    def run(self, stage: PursuitStage, number: int) -> None:
        """One stage; `number` tells its random numbers from those of other stages."""
        chosen = self._most_promising(self.batch.owners, self._efforts, stage.share)
        rows = self._started(stage, chosen, number)
        self._thin(rows, stage)
        self._follow(stage, rows, self._step)

    def meet(self, stage: PursuitStage, number: int) -> None:
        """One stage for the tasks with several rows alone, which are all lowered at once."""
        chosen = self.batch.objective.conjunctions
        if len(chosen):
            self._follow(stage, self._started(stage, chosen, number), self._joint_step)

    def _thin(self, rows: _MovingPoints, stage: PursuitStage) -> None:
        """Fewer rows where a stage would take far longer than the time left, those nearest to
        breaking of each query: whole paths of a few are worth more than first steps of all."""
        if math.isinf(self.clock.end):
            return
        if self.row_seconds is None:
            self.row_seconds = self._timed(rows)
        share = self.clock.left / (self.row_seconds * len(rows.tasks) * stage.work)
        if share < THINNED_FROM:
            depths = self.batch.objective.depths(rows.points, rows.tasks)
            owners = self.batch.owners[rows.tasks]
            rows.keep(self._most_promising(owners, depths, max(share, 0.0)))

    def _timed(self, rows: _MovingPoints) -> float:
        """Seconds of one row in one step; once before it counts, since first calls take longer."""
        for count in (1, TIMED_ROWS):
            started = time.monotonic()
            self.batch.objective.gradients(rows.points[:count], rows.tasks[:count])
        return (time.monotonic() - started) / min(TIMED_ROWS, len(rows.tasks)) + SMALLEST_DIVISOR

    def _follow(
        self,
        stage: PursuitStage,
        rows: _MovingPoints,
        step: PursuitStep,
    ) -> None:
        total, done = sum(steps for steps, _ in stage.rungs), 0
        for steps, kept in stage.rungs:
            for _ in range(steps):
                if self.clock.is_over:
                    return
                step(rows, stage, done / total)
                done += 1
            efforts = self._weigh(rows)
            if kept < 1:
                chosen = self._most_promising(self.batch.owners[rows.tasks], efforts, kept)
                rows.keep(chosen)

    def polish(self, steps: int) -> None:
        """Moves each counterexample along the boundary: to where the linearised one is closest.

        On a linear network one step is exact.
        """
        batch, geometry = self.batch, self.batch.geometry
        for _ in range(steps):
            rows = self.is_found.nonzero()[:, 0]
            if len(rows) == 0 or self.clock.is_over:
                return
            points, tasks, centers = self.points[rows], self.tasks[rows], batch.centers[rows]
            _, guides, gradients = batch.objective.gradients(points, tasks)
            gains = guides - (gradients * (points - centers)).sum(dim=1)
            feet = geometry.nearest(centers, gradients, gains.clamp(min=0.0), batch.room)
            tried = torch.cat([points + stride * (feet - points) for stride in STRIDES])
            tasks = tasks.repeat(len(STRIDES))
            broken = (batch.objective.depths(tried, tasks) <= 0).nonzero()[:, 0]
            if len(broken):
                self._take(tried[broken], tasks[broken])

    def _started(self, stage: PursuitStage, chosen: Tensor, number: int) -> _MovingPoints:
        """A row for each start and chosen task."""
        points = torch.cat(
            [
                self._start(start, chosen, f"{number}.{place}")
                for place, start in enumerate(stage.starts)
            ]
        )
        reaches, widths = (
            torch.tensor(values, dtype=points.dtype).repeat_interleave(len(chosen))
            for values in zip(*((start.reach, start.width) for start in stage.starts), strict=True)
        )
        tasks = chosen.repeat(len(stage.starts))
        rows = _MovingPoints(points, tasks, torch.zeros_like(points), reaches, widths)
        objective, turns = self.batch.objective, self.batch.objective.turns[tasks]
        if bool((turns > 1).any()):
            places = torch.arange(len(stage.starts)).repeat_interleave(len(chosen))
            rows.keep((places % turns == objective.turn[tasks]).nonzero()[:, 0])
        return rows

    def _start(self, start: Start, tasks: Tensor, purpose: str) -> Tensor:
        batch, owners = self.batch, self.batch.owners[tasks]
        centers = batch.centers[owners]
        radii = torch.minimum(start.reach * self.best[owners], self.horizon[owners])
        radii = radii * batch.objective.reaches[tasks]
        if start.kind == "center":
            return centers.clone()
        noise = batch.noise(tasks, self.seed, purpose)
        if start.kind == "corner":
            offsets = batch.geometry.corners(noise) * radii[:, None]
        else:
            offsets = batch.geometry.inner(noise) * (_NOISE[start.kind] * radii)[:, None]
        if start.kind in ("best", "near"):
            offsets += self.points[owners] - centers
        return batch.geometry.project(centers + offsets, centers, radii, batch.room)

    def _step(self, rows: _MovingPoints, stage: PursuitStage, progress: float) -> None:
        batch, owners = self.batch, self.batch.owners[rows.tasks]
        centers = batch.centers[owners]
        widths = (
            rows.widths * (1 - progress / NARROWING_SHARE) if progress < NARROWING_SHARE else None
        )
        depths, _, gradients = batch.objective.gradients(rows.points, rows.tasks, widths)
        self._catch(rows, depths)
        outside = (rows.reaches - 1) * max(0.0, 1 - progress / CONTRACTION_SHARE)
        factors = torch.where(outside > 0, 1 + outside, 1 - stage.gap(progress))
        radii = torch.minimum(factors * self.best[owners], self.horizon[owners])
        radii = radii * batch.objective.reaches[rows.tasks]
        scale = gradients.abs().mean(dim=1, keepdim=True) + SMALLEST_DIVISOR
        rows.momentum = MOMENTUM * rows.momentum + gradients / scale
        sizes = stage.size(progress) * radii
        moved = batch.geometry.step(rows.points, rows.momentum, sizes, batch.room)
        rows.points = batch.geometry.project(moved, centers, radii, batch.room)

    def _joint_step(self, rows: _MovingPoints, stage: PursuitStage, progress: float) -> None:
        batch, owners = self.batch, self.batch.owners[rows.tasks]
        widths = (
            rows.widths * (1 - progress / NARROWING_SHARE) if progress < NARROWING_SHARE else None
        )
        depths, steps = batch.objective.joint_steps(rows.points, rows.tasks, widths)
        self._catch(rows, depths)
        radii = torch.minimum((1 - stage.gap(progress)) * self.best[owners], self.horizon[owners])
        centers, moved = batch.centers[owners], rows.points + steps
        rows.points = batch.geometry.project(moved, centers, radii, batch.room)

    def _catch(self, rows: _MovingPoints, depths: Tensor) -> None:
        """Records the rows that broke their task, if they do so closer than the best known."""
        broken = (depths <= 0).nonzero()[:, 0]
        if len(broken) == 0:
            return
        points, tasks = rows.points[broken], rows.tasks[broken]
        owners = self.batch.owners[tasks]
        centers = self.batch.centers[owners]
        lengths = self.batch.geometry.lengths(points - centers)
        beyond = self.is_found[owners] & (lengths >= self.best[owners])
        if bool(beyond.any()):
            inward = (0.999 * self.best[owners] / (lengths + SMALLEST_DIVISOR)).clamp(max=1.0)
            points = centers + inward[:, None] * (points - centers)
            still = self.batch.objective.depths(points, tasks) <= 0
            broken, points, tasks = broken[still], points[still], tasks[still]
        if len(broken):
            rows.points[broken] = self._take(points, tasks)

    def _weigh(self, rows: _MovingPoints) -> Tensor:
        """How much further each row would have to go, if the network were linear from there on."""
        depths, guides, gradients = self.batch.objective.gradients(rows.points, rows.tasks)
        self._catch(rows, depths)
        owners = self.batch.owners[rows.tasks]
        slopes = self.batch.geometry.slopes(gradients) + SMALLEST_DIVISOR
        efforts = guides / slopes / self.best[owners]
        missed = torch.full_like(self._efforts, math.inf)
        least = missed.scatter_reduce(0, rows.tasks, efforts, "amin")
        self._efforts = torch.where(least.isfinite(), least, self._efforts + 1)
        return efforts

    def _most_promising(self, owners: Tensor, efforts: Tensor, share: float) -> Tensor:
        """Of each query's entries the given share, at least one, with the least effort."""
        order = efforts.argsort(stable=True)
        order = order[owners[order].argsort(stable=True)]
        counts = torch.bincount(owners, minlength=len(self.batch.queries))
        ranks = torch.arange(len(order)) - (counts.cumsum(0) - counts)[owners[order]]
        quotas = (counts * share).ceil().clamp(min=1)
        return order[ranks < quotas[owners[order]]].sort().values

    def _take(self, points: Tensor, tasks: Tensor) -> Tensor:
        """Broken points, shrunk towards their inputs; the closest ones are remembered."""
        owners = self.batch.owners[tasks]
        centers = self.batch.centers[owners]
        points = self.batch.shrunk(points, tasks)
        lengths = self.batch.geometry.lengths(points - centers)
        for row in lengths.argsort(descending=True).tolist():
            owner = int(owners[row])
            if lengths[row] < self.best[owner] or not self.is_found[owner]:
                self.best[owner], self.points[owner] = lengths[row], points[row]
                self.tasks[owner], self.is_found[owner] = tasks[row], True
        return points


_NOISE = {"inner": 1.0, "half": 0.5, "best": 0.5, "near": 0.1}


_START_WIDTHS = (0.25, 0.5, 0.0, 1.0)
_ANYWHERE = tuple(
    Start(kind, 1.0, width)
    for turn in range(4)
    for kind, width in zip(
        ("inner" if turn else "center", "inner", "corner", "half"),
        _START_WIDTHS[turn:] + _START_WIDTHS[:turn],
        strict=True,
    )
)
_FROM_OUTSIDE = (
    Start("inner", 1.3, 0.25),
    Start("corner", 1.5, 0.0),
    Start("half", 2.0, 0.5),
    Start("inner", 6.0, 0.25),
)
_REFINE = (Start("inner", 1.0, 0.25), Start("corner"), Start("best", 1.0, 0.25), Start("near"))

STAGES = (
    PursuitStage(_ANYWHERE, ((10, 0.3), (30, 0.3), (60, 1.0))),
    PursuitStage(_FROM_OUTSIDE * 2, ((10, 0.5), (20, 0.3), (30, 1.0))),
    PursuitStage(_REFINE, ((60, 1.0),), share=0.25, sizes=(0.5, 0.003), gaps=(0.01, 0.0002)),
)
"""Results and costs of each stage on test images are in docs/attacks.md."""
QUICK_STAGES = (
    PursuitStage(
        (Start("center", 1.0, 0.25), Start("inner"), Start("corner", 1.0, 0.5), Start("half")),
        ((10, 0.2), (30, 1.0)),
    ),
)
"""A fifth of the time; what it loses is in docs/attacks.md as well."""
_SCALES = (1.0, 0.3, 0.1, 0.02)
JOINT_STAGE = PursuitStage(
    (
        Start("center"),
        Start("center", 1.0, 0.25),
        *(Start("inner", scale, width) for scale in _SCALES for width in (0.0, 0.25)),
        *(Start("corner", scale) for scale in _SCALES),
        Start("inner", 1.0, 0.5),
        Start("inner", 0.3, 0.5),
    ),
    ((12, 0.5), (12, 1.0)),
)
"""Where a violation needs several comparisons at once, before the other stages. The region may be
small or thin, and anywhere in the ball: its starts are of all scales."""
JOINT_REFINING_STAGE = PursuitStage(
    (*(Start(kind) for kind in ("best", "near", "near", "center", "inner", "corner")),),
    ((15, 1.0),),
    gaps=(0.01, 0.0002),
)
"""The same after them."""
POLISHING_STEPS = 10
"""Steps along the boundary at the end."""


class MinimumNorm(BatchAttack):
    """All targets at once, from many starts, always just below the best counterexample so far.

    `stages` are done one after the other; `seconds` stops early and keeps what it has found. Where
    there are no gradients, `RandomSearch` runs instead.
    """

    name: ClassVar[str] = "minimum-norm"

    def __init__(
        self, *, stages: tuple[PursuitStage, ...] = STAGES, seconds: float = math.inf
    ) -> None:
        self.stages = stages
        self.seconds = seconds

    def quick(self) -> MinimumNorm | None:
        if self.stages != STAGES:
            return None
        return MinimumNorm(stages=QUICK_STAGES, seconds=self.seconds)

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        if not network.has_gradient:
            return RandomSearch(seconds=self.seconds).run(network, queries, seed)
        return super().run(network, queries, seed)

    @property
    def rows(self) -> int:
        return max(len(stage.starts) for stage in self.stages)

    def search(self, batch: Batch, seed: int, clock: Clock) -> dict[int, Tensor]:
        pursuit = Pursuit(batch, seed, clock)
        pursuit.meet(JOINT_STAGE, len(self.stages))
        for number, stage in enumerate(self.stages):
            pursuit.clock = clock.share(len(self.stages) - number)
            pursuit.run(stage, number)
        pursuit.clock = clock
        pursuit.meet(JOINT_REFINING_STAGE, len(self.stages) + 1)
        pursuit.polish(POLISHING_STEPS)
        found = pursuit.is_found.nonzero()[:, 0].tolist()
        return {place: pursuit.points[place] for place in found}
