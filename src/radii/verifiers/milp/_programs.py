"""The two programs of an encoding: its linear relaxation, and the exact one with integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from radii.verifiers._expressions import Affine, Integers, times_rows, unit_rows
from radii.verifiers._programs import LinearConstraints, Program, at_least, at_most, program
from radii.verifiers.milp._encoding import Encoding, HingeUnits, MaximumUnit
from radii.verifiers.milp._goals import Goal


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the rows of a relaxed program are: hinges, their triangles, maxima, region, goal."""

    hinges: int
    maxima: tuple[slice, ...]
    goal: int

    def above(self, hinge: int) -> int:
        """The row column - input >= 0; an equation where the unit is active."""
        return hinge

    def triangle(self, hinge: int) -> int:
        """The row that holds the column below the chord."""
        return self.hinges + hinge


def layout_of(encoding: Encoding) -> RowLayout:
    hinges = len(encoding.hinges)
    slices, first = [], 2 * hinges
    for unit in encoding.maxima:
        slices.append(slice(first, first + len(unit.inputs)))
        first += len(unit.inputs) + 1
    return RowLayout(hinges, tuple(slices), first + len(encoding.region))


def relaxed_program(encoding: Encoding, goal: Goal | None = None) -> Program:
    """Each unit relaxed to the linear constraints that its bounds imply; rows as in `RowLayout`."""
    parts = [*_relaxed_hinges(encoding.hinges, len(encoding.low))]
    for unit in encoding.maxima:
        parts.extend(_relaxed_maximum(unit, len(encoding.low)))
    return _finished(encoding, goal, parts)


def exact_program(encoding: Encoding, goal: Goal) -> Program:
    """Each unit exact, with integer columns behind all others to choose its piece."""
    first = len(encoding.low) + len(goal.low)
    hinges = encoding.hinges
    unsettled = np.flatnonzero((hinges.low < 0) & (hinges.high > 0))
    chosen = unit_rows(first + np.arange(len(unsettled)), first + len(unsettled))
    above, _ = _relaxed_hinges(hinges, len(encoding.low))
    parts = [above, *_switched_hinges(hinges, unsettled, chosen)]
    total = first + len(unsettled)
    for unit in encoding.maxima:
        parts.extend(_switched_maximum(unit, total))
        total += len(unit.inputs)
    return _finished(encoding, goal, parts, integers=range(first, total))


def _finished(
    encoding: Encoding,
    goal: Goal | None,
    parts: list[LinearConstraints],
    integers: range = range(0),
) -> Program:
    ones = np.ones(len(integers))
    if goal is None:
        low, high, cost = encoding.low, encoding.high, np.zeros(len(encoding.low))
        return program(low, high, [*parts, encoding.region], cost)
    low = np.concatenate([encoding.low, goal.low, 0 * ones])
    high = np.concatenate([encoding.high, goal.high, ones])
    cost = np.concatenate([goal.cost, 0 * ones])
    return program(low, high, [*parts, encoding.region, goal.rows], cost, integers=integers)


def _relaxed_hinges(hinges: HingeUnits, columns: int) -> Iterator[LinearConstraints]:
    """column >= input (equal where active), and column <= the chord over the input's range."""
    count = len(hinges)
    value = unit_rows(hinges.columns, columns)
    rest = hinges.inputs.scaled(np.full(count, -1.0), np.zeros(count)).plus(value)
    above, equal = at_least(rest, np.zeros(count)), at_most(rest, np.zeros(count))
    active, crossing = hinges.low >= 0, (hinges.low < 0) & (hinges.high > 0)
    yield LinearConstraints(above.matrix, above.low, np.where(active, equal.high, np.inf))
    slope = np.divide(hinges.high, hinges.high - hinges.low, where=crossing, out=np.zeros(count))
    below = at_most(hinges.inputs.scaled(-slope, np.zeros(count)).plus(value), -slope * hinges.low)
    yield LinearConstraints(below.matrix, below.low, np.where(crossing, below.high, np.inf))


def _switched_hinges(
    hinges: HingeUnits,
    unsettled: Integers,
    chosen: csr_array,
) -> Iterator[LinearConstraints]:
    """column <= high * on, and column <= input - low * (1 - on)."""
    columns = chosen.shape[1]
    low, high = hinges.low[unsettled], hinges.high[unsettled]
    value = unit_rows(hinges.columns[unsettled], columns)
    nothing = np.zeros(len(unsettled))
    off = Affine(csr_array(value - times_rows(chosen, high)), nothing, nothing)
    yield at_most(off, nothing)
    inputs = hinges.inputs.rows(unsettled)
    on = inputs.scaled(np.full(len(unsettled), -1.0), nothing)
    yield at_most(on.plus(csr_array(value - times_rows(chosen, low))), -low)


def _relaxed_maximum(unit: MaximumUnit, columns: int) -> Iterator[LinearConstraints]:
    """value >= each input, and value - greatest low <= the sum of how far inputs are above low."""
    count = len(unit.inputs)
    value = unit_rows(np.full(count, unit.column), columns)
    rest = unit.inputs.scaled(np.full(count, -1.0), np.zeros(count)).plus(value)
    yield at_least(rest, np.zeros(count))
    total = Affine(
        csr_array(unit.inputs.matrix.sum(axis=0)[None]),
        unit.inputs.offset.sum(keepdims=True),
        unit.inputs.error.sum(keepdims=True),
    )
    excess = total.scaled(np.full(1, -1.0), np.zeros(1)).plus(value[[0]])
    yield at_most(excess, np.array([unit.low.max() - unit.low.sum()]))


def _switched_maximum(unit: MaximumUnit, first: int) -> Iterator[LinearConstraints]:
    """value >= each input, value <= the chosen input, and exactly one is chosen."""
    count = len(unit.inputs)
    value = unit_rows(np.full(count, unit.column), first)
    rest = unit.inputs.scaled(np.full(count, -1.0), np.zeros(count)).plus(value)
    yield at_least(rest, np.zeros(count))
    room = unit.high.max() - unit.low
    chosen = unit_rows(first + np.arange(count), first + count, room)
    yield at_most(rest.plus(chosen), room)
    one = csr_array(unit_rows(first + np.arange(count), first + count).sum(axis=0)[None])
    yield LinearConstraints(one, np.ones(1), np.ones(1))
