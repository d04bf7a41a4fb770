"""The distance from a point to a polyhedron, with a lower bound that needs no trust in the solver.

For any multipliers y >= 0, every x with matrix @ x <= bound satisfies
|x - centre| >= y @ (matrix @ centre - bound) / |matrix.T @ y|, the latter in the dual norm. So a
solver only proposes y. If the polyhedron is empty, good multipliers make the quotient huge. Where
each feature has a scale, all of it is done in steps x = centre + scale * step.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array

from radii.bounds import (
    SMALLEST_NORMAL,
    SUM_ROUNDING,
    Fusion,
    Stage,
    StageBounds,
    euclidean_lengths,
    hinges_of,
    windows_of,
)
from radii.networks import Hinges
from radii.problem import Halfspaces, Limits, Norm, Verdict
from radii.verifiers._expressions import Affine, Float64, combined, unit_rows
from radii.verifiers._programs import LinearConstraints, Program, exhausted, load, run_highs

_DUAL: dict[Norm, Any] = {Norm.LINF: 1, Norm.L2: 2, Norm.L1: np.inf}


@dataclass(frozen=True, slots=True, eq=False)
class Polyhedron:
    """All x with matrix @ x <= bound."""

    matrix: Float64
    bound: Float64

    def cut(self, matrix: Float64, bound: Float64) -> Polyhedron:
        return Polyhedron(np.vstack([self.matrix, matrix]), np.append(self.bound, bound))

    def contains(self, x: Float64, tolerance: float = 0.0) -> bool:
        return bool(np.all(self.matrix @ x <= self.bound + tolerance))


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """`bound` is proven to be at most the distance; `point` is the solver's nearest, if any."""

    bound: float
    point: Float64 | None


