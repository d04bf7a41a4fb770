"""Lower limits on the mean of a population from a sample of values in [0, 1].

Each method's `below(sample, miss)` is above the population's mean with probability at most `miss`.
An upper limit is 1 minus the lower limit of the mirrored sample. From a finite population without
replacement, the same statements hold for its own mean, and most get tighter.

- `hoeffding`: any values; half-width known before sampling. Serfling's factor, in the form of
  Bardenet and Maillard, for finite populations.
- `chernoff`: any values; the relative entropy in place of its quadratic bound, so never wider than
  `hoeffding` for independent inputs. For a finite population it knows nothing of the size.
- `exact`: shares only; Clopper and Pearson, or the hypergeometric tail. It inverts the tail that
  the other two bound, so it is never wider than either, whatever is seen.
- `bernstein`: any values; Maurer and Pontil's empirical Bernstein bound (Bardenet and Maillard's
  for finite populations), tighter where values vary little.
- `tightest`: several of these, the tightest one counts. Looking for the tightest after seeing the
  values is valid because the miss is shared out among them beforehand (union bound).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import ClassVar

from radii.distributions import clopper_pearson
from radii.errors import DataError, SpecificationError
from radii.guarantees._populations import Sample


class Method(ABC):
    """A way to a lower limit. `promise` is what is known before any value is seen."""

    name: ClassVar[str]

    @abstractmethod
    def below(self, sample: Sample, miss: float) -> float:
        """Above the population's mean with probability at most `miss`; may be negative."""

    @abstractmethod
    def promise(self, samples: int, population: int | None, miss: float) -> float:
        """How far the limit is below the sample's mean at most, whatever the values are."""


def serfling_factor(samples: int, population: int | None) -> float:
    """How much drawing without replacement shrinks the variance of a mean, at least."""
    if population is None:
        return 1.0
    return min(
        1 - (samples - 1) / population,
        (1 - samples / population) * (1 + 1 / samples),
    )


class Hoeffding(Method):
    name = "hoeffding"

    def below(self, sample: Sample, miss: float) -> float:
        return sample.mean - self.promise(len(sample), sample.population, miss)

    def promise(self, samples: int, population: int | None, miss: float) -> float:
        factor = serfling_factor(samples, population)
        return math.sqrt(factor * math.log(1 / miss) / (2 * samples))


class Chernoff(Method):
    name = "chernoff"

    def below(self, sample: Sample, miss: float) -> float:
        return entropy_below(sample.mean, math.log(1 / miss) / len(sample))

    def promise(self, samples: int, population: int | None, miss: float) -> float:
        return Hoeffding().promise(samples, None, miss)


class Exact(Method):
    name = "exact"

    def below(self, sample: Sample, miss: float) -> float:
        if not sample.is_binary:
            raise DataError("method 'exact' is for shares: values that are 0 or 1")
        successes = round(sample.mean * len(sample))
        if sample.population is None:
            return clopper_pearson(successes, len(sample), 1 - miss, tail="lower")[0]
        return hypergeometric_below(successes, len(sample), sample.population, miss)

    def promise(self, samples: int, population: int | None, miss: float) -> float:
        return Hoeffding().promise(samples, population, miss)


class Bernstein(Method):
    name = "bernstein"

    def below(self, sample: Sample, miss: float) -> float:
        count = len(sample)
        if count < 2:
            return 0.0
        if sample.population is None:
            told = math.log(2 / miss)
            variance = sample.variance * count / (count - 1)
            return sample.mean - _spread(variance, told, count) - 7 * told / (3 * (count - 1))
        told = math.log(5 / miss)
        factor = serfling_factor(count, sample.population)
        constant = 7 / 3 + 3 / math.sqrt(2)
        return (
            sample.mean - _spread(factor * sample.variance, told, count) - constant * told / count
        )

    def promise(self, samples: int, population: int | None, miss: float) -> float:
        raise DataError(
            "method 'bernstein' promises nothing before values are seen: plan with another method"
        )


class Tightest(Method):
    name = "tightest"

    def below(self, sample: Sample, miss: float) -> float:
        shares = SHARES_OF_INDEPENDENT if sample.population is None else SHARES_OF_FINITE
        return max(part.below(sample, share * miss) for part, share in shares)

    def promise(self, samples: int, population: int | None, miss: float) -> float:
        part, share = (SHARES_OF_INDEPENDENT if population is None else SHARES_OF_FINITE)[0]
        return part.promise(samples, population, share * miss)


SHARES_OF_INDEPENDENT: tuple[tuple[Method, float], ...] = ((Chernoff(), 0.9), (Bernstein(), 0.1))
SHARES_OF_FINITE: tuple[tuple[Method, float], ...] = (
    (Hoeffding(), 0.8),
    (Chernoff(), 0.1),
    (Bernstein(), 0.1),
)
"""Parts of the miss. The first method, whose promise plans are made with, gets most of it: that
costs it little, since limits grow with the logarithm of the miss alone."""

METHODS: dict[str, Method] = {
    part.name: part for part in (Exact(), Hoeffding(), Chernoff(), Bernstein(), Tightest())
}


def method(name: str) -> Method:
    """The method called `name`, or a SpecificationError that lists the names."""
    if name not in METHODS:
        raise SpecificationError(f"method '{name}' is not one of {', '.join(METHODS)}")
    return METHODS[name]


def entropy_below(mean: float, allowed: float) -> float:
    """The smallest q <= mean from which the relative entropy to `mean` is at most `allowed`."""
    low, high = 0.0, mean
    for _ in range(60):  # to the last place of a float; `low` stays on the safe side
        middle = (low + high) / 2
        if _relative_entropy(mean, middle) > allowed:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=4096)
def hypergeometric_below(successes: int, samples: int, population: int, miss: float) -> float:
    """The smallest share of the population at which so many successes have a chance above miss."""
    from scipy.stats import hypergeom

    if successes == 0:
        return 0.0
    # As many as were seen are in the population, and all that were not seen may be failures.
    low, high = successes - 1, population - (samples - successes)
    while high - low > 1:  # `low` is refused, `high` is not
        middle = (low + high) // 2
        if hypergeom.sf(successes - 1, population, middle, samples) > miss:
            high = middle
        else:
            low = middle
    return high / population


def _relative_entropy(p: float, q: float) -> float:
    if q <= 0:
        return math.inf if p > 0 else 0.0
    found = p * math.log(p / q) if p > 0 else 0.0
    return found + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def _spread(variance: float, told: float, count: int) -> float:
    return math.sqrt(2 * variance * told / count)
