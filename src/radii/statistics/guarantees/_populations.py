"""Whom a statement is about, where inputs are drawn from, and the values of a sample of them."""

from __future__ import annotations

import importlib.util
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.datasets import Dataset, from_arrays
from radii.errors import DataError
from radii.statistics._columns import Float64

InputGenerator = Callable[[np.random.Generator], Any]
"""Given a source of randomness, returns one input, or an input and its label."""


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


class InputSource(ABC):
    """Inputs in a random order that a seed fixes. A longer draw begins like a shorter one."""

    @property
    @abstractmethod
    def population(self) -> Population:
        """Whom statements are about."""

    @property
    @abstractmethod
    def available(self) -> int | None:
        """How many inputs there are; None: as many as one likes."""

    @abstractmethod
    def draw(self, count: int, seed: int) -> Dataset:
        """The first `count` inputs, in their random order."""


class DataSource(InputSource):
    """A data set, sampled without replacement.

    Statements are about its own inputs; with `beyond` about all inputs that it was itself drawn
    from, independently, as is usually assumed of test sets.
    """

    def __init__(self, dataset: Dataset, *, name: str = "", beyond: bool = False) -> None:
        self.dataset = dataset
        self.name = name or dataset.title
        self.beyond = beyond

    @property
    def population(self) -> Population:
        return Population(self.name, None if self.beyond else len(self.dataset))

    @property
    def available(self) -> int:
        return len(self.dataset)

    def draw(self, count: int, seed: int) -> Dataset:
        return self.dataset.shuffled(seed).first(count)

    def unsalted(self) -> DataSource:
        """The same, in the order in which it was drawn before draws were salted."""
        return DataSource(self.dataset.unsalted(), name=self.name, beyond=self.beyond)


class GeneratorSource(InputSource):
    """A function that makes inputs, each from its own independent randomness."""

    def __init__(self, generator: InputGenerator, name: str) -> None:
        self.generator = generator
        self.name = name

    @property
    def population(self) -> Population:
        return Population(self.name)

    @property
    def available(self) -> None:
        return None

    def draw(self, count: int, seed: int) -> Dataset:
        made = [self._one(place, seed) for place in range(count)]
        shapes = {np.shape(image) for image, _ in made}
        if len(shapes) > 1:
            raise DataError(f"{self.name}: inputs of different shapes {sorted(shapes)}")
        images = np.stack([image for image, _ in made])
        return from_arrays(images, [label for _, label in made], name=self.name)

    def _one(self, place: int, seed: int) -> tuple[Any, Any]:
        try:
            made = self.generator(np.random.default_rng([seed, place]))
        except Exception as error:
            raise DataError(f"{self.name}: input {place} failed ({error})") from error
        image, label = made if isinstance(made, tuple) and len(made) == 2 else (made, 0)
        try:
            return np.asarray(image, np.float32), label
        except (TypeError, ValueError):
            raise DataError(
                f"{self.name}: returns neither an array of numbers nor such an array and a label"
            ) from None


def load_generator(text: str) -> GeneratorSource:
    """From `FILE.py:NAME`: the function called NAME in a Python file, which is run."""
    path, _, name = text.rpartition(":")
    if not path or not Path(path).is_file():
        raise DataError(f"generator '{text}' is not of the form FILE.py:NAME, or is not there")
    specification = importlib.util.spec_from_file_location("radii_generator", path)
    if specification is None or specification.loader is None:
        raise DataError(f"generator '{text}': {path} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise DataError(f"generator '{text}': {path} does not run ({error})") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise DataError(f"generator '{text}': {path} has no function '{name}'")
    return GeneratorSource(function, text)


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