def nearest(
    polyhedron: Polyhedron,
    centre: Float64,
    norm: Norm,
    limits: Limits,
    scale: Float64 | float = 1.0,
) -> Nearest:
    """How far the polyhedron is from the centre. The bound is huge if it is empty."""
    if polyhedron.contains(centre):
        return Nearest(0.0, centre)
    slopes, gaps = polyhedron.matrix * scale, polyhedron.bound - polyhedron.matrix @ centre
    lengths = np.linalg.norm(slopes, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    solve = _euclidean if norm is Norm.L2 else _linear
    multipliers, point = solve(slopes / lengths[:, None], gaps / lengths, norm, limits)
    # The sign of a ray is the solver's choice; clipped to y >= 0, either sign gives a valid bound.
    proven = max(
        _proven(polyhedron, centre, norm, sign * multipliers / lengths, slopes)
        for sign in (1.0, -1.0)
    )
    return Nearest(proven, None if point is None else centre + scale * point)


def _proven(
    polyhedron: Polyhedron, centre: Float64, norm: Norm, multipliers: Float64, slopes: Float64
) -> float:
    """The quotient above, with the rounding of this computation taken off."""
    y = np.where(np.isfinite(multipliers), np.maximum(multipliers, 0.0), 0.0)
    gain = y @ (polyhedron.matrix @ centre - polyhedron.bound)
    sizes = np.abs(polyhedron.matrix) @ np.abs(centre) + np.abs(polyhedron.bound)
    gain -= SUM_ROUNDING * float(y @ sizes)
    length = _dual_length(slopes.T @ y, norm)
    length += SUM_ROUNDING * _dual_length(np.abs(slopes).T @ y, norm)
    length += SMALLEST_NORMAL * (1 + float(y.sum()))
    if not (0 < gain < np.inf and length < np.inf):  # also where either is NaN
        return 0.0
    with np.errstate(over="ignore"):
        return float(np.float64(gain) / length * (1 - SUM_ROUNDING))


def _dual_length(vector: Float64, norm: Norm) -> float:
    if norm is Norm.L2:
        return float(euclidean_lengths(vector))
    return float(np.linalg.norm(vector, _DUAL[norm]))


def _euclidean(
    matrix: Float64, bound: Float64, _norm: Norm, _limits: Limits
) -> tuple[Float64, Float64 | None]:
    """Least distance as a non-negative least-squares problem: multipliers and step."""
    from scipy.optimize import nnls  # a tenth of the start of a worker; only L2 gets here

    stacked = np.vstack([-matrix.T, -bound[None]])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    try:
        multipliers, _ = nnls(stacked, target)
    except RuntimeError:  # no convergence: nothing is known
        return np.zeros(len(bound)), None
    residual = stacked @ multipliers - target
    if abs(residual[-1]) < EMPTY_RESIDUAL:
        return multipliers, None
    return multipliers, -residual[:-1] / residual[-1]


EMPTY_RESIDUAL = 1e-12
"""A residual below this says that no point meets all constraints."""


def _linear(
    matrix: Float64, bound: Float64, norm: Norm, limits: Limits
) -> tuple[Float64, Float64 | None]:
    """Least distance in Linf or L1 as a linear program over steps up and steps down."""
    count, features = matrix.shape
    steps = np.hstack([matrix, -matrix])
    cost = np.ones(2 * features)
    if norm is Norm.LINF:
        steps = np.hstack([steps, np.zeros((count, 1))])
        within = np.hstack([np.eye(features), np.eye(features), -np.ones((features, 1))])
        steps = np.vstack([steps, within])
        cost = np.append(np.zeros(2 * features), 1.0)
    high = np.concatenate([bound, np.zeros(len(steps) - count)])
    rows = LinearConstraints(csr_array(steps), np.full(len(high), -np.inf), high)
    program = Program(np.zeros(len(cost)), np.full(len(cost), np.inf), rows, cost)
    solver = load(program, threads=1, presolve=False)
    status = run_highs(solver, limits)
    if status == highspy.HighsModelStatus.kInfeasible:
        _, has_ray, ray = solver.getDualRay()
        return (np.array(ray)[:count] if has_ray else np.zeros(count)), None
    solution = solver.getSolution()
    if not (solution.dual_valid and solution.value_valid):
        return np.zeros(count), None
    value = np.array(solution.col_value)
    return -np.array(solution.row_dual)[:count], value[:features] - value[features : 2 * features]


# The decisions that make a network affine, stage by stage, and what they lead to.


@dataclass(frozen=True, slots=True)
class OpenUnit:
    """One unit of a stage: a hinge below (0) or above (1) its knee, or which input is largest.

    `inputs` are entries of what the stage reads: one for a hinge, several for a maximum.
    """

    unit: int
    inputs: tuple[int, ...]
    knee: float | None = None
    hinge: int = 0

    @property
    def pieces(self) -> int:
        return len(self.inputs) if self.knee is None else 2

    def cut(self, piece: int, z: Affine) -> tuple[Float64, Float64]:
        """The constraints matrix @ x <= bound of one piece, wide enough for rounding."""
        rows = z.rows(np.array(self.inputs))
        matrix = rows.matrix.toarray()
        if self.knee is not None:
            sign = 1.0 if piece == 0 else -1.0
            return sign * matrix, sign * (self.knee - rows.offset) + rows.error
        others = [i for i in range(len(self.inputs)) if i != piece]
        bound = rows.offset[piece] - rows.offset[others]
        return matrix[others] - matrix[piece], bound + rows.error[others] + rows.error[piece]


@dataclass(frozen=True, slots=True, eq=False)
class StagePlan:
    """A stage and the decisions that its bounds leave open."""

    stage: Stage
    bounds: StageBounds
    decisions: tuple[OpenUnit, ...]
    hinges: Hinges | None
    above: tuple[frozenset[int], ...]
    winners: tuple[int, ...]

    def value(self, z: Affine, pieces: Sequence[int]) -> Affine:
        """The stage's result once every decision is made."""
        if self.hinges is None:
            winners = list(self.winners)
            for decision, piece in zip(self.decisions, pieces, strict=True):
                winners[decision.unit] = decision.inputs[piece]
            return z.rows(np.array(winners))
        hinges = self.hinges
        above = [set(units) for units in self.above]
        for decision, piece in zip(self.decisions, pieces, strict=True):
            if piece == 1:
                above[decision.hinge].add(decision.unit)
        slope, offset = hinges.slope.copy(), hinges.offset.copy()
        for units, knee, change in zip(above, hinges.knee, hinges.change, strict=True):
            chosen = sorted(units)
            slope[chosen] += change[chosen]
            offset[chosen] -= change[chosen] * knee[chosen]
        values = z.rows(hinges.sources).scaled(slope, offset)
        return values.widened(self.bounds.value_error)


def plan(fusion: Fusion, bounds: Sequence[StageBounds]) -> list[StagePlan]:
    """Every stage with what interval bounds over the region leave to decide."""
    plans = []
    for stage, held in zip(fusion.stages, bounds, strict=True):
        result = fusion.graph.nodes[stage.node].shape
        hinges = hinges_of(stage.operator, stage.shape, result)
        if hinges is not None:
            plans.append(_plan_hinges(stage, hinges, held))
        else:
            plans.append(_plan_maxima(stage, held))
    return plans


def _plan_hinges(stage: Stage, hinges: Hinges, bounds: StageBounds) -> StagePlan:
    low, high = bounds.low, bounds.high
    decisions, above = [], []
    for k, (knees, changes) in enumerate(zip(hinges.knee, hinges.change, strict=True)):
        settled = set()
        for unit, (source, knee) in enumerate(zip(hinges.sources, knees, strict=True)):
            if low[source] >= knee:
                settled.add(unit)
            elif high[source] > knee and changes[unit] != 0:
                decisions.append(OpenUnit(unit, (int(source),), float(knee), k))
        above.append(frozenset(settled))
    return StagePlan(stage, bounds, tuple(decisions), hinges, tuple(above), ())


def _plan_maxima(stage: Stage, bounds: StageBounds) -> StagePlan:
    low, high = bounds.low, bounds.high
    decisions, winners = [], []
    for unit, candidates in enumerate(windows_of(stage.operator, stage.shape).candidates):
        best = int(candidates[np.argmax(low[candidates])])
        rivals = [int(c) for c in candidates if high[c] > low[best] and c != best]
        winners.append(best)
        if rivals:
            decisions.append(OpenUnit(unit, (best, *rivals)))
    return StagePlan(stage, bounds, tuple(decisions), None, (), tuple(winners))


# Linear regions around an input, nearest first.
#
# A region fixes the pieces of the units decided so far; it is a polyhedron on which everything up
# to there is affine. Regions are divided in the order of their distance, so that the first
# violation to come up is the nearest of all.


SAME_POINT = 1e-10
"""A smaller polyhedron that holds the nearest point of a larger one, up to this, is as near."""


@dataclass(frozen=True, slots=True, eq=False)
class RegionViolation:
    """A violation in one linear region: `depths` are its rows as expressions in the input."""

    region: Polyhedron
    depths: Affine
    polyhedron: Halfspaces


@dataclass(frozen=True, slots=True, eq=False)
class _Region:
    polyhedron: Polyhedron
    values: dict[int, Affine]
    stage: int = 0
    z: Affine | None = None
    pieces: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class NextViolation:
    """The next violation, no nearer than `bound`; or none within reach, and why, if interrupted."""

    bound: float
    found: RegionViolation | None = None
    point: Float64 | None = None
    stopped: Verdict | None = None


@dataclass(slots=True)
class Exploration:
    """All violations within `reach` of a centre in a box, from the nearest on."""

    fusion: Fusion
    bounds: Sequence[StageBounds]
    output: StageBounds
    centre: Float64
    box: tuple[Float64, Float64]
    norm: Norm
    reach: float
    violations: Sequence[Halfspaces]
    cuts: Halfspaces | None
    limits: Limits
    scale: Float64 | float = 1.0
    _plans: list[StagePlan] = field(init=False)
    _waiting: list[tuple[float, int, Nearest, _Region | RegionViolation]] = field(
        default_factory=list
    )
    _order: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._plans = plan(self.fusion, self.bounds)
        low, high = self.box
        exact = unit_rows(np.arange(len(low)), len(low))
        inputs = Affine(exact, np.zeros(len(low)), np.zeros(len(low)))
        identity = np.eye(len(low))
        whole = Polyhedron(np.vstack([identity, -identity]), np.concatenate([high, -low]))
        if self.cuts is not None:
            whole = whole.cut(self.cuts.matrix, -self.cuts.offset)
        self._push(whole, _Region(whole, {0: inputs}), None)

    def next(self) -> NextViolation:
        """The nearest violation that has not been returned yet."""
        while self._waiting:
            stopped = exhausted(self.limits)
            if stopped:
                return NextViolation(self._waiting[0][0], stopped=stopped)
            bound, _, where, item = heapq.heappop(self._waiting)
            if isinstance(item, RegionViolation):
                return NextViolation(bound, item, where.point)
            self._divide(item, where)
        return NextViolation(self.reach)

    def within(self, found: RegionViolation, depth: float) -> Nearest:
        """The nearest point of a found violation that is at least so deep."""
        bound = -depth - found.depths.offset
        deeper = found.region.cut(found.depths.matrix.toarray(), bound)
        return nearest(deeper, self.centre, self.norm, self.limits, self.scale)

    def _push(
        self, shape: Polyhedron, item: _Region | RegionViolation, parent: Nearest | None
    ) -> None:
        """Keep an item if its polyhedron is within reach; its parent's nearest point may serve."""
        if (
            parent is not None
            and parent.point is not None
            and shape.contains(parent.point, SAME_POINT)
        ):
            where = parent
        else:
            where = nearest(shape, self.centre, self.norm, self.limits, self.scale)
            if parent is not None and parent.bound > where.bound:
                where = Nearest(parent.bound, where.point)
        if where.bound <= self.reach:
            heapq.heappush(self._waiting, (where.bound, next(self._order), where, item))

    def _divide(self, region: _Region, where: Nearest) -> None:
        if region.stage == len(self._plans):
            self._push_violations(region, where)
            return
        current = self._plans[region.stage]
        z = region.z or self._read(current.stage, current.bounds, region.values)
        if len(region.pieces) == len(current.decisions):
            values = {**region.values, current.stage.node: current.value(z, region.pieces)}
            done = _Region(region.polyhedron, values, region.stage + 1)
            self._divide(done, where)
            return
        decision = current.decisions[len(region.pieces)]
        for piece in range(decision.pieces):
            smaller = region.polyhedron.cut(*decision.cut(piece, z))
            pieces = (*region.pieces, piece)
            child = _Region(smaller, region.values, region.stage, z, pieces)
            self._push(smaller, child, where)

    def _push_violations(self, region: _Region, where: Nearest) -> None:
        outputs = self._read(self.fusion.output, self.output, region.values)
        for polyhedron in self.violations:
            maps = {0: csr_array(polyhedron.matrix)}
            depths = combined(maps, polyhedron.offset, {0: outputs}, self._sizes)
            bound = depths.error - depths.offset
            smaller = region.polyhedron.cut(depths.matrix.toarray(), bound)
            self._push(smaller, RegionViolation(region.polyhedron, depths, polyhedron), where)

    def _read(self, stage: Stage, bounds: StageBounds, values: dict[int, Affine]) -> Affine:
        """What the stage reads, with what the network rounds."""
        return combined(stage.matrices, stage.offset, values, self._sizes).widened(bounds.error)

    @property
    def _sizes(self) -> Float64:
        return np.maximum(np.abs(self.box[0]), np.abs(self.box[1]))
