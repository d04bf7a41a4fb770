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

import numpy as np
import numpy.typing as npt

__all__ = ["Anchor", "Halfspaces", "LinearRequirement", "Property", "Requirement"]

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
    """The input a property is tied to: its label and the network's own output there."""

    label: int
    outputs: Float64


class Requirement(ABC):
    """A property tied to one input. Called with a batch of outputs, one a row."""

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

    polyhedra: tuple[Halfspaces, ...]

    def margin(
        self,
        outputs: npt.ArrayLike,
        distances: npt.ArrayLike = 0.0,
    ) -> Float64:
        depths = np.stack([polyhedron.depth(outputs) for polyhedron in self.polyhedra])
        return np.asarray(depths.min(axis=0))

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
