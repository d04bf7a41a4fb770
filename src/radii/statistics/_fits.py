"""Parametric distributions fitted to brackets by censored maximum likelihood.

The log-likelihood of coordinates t, for intervals (a_k, b_k] that occur c_k times and exact values
x_k that occur e_k times, is

    l(t) = sum_k c_k log(F_t(b_k) - F_t(a_k)) + sum_k e_k log f_t(x_k).

It is maximised by Newton's method for many samples at once: with derivatives by central
differences, eigenvalues of the curvature replaced by their absolute values (so that every step goes
uphill), and steps halved until the likelihood does not fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._families import FAMILIES, SMALLEST_PROBABILITY, Family, family_named
from radii.statistics.reading._run import Array, Float64

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


STENCIL = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]])
DIFFERENCE_STEP = 1e-4
NEWTON_ITERATIONS = 60
LONGEST_NEWTON_STEP = 1.0
"""A Newton step is cut to this length: coordinates are logs, or in units of the data."""


@dataclass(frozen=True, slots=True, eq=False)
class Censored:
    """Samples that share their intervals (edges[first], edges[last]] and exact values.

    `counts` (rows, intervals) and `exact_counts` (rows, values) say how often each occurs.
    """

    edges: Float64
    first: Array
    last: Array
    counts: Float64
    exact: Float64
    exact_counts: Float64

    def rows(self, keep: Array) -> Censored:
        counts, exact_counts = self.counts[keep], self.exact_counts[keep]
        return Censored(self.edges, self.first, self.last, counts, self.exact, exact_counts)

    def loglikelihood(self, family: Family, at: Float64) -> Float64:
        """Of each row at its own coordinates."""
        total = np.zeros(len(at))
        if len(self.first):
            held = interval_probabilities(family, at, self.edges, self.first, self.last)
            total += np.einsum("rk,rk->r", self.counts, np.log(held))
        if len(self.exact):
            density = family.logpdf(at, self.exact)
            total += np.einsum("rk,rk->r", self.exact_counts, density)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodMaximum:
    """Coordinates of each row's maximum, the likelihood there, its curvature, and if it is one."""

    at: Float64
    loglikelihood: Float64
    hessian: Float64
    is_found: Array


def interval_probabilities(
    family: Family, at: Float64, edges: Float64, first: Array, last: Array
) -> Float64:
    """Probabilities of (edges[first], edges[last]], never below the smallest number."""
    below, above = family.below(at, edges), family.above(at, edges)
    from_below, from_above = below[:, last] - below[:, first], above[:, first] - above[:, last]
    return np.maximum(np.where(below[:, first] < 0.5, from_below, from_above), SMALLEST_PROBABILITY)


def maximise(family: Family, sample: Censored, start: Float64) -> LikelihoodMaximum:
    """Newton's method with derivatives by central differences, damped where it must be."""
    at = np.array(start, np.float64)
    rows = len(at)
    best, gradient, hessian = _second_order(family, sample, at)
    active = np.ones(rows, np.bool_)
    for _ in range(NEWTON_ITERATIONS):
        moves = _newton_steps(gradient[active], hessian[active])
        moved, reached, length = _line_search(
            family, sample.rows(active), at[active], best[active], moves
        )
        at[active], best[active] = moved, reached
        places = np.flatnonzero(active)
        active[places[length < 1e-7]] = False
        if not active.any():
            break
        best[active], gradient[active], hessian[active] = _second_order(
            family, sample.rows(active), at[active]
        )
    best, gradient, hessian = _second_order(family, sample, at)
    return LikelihoodMaximum(at, best, hessian, _is_maximum(gradient, hessian))


def _second_order(
    family: Family, sample: Censored, at: Float64
) -> tuple[Float64, Float64, Float64]:
    """The log-likelihood, its gradient and its Hessian."""
    f = np.stack(
        [sample.loglikelihood(family, at + DIFFERENCE_STEP * offset) for offset in STENCIL]
    )
    middle, right, left, up, down = f[:5]
    gradient = np.stack([right - left, up - down], axis=1) / (2 * DIFFERENCE_STEP)
    mixed = (f[5] + f[6] - f[7] - f[8]) / 4
    hessian = np.stack([right + left - 2 * middle, mixed, mixed, up + down - 2 * middle], axis=1)
    return middle, gradient, hessian.reshape(-1, 2, 2) / DIFFERENCE_STEP**2


def _newton_steps(gradient: Float64, hessian: Float64) -> Float64:
    """Newton's step where the likelihood is concave, else uphill; never too long."""
    values, vectors = np.linalg.eigh(hessian)
    curvature = np.maximum(np.abs(values), 1e-8 * np.abs(values).max(axis=1, keepdims=True) + 1e-12)
    along = np.einsum("rij,ri->rj", vectors, gradient) / curvature
    steps = np.einsum("rij,rj->ri", vectors, along)
    length = np.linalg.norm(steps, axis=1, keepdims=True)
    return np.asarray(steps * np.minimum(1.0, LONGEST_NEWTON_STEP / np.maximum(length, 1e-300)))


def _line_search(
    family: Family, sample: Censored, at: Float64, best: Float64, moves: Float64
) -> tuple[Float64, Float64, Float64]:
    """Halve each row's step until the likelihood does not fall; also how far it moved."""
    moved, reached = at.copy(), best.copy()
    length = np.zeros(len(at))
    open_rows, factor = np.ones(len(at), np.bool_), 1.0
    for _ in range(25):
        places = np.flatnonzero(open_rows)
        tried = at[places] + factor * moves[places]
        values = sample.rows(places).loglikelihood(family, tried)
        better = values >= best[places]
        moved[places[better]], reached[places[better]] = tried[better], values[better]
        length[places[better]] = factor * np.linalg.norm(moves[places[better]], axis=1)
        open_rows[places[better]] = False
        if not open_rows.any():
            break
        factor /= 2
    return moved, reached, length


