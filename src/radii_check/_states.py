"""What is known at a node of a tree of splits of units."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from radii_check._format import Array


def _no_splits() -> Array:
    return np.zeros(0, int)


@dataclass(slots=True, eq=False)
class State:
    """Bounds of the arguments of all units, and the splits on the path to the node: the argument of
    `split_units[d]` is >= 0 if `split_signs[d]` is +1, and <= 0 if that is -1.

    `lower` and `upper` are never written to, but replaced: states share them.
    """

    lower: Array
    upper: Array
    split_units: Array = field(default_factory=_no_splits)
    split_signs: Array = field(default_factory=_no_splits)

    @property
    def is_open(self) -> Array:
        return np.asarray((self.lower < 0) & (self.upper > 0))

    @property
    def is_empty(self) -> bool:
        """Some unit's argument would have to be both above and below."""
        return bool((self.lower > self.upper).any())

    def columns(self, count: int) -> tuple[Array, Array]:
        """Its bounds, for each of `count` rows."""
        shape = len(self.lower), count
        lower = np.broadcast_to(self.lower[:, None], shape)
        return lower, np.broadcast_to(self.upper[:, None], shape)

    def child(self, unit: int, sign: int) -> State:
        """The state on one side of a split."""
        units, signs = np.append(self.split_units, unit), np.append(self.split_signs, sign)
        child = State(self.lower, self.upper, units, signs)
        child.tighten(units[-1:], signs[-1:], np.zeros(1))
        return child

    def intersect(self, lower: Array, upper: Array) -> None:
        self.lower = np.maximum(self.lower, lower)
        self.upper = np.minimum(self.upper, upper)

    def tighten(self, unit: Array, side: Array, bound: Array) -> None:
        """side * argument >= bound, for several units."""
        from_below, from_above = side > 0, side < 0
        self.lower, self.upper = self.lower.copy(), self.upper.copy()
        np.maximum.at(self.lower, unit[from_below], bound[from_below])
        np.minimum.at(self.upper, unit[from_above], -bound[from_above])
