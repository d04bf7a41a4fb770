"""Linear programs, with or without integer columns, that never cut off a true value.

Whatever HiGHS would drop or round is dropped here first, and the rows are widened by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, vstack

from radii.bounds.regions import ROUNDING
from radii.verifiers.linear.expressions import Affine, Float64, widened_to, with_data

__all__ = ["Program", "Rows", "at_least", "at_most", "joined", "program"]

SMALLEST_COEFFICIENT = 1e-9
"""HiGHS drops matrix entries below this; here they become slack of their row."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Constraints low <= matrix @ v <= high."""

    matrix: csr_array
    low: Float64
    high: Float64

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Minimise cost @ v + offset over columns between low and high, subject to rows."""

    low: Float64
    high: Float64
    rows: Rows
    cost: Float64
    offset: float = 0.0
    integers: tuple[int, ...] = ()

    @property
    def sizes(self) -> Float64:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def largest(self) -> float:
        """The largest absolute value of its numbers: columns, and coefficients."""
        coefficients = np.abs(self.rows.matrix.data).max(initial=0.0)
        return float(max(self.sizes.max(initial=0.0), coefficients))

    @property
    def total_range(self) -> float:
        """How far all columns and all rows can move, added up."""
        columns = self.high - self.low
        return float(columns.sum() + (abs(self.rows.matrix) @ columns).sum())


def at_least(expressions: Affine, bound: Float64) -> Rows:
    """What the expressions stand for is at least `bound`."""
    low = bound - expressions.offset
    slack = expressions.error + ROUNDING * (np.abs(bound) + np.abs(expressions.offset))
    return Rows(expressions.matrix, low - slack, np.full(len(low), np.inf))


def at_most(expressions: Affine, bound: Float64) -> Rows:
    """What the expressions stand for is at most `bound`."""
    high = bound - expressions.offset
    slack = expressions.error + ROUNDING * (np.abs(bound) + np.abs(expressions.offset))
    return Rows(expressions.matrix, np.full(len(high), -np.inf), high + slack)


def joined(parts: Sequence[Rows], columns: int) -> Rows:
    """All rows of all parts, in order, over the given number of columns."""
    matrices = [csr_array((0, columns)), *(widened_to(part.matrix, columns) for part in parts)]
    low = np.concatenate([np.zeros(0), *(part.low for part in parts)])
    high = np.concatenate([np.zeros(0), *(part.high for part in parts)])
    return Rows(csr_array(vstack(matrices)), low, high)


def program(
    low: Float64,
    high: Float64,
    parts: Sequence[Rows],
    cost: Float64,
    *,
    offset: float = 0.0,
    integers: Sequence[int] = (),
) -> Program:
    """All rows of all parts, in order, as one program that HiGHS takes as it is."""
    rows = joined(parts, len(low))
    sizes = np.maximum(np.abs(low), np.abs(high))
    return Program(low, high, _without_small(rows, sizes), cost, offset, tuple(integers))


def _without_small(rows: Rows, sizes: Float64) -> Rows:
    small = np.abs(rows.matrix.data) <= SMALLEST_COEFFICIENT
    if not small.any():
        return rows
    dropped = with_data(rows.matrix, np.where(small, rows.matrix.data, 0.0))
    kept = with_data(rows.matrix, np.where(small, 0.0, rows.matrix.data))
    slack = abs(dropped) @ sizes
    return Rows(kept, rows.low - slack, rows.high + slack)
