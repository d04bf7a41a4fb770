"""How many clusters numbers fall into: modes of their density.

Whether there is more than one is asked of Hartigan's dip test (The Annals of Statistics 13, 1985),
how many there are of Silverman's (J. Royal Statistical Society B 43, 1981): a density that is
smoothed until it has k modes is drawn from again and again; k modes are too few where draws rarely
need that much smoothing. Silverman's test alone is not enough: of three equal clusters it mostly
says that there is one, since their density, smoothed until it has one mode, is flat on top.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from radii_papers.classes._numbers import CLUSTERS, SIGNIFICANCE

Float64 = npt.NDArray[np.float64]

MOST_MODES = 4
POINTS = 256
"""At which a density is looked at, to count its modes."""

UNIFORM_DRAWS = 999
POWER_DRAWS = 200
SEPARATION = 6.0
"""Standard deviations from one cluster's middle to the next, where the power of a test is asked."""

SEED = 0


def dip(values: Float64) -> float:
    """The least distance of their distribution function to one with a single mode.

    Such a function is convex up to its mode and concave after it. The convex minorant and the
    concave majorant are furthest apart where the mode must be; outside of that, the function's
    distance to them is half the dip, and inside they are taken anew until nothing is gained.
    """
    at, counts = np.unique(values, return_counts=True)
    above = np.cumsum(counts) / len(values)
    below = above - counts / len(values)
    low, high, twice = 0, len(at) - 1, 1 / len(values)
    while True:
        inside = slice(low, high + 1)
        convex, touched_below = _minorant(at[inside], below[inside])
        concave, touched_above = _minorant(at[inside], -above[inside])
        concave = -concave
        apart = concave - convex
        one = touched_below[apart[touched_below].argmax()]
        two = touched_above[apart[touched_above].argmax()]
        if max(apart[one], apart[two]) <= twice:
            return twice / 2
        if apart[one] >= apart[two]:
            first, last = one, touched_above[touched_above >= one][0]
        else:
            first, last = touched_below[touched_below <= two][-1], two
        outside = (above[inside] - convex)[:first], (concave - below[inside])[last + 1 :]
        twice = max(twice, *(float(part.max(initial=0.0)) for part in outside))
        if first == 0 and last == high - low:
            return twice / 2
        low, high = low + int(first), low + int(last)


def _minorant(at: Float64, values: Float64) -> tuple[Float64, npt.NDArray[np.int64]]:
    """The greatest convex function that is nowhere above the points, and which it touches."""
    corners: list[int] = []
    for place in range(len(at)):
        while len(corners) > 1:
            before, last = corners[-2:]
            rise = (values[last] - values[before]) * (at[place] - at[last])
            if rise < (values[place] - values[last]) * (at[last] - at[before]):
                break
            corners.pop()
        corners.append(place)
    touched = np.array(corners)
    return np.interp(at, at[touched], values[touched]), touched


@cache
def _dips_of_uniform(size: int) -> Float64:
    """Of samples of a uniform distribution: of those with one mode, it has the largest dips."""
    rng = np.random.default_rng(SEED)
    return np.array([dip(rng.uniform(size=size)) for _ in range(UNIFORM_DRAWS)])


def dip_p_value(values: Float64) -> float:
    """Of one mode alone."""
    larger = np.count_nonzero(_dips_of_uniform(len(values)) >= dip(values))
    return float(1 + larger) / (1 + UNIFORM_DRAWS)


@cache
def dip_power(size: int) -> float:
    """How often so many numbers from three equal clusters are told from one by the dip test."""
    rng = np.random.default_rng(SEED)
    samples = rng.normal(size=(POWER_DRAWS, size))
    samples += SEPARATION * rng.integers(0, CLUSTERS, (POWER_DRAWS, size))
    return float(np.mean([dip_p_value(sample) < SIGNIFICANCE for sample in samples]))


def count_modes(values: Float64, width: float) -> int:
    """Of a Gaussian kernel density of that width."""
    at = np.linspace(values.min() - 3 * width, values.max() + 3 * width, POINTS)
    density = np.exp(-0.5 * ((at[:, None] - values[None]) / width) ** 2).sum(axis=1)
    rises = np.diff(density) > 0
    return max(1, int(np.count_nonzero(rises[:-1] & ~rises[1:])))


def critical_width(values: Float64, modes: int) -> float:
    """The smallest kernel width at which there are at most so many modes."""
    low, high = 0.0, float(np.ptp(values)) or 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        if count_modes(values, middle) <= modes:
            high = middle
        else:
            low = middle
    return high


def silverman_p_value(values: Float64, modes: int, draws: int, rng: np.random.Generator) -> float:
    """Of at most so many modes."""
    width, deviation = critical_width(values, modes), float(values.std())
    if deviation == 0:
        return 1.0
    shrink = 1 / math.sqrt(1 + (width / deviation) ** 2)
    more = 0
    for _ in range(draws):
        drawn = rng.choice(values, len(values)) + width * rng.standard_normal(len(values))
        more += count_modes(values.mean() + shrink * (drawn - values.mean()), width) > modes
    return (1 + more) / (1 + draws)


def modes_of(values: Float64, draws: int) -> tuple[int, float]:
    """The fewest modes that are not too few at 5 %, and the p-value of one mode alone."""
    p_value = dip_p_value(values) if len(values) else 1.0
    if p_value >= SIGNIFICANCE:
        return 1, p_value
    rng, modes = np.random.default_rng(SEED), 2
    while modes < MOST_MODES and silverman_p_value(values, modes, draws, rng) < SIGNIFICANCE:
        modes += 1
    return modes, p_value
