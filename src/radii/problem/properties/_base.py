"""What a property is, and the requirement on a network's outputs that it becomes at one input.

A property is what a user asks for ("the class stays"), before it is tied to an input. Every other
part of radii reads the requirement in the form that it needs:

- `margin` for attacks and training: a number that is positive exactly where the property holds;
- `holds` for the replay of a witness;
- `violations` for complete verifiers: the outputs that break the property, as a union of polyhedra
  that covers them, or None where the property is not linear in the outputs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.plugins import made_with_options, options_from_text
from radii.problem._domains import Norm

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
        """A union of polyhedra that covers the outputs that break the property; None if it has
        none."""

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

    @property
    def attacked(self) -> tuple[Halfspaces, ...]:
        """Polyhedra of outputs all of which break the requirement: what an attack aims at."""
        return self.polyhedra


@dataclass(frozen=True, slots=True, eq=False)
class LengthRequirement(LinearRequirement):
    """The change of the outputs from `reference` is shorter than `delta` in `metric`.

    In L2, and in L1 with many outputs, the changes that are too long are no union of few polyhedra.
    `polyhedra` then cover all of them and more, so that a proof may fail where the requirement
    holds; `inner` are some of them.
    """

    reference: Float64
    delta: float
    metric: Norm
    inner: tuple[Halfspaces, ...]

    def margin(self, outputs: npt.ArrayLike, distances: npt.ArrayLike = 0.0) -> Float64:
        return np.asarray(self.delta - change_lengths(outputs, self.reference, self.metric))

    @property
    def attacked(self) -> tuple[Halfspaces, ...]:
        return self.inner


@dataclass(frozen=True, slots=True, eq=False)
class LipschitzRequirement(Requirement):
    """The change of the outputs from `reference`, as long as `metric` says, is less than `constant`
    times the input's distance, plus `tau`."""

    constant: float
    reference: Float64
    tau: float
    metric: Norm = Norm.LINF

    description: ClassVar[str] = "bounds on the change of outputs by the distance of inputs"

    def margin(self, outputs: npt.ArrayLike, distances: npt.ArrayLike) -> Float64:
        moved = change_lengths(outputs, self.reference, self.metric)
        return np.asarray(self.constant * np.asarray(distances, np.float64) + self.tau - moved)

    @property
    def violations(self) -> None:
        return None

    @property
    def of_each_output(self) -> LipschitzRequirement:
        """The same in Linf where it is that already; else one in Linf that implies it."""
        if self.metric is Norm.LINF:
            return self
        share = output_share(self.metric, len(self.reference))
        return LipschitzRequirement(self.constant * share, self.reference, self.tau * share)


ROUNDING_OF_LENGTHS = 1e-12
"""Of a length in float64, relative: far above what summing 10,000 squares loses."""


def change_lengths(outputs: npt.ArrayLike, reference: Float64, metric: Norm) -> Float64:
    """How long the change of each row of outputs is. Sums are rounded down, so that what breaks a
    bound on them does so beyond rounding."""
    changes = np.abs(np.asarray(outputs, np.float64) - reference)
    if metric is Norm.LINF:
        return np.asarray(changes.max(axis=-1))
    lengths = changes.sum(axis=-1) if metric is Norm.L1 else np.linalg.norm(changes, axis=-1)
    return np.asarray(lengths * (1 - ROUNDING_OF_LENGTHS))


def output_share(metric: Norm, outputs: int) -> float:
    """If no output changes by this part of a length or more, their change is shorter than it."""
    parts = outputs if metric is Norm.L1 else math.sqrt(outputs)
    return (1 - ROUNDING_OF_LENGTHS) / parts


