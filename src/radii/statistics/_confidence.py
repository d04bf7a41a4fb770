"""What a sample of inputs says about all inputs: confidence for robust accuracy.

Inputs are taken as drawn at random from the population that is spoken about, or at random within
each class where a run says that they were. Brackets may be wide for any reason: what is not proven
counts as broken on the low side, and what is not refuted as robust on the high side, so the
statements hold whatever the radii within the brackets are.

Of inputs that were drawn class by class nobody knows how frequent the classes are in the
population. But a share, a mean or a quantile of all inputs lies between the smallest and the
largest of the classes' own, and the limit of the extreme class holds without any correction: it is
one class, whichever that is. Where the classes kept their proportions, up to rounding to whole
images, a share of all inputs is off by at most K / (4 n) for K classes and n inputs: with
remainders f_k, of which the largest were rounded up from some threshold t on, it is off by at most
sum f_k <= d t over the d that were rounded down, which equals sum (1 - f_k) <= (K - d) (1 - t) over
the others, and min(d t, (K - d) (1 - t)) <= K / 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._columns import NO_NUMBER, Float64, joint_codes
from radii.statistics.reading._draws import InputDraw, joined_draw

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


Tail = Literal["both", "lower", "upper"]


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Robust accuracy at every eps at once: all statements together hold with the given level.

    Both ends combine the sampling error with the width of the brackets. The band is that of all
    inputs with a half-width, or where inputs were drawn class by class around those of all classes.
    """

    level: float
    parts: tuple[tuple[Distribution, float], ...]

    @property
    def half_width(self) -> float:
        """The sampling error; of several classes the largest."""
        return max(half_width for _, half_width in self.parts)

    def at(self, eps: npt.ArrayLike) -> tuple[Float64, Float64]:
        """The lower and upper ends at each eps."""
        return self._around(eps, 0, 1)

    def of_side(self, eps: npt.ArrayLike, *, is_proven: bool) -> tuple[Float64, Float64]:
        """The ends of the share of all inputs that are proven, or that are not refuted."""
        side = 0 if is_proven else 1
        return self._around(eps, side, side)

    def _around(self, eps: npt.ArrayLike, low: int, high: int) -> tuple[Float64, Float64]:
        shares = [(part.shares(eps), half_width) for part, half_width in self.parts]
        lows = [sides[low] - half_width for sides, half_width in shares]
        highs = [sides[high] + half_width for sides, half_width in shares]
        return np.maximum(np.min(lows, axis=0), 0.0), np.minimum(np.max(highs, axis=0), 1.0)


def robust_accuracy_band(distribution: Distribution, level: float = 0.95) -> Band:
    """By the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant; of classes that
    kept their proportions, by Bretagnolle's, whose factor is 2 e in place of 2.
    """
    check_inputs_differ(distribution)
    draw = draw_of_all(distribution)
    if draw is InputDraw.STRATIFIED:
        miss = (1 - _checked_level(level)) / math.e
        half_width = dkw_half_width(len(distribution), 1 - miss) + rounding_error(distribution)
        return Band(level, ((distribution, half_width),))
    parts = [distribution]
    if draw.is_by_class:
        parts = list(distribution.group_by("class").values())
    each = 1 - (1 - level) / len(parts)
    return Band(level, tuple((part, dkw_half_width(len(part), each)) for part in parts))


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


def draw_of_all(distribution: Distribution) -> InputDraw:
    """How the inputs were drawn, of all rows together."""
    return joined_draw([InputDraw(text) for text in np.unique(distribution.column("draw"))])


def declared_classes(distribution: Distribution) -> int | None:
    """How many classes there are, by the outputs of the networks; None where that is not known."""
    counts = np.unique(distribution.column("classes"))
    return int(counts[-1]) if counts[0] != NO_NUMBER else None


def rounding_error(distribution: Distribution) -> float:
    """How far a share of all inputs is from that of a sample which keeps the classes' proportions,
    because these were rounded to whole images.
    """
    classes = declared_classes(distribution)
    if classes is None:
        raise DataError(
            f"{', '.join(distribution.networks)}: a stratified sample needs the number of classes"
        )
    return classes / (4 * len(distribution))


def limits_by_draw(
    distribution: Distribution, limits_of: Callable[[Distribution], tuple[float, float]]
) -> tuple[float, float]:
    """Limits on a figure of all inputs, from those of a random sample. The figure must lie between
    the classes' own; classes of which nothing is known make a stratified sample useless for it.
    """
    draw = draw_of_all(distribution)
    if not draw.is_by_class:
        return limits_of(distribution)
    parts = distribution.group_by("class")
    if draw is InputDraw.STRATIFIED and len(parts) != declared_classes(distribution):
        return -math.inf, math.inf
    limits = [limits_of(part) for part in parts.values()]
    return min(low for low, _ in limits), max(high for _, high in limits)


def share_limits(
    distribution: Distribution,
    count: Callable[[Distribution], int],
    level: float,
    *,
    tail: Tail = "both",
) -> tuple[float, float]:
    """Limits on the share of all inputs that `count` counts in a distribution."""

    def limits_of(part: Distribution) -> tuple[float, float]:
        return clopper_pearson(count(part), len(part), level, tail=tail)

    if draw_of_all(distribution) is InputDraw.STRATIFIED:
        error = rounding_error(distribution)
        low, high = limits_of(distribution)
        return max(low - error, 0.0), min(high + error, 1.0)
    return limits_by_draw(distribution, limits_of)


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


def robust_accuracy_interval(
    distribution: Distribution, eps: float, level: float = 0.95, *, tail: Tail = "both"
) -> tuple[float, float]:
    """Robust accuracy at one eps, by Clopper and Pearson: narrower than the band, for one eps."""
    check_inputs_differ(distribution)
    low, _ = share_limits(distribution, lambda part: part.robust_counts(eps)[0], level, tail=tail)
    _, high = share_limits(distribution, lambda part: part.robust_counts(eps)[1], level, tail=tail)
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
