"""Parametric families of distributions of radii, in coordinates in which they are easily fitted.

Functions take coordinates of shape (rows, 2) and values of shape (columns,), and give an array of
shape (rows, columns), so that thousands of samples are fitted at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from radii.errors import DataError
from radii.statistics.reading._run import Float64

SMALLEST_PROBABILITY = 1e-300


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
    def rescaled(self, at: Float64, factor: float) -> Float64:
        """The coordinates when all values are multiplied by a factor."""

    @abstractmethod
    def natural(self, at: Float64) -> tuple[Float64, Float64]:
        """The parameters as users know them, and their derivatives, each by its coordinate."""

    @abstractmethod
    def frozen(self, at: Float64) -> Any:
        """The distribution as an object of scipy."""


class Normal(Family):
    name, title, parameters = "normal", "normal", ("mean", "deviation")
    is_positive = False

    def start(self, values: Float64, weights: Float64) -> Float64:
        mean = np.average(values, weights=weights)
        spread = np.sqrt(np.average((values - mean) ** 2, weights=weights))
        return np.array([mean, np.log(max(spread, 1e-3 * abs(mean), SMALLEST_PROBABILITY))])

    def below(self, at: Float64, values: Float64) -> Float64:
        from scipy.special import ndtr

        return np.asarray(ndtr(self._standard(at, values)))

    def above(self, at: Float64, values: Float64) -> Float64:
        from scipy.special import ndtr

        return np.asarray(ndtr(-self._standard(at, values)))

    def slopes(self, at: Float64, values: Float64) -> tuple[Float64, Float64]:
        z = np.clip(self._standard(at, values), -40, 40)
        density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
        return -density * np.exp(-at[:, 1:]), -z * density

    def logpdf(self, at: Float64, values: Float64) -> Float64:
        z = self._standard(at, values)
        return np.asarray(-0.5 * z * z - at[:, 1:] - 0.5 * np.log(2 * np.pi))

    def _standard(self, at: Float64, values: Float64) -> Float64:
        return (values - at[:, :1]) * np.exp(-at[:, 1:])

    def rescaled(self, at: Float64, factor: float) -> Float64:
        return np.stack([at[..., 0] * factor, at[..., 1] + np.log(factor)], axis=-1)

    def natural(self, at: Float64) -> tuple[Float64, Float64]:
        return np.array([at[0], np.exp(at[1])]), np.array([1.0, np.exp(at[1])])

    def frozen(self, at: Float64) -> Any:
        from scipy import stats

        return stats.norm(at[0], np.exp(at[1]))


class LogNormal(Normal):
    name, title, parameters = "lognormal", "log-normal", ("log mean", "log deviation")
    is_positive = True

    def start(self, values: Float64, weights: Float64) -> Float64:
        logs = np.log(np.maximum(values, SMALLEST_PROBABILITY))
        mean = np.average(logs, weights=weights)
        spread = np.sqrt(np.average((logs - mean) ** 2, weights=weights))
        return np.array([mean, np.log(max(spread, 1e-3))])

    def logpdf(self, at: Float64, values: Float64) -> Float64:
        return super().logpdf(at, values) - np.log(np.maximum(values, SMALLEST_PROBABILITY))

    def _standard(self, at: Float64, values: Float64) -> Float64:
        return super()._standard(at, np.log(np.maximum(values, SMALLEST_PROBABILITY)))

    def rescaled(self, at: Float64, factor: float) -> Float64:
        return np.stack([at[..., 0] + np.log(factor), at[..., 1]], axis=-1)

    def frozen(self, at: Float64) -> Any:
        from scipy import stats

        return stats.lognorm(np.exp(at[1]), scale=np.exp(at[0]))


class _Scaled(Family):
    """Families with a scale and a shape; coordinates are the logs of both."""

    parameters = ("scale", "shape")

    def rescaled(self, at: Float64, factor: float) -> Float64:
        return np.stack([at[..., 0] + np.log(factor), at[..., 1]], axis=-1)

    def natural(self, at: Float64) -> tuple[Float64, Float64]:
        return np.exp(at), np.exp(at)


class Weibull(_Scaled):
    name, title = "weibull", "Weibull"

    def start(self, values: Float64, weights: Float64) -> Float64:
        location, log_spread = LogNormal().start(values, weights)
        # Its log has deviation pi / sqrt(6) / shape, and mean log scale - 0.5772 / shape.
        shape = 1.2825 / np.exp(log_spread)
        return np.array([location + 0.5772 / shape, np.log(shape)])

    def below(self, at: Float64, values: Float64) -> Float64:
        return -np.expm1(-self._hazard(at, values))

    def above(self, at: Float64, values: Float64) -> Float64:
        return np.exp(-self._hazard(at, values))

    def slopes(self, at: Float64, values: Float64) -> tuple[Float64, Float64]:
        hazard = self._hazard(at, values)
        density = hazard * np.exp(-hazard)
        return -np.exp(at[:, 1:]) * density, density * np.log(
            np.maximum(hazard, SMALLEST_PROBABILITY)
        )

    def logpdf(self, at: Float64, values: Float64) -> Float64:
        logs = np.log(np.maximum(values, SMALLEST_PROBABILITY))
        hazard = self._hazard(at, values)
        return np.log(np.maximum(hazard, SMALLEST_PROBABILITY)) + at[:, 1:] - logs - hazard

    def _hazard(self, at: Float64, values: Float64) -> Float64:
        logs = np.log(np.maximum(values, SMALLEST_PROBABILITY)) - at[:, :1]
        return np.exp(np.minimum(np.exp(at[:, 1:]) * logs, 700.0))

    def frozen(self, at: Float64) -> Any:
        from scipy import stats

        return stats.weibull_min(np.exp(at[1]), scale=np.exp(at[0]))


class Gamma(_Scaled):
    name, title = "gamma", "gamma"

    def start(self, values: Float64, weights: Float64) -> Float64:
        mean = np.average(values, weights=weights)
        variance = max(np.average((values - mean) ** 2, weights=weights), 1e-6 * mean**2)
        return np.asarray(np.log(np.array([variance / mean, mean**2 / variance])))

    def below(self, at: Float64, values: Float64) -> Float64:
        from scipy.special import gammainc

        return np.asarray(gammainc(np.exp(at[:, 1:]), self._scaled(at, values)))

    def above(self, at: Float64, values: Float64) -> Float64:
        from scipy.special import gammaincc

        return np.asarray(gammaincc(np.exp(at[:, 1:]), self._scaled(at, values)))

    def slopes(self, at: Float64, values: Float64) -> tuple[Float64, Float64]:
        from scipy.special import gammainc, gammaln

        scaled = self._scaled(at, values)
        finite = np.clip(scaled, SMALLEST_PROBABILITY, 1e6)
        shape = np.exp(at[:, 1:])
        by_scale = -np.exp(shape * np.log(finite) - finite - gammaln(shape))
        step = 1e-4
        up, down = (gammainc(np.exp(at[:, 1:] + change), scaled) for change in (step, -step))
        return by_scale, (up - down) / (2 * step)

    def _scaled(self, at: Float64, values: Float64) -> Float64:
        return np.maximum(values, 0) * np.exp(-at[:, :1])

    def logpdf(self, at: Float64, values: Float64) -> Float64:
        from scipy.special import gammaln

        shape, logs = np.exp(at[:, 1:]), np.log(np.maximum(values, SMALLEST_PROBABILITY))
        exponent = logs - at[:, :1]
        return np.asarray(shape * exponent - np.exp(exponent) - gammaln(shape) - logs)

    def frozen(self, at: Float64) -> Any:
        from scipy import stats

        return stats.gamma(np.exp(at[1]), scale=np.exp(at[0]))


FAMILIES: dict[str, Family] = {
    family.name: family for family in (LogNormal(), Normal(), Weibull(), Gamma())
}


def family_named(name: str) -> Family:
    if name not in FAMILIES:
        raise DataError(f"family '{name}' is not one of {', '.join(FAMILIES)}")
    return FAMILIES[name]
