"""The columns and rows that stand for the inputs of a region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from radii.bounds import Fusion, Stage, StageBounds, box_of, hinges_of, linear_range, windows_of
from radii.networks import Hinges
from radii.problem import Ball, Box, Halfspaces, Norm
from radii.verifiers._expressions import Affine, Float64, Integers, combined, stacked, unit_rows
from radii.verifiers._programs import LinearConstraints, at_most, joined_constraints


def input_columns(region: Ball | Box) -> tuple[Float64, Float64, Affine]:
    """Lows and highs of the columns, and the network's input in terms of them."""
    low, high = box_of(region)
    if isinstance(region, Ball) and region.norm is Norm.L1:
        return _steps(region.center.ravel(), low, high)
    exact = unit_rows(np.arange(len(low)), len(low))
    return low, high, Affine(exact, np.zeros(len(low)), np.zeros(len(low)))


def _steps(centre: Float64, low: Float64, high: Float64) -> tuple[Float64, Float64, Affine]:
    """Steps up and steps down from the centre, so that an L1 ball is one row over the columns."""
    up, down = np.maximum(high - centre, 0.0), np.maximum(centre - low, 0.0)
    rising, falling = np.flatnonzero(up > 0), np.flatnonzero(down > 0)
    columns = len(rising) + len(falling)
    places = np.full((2, len(centre)), -1)
    places[0, rising] = np.arange(len(rising))
    places[1, falling] = len(rising) + np.arange(len(falling))
    matrix = csr_array(unit_rows(places[0], columns) + unit_rows(places[1], columns, -1.0))
    reach = np.nextafter(np.concatenate([up[rising], down[falling]]), np.inf)
    return np.zeros(columns), reach, Affine(matrix, centre.copy(), np.zeros(len(centre)))


def region_rows(
    region: Ball | Box, halfspaces: Halfspaces | None, inputs: Affine, sizes: Float64
) -> LinearConstraints:
    """What the region demands beyond the bounds of its columns."""
    parts = []
    if isinstance(region, Ball) and region.norm is Norm.L1:
        total = csr_array(abs(inputs.matrix).sum(axis=0)[None])
        parts.append(at_most(Affine(total, np.zeros(1), np.zeros(1)), np.array([region.eps])))
    if halfspaces is not None:
        maps = {0: csr_array(halfspaces.matrix)}
        depths = combined(maps, halfspaces.offset, {0: inputs}, sizes)
        parts.append(at_most(depths, np.zeros(len(depths))))
    return joined_constraints(parts, len(sizes))


