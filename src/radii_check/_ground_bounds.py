"""Ground bounds: bounds of all units over the parts of a proof, before any split.

Part p is the claim's region with its own eps[p], which is at least the claim's; eps does not
increase from part to part, so that what is true on an earlier part is true on a later one. A
certificate states bounds l <= a <= u of every unit's argument on every part. Each one must follow,
from bounds of units in earlier layers, in one of these ways:

    an earlier part of the certificate has the same or a better bound of this unit
    intervals
    a row with stated slopes, if the certificate has some for it; else with CROWN's
    the same row with flat lines, 0 and u, instead (intervals with cancellation)
    the same row with constants, max(0, l) and max(0, u), of all units: bounds of units that are not
        open may be better than what a row through them shows
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from radii_check._backward import ReluLines
from radii_check._errors import Rejected, require, require_format
from radii_check._format import Array
from radii_check._network import Unit
from radii_check._proof import Proof
from radii_check._rows import Rows, Terms, crown_slopes
from radii_check._states import State


class GroundBounds:
    """The stated bounds, `lower` and `upper` (units, parts), as float64; and what is known on each
    part: `known_lower` and `known_upper`, the intersection of the parts up to it."""

    def __init__(self, lower: Array, upper: Array) -> None:
        self.lower, self.upper = lower, upper
        self.known_lower = np.maximum.accumulate(lower, 1)
        self.known_upper = np.minimum.accumulate(upper, 1)

    @property
    def parts(self) -> int:
        return int(self.lower.shape[1])

    def state(self, part: int) -> State:
        """What is known on a part before any split."""
        return State(self.known_lower[:, part], self.known_upper[:, part])

    def check(self, proof: Proof) -> None:
        """Raise Rejected for the first stated bound that nothing shows."""
        needs_row = self._not_shown_by_intervals(proof)
        needs_row[0, :, 1:] &= self.lower[:, 1:] > self.known_lower[:, :-1]
        needs_row[1, :, 1:] &= self.upper[:, 1:] < self.known_upper[:, :-1]
        order, layer_start = self._order_and_layers(proof)
        stated_slopes = StatedSlopes(self, proof, layer_start)
        for part in range(self.parts):
            from_above, place = np.nonzero(needs_row[:, order, part])
            side = 1 - 2 * from_above
            self._check_by_rows(proof, part, order[place], side, stated_slopes)

    def _not_shown_by_intervals(self, proof: Proof) -> Array:
        """(2, units, parts): the lower, and the upper bounds that intervals do not show; by the
        forward pass, in which the bounds of each layer narrow the intervals of later ones."""
        missing = np.zeros((2, *self.lower.shape), bool)
        num = proof.num

        def compare(node: Unit, low: Array, high: Array) -> None:
            require_format(node.kind == "Relu", f"operator {node.kind} needs a proof by boxes")
            units = node.units
            missing[0, units] = self.lower[units] > num.floor(low)
            missing[1, units] = -self.upper[units] > num.floor(-high)

        proof.bounds.forward(compare)
        return missing

    def _order_and_layers(self, proof: Proof) -> tuple[Array, Array]:
        """All units, those of neighbouring entries together, whose rows share windows; and for each
        unit the first one of its layer."""
        layer_start = np.zeros(len(self.lower), int)
        order = [np.zeros(0, int)]
        for node in proof.network.nodes:
            if isinstance(node, Unit) and node.kind == "Relu":
                entries_per_channel = max(1, math.prod(node.shape[2:]))
                place = np.arange(math.prod(node.shape)) % entries_per_channel
                units = node.first + np.argsort(place, kind="stable")
                layer_start[units] = node.first
                order.append(units)
        return np.concatenate(order), layer_start

    def _check_by_rows(
        self, proof: Proof, part: int, unit: Array, side: Array, stated_slopes: StatedSlopes
    ) -> None:
        """side * argument >= bound for some units of a part: by a row of the unit alone."""
        state = State(self.lower[:, part], self.upper[:, part])
        bound = np.where(side > 0, state.lower[unit], -state.upper[unit])
        shortfall = np.full(len(unit), math.inf)
        default = crown_slopes(state.lower, state.upper)

        def rows_of(numbers: Array) -> Rows:
            keys = zip(unit[numbers].tolist(), side[numbers].tolist(), strict=True)
            stated = (stated_slopes.of(part, *key) for key in keys)
            slopes = np.stack([default if own is None else own for own in stated], 1)
            regions = np.full(len(numbers), part)
            on_units = Terms.of(unit[numbers], side[numbers])
            return Rows(regions, *state.columns(len(numbers)), slopes, on_units, Terms.none())

        for lines in ReluLines:
            left = np.flatnonzero(shortfall > 0)
            excess = proof.lower_bounds(left, rows_of, lines) - bound[left]
            proof.margin = min(proof.margin, excess[excess >= 0].min(initial=math.inf))
            shortfall[left] = np.minimum(shortfall[left], -excess)
        for i in np.flatnonzero(~(shortfall <= 0)):
            what = f"part {part} states a bound of unit {unit[i]}, side {side[i]:+d}"
            raise Rejected(f"{what}, that no row shows: it fails by {shortfall[i]:.3g}")


class StatedSlopes:
    """Slopes that the certificate states for single ground bounds: for each of them one byte for
    each unit in earlier layers that is open on its part, all in one array."""

    def __init__(self, ground: GroundBounds, proof: Proof, layer_start: Array) -> None:
        part, unit, side = (proof.arrays[f"ground_{name}"] for name in ("part", "unit", "side"))
        self.slopes = proof.arrays["ground_slopes"]
        self.layer_start = layer_start
        self.is_open = (ground.lower < 0) & (ground.upper > 0)
        none_yet = np.zeros((1, ground.parts), int)
        open_before = np.vstack([none_yet, np.cumsum(self.is_open, 0)])
        self.ends = np.cumsum([0, *open_before[layer_start[unit], part]])
        fits = self.slopes.shape == (self.ends[-1],)
        require(fits, "its ground lemmas have other numbers of slopes")
        self.keys = np.asarray(self._key(part.astype(np.int64), unit, side))
        self.order = np.argsort(self.keys)

    def _key(self, part: Any, unit: Any, side: Any) -> Any:
        """One number for a part, a unit and a side, to look it up; also of arrays."""
        return (part * len(self.layer_start) + unit) * 3 + side

    def of(self, part: int, unit: int, side: int) -> Array | None:
        """Slopes of all units for this bound, or None if none are stated."""
        key = self._key(part, unit, side)
        place = np.searchsorted(self.keys, key, sorter=self.order)
        if place == len(self.keys) or self.keys[number := self.order[place]] != key:
            return None
        slopes = np.zeros(len(self.layer_start), np.uint8)
        is_open_before = self.is_open[: self.layer_start[unit], part]
        stated = self.slopes[self.ends[number] : self.ends[number + 1]]
        slopes[: len(is_open_before)][is_open_before] = stated
        return slopes
