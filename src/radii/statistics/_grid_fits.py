"""Families fitted to brackets on the cells of a grid, and tested there by simulation.

The Monte-Carlo test simulates samples of the fitted distribution, puts each on the grid of the data
(`Cells`), fits it anew, and compares the largest distance D between fit and data with those of the
B simulated samples: p = (1 + #{D_b >= D}) / (1 + B) (Stute, Gonzalez Manteiga and Presedo Quindimil
1993). So ties and fitted parameters have the same effect on both. Thousands of samples are fitted
at once by Fisher scoring (`scoring_fit`).

A positive family begins at 0. With a location d its values are those of d + X: so it has three
parameters, and can describe radii that begin elsewhere. The likelihood of cells is bounded whatever
the location, which that of exact values is not. It is maximised over a mesh of locations, at each
of which the two coordinates of the family are fitted as usual.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._columns import Array, Float64
from radii.statistics._families import Family, family_named
from radii.statistics._fits import fit_brackets, middles
from radii.statistics._likelihoods import BracketSamples, scoring_fit
from radii.statistics.reading._published import regular_grid

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution

MOST_CELLS = 4000
UNGRIDDED_CELLS = 256

LAST_CELL_QUANTILE = 0.999
"""Cells reach to this quantile of the fit at least; what lies beyond is one cell."""
FEWEST_SIMULATIONS = 19
"""With fewer no p-value is as small as 0.05."""
SIMULATED_NUMBERS = 4_000_000
"""Numbers of one array in the refits of simulated samples; more are done in turns."""

BELOW = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Locations below 0, in units of the median: further below a family is all but a normal one."""

ABOVE = (0.25, 0.5, 0.75, 0.95)
"""Locations above 0, as parts of the smallest witnessed radius, beyond which none can be."""

SIMULATED_ABOVE = (1.5, 2.5, 4.0)
"""The same, beyond that radius: simulated samples may begin later than the data do."""

REACH = 1.5
"""Cells reach to this multiple of the largest side: simulated samples may exceed the data."""


