"""Where the inputs of a sample are drawn from: a data set, or a function that makes them."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from radii.datasets import Dataset, from_arrays
from radii.errors import DataError
from radii.statistics import Population

InputGenerator = Callable[[np.random.Generator], Any]
"""Given a source of randomness, returns one input, or an input and its label."""


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