def _is_maximum(gradient: Float64, hessian: Float64) -> Array:
    """Concave there, and a Newton step away from where the gradient vanishes at most 1e-3 long."""
    largest = np.linalg.eigvalsh(hessian)[:, -1]
    is_concave = largest < 0
    return np.asarray(
        is_concave & (np.linalg.norm(_newton_steps(gradient, hessian), axis=1) < 1e-3)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A family's best parameters, with standard errors from the curvature of the likelihood.

    `inputs` brackets were used; `misclassified` ones have radius 0 and are no part of it; those
    `without_information` are proven nowhere and broken nowhere: an interval that excludes nothing
    has likelihood 1 under every distribution.
    """

    family: str
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    loglikelihood: float
    inputs: int
    misclassified: int
    without_information: int
    coordinates: Float64

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better, on the same brackets."""
        return 2 * len(self.parameters) - 2 * self.loglikelihood

    @property
    def _scipy(self) -> Any:
        return family_named(self.family).frozen(self.coordinates)

    def broken(self, eps: npt.ArrayLike) -> Float64:
        """The share of correctly classified inputs that the fit expects to break within eps."""
        return np.asarray(self._scipy.cdf(np.asarray(eps, np.float64)))

    def quantile(self, share: npt.ArrayLike) -> Float64:
        return np.asarray(self._scipy.ppf(np.asarray(share, np.float64)))

    def mean(self) -> float:
        return float(self._scipy.mean())

    def __str__(self) -> str:
        estimates = ", ".join(
            f"{name} {value:.4g} ± {self.standard_errors[name]:.2g}"
            for name, value in self.parameters.items()
        )
        title = family_named(self.family).title
        empty = self.without_information
        others = f" ({empty} more without an answer)" if empty else ""
        return f"{title} fitted to {self.inputs} brackets{others}: {estimates}; AIC {self.aic:.1f}"


def fit(distribution: Distribution, family: str = "lognormal") -> Fit:
    """Fit to the brackets of the correctly classified inputs, as intervals, not as points."""
    known = family_named(family)
    right = distribution.correctly_classified()
    return fit_brackets(
        right.lower, right.upper, known, misclassified=len(distribution) - len(right)
    )


def fit_all(distribution: Distribution) -> list[Fit]:
    """All families, the one with the smallest AIC first."""
    return sorted((fit(distribution, name) for name in FAMILIES), key=lambda f: f.aic)


def fit_brackets(lower: Float64, upper: Float64, family: Family, *, misclassified: int = 0) -> Fit:
    """Fit to distances in (lower, upper]; exact where both are equal, unbounded where inf."""
    is_empty = (lower == 0) & np.isinf(upper)
    low, high = lower[~is_empty], upper[~is_empty]
    _check(low, high, family)
    guesses = _middles(low, high)
    scale = float(np.median(guesses)) or float(guesses.max()) or 1.0
    sample, middles, weights = _one_sample(low / scale, high / scale)
    start = family.start(middles, weights)[None]
    maximum = maximise(family, sample, start)
    if not maximum.is_found[0]:
        raise DataError(
            f"the {family.title} fit has no maximum on these {len(low)} brackets: "
            "they are too few, too wide, or all the same"
        )
    at = family.rescaled(maximum.at, scale)[0]
    values, slopes = family.natural(at)
    # A location in units of the data scales with them; logs do not.
    variances = np.diag(np.linalg.inv(-maximum.hessian[0]))
    units = np.array([1.0 if family.is_positive else scale, 1.0])
    errors = np.abs(slopes) * units * np.sqrt(np.maximum(variances, 0))
    exact = int(np.count_nonzero(low == high))
    return Fit(
        family=family.name,
        parameters=dict(zip(family.parameters, map(float, values), strict=True)),
        standard_errors=dict(zip(family.parameters, map(float, errors), strict=True)),
        loglikelihood=float(maximum.loglikelihood[0]) - exact * np.log(scale),
        inputs=len(low),
        misclassified=misclassified,
        without_information=int(is_empty.sum()),
        coordinates=at,
    )


def _check(low: Float64, high: Float64, family: Family) -> None:
    if family.is_positive and np.any(high <= 0):
        raise DataError(
            f"{np.count_nonzero(high <= 0)} correctly classified inputs have radius 0, "
            f"which a {family.title} distribution never has: leave them out"
        )
    if len(low) < 2 or not np.isfinite(high).any():
        raise DataError(
            f"a {family.title} fit needs at least two informative brackets, one with a witness"
        )
    if np.all(low == high) and np.all(low == low[0]):
        raise DataError(f"a {family.title} fit needs radii that vary: all are {low[0]:g}")


def _middles(low: Float64, high: Float64) -> Float64:
    """A guess at each distance, for the start of the search only."""
    return np.where(np.isinf(high), 1.25 * low, (low + high) / 2)


def _one_sample(low: Float64, high: Float64) -> tuple[Censored, Float64, Float64]:
    """The brackets as weighted distinct ones. Nothing below 0 is measured: 0 means unbounded."""
    pairs, counts = np.unique(np.stack([low, high]), axis=1, return_counts=True)
    weights = counts.astype(np.float64)
    is_exact = pairs[0] == pairs[1]
    starts, ends = pairs[0][~is_exact], pairs[1][~is_exact]
    starts = np.where(starts == 0, -np.inf, starts)
    edges, codes = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    first, last = codes[: len(starts)], codes[len(starts) :]
    sample = Censored(
        edges, first, last, weights[None, ~is_exact], pairs[0][is_exact], weights[None, is_exact]
    )
    return sample, _middles(pairs[0], pairs[1]), weights
