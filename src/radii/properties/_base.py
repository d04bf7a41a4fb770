"""What a property is, and what it becomes once it is tied to one input.

A `Property` is what a user asks for ("the class stays"). `Property.at(anchor)` ties it to one
input and yields a `Requirement`: a function of the network's outputs that every other part of radii
reads in the form it needs:

- `margin` for attacks and training: a number that is positive exactly where the property holds;
- `holds` for the replay of a witness;
- `violations` for complete verifiers: the outputs that break the property, as a union of polyhedra,
  or None where the property is not linear in the outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Halfspaces:
    """The polyhedron { y : matrix @ y + offset <= 0 }; `matrix` has a row a halfspace."""

    matrix: Float64
    offset: Float64

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", np.atleast_2d(np.asarray(self.matrix, np.float64)))
        object.__setattr__(self, "offset", np.atleast_1d(np.asarray(self.offset, np.float64)))
        if self.matrix.shape[0] != self.offset.shape[0]:
            raise ValueError(f"{self.matrix.shape[0]} rows but {self.offset.shape[0]} offsets")

    def depth(self, points: npt.ArrayLike) -> Float64:
        """The largest row of `matrix @ y + offset` for each point: <= 0 inside, > 0 outside."""
        values = np.asarray(points, np.float64) @ self.matrix.T + self.offset
        return np.asarray(values.max(axis=-1))


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """The input a property is tied to: its label and the network's own output there.

    `outputs_are_probabilities` where the network itself ends in a softmax over its outputs.
    """

    label: int
    outputs: Float64
    outputs_are_probabilities: bool = False


class Requirement(ABC):
    """A property tied to one input. Called with a batch of outputs, one a row.

    `description` says in a few words what kind of requirement it is, for those who cannot decide
    it.
    """

    description: ClassVar[str] = "requirements that are not linear"

    @abstractmethod
    def margin(self, outputs: npt.ArrayLike, distances: npt.ArrayLike) -> Float64:
        """Positive exactly where the property holds. `distances` are those of the inputs."""

    @property
    @abstractmethod
    def violations(self) -> tuple[Halfspaces, ...] | None:
        """The outputs that break the property: a union of polyhedra; None if it is not one."""

    def holds(self, outputs: npt.ArrayLike, distances: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """True where the property holds. A tie is a violation; so is an output that is NaN."""
        return np.asarray(self.margin(outputs, distances) > 0)


@dataclass(frozen=True, slots=True, eq=False)
class LinearRequirement(Requirement):
    """Broken exactly on a union of polyhedra of outputs."""

    description: ClassVar[str] = "linear comparisons of outputs"

    polyhedra: tuple[Halfspaces, ...]

    def margin(
        self,
        outputs: npt.ArrayLike,
        distances: npt.ArrayLike = 0.0,
    ) -> Float64:
        least = np.full(np.asarray(outputs).shape[:-1], np.inf)
        for polyhedron in self.polyhedra:
            least = np.minimum(least, polyhedron.depth(outputs))
        return least

    @property
    def violations(self) -> tuple[Halfspaces, ...]:
        return self.polyhedra


class Property(ABC):
    """What must stay true around an input. Stateless and hashable; `spec` names it everywhere."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """The text that `radii.properties.parse` turns back into this property."""

    @abstractmethod
    def at(self, anchor: Anchor) -> Requirement:
        """The requirement on the outputs around one input."""

    def kind(self, outputs_are_probabilities: bool) -> type[Requirement]:
        """What `at` will return: asked before anything runs, to learn who can decide it."""
        return LinearRequirement

    @property
    def uses_label(self) -> bool:
        """Whether it speaks about the label; if not, it can hold at a misclassified input."""
        return True

    @property
    def warning(self) -> str | None:
        """What to tell somebody who asks for it, in a sentence."""
        return None

    @property
    def target(self) -> int | None:
        """The class of a targeted property."""
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Property) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        return f"<Property {self.spec}>"


def number_text(value: float) -> str:
    """The shortest text that reads back as the number: 10 rather than 10.0."""
    return repr(value).removesuffix(".0")
