"""What a sample of inputs says about all inputs: confidence for robust accuracy.

Inputs are taken as drawn independently from the population that is spoken about. Brackets may be
wide for any reason: what is not proven counts as broken on the low side, and what is not refuted as
robust on the high side, so the statements hold whatever the radii within the brackets are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.results import Float64, joint_codes

if TYPE_CHECKING:
    from radii.distributions._distribution import Distribution


Tail = Literal["both", "lower", "upper"]


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Robust accuracy at every eps at once: all statements together hold with the given level.

    Both ends combine the sampling error (`half_width`) with the width of the brackets.
    """

    distribution: Distribution
    level: float
    half_width: float

    def at(self, eps: npt.ArrayLike) -> tuple[Float64, Float64]:
        """The lower and upper ends at each eps."""
        proven, not_refuted = self.distribution.shares(eps)
        low = np.maximum(proven - self.half_width, 0.0)
        return low, np.minimum(not_refuted + self.half_width, 1.0)


def robust_accuracy_band(distribution: Distribution, level: float = 0.95) -> Band:
    """By the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant."""
    check_inputs_differ(distribution)
    return Band(distribution, level, dkw_half_width(len(distribution), level))


def check_inputs_differ(distribution: Distribution) -> None:
    """Refuse confidence from rows that are not independent: an input that is there several times.

    Brackets of one input on several networks, or for several targets, depend on each other.
    """
    codes = joint_codes(distribution.column(name) for name in ("input", "split"))
    if int(codes.max()) + 1 < len(codes):
        raise DataError(
            f"confidence needs one bracket for each input, but {len(codes)} brackets are of "
            f"{int(codes.max()) + 1} inputs: take one network and one target at a time, or combine "
            "targets (over_targets)"
        )


def dkw_half_width(inputs: int, level: float = 0.95, *, tail: Tail = "both") -> float:
    """How far, at any eps, a sample's share is from the population's. One-sided for one tail."""
    miss = 1 - _checked_level(level)
    if tail != "both" and miss > 0.5:
        raise DataError(f"a one-sided band needs a level of at least 50 %, not {100 * level:g} %")
    return hoeffding_half_width(inputs, miss / (2 if tail == "both" else 1))


def hoeffding_half_width(samples: int, miss: float, variance_factor: float = 1.0) -> float:
    """Hoeffding's bound: sqrt(factor log(1 / miss) / (2 n)), for one side of a mean in [0, 1].

    The factor says by how much the way of sampling shrinks the variance. By Massart, the largest
    distance between a distribution function and its sample's has the same bound.
    """
    return math.sqrt(variance_factor * math.log(1 / miss) / (2 * samples))


def inputs_for_half_width(half_width: float, level: float = 0.95) -> int:
    """The smallest sample whose band is this narrow, up to the width of its brackets."""
    if not 0 < half_width < 1:
        raise DataError(f"a half-width is between 0 and 1, not {half_width}")
    return math.ceil(math.log(2 / (1 - _checked_level(level))) / (2 * half_width**2))


def robust_accuracy_interval(
    distribution: Distribution, eps: float, level: float = 0.95, *, tail: Tail = "both"
) -> tuple[float, float]:
    """Robust accuracy at one eps, by Clopper and Pearson: narrower than the band, for one eps."""
    check_inputs_differ(distribution)
    share = distribution.robust_accuracy(eps)
    size = len(distribution)
    low, _ = clopper_pearson(round(share.proven * size), size, level, tail=tail)
    _, high = clopper_pearson(round(share.not_refuted * size), size, level, tail=tail)
    return low, high


def clopper_pearson(
    successes: int, trials: int, level: float = 0.95, *, tail: Tail = "both"
) -> tuple[float, float]:
    """Exact limits on a share; with one tail the other limit is 0 or 1."""
    from scipy.special import betaincinv

    miss = (1 - _checked_level(level)) / (2 if tail == "both" else 1)
    low, high = 0.0, 1.0
    if tail != "upper" and successes > 0:
        low = float(betaincinv(successes, trials - successes + 1, miss))
    if tail != "lower" and successes < trials:
        high = float(betaincinv(successes + 1, trials - successes, 1 - miss))
    return low, high


def _checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise DataError(f"a confidence level is between 0 and 1, not {level}")
    return level
