"""Maximum likelihood of two coordinates, for many interval-censored samples at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radii.distributions.columns import Array, Float64
from radii.distributions.families import SMALLEST, Family

__all__ = ["Censored", "Maximum", "interval_probabilities", "maximise"]

STENCIL = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]])
STEP = 1e-4
MAX_ITERATIONS = 60
LONGEST = 1.0
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
class Maximum:
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
    return np.maximum(np.where(below[:, first] < 0.5, from_below, from_above), SMALLEST)


def maximise(family: Family, sample: Censored, start: Float64) -> Maximum:
    """Newton's method with derivatives by central differences, damped where it must be."""
    at = np.array(start, np.float64)
    rows = len(at)
    best, gradient, hessian = _expanded(family, sample, at)
    active = np.ones(rows, np.bool_)
    for _ in range(MAX_ITERATIONS):
        moves = _steps(gradient[active], hessian[active])
        moved, reached, length = _line_search(
            family, sample.rows(active), at[active], best[active], moves
        )
        at[active], best[active] = moved, reached
        places = np.flatnonzero(active)
        active[places[length < 1e-7]] = False
        if not active.any():
            break
        best[active], gradient[active], hessian[active] = _expanded(
            family, sample.rows(active), at[active]
        )
    best, gradient, hessian = _expanded(family, sample, at)
    return Maximum(at, best, hessian, _is_maximum(gradient, hessian))


def _expanded(family: Family, sample: Censored, at: Float64) -> tuple[Float64, Float64, Float64]:
    """The log-likelihood, its gradient and its Hessian."""
    f = np.stack([sample.loglikelihood(family, at + STEP * offset) for offset in STENCIL])
    middle, right, left, up, down = f[:5]
    gradient = np.stack([right - left, up - down], axis=1) / (2 * STEP)
    mixed = (f[5] + f[6] - f[7] - f[8]) / 4
    hessian = np.stack([right + left - 2 * middle, mixed, mixed, up + down - 2 * middle], axis=1)
    return middle, gradient, hessian.reshape(-1, 2, 2) / STEP**2


def _steps(gradient: Float64, hessian: Float64) -> Float64:
    """Newton's step where the likelihood is concave, else uphill; never too long."""
    values, vectors = np.linalg.eigh(hessian)
    curvature = np.maximum(np.abs(values), 1e-8 * np.abs(values).max(axis=1, keepdims=True) + 1e-12)
    along = np.einsum("rij,ri->rj", vectors, gradient) / curvature
    steps = np.einsum("rij,rj->ri", vectors, along)
    length = np.linalg.norm(steps, axis=1, keepdims=True)
    return np.asarray(steps * np.minimum(1.0, LONGEST / np.maximum(length, 1e-300)))


def _line_search(
    family: Family, sample: Censored, at: Float64, best: Float64, moves: Float64
) -> tuple[Float64, Float64, Float64]:
    """Halve each row's step until the likelihood does not fall; the moved length tells the end."""
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
    return np.asarray(is_concave & (np.linalg.norm(_steps(gradient, hessian), axis=1) < 1e-3))
