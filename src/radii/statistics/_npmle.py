"""The non-parametric maximum-likelihood distribution of interval-censored data (Turnbull).

The distance of an input's closest counterexample lies in (lower, upper]. The likelihood depends on
a distribution only through the mass it gives to the innermost intervals: those that start at some
lower and end at the next upper. Self-consistency (EM) finds those masses surely but slowly, so each
of its steps is followed by one of the iterative convex minorant. The result is checked against the
optimality conditions, which bound how far the likelihood can be from its maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.statistics._columns import Array, Float64

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


NPMLE_ITERATIONS = 2000
LIKELIHOOD_TOLERANCE = 1e-6
"""Stop when the log-likelihood is within this of its maximum: far below what data can tell."""


@dataclass(frozen=True, slots=True, eq=False)
class Turnbull:
    """Mass on disjoint intervals (left, right]; a point where both are equal; right may be inf.

    How the mass of an interval lies within it is not known. `shortfall` is a proven bound on how
    much larger the log-likelihood of the best masses is.
    """

    left: Float64
    right: Float64
    mass: Float64
    loglikelihood: float
    shortfall: float
    iterations: int

    def broken(self, eps: npt.ArrayLike) -> tuple[Float64, Float64]:
        """The estimated share broken within eps: at least, and at most."""
        at = np.asarray(eps, np.float64)
        totals = np.concatenate([[0.0], np.cumsum(self.mass)])
        reached = np.searchsorted(self.right, at, side="right")
        begun = np.searchsorted(self._starts, at, side="left")
        return totals[reached], np.minimum(totals[begun], 1.0)

    @property
    def _starts(self) -> Float64:
        is_point = self.left == self.right
        return np.where(is_point, np.nextafter(self.left, -np.inf), self.left)

    def quantile(self, share: float) -> tuple[float, float]:
        """The interval in which the estimated quantile lies."""
        totals = np.cumsum(self.mass)
        place = min(int(np.searchsorted(totals, share * (1 - 1e-12))), len(totals) - 1)
        return float(self.left[place]), float(self.right[place])

    def mean(self) -> tuple[float, float]:
        has_mass = self.mass > 0
        return (
            float(self.mass @ self.left),
            float(self.mass[has_mass] @ self.right[has_mass]),
        )


def turnbull(distribution: Distribution) -> Turnbull:
    """The estimate from a distribution's brackets, misclassified inputs among them."""
    return turnbull_of(distribution.lower, distribution.upper)


def turnbull_of(lower: Float64, upper: Float64) -> Turnbull:
    """The estimate from intervals (lower, upper]; exact where both are equal."""
    left, right, first, last = innermost_intervals(lower, upper)
    covered, weights = np.unique(np.stack([first, last]), axis=1, return_counts=True)
    mass, loglikelihood, shortfall, iterations = _maximised(
        covered[0], covered[1], weights.astype(np.float64), len(left)
    )
    return Turnbull(left, right, mass, loglikelihood, shortfall, iterations)


def innermost_intervals(lower: Float64, upper: Float64) -> tuple[Float64, Float64, Array, Array]:
    """Left and right ends, and for each observation the first and last interval it covers."""
    values, codes = np.unique(np.concatenate([lower, upper]), return_inverse=True)
    is_exact = lower == upper
    # At one value a point begins (0), intervals end (1), and open intervals begin (2).
    begins = 3 * codes[: len(lower)] + np.where(is_exact, 0, 2)
    ends = 3 * codes[len(lower) :] + 1
    marks = np.unique(np.concatenate([begins, ends]))
    is_end = marks % 3 == 1
    inner = np.flatnonzero(~is_end[:-1] & is_end[1:])
    lefts, rights = marks[inner], marks[inner + 1]
    first = np.searchsorted(lefts, begins, side="left")
    last = np.searchsorted(rights, ends, side="right") - 1
    return values[lefts // 3], values[rights // 3], first, last


def _maximised(
    first: Array, last: Array, weights: Float64, size: int
) -> tuple[Float64, float, float, int]:
    """Masses of `size` intervals for observations that cover first..last of them.

    With P_i the mass that observation i covers and w_i its weight, n in total, the log-likelihood
    is l(p) = sum_i w_i log P_i. Its slope by mass j is d_j = sum_i w_i / P_i, over the i that cover
    j, and EM's step is p_j <- p_j d_j / n. As l is concave and sum_j p_j d_j = n, the best masses q
    have l(q) - l(p) <= sum_j (q_j - p_j) d_j <= max_j d_j - n, which is the shortfall.
    """
    total = weights.sum()
    mass = np.full(size, 1 / size)
    shortfall, iterations = np.inf, 0
    while True:
        cumulated = np.concatenate([[0.0], np.cumsum(mass)])
        inverse = weights / (cumulated[last + 1] - cumulated[first])
        slope = np.cumsum(
            np.bincount(first, inverse, size + 1) - np.bincount(last + 1, inverse, size + 1)
        )[:size]
        gain = slope / total
        shortfall = total * max(0.0, float(gain.max()) - 1)
        if shortfall <= LIKELIHOOD_TOLERANCE or iterations >= NPMLE_ITERATIONS:
            break
        iterations += 1
        mass = mass * gain
        mass = _convex_minorant_step(mass / mass.sum(), first, last, weights)
    return mass, _loglikelihood(cumulated, first, last, weights), shortfall, iterations


def _convex_minorant_step(mass: Float64, first: Array, last: Array, weights: Float64) -> Float64:
    """One damped Newton step on the cumulated masses with a diagonal Hessian, kept monotone.

    In F_j = p_1 + ... + p_j an observation covers F_last - F_first. The monotone F nearest to
    F + gradient / curvature, weighted by the curvature, is an isotonic regression; the step towards
    it is halved until the likelihood grows.
    """
    from scipy.optimize import isotonic_regression

    size = len(mass)
    if size < 2:
        return mass
    cumulated = np.concatenate([[0.0], np.cumsum(mass)])
    now = _loglikelihood(cumulated, first, last, weights)
    inverse = 1 / (cumulated[last + 1] - cumulated[first])
    once, twice = weights * inverse, weights * inverse**2
    gradient = np.bincount(last + 1, once, size + 1) - np.bincount(first, once, size + 1)
    curvature = np.bincount(last + 1, twice, size + 1) + np.bincount(first, twice, size + 1)
    inside = slice(1, size)
    wanted = cumulated[inside] + gradient[inside] / curvature[inside]
    target = cumulated.copy()
    target[inside] = np.clip(isotonic_regression(wanted, weights=curvature[inside]).x, 0, 1)
    step = 1.0
    while step > 1e-3:
        tried = cumulated + step * (target - cumulated)
        if _loglikelihood(tried, first, last, weights) > now:
            return np.diff(tried)
        step /= 2
    return mass


def _loglikelihood(cumulated: Float64, first: Array, last: Array, weights: Float64) -> float:
    covered = cumulated[last + 1] - cumulated[first]
    return float(weights @ np.log(covered)) if np.all(covered > 0) else -np.inf
