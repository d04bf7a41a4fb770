"""Does a fitted family describe the radii? The papers' check beside a test of the right level.

The Monte-Carlo test simulates samples of the fitted distribution, puts each on the grid of the data
(`Cells`), fits it anew, and compares the largest distance D between fit and data with those of the
B simulated samples: p = (1 + #{D_b >= D}) / (1 + B). So ties and fitted parameters have the same
effect on both. Thousands of samples are fitted at once by Fisher scoring (`scoring_fit`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import DataError
from radii.statistics._families import SMALLEST_PROBABILITY, Family, family_named
from radii.statistics._fits import Fit, fit, fit_brackets
from radii.statistics._summaries import side_values
from radii.statistics.reading._published import regular_grid
from radii.statistics.reading._run import Array, Float64

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


MOST_CELLS = 4000
UNGRIDDED_CELLS = 256

LAST_CELL_QUANTILE = 0.999
"""Cells reach to this quantile of the fit at least; what lies beyond is one cell."""
SCORING_ITERATIONS = 25
COORDINATE_TOLERANCE = 1e-4
"""Coordinates are logs or in units of the data; their sampling error is a hundred times this."""

LONGEST_SCORING_STEP = 0.5
SIMULATED_NUMBERS = 4_000_000
"""Numbers of one array in the refits of simulated samples; more are done in turns."""


@dataclass(frozen=True, slots=True, eq=False)
class GoodnessOfFit:
    """Two tests of one family.

    `ks_p_value` is the papers': the proven sides against the family fitted to them, as if they were
    exact and the parameters known. It is None (invalid) if a side is 0, which the family never is.
    Brackets without any answer have no part in either test; `fit` counts them.
    `p_value` is of the Monte-Carlo test, which refits and re-grids every simulated sample.
    """

    fit: Fit
    ks_statistic: float | None
    ks_p_value: float | None
    statistic: float
    p_value: float
    simulations: int
    assumption: str

    def verdict(self, level: float = 0.05) -> str:
        """What the tests say, in a sentence; plainly where they disagree."""
        title = family_named(self.fit.family).title
        rejects = self.p_value < level
        result = f"{'rejects' if rejects else 'does not reject'} {title} (p = {self.p_value:.3f})"
        if self.ks_p_value is None:
            return (
                f"The Monte-Carlo test {result}; the plain Kolmogorov-Smirnov check is invalid "
                "here, because some input is proven nowhere."
            )
        plain = f"p = {self.ks_p_value:.3f}"
        if (self.ks_p_value < level) == rejects:
            both = "and so does" if rejects else "and neither does"
            return f"The Monte-Carlo test {result}, {both} the plain check ({plain})."
        other = "does not" if rejects else "does"
        return (
            f"The tests disagree: the Monte-Carlo test {result}, the plain Kolmogorov-Smirnov "
            f"check {other} ({plain}). The plain check takes fitted parameters as known and values "
            "on a grid as exact; trust the Monte-Carlo test."
        )


def goodness_of_fit(
    distribution: Distribution,
    family: str = "lognormal",
    *,
    grid: Iterable[float] | None = None,
    simulations: int = 999,
    seed: int = 0,
) -> GoodnessOfFit:
    """Test a family on the correctly classified inputs.

    `grid` holds the eps values that were asked; without it they are read off the proven sides.
    """
    known = family_named(family)
    right = distribution.correctly_classified()
    ks = ks_check(side_values(right, "lower"), known)
    statistic, p_value, cells = monte_carlo_check(
        right.lower, right.upper, known, grid=grid, simulations=simulations, seed=seed
    )
    return GoodnessOfFit(
        fit=fit(distribution, family),
        ks_statistic=None if ks is None else ks[0],
        ks_p_value=None if ks is None else ks[1],
        statistic=statistic,
        p_value=p_value,
        simulations=simulations,
        assumption=_assumption(cells),
    )


def ks_check(values: Float64, family: Family) -> tuple[float, float] | None:
    """The papers' statistic and p-value: values against the family fitted to them.

    None where a value is 0 and the family has none. The p-value is only right for parameters known
    beforehand and values without ties: with fitted ones it is too large, with many ties too small.
    """
    from scipy.stats import kstest

    if family.is_positive and np.any(values <= 0):
        return None
    fitted = fit_brackets(values, values, family)
    tested = kstest(values, family.frozen(fitted.coordinates).cdf)
    return float(tested.statistic), float(tested.pvalue)


def monte_carlo_check(
    lower: Float64,
    upper: Float64,
    family: Family,
    *,
    grid: Iterable[float] | None = None,
    simulations: int = 999,
    seed: int = 0,
) -> tuple[float, float, Cells]:
    """The largest distance between fit and data on the grid, how rare that is, and the cells.

    Each simulated sample is put on the same grid and fitted anew, so that ties and fitted
    parameters have the same effect on it as on the data.
    """
    if simulations < 19:
        raise DataError(f"a Monte-Carlo test needs at least 19 simulations, not {simulations}")
    has_answer = ~((lower == 0) & np.isinf(upper))
    low, high = lower[has_answer], upper[has_answer]
    rough = fit_brackets(low, high, family).coordinates
    # Cells and coordinates are in units of the data, as in fitting.
    scale = float(np.median(high[np.isfinite(high)]))
    cells = cells_for(low, high, grid=grid, family=family, at=rough)
    cells = Cells(cells.edges / scale, cells.first, cells.last, cells.is_gridded)
    start = family.rescaled(rough[None], 1 / scale)
    sample = cells.sample()
    at = scoring_fit(family, cells.edges, sample, start)
    observed = float(largest_distances(family, cells, sample, at)[0])
    rng = np.random.default_rng(seed)
    reached, left = 0, simulations
    while left:
        rows = min(left, max(1, SIMULATED_NUMBERS // max(cells.count, len(low))))
        simulated = cells.simulated(family, at[0], rows, rng)
        refitted = scoring_fit(family, cells.edges, simulated, np.repeat(at, rows, axis=0))
        distances = largest_distances(family, cells, simulated, refitted)
        reached += int(np.count_nonzero(distances >= observed * (1 - 1e-9)))
        left -= rows
    return observed, (1 + reached) / (1 + simulations), cells


def largest_distances(family: Family, cells: Cells, sample: CellCounts, at: Float64) -> Float64:
    """Each row's largest distance between the fit and what the fit makes of the brackets.

    The mass of a bracket is spread over its cells as the fit would have it. With brackets of one
    cell this is the distance between the fit and the empirical distribution at the grid's values.
    """
    tails, jump = signed_tails(family, at, cells.edges)
    held = np.maximum(sample.differences(tails) + sample.differences(jump[None]), 1e-300)
    inverse = sample.weighted(1 / held)
    rows, width = len(at), cells.count + 1
    offsets = width * np.arange(rows)[:, None]
    change = np.zeros(rows * width)
    for places, sign in ((sample.first, 1.0), (sample.last, -1.0)):
        change += sign * np.bincount((places + offsets).ravel(), inverse.ravel(), rows * width)
    below = tails + jump
    slopes = np.cumsum(change.reshape(rows, width), axis=1)[:, :-1]
    empirical = np.cumsum(np.diff(below, axis=1) * slopes, axis=1) / sample.size
    return np.asarray(np.abs(empirical - below[:, 1:])[:, :-1].max(axis=1))


def _assumption(cells: Cells) -> str:
    if not cells.is_gridded:
        return "the brackets lie on no grid; they were rounded outward to a fine mesh"
    if cells.is_simple:
        return "every bracket is one step of the grid"
    return "how wide a bracket stays does not depend on the radius within it"


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
        """Samples of the fitted distribution, observed as cells, as wide as the brackets are.

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
    """Samples on cells, one per row: the edges of brackets, and how often each occurs (or once).

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
        given = np.unique(np.asarray(list(grid), np.float64))
        inner, is_gridded = given[given > 0], True
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
    cells = values[0] + step * np.arange(start, stop + 1)
    return np.asarray(cells[cells > 1e-9 * step])


def scoring_fit(family: Family, edges: Float64, sample: CellCounts, start: Float64) -> Float64:
    """The coordinates of each row's maximum-likelihood fit.

    With s_k = (F'(b_k) - F'(a_k)) / (F(b_k) - F(a_k)), the gradient of the log-probability of
    bracket k, each step is (sum s_k s_k^T)^-1 sum s_k: the second moments of the scores stand for
    the curvature, which is what they estimate if the family is right, and are never indefinite.
    """
    at = np.array(start, np.float64)
    active = np.arange(len(at))
    shared = len(sample.first) == 1
    for _ in range(SCORING_ITERATIONS):
        part = sample if len(active) == len(at) else _rows(sample, active, shared)
        steps = _finite_steps(family, edges, part, at[active])
        at[active] += steps
        active = active[np.linalg.norm(steps, axis=1) > COORDINATE_TOLERANCE]
        if not active.size:
            break
    return at


def _rows(
    sample: CellCounts, keep: np.ndarray[tuple[int], np.dtype[np.int64]], shared: bool
) -> CellCounts:
    first, last = (sample.first, sample.last) if shared else (sample.first[keep], sample.last[keep])
    counts = sample.counts
    return CellCounts(first, last, None if counts is None else counts[keep])


def _finite_steps(family: Family, edges: Float64, sample: CellCounts, at: Float64) -> Float64:
    """One step per row; none where a sample is so far out that its moments overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = _scoring_steps(family, edges, sample, at)
    return np.where(np.isfinite(steps).all(axis=1, keepdims=True), steps, 0.0)


