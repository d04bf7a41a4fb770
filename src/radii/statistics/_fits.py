"""Parametric distributions fitted to brackets by censored maximum likelihood.

Fisher scoring comes near the maximum (`scoring_fit`) and Newton's method reaches it; the curvature
there, by central differences, gives standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._columns import Float64
from radii.statistics._families import FAMILIES, Family, family_named
from radii.statistics._likelihoods import DIFFERENCE_STEP, BracketSamples, scoring_fit

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


STENCIL = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]])
LEAST_CURVATURE = 1e-6
"""Of the likelihood at a maximum: where it is flatter, coordinates are not known within 1000."""
NEWTON_STEPS = 5
SMALLEST_NEWTON_STEP = 1e-8
"""Below what differences resolve."""
LONGEST_STEP_LEFT = 1e-3
"""From a maximum, Newton's method goes no further."""


def _maximise(
    family: Family, sample: BracketSamples, start: Float64
) -> tuple[Float64, float, Float64] | None:
    """The best coordinates, the log-likelihood there and its Hessian; None if there is no maximum.

    It is one where the likelihood is concave and a Newton step would go nowhere else.
    """
    at = scoring_fit(family, sample, start[None])[0][0]
    for _ in range(NEWTON_STEPS):
        f = sample.loglikelihood(family, at + DIFFERENCE_STEP * STENCIL)
        gradient = np.array([f[1] - f[2], f[3] - f[4]]) / (2 * DIFFERENCE_STEP)
        mixed = (f[5] + f[6] - f[7] - f[8]) / 4
        second = [[f[1] + f[2] - 2 * f[0], mixed], [mixed, f[3] + f[4] - 2 * f[0]]]
        hessian = np.array(second) / DIFFERENCE_STEP**2
        if not np.isfinite(hessian).all() or np.linalg.eigvalsh(hessian)[-1] > -LEAST_CURVATURE:
            return None
        step = np.linalg.solve(-hessian, gradient)
        if np.linalg.norm(step) < SMALLEST_NEWTON_STEP:
            break
        at = at + step
    if np.linalg.norm(step) > LONGEST_STEP_LEFT:
        return None
    return at, float(f[0]), hessian


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
    guesses = middles(low, high)
    scale = float(np.median(guesses)) or float(guesses.max()) or 1.0
    # No distance is below 0, so a bracket from 0 is one without a lower end.
    begins = np.where((low == 0) & (high > 0), -np.inf, low / scale)
    edges, places = np.unique(np.concatenate([begins, high / scale]), return_inverse=True)
    sample = BracketSamples(edges, places[None, : len(low)], places[None, len(low) :])
    maximum = _maximise(family, sample, family.start_for(guesses / scale))
    if maximum is None:
        raise DataError(
            f"the {family.title} fit has no maximum on these {len(low)} brackets: "
            "they are too few, too wide, or all the same"
        )
    best, loglikelihood, hessian = maximum
    at = family.rescaled(best, scale)
    values, slopes = family.natural(at)
    # A location in units of the data scales with them; logs do not.
    variances = np.diag(np.linalg.inv(-hessian))
    units = np.array([1.0 if family.is_positive else scale, 1.0])
    errors = np.abs(slopes) * units * np.sqrt(np.maximum(variances, 0))
    exact = int(np.count_nonzero(low == high))
    return Fit(
        family=family.name,
        parameters=dict(zip(family.parameters, map(float, values), strict=True)),
        standard_errors=dict(zip(family.parameters, map(float, errors), strict=True)),
        loglikelihood=loglikelihood - exact * np.log(scale),
        inputs=len(low),
        misclassified=misclassified,
        without_information=int(is_empty.sum()),
        coordinates=at,
    )


def middles(low: Float64, high: Float64) -> Float64:
    """A guess at each distance, for the start of a search only."""
    return np.where(np.isinf(high), 1.25 * low, (low + high) / 2)


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
