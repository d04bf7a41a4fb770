"""Properties: what must stay true in a ball around an input."""

from __future__ import annotations

from radii.errors import SpecificationError
from radii.properties._base import Anchor, Halfspaces, LinearRequirement, Property, Requirement
from radii.properties.classification import OneToAny, OneToOne

__all__ = [
    "Anchor",
    "Halfspaces",
    "LinearRequirement",
    "OneToAny",
    "OneToOne",
    "Property",
    "Requirement",
    "family",
    "parse",
]


def parse(spec: str) -> Property:
    """The property called `spec`: `one-to-any`, or `one-to-one:3` for target class 3."""
    name, _, argument = spec.partition(":")
    if name == "one-to-any" and not argument:
        return OneToAny()
    if name == "one-to-one" and argument.isdigit():
        return OneToOne(int(argument))
    raise SpecificationError(
        f"property '{spec}' is not one of one-to-any, one-to-one, one-to-one:TARGET"
    )


def family(spec: str, label: int, outputs: int) -> tuple[Property, ...]:
    """The properties that `spec` asks for at an input: `one-to-one` alone means every target."""
    if spec == "one-to-one":
        return tuple(OneToOne(target) for target in range(outputs) if target != label)
    chosen = parse(spec)
    return () if chosen.target == label else (chosen,)