def _scoring_steps(family: Family, edges: Float64, sample: CellCounts, at: Float64) -> Float64:
    tails, jump = signed_tails(family, at, edges)
    held = np.maximum(
        sample.differences(tails) + sample.differences(jump[None]), SMALLEST_PROBABILITY
    )
    one, two = (sample.differences(slope) / held for slope in family.slopes(at, edges))
    gradient_one, gradient_two = sample.weighted(one).sum(axis=1), sample.weighted(two).sum(axis=1)
    first, mixed, second = (
        sample.weighted(moments).sum(axis=1) for moments in (one * one, one * two, two * two)
    )
    # A ridge keeps the step finite where all brackets are one and the same.
    first, second = first * (1 + 1e-9) + 1e-12, second * (1 + 1e-9) + 1e-12
    determinant = np.maximum(first * second - mixed**2, 1e-300)
    steps = (
        np.stack(
            [
                second * gradient_one - mixed * gradient_two,
                first * gradient_two - mixed * gradient_one,
            ],
            axis=1,
        )
        / determinant[:, None]
    )
    length = np.linalg.norm(steps, axis=1, keepdims=True)
    return np.asarray(steps * np.minimum(1.0, LONGEST_SCORING_STEP / np.maximum(length, 1e-300)))


def signed_tails(family: Family, at: Float64, edges: Float64) -> tuple[Float64, Float64]:
    """`below` as a sum of two: minus the upper tail plus 1 for the upper edges, which is precise.

    Differences over an interval are then differences of the first plus those of the second, a
    jump from 0 to 1 at one edge.
    """
    middle = int(np.searchsorted(family.below(at[:1], edges)[0], 0.5))
    tails = np.concatenate(
        [family.below(at, edges[:middle]), -family.above(at, edges[middle:])], axis=1
    )
    return tails, (np.arange(len(edges)) >= middle).astype(np.float64)
