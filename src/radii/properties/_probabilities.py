"""Requirements on the softmax of a network's outputs, where the network itself outputs logits.

With logits y the probability of class i is p_i = 1 / (1 + sum over j != i of exp(y_j - y_i)). What
is compared here are log-odds, log(p_i / (1 - p_i)) = y_i - log sum over j != i of exp(y_j): they do
not saturate where p_i is nearly 0 or 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from radii.properties._base import Float64, Requirement


@dataclass(frozen=True, slots=True)
class ProbabilityBound:
    """The probability of a class stays above `level`; below it where `is_ceiling`.

    Levels lie strictly between 0 and 1: no probability passes any other.
    """

    index: int
    level: float
    is_ceiling: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"{self.level} is not strictly between 0 and 1")

    @property
    def log_odds(self) -> float:
        """The level as log-odds."""
        return math.log(self.level) - math.log1p(-self.level)


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRequirement(Requirement):
    """Bounds on the softmax of the outputs; all of them must hold."""

    bounds: tuple[ProbabilityBound, ...]

    description: ClassVar[str] = "bounds on the softmax of outputs"

    def margin(self, outputs: npt.ArrayLike, distances: npt.ArrayLike = 0.0) -> Float64:
        """In log-odds."""
        values = np.asarray(outputs, np.float64)
        least = np.full(values.shape[:-1], np.inf)
        for bound in self.bounds:
            above = log_odds(values, bound.index) - bound.log_odds
            least = np.minimum(least, -above if bound.is_ceiling else above)
        return least

    @property
    def violations(self) -> None:
        return None


def log_odds(outputs: npt.ArrayLike, index: int) -> Float64:
    """Of one class, for logits (..., outputs)."""
    values = np.asarray(outputs, np.float64)
    others = np.delete(values, index, axis=-1)
    largest = others.max(axis=-1)
    rest = np.log(np.exp(others - largest[..., None]).sum(axis=-1))
    return np.asarray(values[..., index] - largest - rest)


def probabilities(outputs: npt.ArrayLike) -> Float64:
    """The softmax of logits (..., outputs)."""
    values = np.asarray(outputs, np.float64)
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
