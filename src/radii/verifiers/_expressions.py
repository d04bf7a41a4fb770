"""Affine expressions in the columns of a program, with the rounding error of making them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array, vstack

from radii.bounds import LOST_TO_UNDERFLOW, SMALLEST_NORMAL, SUM_ROUNDING

Float64 = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

UNDERFLOW = LOST_TO_UNDERFLOW[torch.float64]


def widened_to(matrix: csr_array, columns: int) -> csr_array:
    """The same matrix with zero columns behind."""
    if matrix.shape[1] == columns:
        return matrix
    shape = (matrix.shape[0], columns)
    return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=shape, copy=True)


def with_data(matrix: csr_array, data: Float64) -> csr_array:
    """The same pattern with other entries, zeros dropped. Shares no array with the original:

    scipy sorts and drops entries in place, which must not reach a matrix that shares only a part.
    """
    copied = csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
    copied.eliminate_zeros()
    return copied


def times_rows(matrix: csr_array, factors: Float64) -> csr_array:
    """Each row times its factor."""
    return with_data(matrix, matrix.data * np.repeat(factors, np.diff(matrix.indptr)))


def unit_rows(positions: Integers, columns: int, weights: Float64 | float = 1.0) -> csr_array:
    """One row for each position, with its weight there; zeros where the position is negative."""
    rows = np.flatnonzero(positions >= 0)
    data = np.broadcast_to(weights, len(positions))[rows].astype(np.float64)
    return csr_array((data, (rows, positions[rows])), shape=(len(positions), columns))


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """Rows `matrix @ v + offset`; each is within `error` of the value it stands for.

    An error made by `combined` is ROUNDING times the sum of absolute values, thousands of times
    the unit roundoff, so scaling such rows or adding them up is covered too.
    """

    matrix: csr_array
    offset: Float64
    error: Float64

    def __len__(self) -> int:
        return len(self.offset)

    def rows(self, chosen: Integers | npt.NDArray[np.bool_]) -> Affine:
        return Affine(csr_array(self.matrix[chosen]), self.offset[chosen], self.error[chosen])

    def shifted(self, by: Float64) -> Affine:
        """Every row plus a constant; that rounding is part of ROUNDING at the next use."""
        return Affine(self.matrix, self.offset + by, self.error)

    def scaled(self, factors: Float64, offset: Float64) -> Affine:
        """Each row times its factor, plus a constant. A factor of 0 leaves no error behind."""
        matrix = times_rows(self.matrix, factors)
        is_exact = (factors == 0) | (np.abs(factors) == 1)
        error = self.error * np.abs(factors) + np.where(is_exact, 0.0, UNDERFLOW)
        return Affine(matrix, self.offset * factors + offset, error)

    def widened(self, by: Float64 | None) -> Affine:
        """The same rows for values that may be so much farther off."""
        return self if by is None else Affine(self.matrix, self.offset, self.error + by)

    def plus(self, matrix: csr_array) -> Affine:
        """Each row plus a combination of columns, some perhaps newer than the rows."""
        wide = widened_to(self.matrix, matrix.shape[1])
        return Affine(csr_array(wide + matrix), self.offset, self.error)

    def spread(self, places: Integers, offset: Float64) -> Affine:
        """The rows at the given places among constants."""
        constant, error = offset.copy(), np.zeros(len(offset))
        constant[places], error[places] = self.offset, self.error
        lengths = np.zeros(len(offset), np.int64)
        lengths[places] = np.diff(self.matrix.indptr)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        shape = (len(offset), self.matrix.shape[1])
        matrix = csr_array((self.matrix.data, self.matrix.indices, starts), shape=shape, copy=True)
        return Affine(matrix, constant, error)

    def at(self, point: Float64) -> Float64:
        """The rows at values of the columns, some of which may be newer than the rows."""
        return np.asarray(self.matrix @ point[: self.matrix.shape[1]] + self.offset)

    def magnitude(self, sizes: Float64) -> Float64:
        """The sum of absolute values in each row, where the columns' are at most `sizes`."""
        wide = widened_to(self.matrix, len(sizes))
        return np.asarray(abs(wide) @ sizes + np.abs(self.offset))

    def range(self, low: Float64, high: Float64) -> tuple[Float64, Float64]:
        """Bounds on the values that the rows stand for, with the columns between low and high."""
        matrix = widened_to(self.matrix, len(low))
        positive, negative = matrix.maximum(0), matrix.minimum(0)
        slack = self.error + SUM_ROUNDING * self.magnitude(np.maximum(np.abs(low), np.abs(high)))
        below = positive @ low + negative @ high + self.offset
        above = positive @ high + negative @ low + self.offset
        return below - slack, above + slack


def combined(
    maps: Mapping[int, csr_array],
    offset: Float64,
    values: Mapping[int, Affine],
    sizes: Float64,
) -> Affine:
    """The sum of `maps[i] @ values[i]`, plus the offset, in columns of at most the given sizes."""
    matrix = csr_array((len(offset), len(sizes)))
    constant = offset.copy()
    error = SUM_ROUNDING * np.abs(offset) + SMALLEST_NORMAL + (SMALLEST_NORMAL * sizes).sum()
    for index, part in maps.items():
        value = values[index]
        matrix = matrix + part @ widened_to(value.matrix, len(sizes))
        constant = constant + part @ value.offset
        error = error + abs(part) @ (value.error + SUM_ROUNDING * value.magnitude(sizes))
    return Affine(csr_array(matrix), constant, error)


def stacked(parts: Sequence[Affine], columns: int) -> Affine:
    """All rows of all parts, in order."""
    if not parts:
        return Affine(csr_array((0, columns)), np.zeros(0), np.zeros(0))
    matrix = vstack([widened_to(part.matrix, columns) for part in parts])
    return Affine(
        csr_array(matrix),
        np.concatenate([part.offset for part in parts]),
        np.concatenate([part.error for part in parts]),
    )
