"""Brackets on a grid: which cells each covers, and how simulated ones come to look like them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from radii.distributions._families import Family
from radii.results import Array, Float64, regular_grid

MOST_CELLS = 4000
UNGRIDDED_CELLS = 256

LAST_CELL_QUANTILE = 0.999
"""Cells reach to this quantile of the fit at least; what lies beyond is one cell."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cell c is (edges[c], edges[c + 1]]; the first begins below everything, the last has no end.

    `first` and `last` are the edges of each bracket, rounded outward. `is_gridded` is false where
    the cells are only a fine mesh, because the brackets lie on no grid.
    """

    edges: Float64
    first: Array
    last: Array
    is_gridded: bool

    @property
    def count(self) -> int:
        return len(self.edges) - 1

    @property
    def widths(self) -> Array:
        """How many cells each bracket covers. One without an end is counted as its own kind, -1.

        A bracket that begins where the grid ends has one cell: nothing beyond is ever asked.
        """
        has_no_end = (self.last == self.count) & (self.first < self.count - 1)
        return np.where(has_no_end, -1, self.last - self.first)

    @property
    def is_simple(self) -> bool:
        """Every bracket is one cell, so that a sample is a count of cells."""
        return bool(np.all(self.widths == 1))

    def sample(self) -> CellCounts:
        """The brackets themselves, as one row."""
        return CellCounts(self.first[None], self.last[None], None)

    def simulated(
        self, family: Family, at: Float64, rows: int, rng: np.random.Generator
    ) -> CellCounts:
        """Samples of the fitted distribution, seen through cells and as wide as the brackets are.

        A bracket of several cells keeps its width, and lies anywhere around the simulated cell:
        how wide a bracket stays must not depend on the radius within it.
        """
        chances = np.maximum(np.diff(family.below(at[None], self.edges)[0]), 0)
        chances /= chances.sum()
        size = len(self.first)
        if self.is_simple:
            counts = rng.multinomial(size, chances, size=rows).astype(np.float64)
            every = np.arange(self.count)
            return CellCounts(every[None], every[None] + 1, counts)
        cells = np.searchsorted(np.cumsum(chances)[:-1], rng.random((rows, size)), side="right")
        widths = rng.permuted(np.broadcast_to(self.widths, (rows, size)), axis=1)
        finite = self.widths[self.widths > 0]
        spans = np.where(widths > 0, widths, int(np.median(finite)) if finite.size else 1)
        first = cells - rng.integers(0, spans)
        last = np.where(widths > 0, first + spans, self.count)
        return CellCounts(np.maximum(first, 0), np.minimum(last, self.count), None)


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """Samples on cells, one a row: the edges of brackets, and how often each occurs (or once).

    Where all samples have the same brackets, `first` and `last` have one row.
    """

    first: Array
    last: Array
    counts: Float64 | None

    @property
    def size(self) -> float:
        """How many brackets a sample has."""
        return float(self.first.shape[1] if self.counts is None else self.counts[0].sum())

    def differences(self, values: Float64) -> Float64:
        """What a function of the edges (rows, edges) gains over each bracket."""
        if len(self.first) == 1:
            return values[:, self.last[0]] - values[:, self.first[0]]
        over = np.take_along_axis(values, self.last, axis=1)
        return over - np.take_along_axis(values, self.first, axis=1)

    def weighted(self, values: Float64) -> Float64:
        return values if self.counts is None else self.counts * values


def cells_for(
    lower: Float64,
    upper: Float64,
    *,
    grid: Iterable[float] | None,
    family: Family,
    at: Float64,
) -> Cells:
    """Brackets on the grid they were measured on; without one it is read off their lower sides."""
    if grid is not None:
        values = np.unique(np.asarray(list(grid), np.float64))
        inner, is_gridded = values[values > 0], True
    else:
        end = float(family.frozen(at).ppf(LAST_CELL_QUANTILE))
        found = _read_off(lower, upper, end)
        is_gridded = found is not None
        shares = np.arange(1, UNGRIDDED_CELLS) / UNGRIDDED_CELLS
        inner = family.frozen(at).ppf(shares) if found is None else found
        inner = inner[inner > 0]
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    slack = 1e-9 * float(inner[-1])
    last = np.searchsorted(edges, upper - slack, side="left")
    first = np.searchsorted(edges, lower + slack, side="right") - 1
    last = np.minimum(last, len(edges) - 1)
    first = np.minimum(first, last - 1)
    return Cells(edges, np.maximum(first, 0), np.maximum(last, 1), is_gridded)


def _read_off(lower: Float64, upper: Float64, end: float) -> Float64 | None:
    """The grid of which all lower sides are values; None if there is none, or a very fine one.

    It ends where proofs end if some input is proven there and has no witness, else beyond `end`.
    """
    values = np.unique(lower[lower > 0])
    grid = regular_grid(values)
    if grid is None:
        return None
    _, step = grid
    is_cut = np.any(np.isinf(upper) & (lower >= values[-1]))
    top = float(values[-1] if is_cut else max(end, *upper[np.isfinite(upper)]))
    start = -int(np.floor(values[0] / step * (1 + 1e-9)))
    stop = int(np.ceil((top - values[0]) / step - 1e-6))
    if stop - start > MOST_CELLS:
        return None
    found = values[0] + step * np.arange(start, stop + 1)
    return np.asarray(found[found > 1e-9 * step])
