"""Families with a location of their own, fitted to brackets on a grid and tested there.

A positive family begins at 0. With a location d its values are those of d + X: so it has three
parameters, and can describe radii that begin elsewhere. The likelihood of cells is bounded whatever
the location, which that of exact values is not. It is maximised over a mesh of locations, at each
of which the two coordinates of the family are fitted as usual. The test does the same to every
simulated sample, so that its level is right although three parameters are fitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._families import SMALLEST_PROBABILITY, Family, family_named
from radii.statistics._fits import fit_brackets
from radii.statistics._goodness import (
    CellCounts,
    Cells,
    cells_for,
    largest_distances,
    scoring_fit,
    signed_tails,
)
from radii.statistics.reading._run import Float64

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution

BELOW = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Locations below 0, in units of the median: further below a family is all but a normal one."""

ABOVE = (0.25, 0.5, 0.75, 0.95)
"""Locations above 0, as parts of the smallest witnessed radius, beyond which none can be."""

SIMULATED_ABOVE = (1.5, 2.5, 4.0)
"""The same, beyond that radius: simulated samples may begin later than the data do."""

REACH = 1.5
"""Cells reach so many times as far as the data: simulated samples may reach further."""


@dataclass(frozen=True, slots=True, eq=False)
class GridFit:
    """A family on the cells of a grid, with the p-value of its test; NaN if it was not tested.

    `location` is 0 where it was not free. Likelihoods, and so `aic`, of all families on the same
    brackets and grid can be compared, with a free location or without.
    """

    family: str
    location: float
    is_shifted: bool
    loglikelihood: float
    inputs: int
    p_value: float
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
        fitted = family_named(self.family).frozen(self.coordinates)
        return np.asarray(fitted.cdf(np.asarray(eps, np.float64) - self.location))

    @property
    def title(self) -> str:
        title = family_named(self.family).title
        return f"shifted {title}" if self.is_shifted else title


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """Of each sample: the largest likelihood over all locations, and what belongs to it."""

    loglikelihood: Float64
    place: Float64
    at: Float64
    distance: Float64


def fit_on_grid(
    distribution: Distribution,
    family: str,
    grid: Iterable[float],
    *,
    is_shifted: bool = False,
    simulations: int = 0,
    seed: int = 0,
) -> GridFit:
    """Fit to the brackets of the correctly classified inputs that have an answer.

    `grid` holds the eps values that were asked. With `simulations` it is tested by as many samples,
    each put on the grid and fitted anew as the data are; at least 19.
    """
    known = family_named(family)
    if is_shifted and not known.is_positive:
        raise DataError(f"a {known.title} distribution has a location already")
    if 0 < simulations < 19:
        raise DataError(f"a Monte-Carlo test needs at least 19 simulations, not {simulations}")
    right = distribution.correctly_classified().solved()
    low, high = right.lower, right.upper
    rough = fit_brackets(low, high, known).coordinates
    scale = float(np.median(high[np.isfinite(high)]))
    cells = cells_for(low, high, grid=_near(grid, low, high), family=known, at=rough)
    cells = Cells(cells.edges / scale, cells.first, cells.last, cells.is_gridded)
    locations = _locations(float(high.min()) / scale) if is_shifted else np.zeros(1)
    start = known.rescaled(rough[None], 1 / scale)
    starts = _starts(known, cells, locations, start)
    found = _best(known, cells, cells.sample(), locations, starts)
    location = float(locations[int(found.place[0])])
    p_value = float("nan")
    if simulations:
        p_value = _tested(known, cells, locations, starts, found, simulations, seed)
    return GridFit(
        family=family,
        location=location * scale,
        is_shifted=is_shifted,
        loglikelihood=float(found.loglikelihood[0]),
        inputs=len(low),
        p_value=p_value,
        coordinates=known.rescaled(found.at, scale)[0],
    )


def _near(grid: Iterable[float], low: Float64, high: Float64) -> list[float]:
    """The values of the grid up to `REACH` times the largest side; what lies beyond is one cell."""
    end = REACH * max(float(low.max()), float(high[np.isfinite(high)].max()))
    return [value for value in grid if value <= end]


def _locations(smallest_witness: float) -> Float64:
    above = smallest_witness * np.array([*ABOVE, *SIMULATED_ABOVE])
    return np.concatenate([-np.array(BELOW[::-1]), [0.0], above])


def _starts(family: Family, cells: Cells, locations: Float64, start: Float64) -> Float64:
    """Coordinates to begin with at each location: those of the data, fitted there."""
    middles = _middles(cells)
    starts = []
    for location in locations:
        if location == 0:
            starts.append(scoring_fit(family, cells.edges, cells.sample(), start)[0])
            continue
        shifted = np.maximum(middles - location, 1e-3)
        begin = family.start(shifted, np.ones(len(shifted)))[None]
        starts.append(scoring_fit(family, cells.edges - location, cells.sample(), begin)[0])
    return np.array(starts)


def _middles(cells: Cells) -> Float64:
    """A guess at each value; brackets that end with the grid are taken to begin there."""
    edges = np.where(np.isfinite(cells.edges), cells.edges, np.nan)
    low = np.nan_to_num(edges[cells.first], nan=0.0)
    return np.where(np.isnan(edges[cells.last]), low, (low + edges[cells.last]) / 2)


def _best(
    family: Family, cells: Cells, sample: CellCounts, locations: Float64, starts: Float64
) -> _Best:
    rows = max(len(sample.first), 1 if sample.counts is None else len(sample.counts))
    loglikelihood = np.full(rows, -np.inf)
    place, distance = np.zeros(rows), np.zeros(rows)
    at = np.repeat(starts[:1], rows, axis=0)
    for number, (location, start) in enumerate(zip(locations, starts, strict=True)):
        shifted = Cells(cells.edges - location, cells.first, cells.last, cells.is_gridded)
        fitted = scoring_fit(family, shifted.edges, sample, np.repeat(start[None], rows, axis=0))
        value = _loglikelihood(family, shifted.edges, sample, fitted)
        better = value > loglikelihood
        loglikelihood = np.where(better, value, loglikelihood)
        place = np.where(better, number, place)
        at = np.where(better[:, None], fitted, at)
        distance = np.where(better, largest_distances(family, shifted, sample, fitted), distance)
    return _Best(loglikelihood, place, at, distance)


def _loglikelihood(family: Family, edges: Float64, sample: CellCounts, at: Float64) -> Float64:
    """Of each sample; -inf where its fit is none."""
    tails, jump = signed_tails(family, at, edges)
    held = sample.differences(tails) + sample.differences(jump[None])
    logs = np.log(np.maximum(held, SMALLEST_PROBABILITY))
    total = sample.weighted(logs).sum(axis=1)
    return np.where(np.isfinite(total) & np.isfinite(at).all(axis=1), total, -np.inf)


def _tested(
    family: Family,
    cells: Cells,
    locations: Float64,
    starts: Float64,
    found: _Best,
    simulations: int,
    seed: int,
) -> float:
    """p = (1 + #{D_b >= D}) / (1 + B), for B samples of the fitted distribution."""
    location = locations[int(found.place[0])]
    fitted = Cells(cells.edges - location, cells.first, cells.last, cells.is_gridded)
    rng = np.random.default_rng(seed)
    simulated = fitted.simulated(family, found.at[0], simulations, rng)
    distances = _best(family, cells, simulated, locations, starts).distance
    reached = int(np.count_nonzero(distances >= float(found.distance[0]) * (1 - 1e-9)))
    return (1 + reached) / (1 + simulations)
