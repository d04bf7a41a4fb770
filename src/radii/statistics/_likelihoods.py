"""Maximum likelihood of families for brackets, for thousands of samples at once.

The log-likelihood of coordinates t, for brackets (a_k, b_k] that occur c_k times and exact values
x_k that occur e_k times, is

    l(t) = sum_k c_k log(F_t(b_k) - F_t(a_k)) + sum_k e_k log f_t(x_k).

`scoring_fit` climbs by the second moments of the scores, which need no second derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from radii.statistics._columns import Array, Float64
from radii.statistics._families import SMALLEST_PROBABILITY, Family

SCORING_ITERATIONS = 50
COORDINATE_TOLERANCE = 1e-4
"""Coordinates are logs or in units of the data; their sampling error is a hundred times this."""
LONGEST_SCORING_STEP = 0.5
DIFFERENCE_STEP = 1e-4
"""Of coordinates, in central differences."""


@dataclass(frozen=True, slots=True, eq=False)
class BracketSamples:
    """Samples, one per row: each bracket by the places of its ends among the edges, and how often
    it occurs (or once). A bracket of one edge alone is an exact value.

    Where all samples have the same brackets, `first` and `last` have one row.
    """

    edges: Float64
    first: Array
    last: Array
    counts: Float64 | None = None

    @property
    def size(self) -> float:
        """How many brackets a sample has."""
        return float(self.first.shape[1] if self.counts is None else self.counts[0].sum())

    @property
    def count(self) -> int:
        """How many samples there are."""
        return len(self.first if self.counts is None else self.counts)

    def rows(self, keep: Array) -> BracketSamples:
        """Some of the samples."""
        counts = None if self.counts is None else self.counts[keep]
        if len(self.first) == 1:
            return replace(self, counts=counts)
        return replace(self, first=self.first[keep], last=self.last[keep], counts=counts)

    def weighted(self, values: Float64) -> Float64:
        return values if self.counts is None else self.counts * values

    def masses(self, family: Family, at: Float64) -> Float64:
        """The probability of each bracket, or the density of an exact value; never quite 0.

        Probabilities are differences within the tail in which they are precise: left of the middle
        those of F, right of it those of F - 1, so that a bracket across it gains a 1.
        """
        edges = self.edges
        middle = int(np.searchsorted(family.below(at[:1], edges)[0], 0.5))
        tails = np.concatenate(
            [family.below(at, edges[:middle]), -family.above(at, edges[middle:])], axis=1
        )
        is_across = (self.first < middle) & (self.last >= middle)
        masses = self._over(tails, self.last) - self._over(tails, self.first) + is_across
        is_exact = self.first == self.last
        if is_exact.any():
            density = np.exp(family.logpdf(at, edges))
            masses = np.where(is_exact, self._over(density, self.first), masses)
        return np.maximum(masses, SMALLEST_PROBABILITY)

    def _over(self, values: Float64, places: Array) -> Float64:
        """The values (rows, edges) at one edge of each bracket."""
        if len(places) == 1:
            return values[:, places[0]]
        return np.take_along_axis(values, places, axis=1)

    def loglikelihood(self, family: Family, at: Float64) -> Float64:
        """Of each row; -inf far out, where it is not a number."""
        with np.errstate(all="ignore"):
            total = self.weighted(np.log(self.masses(family, at))).sum(axis=1)
        return np.where(np.isfinite(total), total, -np.inf)


def scoring_fit(family: Family, samples: BracketSamples, start: Float64) -> tuple[Float64, Float64]:
    """The coordinates of each row's maximum-likelihood fit, and its log-likelihood.

    With s_k the gradient of the log-probability of bracket k, each step is
    (sum s_k s_k^T)^-1 sum s_k: the second moments of the scores stand for the curvature, which is
    what they estimate if the family is right, and are never indefinite (Berndt, Hall, Hall and
    Hausman 1974). A step that leads downhill is halved.
    """
    best = np.array(start, np.float64)
    likelihood, steps = np.full(len(best), -np.inf), np.zeros_like(best)
    active, tried = np.arange(len(best)), best.copy()
    for _ in range(SCORING_ITERATIONS):
        with np.errstate(all="ignore"):  # a sample may be far out
            reached, uphill = _scoring_step(family, samples.rows(active), tried[active])
        better = np.isfinite(uphill).all(axis=1) & (reached >= likelihood[active])
        rows = active[better]
        best[rows], likelihood[rows], steps[rows] = tried[rows], reached[better], uphill[better]
        steps[active[~better]] /= 2
        active = active[np.linalg.norm(steps[active], axis=1) > COORDINATE_TOLERANCE]
        if not active.size:
            break
        tried[active] = best[active] + steps[active]
    return best, likelihood


def _scoring_step(family: Family, samples: BracketSamples, at: Float64) -> tuple[Float64, Float64]:
    """Of each row the log-likelihood, and a step uphill, never too long."""

    def logs(one: float, two: float) -> Float64:
        return np.log(samples.masses(family, at + np.array([one, two])))

    h = DIFFERENCE_STEP
    one, two = ((logs(h, 0) - logs(-h, 0)) / (2 * h), (logs(0, h) - logs(0, -h)) / (2 * h))
    loglikelihood, gradient_one, gradient_two, first, mixed, second = (
        samples.weighted(terms).sum(axis=1)
        for terms in (logs(0, 0), one, two, one * one, one * two, two * two)
    )
    # A ridge keeps the step finite where all brackets are one and the same.
    first, second = first * (1 + 1e-9) + 1e-12, second * (1 + 1e-9) + 1e-12
    determinant = np.maximum(first * second - mixed**2, 1e-300)
    along_one = (second * gradient_one - mixed * gradient_two) / determinant
    along_two = (first * gradient_two - mixed * gradient_one) / determinant
    steps = np.stack([along_one, along_two], axis=1)
    length = np.linalg.norm(steps, axis=1, keepdims=True)
    return loglikelihood, steps * np.minimum(1.0, LONGEST_SCORING_STEP / np.maximum(length, 1e-300))
