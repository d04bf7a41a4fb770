"""Whom a statement is about, and the values of a sample of inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics._columns import Float64


@dataclass(frozen=True, slots=True)
class Population:
    """A finite set that is sampled without replacement, or, without `size`, a source of
    independent inputs: a generator, or what a data set was itself drawn from.
    """

    name: str
    size: int | None = None

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise DataError(f"{self.name}: a population has at least one input, not {self.size}")

    def __str__(self) -> str:
        if self.size is None:
            return f"all inputs that {self.name} stands for"
        return f"the {self.size} inputs of {self.name}"

    @property
    def sampling(self) -> str:
        """The assumption that the statement rests on."""
        if self.size is None:
            return "inputs drawn independently (i.i.d. statement)"
        return "inputs drawn without replacement (finite-population statement)"


@dataclass(frozen=True, slots=True)
class Range:
    """All values a measure can take; a share lies in [0, 1]."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise DataError(f"range {self} must be two finite numbers, the first one smaller")

    @classmethod
    def parse(cls, text: str) -> Range:
        """`A:B`, such as 0:1."""
        try:
            low, high = (float(part) for part in text.split(":"))
        except ValueError:
            raise DataError(f"range '{text}' is not of the form A:B, such as 0:1") from None
        return cls(low, high)

    def __str__(self) -> str:
        return f"{self.low:g}:{self.high:g}"

    @property
    def width(self) -> float:
        return self.high - self.low

    def scaled(self, values: npt.ArrayLike) -> Float64:
        """The values as parts of the range; a DataError names the first one outside it."""
        numbers = np.asarray(values, np.float64)
        outside = ~((numbers >= self.low) & (numbers <= self.high))  # also catches NaN
        if outside.any():
            place = int(np.argmax(outside))
            raise DataError(
                f"value {numbers.ravel()[place]:g} of input {place} of the sample leaves the range "
                f"[{self.low:g}, {self.high:g}]: give a range that holds every possible value"
            )
        return (numbers - self.low) / self.width

    def unscaled(self, part: float) -> float:
        """What a part of the range stands for, never outside of it."""
        return min(max(self.low + part * self.width, self.low), self.high)


@dataclass(frozen=True, eq=False)
class Sample:
    """Values in [0, 1] of inputs drawn from a population, of this size if it is finite."""

    values: Float64
    population: int | None = None

    def __post_init__(self) -> None:
        count = len(self.values)
        if count == 0:
            raise DataError("an estimate needs at least one input")
        if self.population is not None and count > self.population:
            raise DataError(
                f"{count} inputs cannot be drawn without replacement from {self.population}"
            )

    def __len__(self) -> int:
        return len(self.values)

    def mirrored(self) -> Sample:
        """The sample of 1 - values: a lower limit of it is an upper limit of this one."""
        return Sample(1.0 - self.values, self.population)

    @cached_property
    def mean(self) -> float:
        return float(self.values.mean())

    @cached_property
    def variance(self) -> float:
        """Divided by the number of values, not by one less."""
        return float(self.values.var())

    @property
    def is_whole(self) -> bool:
        """Every input was drawn: the mean is the population's own."""
        return len(self) == self.population

    @property
    def is_binary(self) -> bool:
        return bool(np.isin(self.values, (0.0, 1.0)).all())


def checked_error(error: float) -> float:
    """The tolerance of an estimate; a DataError unless it is above 0 and finite."""
    if not (math.isfinite(error) and error > 0):
        raise DataError(f"error {error:g} must be a number above 0")
    return error


def checked_confidence(confidence: float) -> float:
    """A DataError unless between 0 and 1, both excluded."""
    if not 0 < confidence < 1:
        raise DataError(f"confidence {confidence:g} must be between 0 and 1, such as 0.95")
    return confidence