@dataclass(frozen=True, slots=True)
class ProbabilityBound:
    """The probability of a class stays above `level`; below it where `is_ceiling`.

    Levels lie strictly between 0 and 1: no probability passes any other.
    """

    index: int
    level: float
    is_ceiling: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"{self.level} is not strictly between 0 and 1")

    @property
    def log_odds(self) -> float:
        """The level as log-odds."""
        return math.log(self.level) - math.log1p(-self.level)


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRequirement(Requirement):
    """Bounds on the softmax of the outputs, of a network that outputs logits; all must hold.

    With logits y the probability of class i is p_i = 1 / (1 + sum over j != i of exp(y_j - y_i)).
    What is compared are log-odds, log(p_i / (1 - p_i)) = y_i - log sum over j != i of exp(y_j):
    they do not saturate where p_i is nearly 0 or 1.
    """

    bounds: tuple[ProbabilityBound, ...]

    description: ClassVar[str] = "bounds on the softmax of outputs"

    def margin(self, outputs: npt.ArrayLike, distances: npt.ArrayLike = 0.0) -> Float64:
        """In log-odds."""
        values = np.asarray(outputs, np.float64)
        least = np.full(values.shape[:-1], np.inf)
        for bound in self.bounds:
            above = log_odds(values, bound.index) - bound.log_odds
            least = np.minimum(least, -above if bound.is_ceiling else above)
        return least

    @property
    def violations(self) -> None:
        return None


def log_odds(outputs: npt.ArrayLike, index: int) -> Float64:
    """Of one class, for logits (..., outputs)."""
    values = np.asarray(outputs, np.float64)
    others = np.delete(values, index, axis=-1)
    largest = others.max(axis=-1)
    rest = np.log(np.exp(others - largest[..., None]).sum(axis=-1))
    return np.asarray(values[..., index] - largest - rest)


def probabilities(outputs: npt.ArrayLike) -> Float64:
    """The softmax of logits (..., outputs)."""
    values = np.asarray(outputs, np.float64)
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """The input a property is tied to: its label and the network's own output there.

    `outputs_are_probabilities` where the network itself ends in a softmax over its outputs.
    """

    label: int
    outputs: Float64
    outputs_are_probabilities: bool = False


class Property(ABC):
    """What must stay true around an input. Stateless and hashable; `spec` names it everywhere.

    One that another package declares is asked for as `NAME` or `NAME:ARGUMENTS`, where NAME is that
    of its entry point; `from_arguments` reads what follows the colon, and `spec` writes it.
    """

    @property
    @abstractmethod
    def spec(self) -> str:
        """The text that `radii.problem.parse_property` turns back into this property."""

    @classmethod
    def from_arguments(cls, arguments: str) -> Self:
        """The property for the text behind its name; here `name=value,name=value`, as keywords."""
        owner = f"property '{cls.__name__}'"
        return made_with_options(owner, cls, options_from_text(owner, arguments))

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


class TargetedProperty(Property):
    """Against one class, which is not the label. Its name alone asks for every target in turn.

    A subclass sets `name` and writes `at`.
    """

    name: ClassVar[str]

    def __init__(self, target: int) -> None:
        self._target = target

    @property
    def spec(self) -> str:
        return f"{self.name}:{self._target}"

    @classmethod
    def from_arguments(cls, arguments: str) -> Self:
        if not arguments.isdecimal():
            raise SpecificationError(
                f"property '{cls.name}:{arguments}': the target must be a class, such as "
                f"{cls.name}:3"
            )
        return cls(int(arguments))

    @property
    def target(self) -> int:
        return self._target

    def check_target(self, anchor: Anchor) -> None:
        """A SpecificationError unless label and target are two of the network's outputs."""
        check_class(anchor.label, anchor, "label")
        check_class(self._target, anchor, "target")
        if self._target == anchor.label:
            raise SpecificationError(f"target {self._target} is the label itself")


def check_class(index: int, anchor: Anchor, what: str) -> None:
    """A SpecificationError unless the network has an output of this index."""
    if not 0 <= index < anchor.outputs.size:
        raise SpecificationError(
            f"{what} {index} is not one of the network's {anchor.outputs.size} outputs"
        )


def number_text(value: float) -> str:
    """The shortest text that reads back as the number: 10 rather than 10.0."""
    return repr(value).removesuffix(".0")
