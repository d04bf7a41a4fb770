"""Parametric distributions fitted to brackets by censored maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.distributions.columns import Float64
from radii.distributions.families import FAMILIES, Family, family_named
from radii.distributions.likelihood import Censored, maximise
from radii.errors import DataError

if TYPE_CHECKING:
    from radii.distributions.distribution import Distribution

__all__ = ["Fit", "fit", "fit_all", "fit_brackets"]


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
        told = ", ".join(
            f"{name} {value:.4g} ± {self.standard_errors[name]:.2g}"
            for name, value in self.parameters.items()
        )
        title = family_named(self.family).title
        empty = self.without_information
        others = f" ({empty} more without an answer)" if empty else ""
        return f"{title} fitted to {self.inputs} brackets{others}: {told}; AIC {self.aic:.1f}"


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
    found = maximise(family, sample, start)
    if not found.is_found[0]:
        raise DataError(
            f"the {family.title} fit has no maximum on these {len(low)} brackets: "
            "they are too few, too wide, or all the same"
        )
    at = family.rescaled(found.at, scale)[0]
    values, slopes = family.natural(at)
    # A location in units of the data scales with them; logs do not.
    variances = np.diag(np.linalg.inv(-found.hessian[0]))
    units = np.array([1.0 if family.is_positive else scale, 1.0])
    errors = np.abs(slopes) * units * np.sqrt(np.maximum(variances, 0))
    exact = int(np.count_nonzero(low == high))
    return Fit(
        family=family.name,
        parameters=dict(zip(family.parameters, map(float, values), strict=True)),
        standard_errors=dict(zip(family.parameters, map(float, errors), strict=True)),
        loglikelihood=float(found.loglikelihood[0]) - exact * np.log(scale),
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