# A network over a region, as columns and the units that tie them together.
#
# Columns are the input and, for each unit whose piece is not settled by its bounds, the unit's
# value. Everything between is affine and eliminated: a unit's input is an expression in earlier
# columns.


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class HingeUnits:
    """Unit k: column `columns[k]` is max(0, input k), and input k is between low[k] and high[k]."""

    columns: Integers
    inputs: Affine
    low: Float64
    high: Float64

    def __len__(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class MaximumUnit:
    """The column is the largest of the inputs, each between its low and its high."""

    column: int
    inputs: Affine
    low: Float64
    high: Float64


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """A network over a region.

    `inputs` and `outputs` are the network's, flattened, as expressions in the columns; `region`
    is what the region demands of the columns beyond their bounds.
    """

    low: Float64
    high: Float64
    inputs: Affine
    region: LinearConstraints
    hinges: HingeUnits
    maxima: tuple[MaximumUnit, ...]
    outputs: Affine

    @property
    def sizes(self) -> Float64:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def input_at(self, point: Float64) -> Float64:
        """The network's input, flattened, at values of the columns."""
        return self.inputs.at(point)


Tighten = Callable[[Encoding, Affine, Float64, Float64, Float64], tuple[Float64, Float64]]
"""Better bounds on expressions: (encoding so far, expressions, low, high, knees of each)."""


def encode(
    fusion: Fusion,
    region: Ball | Box,
    bounds: Sequence[StageBounds],
    output: StageBounds,
    *,
    halfspaces: Halfspaces | None,
    tighten: Tighten,
) -> Encoding:
    """The encoding of a fused network; `bounds` are those of what its stages and output read."""
    encoder = _Encoder(region, halfspaces, tighten)
    for stage, held in zip(fusion.stages, bounds, strict=True):
        result = fusion.graph.nodes[stage.node].shape
        hinges = hinges_of(stage.operator, stage.shape, result)
        if hinges is not None:
            encoder.add_hinges(stage, hinges, held)
        else:
            encoder.add_maxima(stage, held)
    return encoder.snapshot(encoder.expressions(fusion.output, output))


@dataclass(slots=True)
class _Encoder:
    """Columns and units so far, and every node's value as expressions in the columns."""

    region: Ball | Box
    halfspaces: Halfspaces | None
    tighten: Tighten
    low: Float64 = field(init=False)
    high: Float64 = field(init=False)
    values: dict[int, Affine] = field(default_factory=dict)
    hinges: list[HingeUnits] = field(default_factory=list)
    maxima: list[MaximumUnit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.low, self.high, self.values[0] = input_columns(self.region)

    @property
    def sizes(self) -> Float64:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def snapshot(self, outputs: Affine) -> Encoding:
        nothing = np.zeros(0)
        hinges = HingeUnits(
            np.concatenate([nothing.astype(np.int64), *(u.columns for u in self.hinges)]),
            stacked([units.inputs for units in self.hinges], len(self.low)),
            np.concatenate([nothing, *(units.low for units in self.hinges)]),
            np.concatenate([nothing, *(units.high for units in self.hinges)]),
        )
        inputs = self.values[0]
        rows = region_rows(self.region, self.halfspaces, inputs, self.sizes)
        return Encoding(self.low, self.high, inputs, rows, hinges, tuple(self.maxima), outputs)

    def expressions(
        self, stage: Stage, bounds: StageBounds, needed: Integers | None = None
    ) -> Affine:
        """What the stage reads, or only some rows of it, with what the network rounds."""
        if needed is None:
            rows = combined(stage.matrices, stage.offset, self.values, self.sizes)
            return rows.widened(bounds.error)
        maps = {index: matrix[needed] for index, matrix in stage.matrices.items()}
        rows = combined(maps, stage.offset[needed], self.values, self.sizes)
        return rows.widened(bounds.error[needed])

    def _add_columns(self, low: Float64, high: Float64) -> Integers:
        first = len(self.low)
        self.low, self.high = np.append(self.low, low), np.append(self.high, high)
        return np.arange(first, len(self.low))

    def _bounds(
        self, stage: Stage, bounds: StageBounds, needed: Integers, inputs: Affine
    ) -> tuple[Float64, Float64]:
        """The given bounds of the needed rows, improved by what the expressions say."""
        low, high = bounds.low, bounds.high
        if set(stage.maps) == {0}:
            found = linear_range(stage.matrices[0][needed], stage.offset[needed], self.region)
            found = found[0] - bounds.error[needed], found[1] + bounds.error[needed]
        else:
            found = inputs.range(self.low, self.high)
        # fmax and fmin pass over a NaN, which overflow could leave in what was found.
        return np.fmax(low[needed], found[0]), np.fmin(high[needed], found[1])

    def add_hinges(self, stage: Stage, hinges: Hinges, bounds: StageBounds) -> None:
        # Units that stay at zero need no expression at all.
        used = (bounds.high[hinges.sources] > hinges.knee).any(axis=0) | (hinges.slope != 0)
        needed, place = np.unique(hinges.sources[used], return_inverse=True)
        inputs = self.expressions(stage, bounds, needed)
        low, high = self._bounds(stage, bounds, needed, inputs)
        knees = hinges.knee[:, used]
        crossing = ((low[place] < knees) & (high[place] > knees)).any(axis=0)
        exact = set(stage.maps) <= {0} and self.halfspaces is None
        if crossing.any() and not exact:
            turns = np.zeros((len(knees), len(needed)))
            turns[:, place] = knees
            low, high = self.tighten(self.snapshot(inputs), inputs, low, high, turns)
        z = inputs.rows(place)
        values = self._sum_of_hinges(hinges, used, z, low[place], high[place])
        self.values[stage.node] = values.widened(bounds.value_error)

    def _sum_of_hinges(
        self, hinges: Hinges, used: Mask, z: Affine, low: Float64, high: Float64
    ) -> Affine:
        """slope * z + offset + each hinge: nothing, z - knee, or a column of its own."""
        slope, offset = hinges.slope[used], hinges.offset[used]
        own: list[tuple[Integers, Float64]] = []
        for knee, change in zip(hinges.knee[:, used], hinges.change[:, used], strict=True):
            above = low >= knee
            slope = slope + np.where(above, change, 0.0)
            offset = offset - np.where(above, change * knee, 0.0)
            units = np.flatnonzero(~above & (high > knee) & (change != 0))
            bottom, top = low[units] - knee[units], high[units] - knee[units]
            columns = np.full(len(knee), -1)
            columns[units] = self._add_columns(np.zeros(len(units)), top)
            inputs = z.rows(units).shifted(-knee[units])
            self.hinges.append(HingeUnits(columns[units], inputs, bottom, top))
            own.append((columns, change))
        result = z.scaled(slope, offset)
        for columns, change in own:
            result = result.plus(unit_rows(columns, len(self.low), change))
        return result.spread(np.flatnonzero(used), hinges.offset)

    def add_maxima(self, stage: Stage, bounds: StageBounds) -> None:
        inputs = self.expressions(stage, bounds)
        low, high = self._bounds(stage, bounds, np.arange(len(bounds.low)), inputs)
        windows = windows_of(stage.operator, stage.shape).candidates
        settled, own = np.full(len(windows), -1), np.full(len(windows), -1)
        for index, candidates in enumerate(windows):
            best = candidates[np.argmax(low[candidates])]
            rivals = candidates[(high[candidates] > low[best]) & (candidates != best)]
            if len(rivals) == 0:
                settled[index] = best
                continue
            kept = np.append(best, rivals)
            column = self._add_columns(low[[best]], high[kept].max(keepdims=True))[0]
            unit = MaximumUnit(int(column), inputs.rows(kept), low[kept], high[kept])
            self.maxima.append(unit)
            own[index] = column
        passed = inputs.rows(np.maximum(settled, 0))
        passed = passed.scaled((settled >= 0).astype(np.float64), np.zeros(len(settled)))
        self.values[stage.node] = passed.plus(unit_rows(own, len(self.low)))