@dataclass(frozen=True, slots=True, eq=False)
class GridFit:
    """A family on the cells of a grid, with the p-value of its test; NaN if it was not tested.

    `location` is 0 where it was not free. Likelihoods, and so `aic`, of all families on the same
    brackets and grid can be compared, with a free location or without. `statistic` is the largest
    distance between fit and data, and `assumption` what the test takes for granted.
    """

    family: str
    location: float
    is_shifted: bool
    loglikelihood: float
    inputs: int
    statistic: float
    p_value: float
    assumption: str
    coordinates: Float64

    @property
    def parameters(self) -> int:
        return 3 if self.is_shifted else 2

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better."""
        return 2 * self.parameters - 2 * self.loglikelihood

    def broken(self, eps: npt.ArrayLike) -> Float64:
        """The share of correctly classified inputs that the fit expects to break within eps."""
        family = replace(family_named(self.family), location=self.location)
        return np.asarray(family.frozen(self.coordinates).cdf(np.asarray(eps, np.float64)))

    @property
    def title(self) -> str:
        title = family_named(self.family).title
        return f"shifted {title}" if self.is_shifted else title


def fit_on_grid(
    distribution: Distribution,
    family: str,
    grid: Iterable[float] | None = None,
    *,
    is_shifted: bool = False,
    simulations: int = 0,
    seed: int = 0,
) -> GridFit:
    """Fit to the brackets of the correctly classified inputs that have an answer.

    `grid` holds the eps values that were asked; without it they are read off the proven sides. With
    `simulations` it is tested by as many samples, each put on the grid and fitted anew as the data
    are; at least 19.
    """
    known = family_named(family)
    if is_shifted and not known.is_positive:
        raise DataError(f"a {known.title} distribution has a location already")
    if 0 < simulations < FEWEST_SIMULATIONS:
        raise DataError(
            f"a Monte-Carlo test needs at least {FEWEST_SIMULATIONS} simulations, not {simulations}"
        )
    right = distribution.correctly_classified().solved()
    rough = fit_brackets(right.lower, right.upper, known).coordinates
    # Cells and coordinates are in units of the data, as in fitting.
    scale = float(np.median(right.upper[np.isfinite(right.upper)]))
    low, high, start = right.lower / scale, right.upper / scale, known.rescaled(rough, 1 / scale)
    values = None if grid is None else np.unique(np.asarray(list(grid), np.float64)) / scale
    cells = cells_for(low, high, grid=values, family=known, at=start)
    locations = _locations(float(high.min())) if is_shifted else [0.0]
    located = [replace(known, location=location) for location in locations]
    guesses = middles(low, high)
    starts = [start if each.location == 0 else each.start_for(guesses) for each in located]
    best = _best(located, cells.brackets, starts)
    fitted = located[int(best.place[0])]
    p_value = math.nan
    if simulations:
        # Samples begin where the data ended, at every location.
        starts = [
            scoring_fit(each, cells.brackets, at[None])[0][0]
            for each, at in zip(located, starts, strict=True)
        ]
        batches = cells.simulations(fitted, best.at[0], simulations, np.random.default_rng(seed))
        distances = (_best(located, each, starts).distance for each in batches)
        least = float(best.distance[0]) * (1 - 1e-9)
        reached = sum(int(np.count_nonzero(each >= least)) for each in distances)
        p_value = (1 + reached) / (1 + simulations)
    return GridFit(
        family=family,
        location=fitted.location * scale,
        is_shifted=is_shifted,
        loglikelihood=float(best.loglikelihood[0]),
        inputs=len(low),
        statistic=float(best.distance[0]),
        p_value=p_value,
        assumption=cells.assumption,
        coordinates=known.rescaled(best.at, scale)[0],
    )


# --- a free location


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """Of each sample: the largest likelihood over all locations, and what belongs to it."""

    loglikelihood: Float64
    place: Float64
    at: Float64
    distance: Float64


def _locations(smallest_witness: float) -> list[float]:
    above = (smallest_witness * part for part in (*ABOVE, *SIMULATED_ABOVE))
    return [*(-part for part in reversed(BELOW)), 0.0, *above]


def _best(located: Sequence[Family], samples: BracketSamples, starts: Sequence[Float64]) -> _Best:
    """Over a family at several locations, at each of which the search has its own start."""
    rows = samples.count
    loglikelihood = np.full(rows, -np.inf)
    place, distance = np.zeros(rows), np.zeros(rows)
    at = np.zeros((rows, 2))
    for number, (family, start) in enumerate(zip(located, starts, strict=True)):
        fitted, value = scoring_fit(family, samples, np.repeat(start[None], rows, axis=0))
        better = value > loglikelihood
        loglikelihood = np.where(better, value, loglikelihood)
        place = np.where(better, number, place)
        at = np.where(better[:, None], fitted, at)
        distance = np.where(better, largest_distances(family, samples, fitted), distance)
    return _Best(loglikelihood, place, at, distance)


# --- cells


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cell c is (edges[c], edges[c + 1]]; the first begins below everything, the last has no end.

    The `brackets`, one row, are rounded outward to edges. `is_gridded` is false where the cells are
    only a fine mesh, because the brackets lie on no grid.
    """

    brackets: BracketSamples
    is_gridded: bool

    @property
    def count(self) -> int:
        return len(self.brackets.edges) - 1

    @property
    def assumption(self) -> str:
        """What a test by simulation takes for granted."""
        if not self.is_gridded:
            return "the brackets lie on no grid; they were rounded outward to a fine mesh"
        if self.is_simple:
            return "every bracket is one step of the grid"
        return "how wide a bracket stays does not depend on the radius within it"

    @property
    def widths(self) -> Array:
        """How many cells each bracket covers. One without an end is counted as its own kind, -1.

        A bracket that begins where the grid ends has one cell: nothing beyond is ever asked.
        """
        first, last = self.brackets.first[0], self.brackets.last[0]
        has_no_end = (last == self.count) & (first < self.count - 1)
        return np.where(has_no_end, -1, last - first)

    @property
    def is_simple(self) -> bool:
        """Every bracket is one cell, so that a sample is a count of cells."""
        return bool(np.all(self.widths == 1))

    def simulations(
        self, family: Family, at: Float64, count: int, rng: np.random.Generator
    ) -> Iterator[BracketSamples]:
        """`count` simulated samples, as many at once as memory allows."""
        at_once = max(1, SIMULATED_NUMBERS // max(self.count, len(self.widths)))
        for done in range(0, count, at_once):
            yield self.simulated(family, at, min(at_once, count - done), rng)

    def simulated(
        self, family: Family, at: Float64, rows: int, rng: np.random.Generator
    ) -> BracketSamples:
        """Samples of the fitted distribution, observed as cells, as wide as the brackets are.

        A bracket of several cells keeps its width, and lies anywhere around the simulated cell:
        how wide a bracket stays must not depend on the radius within it.
        """
        edges, size = self.brackets.edges, len(self.widths)
        chances = np.maximum(np.diff(family.below(at[None], edges)[0]), 0)
        chances /= chances.sum()
        if self.is_simple:
            counts = rng.multinomial(size, chances, size=rows).astype(np.float64)
            every = np.arange(self.count)
            return BracketSamples(edges, every[None], every[None] + 1, counts)
        cells = np.searchsorted(np.cumsum(chances)[:-1], rng.random((rows, size)), side="right")
        widths = rng.permuted(np.broadcast_to(self.widths, (rows, size)), axis=1)
        finite = self.widths[self.widths > 0]
        spans = np.where(widths > 0, widths, int(np.median(finite)) if finite.size else 1)
        first = cells - rng.integers(0, spans)
        last = np.where(widths > 0, first + spans, self.count)
        return BracketSamples(edges, np.maximum(first, 0), np.minimum(last, self.count))


def cells_for(
    lower: Float64,
    upper: Float64,
    *,
    grid: Float64 | None,
    family: Family,
    at: Float64,
) -> Cells:
    """Brackets on the grid they were measured on; without one it is read off their lower sides.

    Of a grid the values up to `REACH` times the largest side are used.
    """
    if grid is not None:
        end = REACH * max(float(lower.max()), float(upper[np.isfinite(upper)].max()))
        inner, is_gridded = grid[(grid > 0) & (grid <= end)], True
    else:
        end = float(family.frozen(at).ppf(LAST_CELL_QUANTILE))
        values = _read_off(lower, upper, end)
        is_gridded = values is not None
        shares = np.arange(1, UNGRIDDED_CELLS) / UNGRIDDED_CELLS
        inner = family.frozen(at).ppf(shares) if values is None else values
        inner = inner[inner > 0]
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    slack = 1e-9 * float(inner[-1])
    last = np.searchsorted(edges, upper - slack, side="left")
    first = np.searchsorted(edges, lower + slack, side="right") - 1
    last = np.minimum(last, len(edges) - 1)
    first = np.minimum(first, last - 1)
    brackets = BracketSamples(edges, np.maximum(first, 0)[None], np.maximum(last, 1)[None])
    return Cells(brackets, is_gridded)


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
    cells = values[0] + step * np.arange(start, stop + 1)
    return np.asarray(cells[cells > 1e-9 * step])


def largest_distances(family: Family, samples: BracketSamples, at: Float64) -> Float64:
    """Each row's largest distance between the fit and what the fit makes of the brackets.

    The mass of a bracket is spread over its cells as the fit would have it. With brackets of one
    cell this is the distance between the fit and the empirical distribution at the grid's values.
    """
    inverse = samples.weighted(1 / samples.masses(family, at))
    rows, width = len(at), len(samples.edges)
    offsets = width * np.arange(rows)[:, None]
    change = np.zeros(rows * width)
    for places, sign in ((samples.first, 1.0), (samples.last, -1.0)):
        change += sign * np.bincount((places + offsets).ravel(), inverse.ravel(), rows * width)
    below = family.below(at, samples.edges)
    slopes = np.cumsum(change.reshape(rows, width), axis=1)[:, :-1]
    empirical = np.cumsum(np.diff(below, axis=1) * slopes, axis=1) / samples.size
    return np.asarray(np.abs(empirical - below[:, 1:])[:, :-1].max(axis=1))
