"""Parametric families of distributions of radii: scipy's, in coordinates in which they are fitted.

Functions take coordinates of shape (rows, 2) and values of shape (columns,), and give an array of
shape (rows, columns), so that thousands of samples are fitted at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from radii.errors import DataError
from radii.statistics._columns import Float64

SMALLEST_PROBABILITY = 1e-300
SMALLEST_SPREAD, SMALLEST_START = 1e-3, 1e-3
"""Of the values that a search begins with, in units of the data or of their logarithms."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Two coordinates, both unbounded: where the distribution lies, and the log of how it spreads.

    `arguments` are those of scipy's distribution at the coordinates. `parameters` names them as
    users know them: each is its coordinate itself where its `power` is 0, and else exp(power *
    coordinate). `start` are coordinates for values of this mean and spread, of their logarithms
    where the family is positive. Values of a positive family may begin at a `location` other than
    0: they are then those of the location plus X.
    """

    name: str
    title: str
    distribution: Any
    arguments: Callable[[Float64, Float64], dict[str, Float64]]
    parameters: tuple[str, str]
    powers: tuple[int, int]
    start: Callable[[float, float], tuple[float, float]]
    is_positive: bool = True
    location: float = 0.0

    def start_for(self, values: Float64) -> Float64:
        """Coordinates to begin a search with."""
        if self.is_positive:
            values = np.log(np.maximum(values - self.location, SMALLEST_START))
        mean, spread = float(values.mean()), max(float(values.std()), SMALLEST_SPREAD)
        return np.array(self.start(mean, spread))

    def below(self, at: Float64, values: Float64) -> Float64:
        """The probability to be at most each value."""
        return self._of(self.distribution.cdf, at, values)

    def above(self, at: Float64, values: Float64) -> Float64:
        """The probability to be above each value, precise where it is small."""
        return self._of(self.distribution.sf, at, values)

    def logpdf(self, at: Float64, values: Float64) -> Float64:
        return self._of(self.distribution.logpdf, at, values)

    def frozen(self, at: Float64) -> Any:
        """The distribution as an object of scipy."""
        return self.distribution(**self._located(at[0], at[1]))

    def natural(self, at: Float64) -> tuple[Float64, Float64]:
        """The parameters as users know them, and their derivatives, each by its coordinate."""
        powers = np.array(self.powers)
        values = np.where(powers == 0, at, np.exp(powers * at))
        return values, np.where(powers == 0, 1.0, powers * values)

    def rescaled(self, at: Float64, factor: float) -> Float64:
        """The coordinates when all values are multiplied by a factor."""
        if self.is_positive:
            return np.asarray(at + np.array([np.log(factor), 0.0]))
        return np.asarray(at * np.array([factor, 1.0]) + np.array([0.0, np.log(factor)]))

    def _of(self, function: Callable[..., Float64], at: Float64, values: Float64) -> Float64:
        """One of scipy's functions, which may overflow far out, where no fit ends."""
        with np.errstate(all="ignore"):
            return np.asarray(function(values, **self._located(at[:, :1], at[:, 1:])))

    def _located(self, one: Float64, two: Float64) -> dict[str, Any]:
        return {"loc": self.location, **self.arguments(one, two)}


LOG_NORMAL = Family(
    name="lognormal",
    title="log-normal",
    distribution=stats.lognorm,
    arguments=lambda mean, log_spread: {"s": np.exp(log_spread), "scale": np.exp(mean)},
    parameters=("log mean", "log deviation"),
    powers=(0, 1),
    start=lambda mean, spread: (mean, np.log(spread)),
)

NORMAL = Family(
    name="normal",
    title="normal",
    distribution=stats.norm,
    arguments=lambda mean, log_spread: {"loc": mean, "scale": np.exp(log_spread)},
    parameters=("mean", "deviation"),
    powers=(0, 1),
    start=lambda mean, spread: (mean, np.log(spread)),
    is_positive=False,
)

GUMBEL_DEVIATION, EULER = np.pi / np.sqrt(6), np.euler_gamma
"""The logarithm of a Weibull value has the deviation pi / sqrt(6) and the mean -0.5772, both in
units of 1 / shape; the mean from the log of the scale."""

WEIBULL = Family(
    name="weibull",
    title="Weibull",
    distribution=stats.weibull_min,
    arguments=lambda log_scale, log_spread: {"c": np.exp(-log_spread), "scale": np.exp(log_scale)},
    parameters=("scale", "shape"),
    powers=(1, -1),
    start=lambda mean, spread: (
        mean + EULER * spread / GUMBEL_DEVIATION,
        np.log(spread / GUMBEL_DEVIATION),
    ),
)

GAMMA = Family(
    name="gamma",
    title="gamma",
    distribution=stats.gamma,
    arguments=lambda log_scale, log_shape: {"a": np.exp(log_shape), "scale": np.exp(log_scale)},
    parameters=("scale", "shape"),
    powers=(1, 1),
    # The logarithm of a gamma value has a variance of about 1 / shape.
    start=lambda mean, spread: (mean + 2 * np.log(spread), -2 * np.log(spread)),
)

FAMILIES: dict[str, Family] = {
    family.name: family for family in (LOG_NORMAL, NORMAL, WEIBULL, GAMMA)
}


def family_named(name: str) -> Family:
    if name not in FAMILIES:
        raise DataError(f"family '{name}' is not one of {', '.join(FAMILIES)}")
    return FAMILIES[name]
