"""Linear regions around an input, nearest first.

A region fixes the pieces of the units decided so far; it is a polyhedron on which everything up to
there is affine. Regions are divided in the order of their distance, so that the first violation to
come up is the nearest of all.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from radii.balls import Norm
from radii.bounds import Fusion, Stage, StageBounds
from radii.properties import Halfspaces
from radii.verdicts import Verdict
from radii.verifiers._base import Limits
from radii.verifiers.enumeration.distances import Nearest, Polyhedron, nearest
from radii.verifiers.enumeration.pieces import StagePlan, plan
from radii.verifiers.linear.expressions import Affine, Float64, combined, unit_rows
from radii.verifiers.linear.highs import exhausted

__all__ = ["Exploration", "Found", "Reached"]


SAME_POINT = 1e-10
"""A smaller polyhedron that holds the nearest point of a larger one, up to this, is as near."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
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
class Reached:
    """The next violation, no nearer than `bound`; or none within reach, and why, if interrupted."""

    bound: float
    found: Found | None = None
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
    _plans: list[StagePlan] = field(init=False)
    _waiting: list[tuple[float, int, Nearest, _Region | Found]] = field(default_factory=list)
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

    def next(self) -> Reached:
        """The nearest violation that has not been returned yet."""
        while self._waiting:
            stopped = exhausted(self.limits)
            if stopped:
                return Reached(self._waiting[0][0], stopped=stopped)
            bound, _, where, item = heapq.heappop(self._waiting)
            if isinstance(item, Found):
                return Reached(bound, item, where.point)
            self._divide(item, where)
        return Reached(self.reach)

    def within(self, found: Found, depth: float) -> Nearest:
        """The nearest point of a found violation that is at least so deep."""
        bound = -depth - found.depths.offset
        deeper = found.region.cut(found.depths.matrix.toarray(), bound)
        return nearest(deeper, self.centre, self.norm, self.limits)

    def _push(self, shape: Polyhedron, item: _Region | Found, parent: Nearest | None) -> None:
        """Keep an item if its polyhedron is within reach; its parent's nearest point may serve."""
        if (
            parent is not None
            and parent.point is not None
            and shape.contains(parent.point, SAME_POINT)
        ):
            where = parent
        else:
            where = nearest(shape, self.centre, self.norm, self.limits)
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
            self._push(smaller, Found(region.polyhedron, depths, polyhedron), where)

    def _read(self, stage: Stage, bounds: StageBounds, values: dict[int, Affine]) -> Affine:
        """What the stage reads, with what the network rounds."""
        return combined(stage.maps, stage.offset, values, self._sizes).widened(bounds.error)

    @property
    def _sizes(self) -> Float64:
        return np.maximum(np.abs(self.box[0]), np.abs(self.box[1]))
