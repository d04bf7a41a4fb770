"""Rows: the linear functions whose lower bounds are a proof's steps.

A row of a unit a, or of no unit (then it closes a leaf), is

    side * a + sum of gamma_j (row j of the violation) - sum of beta_d sign_d a_d

with gamma, beta >= 0. For all inputs that violate the requirement and lie on the path to the node,
the rows of the violation are <= 0 and sign_d a_d >= 0. So a lower bound of the row is one of
side * a; and without a unit a bound above 0 is a contradiction. This is weak duality: gamma and
beta are Lagrange multipliers, all of which are valid. beta are those of beta-CROWN (Wang et al.,
2021), gamma for bounds of units those of INVPROP (Kotha et al., 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from radii_check._format import Array

SLOPE_STEPS = 255
"""Slopes of lines are bytes, whole multiples of 1/255."""
UNDERFLOW = 2.0**-700
"""What products that underflow may change of a row: 2^40 of them, with numbers below 2^300."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Weighted terms of several rows: term i adds to row `row[i]` the argument of unit `index[i]`
    (or that row of the violations) times `weight[i]`."""

    index: Array
    row: Array
    weight: Array

    @classmethod
    def of(cls, index: Array, weight: Array | float, row: Array | None = None) -> Terms:
        """One term for each row in order, if no `row` is given."""
        rows = np.arange(len(index)) if row is None else row
        weights = np.broadcast_to(np.asarray(weight, np.float64), (len(index),))
        return cls(index.astype(int), rows.astype(int), weights)

    @classmethod
    def none(cls) -> Terms:
        return cls.of(np.zeros(0, int), 0.0)

    @classmethod
    def joined(cls, parts: Sequence[Terms], first_rows: Sequence[int] | None = None) -> Terms:
        """All terms, those of part i in rows from `first_rows[i]` on."""
        firsts = [0] * len(parts) if first_rows is None else first_rows
        return cls(
            np.concatenate([part.index for part in parts]),
            np.concatenate([part.row + first for part, first in zip(parts, firsts, strict=True)]),
            np.concatenate([part.weight for part in parts]),
        )

    def among(self, units: slice) -> Terms:
        """The terms of these units, numbered from the first of them."""
        is_among = (self.index >= units.start) & (self.index < units.stop)
        index = self.index[is_among] - units.start
        return Terms(index, self.row[is_among], self.weight[is_among])


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Several rows, to be bounded together.

    regions         for each row, the number of the region that it is bounded over
    lower, upper    (units, rows): what is known of the arguments of all units
    slopes          (units, rows): slopes of the lines below open units, in steps of 1/255
    on_units        terms on arguments of units: the unit itself, and beta
    on_violations   terms on rows of violations: gamma
    """

    regions: Array
    lower: Array
    upper: Array
    slopes: Array
    on_units: Terms
    on_violations: Terms

    @property
    def count(self) -> int:
        return len(self.regions)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All of them, one behind the other."""
        firsts = np.cumsum([0, *(part.count for part in parts[:-1])]).tolist()
        return cls(
            np.concatenate([part.regions for part in parts]),
            np.concatenate([part.lower for part in parts], axis=1),
            np.concatenate([part.upper for part in parts], axis=1),
            np.concatenate([part.slopes for part in parts], axis=1),
            Terms.joined([part.on_units for part in parts], firsts),
            Terms.joined([part.on_violations for part in parts], firsts),
        )


def crown_slopes(lower: Array, upper: Array) -> Array:
    """CROWN's slopes of lines below open units: 1 where u > -l, which leaves less room, else 0."""
    return np.asarray(SLOPE_STEPS * (upper > -lower).astype(np.uint8))
