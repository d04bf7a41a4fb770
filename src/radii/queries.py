"""Instances, queries, the grid of eps values, and the specification a verifier sees.

`distinct_names` gives networks and experiments names by which every table tells them apart.
"""

from __future__ import annotations

import builtins
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from radii.balls import Ball, Box, Domain, Features, Norm
from radii.errors import SpecificationError
from radii.properties import Anchor, Halfspaces, Property, Requirement
from radii.verdicts import Array


@dataclass(frozen=True, slots=True, eq=False)
class Specification:
    """Does the requirement hold for every input of the region? What a verifier decides.

    `inputs`, where given, cuts the region further down to a polyhedron of (flattened) inputs.
    """

    region: Ball | Box
    requirement: Requirement
    inputs: Halfspaces | None = None

    def contains(self, point: Array) -> bool:
        """The point is an input that the specification speaks about."""
        if not self.region.contains(point):
            return False
        return self.inputs is None or float(self.inputs.depth(np.ravel(point))) <= 0


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """One input of one network, and what must stay true around it.

    `input` is in the data's own units and exact in the network's input type. `network` is the
    network's fingerprint. `outputs` is what ONNX Runtime gives for the input itself;
    `outputs_are_probabilities` where the network ends in a softmax over them. `features` say how
    far each value moves within an eps of 1; None: by 1.
    """

    network: str
    index: int
    input: Array
    label: int
    outputs: Array
    property: Property
    norm: Norm
    domain: Domain
    outputs_are_probabilities: bool = False
    features: Features | None = None

    @builtins.property
    def predicted(self) -> int:
        """The class with the largest output."""
        return int(np.argmax(self.outputs))

    @builtins.property
    def requirement(self) -> Requirement:
        """The property tied to this input."""
        outputs = np.asarray(self.outputs, np.float64)
        return self.property.at(Anchor(self.label, outputs, self.outputs_are_probabilities))

    @builtins.property
    def kind(self) -> type[Requirement]:
        """What kind of requirement the property becomes here."""
        return self.property.kind(self.outputs_are_probabilities)

    @builtins.property
    def correct(self) -> bool:
        """The label's output is strictly the largest: a tie counts as misclassified."""
        rivals = np.delete(self.outputs, self.label)
        return bool(np.all(self.outputs[self.label] > rivals))

    @builtins.property
    def holds(self) -> bool:
        """The property holds at the input itself; if not, the radius is 0."""
        return bool(self.requirement.holds(self.outputs[None], 0.0)[0])

    def ball(self, eps: float) -> Ball:
        center = np.asarray(self.input, np.float64)
        return Ball(center, eps, self.norm, self.domain, self.features)

    @builtins.property
    def key(self) -> str:
        """The same for the same question, on any machine: 32 hexadecimal digits."""
        parts = (
            self.network,
            str(self.index),
            str(self.input.dtype),
            str(self.input.shape),
            str(self.label),
            self.property.spec,
            self.norm.value,
            self.domain.key(),
            *(() if self.features is None else (self.features.key(),)),
        )
        digest = hashlib.sha256("\n".join(parts).encode())
        digest.update(np.ascontiguousarray(self.input).tobytes())
        return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Is the instance robust at this eps?"""

    instance: Instance
    eps: float

    @property
    def specification(self) -> Specification:
        return Specification(self.instance.ball(self.eps), self.instance.requirement)


@dataclass(frozen=True, slots=True)
class Grid:
    """The eps values a search may ask about: start, start + step, ... below stop.

    Each value is the float nearest to the exact decimal (or fraction), so that a grid given as
    0.001:0.4:0.002 holds 0.003 and not 0.0030000000000000001.
    """

    start: Fraction
    stop: Fraction
    step: Fraction

    def __init__(
        self,
        start: str | float | Fraction,
        stop: str | float | Fraction,
        step: str | float | Fraction,
    ) -> None:
        for name, value in (("start", start), ("stop", stop), ("step", step)):
            object.__setattr__(self, name, _exact(value))
        if self.start < 0 or self.step <= 0 or self.stop <= self.start:
            raise SpecificationError(
                f"grid {self} is not increasing: it needs 0 <= start < stop and step > 0"
            )
        if len(self) > MAX_GRID_VALUES:
            raise SpecificationError(f"grid {self} has {len(self)} values, over {MAX_GRID_VALUES}")

    @classmethod
    def parse(cls, text: str) -> Grid:
        """`start:stop:step`, stop excluded, or the name of a preset.

        Numbers may be fractions, as in 0:0.4:1/255.
        """
        parts = PRESETS.get(text.strip(), text).split(":")
        if len(parts) != 3:
            raise SpecificationError(
                f"grid '{text}' is not of the form start:stop:step, nor one of {', '.join(PRESETS)}"
            )
        return cls(*parts)

    @classmethod
    def of_one(cls, eps: str | float | Fraction) -> Grid:
        """The grid that holds this value alone."""
        value = _exact(eps)
        if not value > 0:
            raise SpecificationError(f"eps {eps} must be above 0")
        return cls(value, 2 * value, value)

    def __str__(self) -> str:
        return ":".join(_shortest(value) for value in (self.start, self.stop, self.step))

    def __len__(self) -> int:
        return math.ceil((self.stop - self.start) / self.step)

    def __getitem__(self, index: int) -> float:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return float(self.start + index * self.step)

    def __iter__(self) -> Iterator[float]:
        return (self[index] for index in range(len(self)))

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(self)

    def count_below(self, eps: float) -> int:
        """How many values are strictly below eps; so `grid[count - 1]` is the largest of them."""
        if eps == math.inf:
            return len(self)
        guess = math.ceil((Fraction(eps) - self.start) / self.step)
        guess = min(max(guess, 0), len(self))
        while guess > 0 and self[guess - 1] >= eps:
            guess -= 1
        while guess < len(self) and self[guess] < eps:
            guess += 1
        return guess


MAX_GRID_VALUES = 1_000_000

PRESETS = {"mnist": "0.001:0.4:0.002", "pixels": "0:0.4:1/255"}
"""The grids of the robustness distributions paper: 200 values for MNIST; whole steps of a pixel for
CIFAR-10 and GTSRB."""


def _exact(value: str | float | Fraction) -> Fraction:
    try:
        return Fraction(value if isinstance(value, Fraction) else str(value).strip())
    except (ValueError, ZeroDivisionError):
        raise SpecificationError(f"'{value}' is not a number of a grid") from None


def _shortest(value: Fraction) -> str:
    text = repr(float(value)).removesuffix(".0")
    return text if Fraction(text) == value else str(value)


def distinct_names(places: Sequence[str | Path]) -> list[str]:
    """For each file or folder its name, or the end of its path where others are called the same.

    Several networks of one name would be taken for one in every table.
    """
    paths = [Path(place).resolve().parts for place in places]
    own = [Path(place).name or path[-1] for place, path in zip(places, paths, strict=True)]
    return [
        name if own.count(name) == 1 else "/".join(path[-_parts_needed(path, paths) :])
        for name, path in zip(own, paths, strict=True)
    ]


def _parts_needed(path: tuple[str, ...], paths: Sequence[tuple[str, ...]]) -> int:
    """How long an end of the path tells it from all the others."""
    others = [other for other in paths if other != path]
    counts = range(1, len(path) + 1)
    return next(n for n in counts if all(other[-n:] != path[-n:] for other in others))
