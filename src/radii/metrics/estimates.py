"""A value found on a sample of inputs, and where that of all inputs lies, with confidence.

Inputs are taken as drawn independently. A share of inputs gets the exact limits of Clopper and
Pearson. A mean of numbers between 0 and 1, one an input, gets those of Chernoff's bound in the form
of Hoeffding (1963, theorem 1), which holds for every distribution of such numbers: the true mean is
where its relative entropy to the one found is at most log(2 / (1 - level)) / inputs. That is never
wider than Hoeffding's better known limits, and much narrower for a mean near 0 or 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.distributions.confidence import clopper_pearson
from radii.errors import DataError

__all__ = ["Estimate", "mean_estimate", "share_estimate"]

HALVINGS = 60
"""Of an interval between 0 and 1: beyond what a float64 resolves."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """`value` on the sample; that of all inputs is between `low` and `high` with confidence."""

    value: float
    low: float
    high: float


def share_estimate(successes: int, trials: int, level: float = 0.95) -> Estimate:
    """A share of inputs."""
    low, high = clopper_pearson(successes, trials, level)
    return Estimate(successes / trials, low, high)


def mean_estimate(values: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """The mean of one number an input, each between 0 and 1; it may be an estimate itself.

    That an input's number is estimated without bias from samples of its own only adds to the
    spread that is seen between inputs, so it needs no allowance of its own.
    """
    numbers = np.asarray(values, np.float64).ravel()
    if not 0 < level < 1:
        raise DataError(f"a confidence level is between 0 and 1, not {level}")
    if not numbers.size or not np.all((numbers >= 0) & (numbers <= 1)):
        raise DataError("a mean is of numbers between 0 and 1, at least one")
    mean = float(numbers.mean())
    allowed = math.log(2 / (1 - level)) / numbers.size
    return Estimate(mean, _limit(mean, 0.0, allowed), _limit(mean, 1.0, allowed))


def _limit(mean: float, end: float, allowed: float) -> float:
    """The number between `mean` and `end`, 0 or 1, at which the relative entropy is `allowed`.

    Rounded away from the mean.
    """
    near, far = mean, end
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        if _relative_entropy(mean, middle) <= allowed:
            near = middle
        else:
            far = middle
    return far


def _relative_entropy(found: float, true: float) -> float:
    """Of one Bernoulli variable to another, by their means; inf where `true` rules `found` out."""
    if found == true:
        return 0.0
    if true in (0.0, 1.0):
        return math.inf
    total = found * math.log(found / true) if found > 0 else 0.0
    return total + ((1 - found) * math.log((1 - found) / (1 - true)) if found < 1 else 0.0)
