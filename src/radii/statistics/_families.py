"""Parametric families of distributions of radii, in coordinates in which they are easily fitted.

Functions take coordinates of shape (rows, 2) and values of shape (columns,), and give an array of
shape (rows, columns), so that thousands of samples are fitted at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import special, stats

from radii.errors import DataError
from radii.statistics._columns import Float64

SMALLEST_PROBABILITY = 1e-300
LARGEST_EXPONENT = 700.0
"""exp of more overflows."""


class Family(ABC):
    """Two coordinates, both unbounded: where the distribution lies, and the log of how it spreads.

    `parameters` names them as users know them.
    """

    name: str
    title: str
    parameters: tuple[str, str]
    is_positive = True

    @abstractmethod
    def start(self, values: Float64, weights: Float64) -> Float64:
        """Coordinates to begin the search with."""

    @abstractmethod
    def below(self, at: Float64, values: Float64) -> Float64:
        """The probability to be at most each value."""

    @abstractmethod
    def above(self, at: Float64, values: Float64) -> Float64:
        """The probability to be above each value, precise where it is small."""

    @abstractmethod
    def slopes(self, at: Float64, values: Float64) -> tuple[Float64, Float64]:
        """The derivatives of `below` by each coordinate."""

    @abstractmethod
    def logpdf(self, at: Float64, values: Float64) -> Float64: ...

    @abstractmethod
    def natural(self, at: Float64) -> tuple[Float64, Float64]:
        """The parameters as users know them, and their derivatives, each by its coordinate."""

    @abstractmethod
    def frozen(self, at: Float64) -> Any:
        """The distribution as an object of scipy."""

    def rescaled(self, at: Float64, factor: float) -> Float64:
        """The coordinates when all values are multiplied by a factor."""
        return np.asarray(at + np.array([np.log(factor), 0.0]))


def _logs(values: Float64) -> Float64:
    return np.asarray(np.log(np.maximum(values, SMALLEST_PROBABILITY)))


class LogNormal(Family):
    """log x is normal: with z = (log x - m) exp(-s), coordinates m and s, F = Phi(z)."""

    name, title, parameters = "lognormal", "log-normal", ("log mean", "log deviation")

    def start(self, values: Float64, weights: Float64) -> Float64:
        location = self._location(values)
        mean = np.average(location, weights=weights)
        spread = np.sqrt(np.average((location - mean) ** 2, weights=weights))
        return np.array([mean, np.log(max(spread, 1e-3))])

    def below(self, at: Float64, values: Float64) -> Float64:
        return np.asarray(special.ndtr(self._standard(at, values)))

    def above(self, at: Float64, values: Float64) -> Float64:
        return np.asarray(special.ndtr(-self._standard(at, values)))

    def slopes(self, at: Float64, values: Float64) -> tuple[Float64, Float64]:
        z = np.clip(self._standard(at, values), -LARGEST_EXPONENT, 40)
        density = np.exp(self._log_density(z))
        return -density * np.exp(-at[:, 1:]), -z * density

    def logpdf(self, at: Float64, values: Float64) -> Float64:
        return self._log_density(self._standard(at, values)) - at[:, 1:] - _logs(values)

    def natural(self, at: Float64) -> tuple[Float64, Float64]:
        return np.array([at[0], np.exp(at[1])]), np.array([1.0, np.exp(at[1])])

    def frozen(self, at: Float64) -> Any:
        return stats.lognorm(np.exp(at[1]), scale=np.exp(at[0]))

    def _location(self, values: Float64) -> Float64:
        return _logs(values)

    def _standard(self, at: Float64, values: Float64) -> Float64:
        return (self._location(values) - at[:, :1]) * np.exp(-at[:, 1:])

    def _log_density(self, z: Float64) -> Float64:
        return np.asarray(-0.5 * z * z - 0.5 * np.log(2 * np.pi))


class Normal(LogNormal):
    """The same of x itself."""

    name, title, parameters = "normal", "normal", ("mean", "deviation")
    is_positive = False

    def start(self, values: Float64, weights: Float64) -> Float64:
        mean = np.average(values, weights=weights)
        spread = np.sqrt(np.average((values - mean) ** 2, weights=weights))
        return np.array([mean, np.log(max(spread, 1e-3 * abs(mean), SMALLEST_PROBABILITY))])

    def logpdf(self, at: Float64, values: Float64) -> Float64:
        return self._log_density(self._standard(at, values)) - at[:, 1:]

    def rescaled(self, at: Float64, factor: float) -> Float64:
        return np.asarray(at * np.array([factor, 1.0]) + np.array([0.0, np.log(factor)]))

    def frozen(self, at: Float64) -> Any:
        return stats.norm(at[0], np.exp(at[1]))

    def _location(self, values: Float64) -> Float64:
        return values


class Weibull(LogNormal):
    """log x has the smallest-extreme-value distribution: F = 1 - exp(-e^z), shape = exp(-s)."""

    name, title, parameters = "weibull", "Weibull", ("scale", "shape")

    def start(self, values: Float64, weights: Float64) -> Float64:
        mean, log_spread = super().start(values, weights)
        # The mean of log x is m - 0.5772 exp(s), its deviation pi / sqrt(6) exp(s).
        spread = np.exp(log_spread) / 1.2825
        return np.array([mean + 0.5772 * spread, np.log(spread)])

    def below(self, at: Float64, values: Float64) -> Float64:
        return -np.expm1(-self._hazard(self._standard(at, values)))

    def above(self, at: Float64, values: Float64) -> Float64:
        return np.exp(-self._hazard(self._standard(at, values)))

    def natural(self, at: Float64) -> tuple[Float64, Float64]:
        return np.exp(at * [1, -1]), np.exp(at * [1, -1]) * [1, -1]

    def frozen(self, at: Float64) -> Any:
        return stats.weibull_min(np.exp(-at[1]), scale=np.exp(at[0]))

    def _log_density(self, z: Float64) -> Float64:
        return z - self._hazard(z)

    def _hazard(self, z: Float64) -> Float64:
        return np.asarray(np.exp(np.minimum(z, LARGEST_EXPONENT)))


class Gamma(Family):
    """Coordinates are the logs of scale and shape."""

    name, title, parameters = "gamma", "gamma", ("scale", "shape")

    def start(self, values: Float64, weights: Float64) -> Float64:
        mean = np.average(values, weights=weights)
        variance = max(np.average((values - mean) ** 2, weights=weights), 1e-6 * mean**2)
        return np.asarray(np.log(np.array([variance / mean, mean**2 / variance])))

    def below(self, at: Float64, values: Float64) -> Float64:
        return np.asarray(special.gammainc(np.exp(at[:, 1:]), self._scaled(at, values)))

    def above(self, at: Float64, values: Float64) -> Float64:
        return np.asarray(special.gammaincc(np.exp(at[:, 1:]), self._scaled(at, values)))

    def slopes(self, at: Float64, values: Float64) -> tuple[Float64, Float64]:
        scaled, shape = self._scaled(at, values), np.exp(at[:, 1:])
        finite = np.clip(scaled, SMALLEST_PROBABILITY, 1e6)
        by_scale = -np.exp(shape * np.log(finite) - finite - special.gammaln(shape))
        step = 1e-4  # of the log of the shape, by which no closed form is known
        up, down = (special.gammainc(shape * np.exp(sign * step), scaled) for sign in (1, -1))
        return by_scale, (up - down) / (2 * step)

    def logpdf(self, at: Float64, values: Float64) -> Float64:
        shape, exponent = np.exp(at[:, 1:]), _logs(values) - at[:, :1]
        density = shape * exponent - np.exp(exponent) - special.gammaln(shape)
        return np.asarray(density - _logs(values))

    def natural(self, at: Float64) -> tuple[Float64, Float64]:
        return np.exp(at), np.exp(at)

    def frozen(self, at: Float64) -> Any:
        return stats.gamma(np.exp(at[1]), scale=np.exp(at[0]))

    def _scaled(self, at: Float64, values: Float64) -> Float64:
        return np.maximum(values, 0) * np.exp(-at[:, :1])


FAMILIES: dict[str, Family] = {
    family.name: family for family in (LogNormal(), Normal(), Weibull(), Gamma())
}


def family_named(name: str) -> Family:
    if name not in FAMILIES:
        raise DataError(f"family '{name}' is not one of {', '.join(FAMILIES)}")
    return FAMILIES[name]
