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
from bisect import bisect_left
from functools import lru_cache
from typing import ClassVar

from scipy.special import rel_entr

from radii.errors import DataError, SpecificationError
from radii.statistics._confidence import clopper_pearson, hoeffding_half_width
from radii.statistics._populations import Sample

LIMIT_HALVINGS = 60
"""Of an interval between 0 and 1: beyond what a float64 resolves."""


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
        return hoeffding_half_width(samples, miss, serfling_factor(samples, population))


class Chernoff(Method):
    name = "chernoff"

    def below(self, sample: Sample, miss: float) -> float:
        return chernoff_limit(sample.mean, 0.0, math.log(1 / miss) / len(sample))

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
            log_miss = math.log(2 / miss)
            variance = sample.variance * count / (count - 1)
            width = _bernstein_width(variance, log_miss, count)
            return sample.mean - width - 7 * log_miss / (3 * (count - 1))
        log_miss = math.log(5 / miss)
        variance = serfling_factor(count, sample.population) * sample.variance
        constant = 7 / 3 + 3 / math.sqrt(2)
        width = _bernstein_width(variance, log_miss, count)
        return sample.mean - width - constant * log_miss / count

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


def chernoff_limit(mean: float, end: float, allowed: float) -> float:
    """The number between `mean` and `end`, 0 or 1, at which the relative entropy is `allowed`.

    By Hoeffding (1963, theorem 1), the mean X of n independent values in [0, 1] with mean m has
    P(X >= x) <= exp(-n kl(x, m)) for x >= m, where kl(x, m) = x log(x/m) + (1-x) log((1-x)/(1-m)).
    All m with kl(X, m) > log(1 / miss) / n can therefore be refused on one side, and kl grows with
    the distance from X, so that halving finds where that begins. Rounded away from `mean`.
    """
    near, far = mean, end
    for _ in range(LIMIT_HALVINGS):
        middle = (near + far) / 2
        entropy = rel_entr(mean, middle) + rel_entr(1 - mean, 1 - middle)
        near, far = (middle, far) if entropy <= allowed else (near, middle)
    return far


@lru_cache(maxsize=4096)
def hypergeometric_below(successes: int, samples: int, population: int, miss: float) -> float:
    """The smallest share of the population with which at least this number of successes has a
    probability above `miss`."""
    from scipy.stats import hypergeom

    if successes == 0:
        return 0.0
    # As many as were seen are in the population, and all that were not seen may be failures.
    counts = range(successes, population - (samples - successes))
    fewer = bisect_left(
        counts,
        True,
        key=lambda count: hypergeom.sf(successes - 1, population, count, samples) > miss,
    )
    return (successes + fewer) / population


def _bernstein_width(variance: float, log_miss: float, count: int) -> float:
    """The part of Bernstein's bound that shrinks with the variance."""
    return math.sqrt(2 * variance * log_miss / count)
