"""R at every eps at once, from the brackets of a distribution: a band, also for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.distributions import Distribution, class_curves, robust_accuracy_band
from radii.errors import DataError
from radii.guarantees._populations import checked_confidence

MOST_POINTS = 200
"""Of a curve that nobody chose the eps of; its band holds between them, too."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """R within eps: of the sample between `proven` and `not_refuted`, of all inputs between `low`
    and `high`. All points of a curve, and of all classes' curves, hold together.
    """

    eps: float
    label: int | None
    proven: float
    not_refuted: float
    low: float
    high: float


def robustness_curve(
    distribution: Distribution,
    confidence: float = 0.95,
    *,
    eps: npt.ArrayLike | None = None,
    by_class: bool = False,
) -> list[CurvePoint]:
    """The curve of one network, for inputs drawn independently (i.i.d. statement).

    By the inequality of Dvoretzky, Kiefer and Wolfowitz: the band holds at every eps at once,
    whichever are asked for. Classes share the miss. Without `eps`, where the sample's curve moves.
    """
    checked_confidence(confidence)
    if len(distribution.by_network()) > 1:
        raise DataError("a curve is of one network: take one at a time")
    at = _steps(distribution) if eps is None else np.atleast_1d(np.asarray(eps, np.float64))
    if by_class:
        curves = class_curves(distribution, at, level=confidence)
        columns = (curves.proven, curves.not_refuted, curves.low, curves.high)
        return [
            CurvePoint(float(at[k]), label, *(float(column[row, k]) for column in columns))
            for row, label in enumerate(curves.labels)
            for k in range(len(at))
        ]
    band = robust_accuracy_band(distribution, confidence)
    proven, not_refuted = distribution.shares(at)
    low, high = band.at(at)
    rows = zip(at, proven, not_refuted, low, high, strict=True)
    return [CurvePoint(float(e), None, *map(float, rest)) for e, *rest in rows]


def _steps(distribution: Distribution) -> npt.NDArray[np.float64]:
    ends = np.concatenate([distribution.lower, distribution.upper[np.isfinite(distribution.upper)]])
    found: npt.NDArray[np.float64] = np.unique(np.append(ends, 0.0))
    if len(found) > MOST_POINTS:
        found = found[np.linspace(0, len(found) - 1, MOST_POINTS).round().astype(int)]
    return found
