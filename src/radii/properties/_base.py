"""What a property is: what a user asks for ("the class stays"), before it is tied to an input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

from radii.errors import SpecificationError
from radii.plugins import made_with_options, options_from_text
from radii.properties._requirements import Float64, LinearRequirement, Requirement


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
        """The text that `radii.properties.parse` turns back into this property."""

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
