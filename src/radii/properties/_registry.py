"""From the text of a property to the property."""

from __future__ import annotations

import math

from radii.errors import SpecificationError
from radii.properties._base import Property
from radii.properties._classification import (
    Become,
    OneToAny,
    OneToOne,
    PredictionStays,
    StrongClassification,
)
from radii.properties._lipschitz import LipschitzRobustness
from radii.properties._standard import StandardRobustness

FORMS = (
    "one-to-any",
    "one-to-one",
    "one-to-one:TARGET",
    "become",
    "become:TARGET",
    "cr",
    "cr:of=prediction",
    "scr:eta=ETA",
    "sr:delta=DELTA",
    "sr:delta=DELTA,on=probabilities",
    "lr:L=L",
)
"""Every way to ask for a property. `cr` is `one-to-any`."""

TARGETED_FAMILIES: dict[str, type[OneToOne] | type[Become]] = {
    "one-to-one": OneToOne,
    "become": Become,
}
"""Properties against one target; their names alone ask for every target, a property each."""


def parse(spec: str) -> Property:
    """The property called `spec`, in one of `FORMS`."""
    name, _, argument = spec.partition(":")
    if name == "one-to-any" and not argument:
        return OneToAny()
    if name in TARGETED_FAMILIES and argument.isdecimal():
        return TARGETED_FAMILIES[name](int(argument))
    if name not in ("cr", "scr", "sr", "lr"):
        raise SpecificationError(f"property '{spec}' is not one of {', '.join(FORMS)}")
    parameters = _Parameters(name, argument)
    if name == "cr":
        chosen = parameters.word("of", ("label", "prediction"))
        found: Property = PredictionStays() if chosen == "prediction" else OneToAny()
    elif name == "scr":
        found = StrongClassification(parameters.number("eta", "between 0 and 1"))
    elif name == "sr":
        delta = parameters.number("delta", "above 0")
        on = parameters.word("on", ("outputs", "probabilities"))
        found = StandardRobustness(delta, on_probabilities=on == "probabilities")
    else:
        found = LipschitzRobustness(parameters.number("L", "above 0"))
        parameters.word("on", ("outputs",))
    parameters.check_all_used()
    return found


def family(spec: str, label: int, outputs: int) -> tuple[Property, ...]:
    """The properties that `spec` asks for at an input; a targeted family means every target."""
    if spec in TARGETED_FAMILIES:
        return tuple(
            TARGETED_FAMILIES[spec](target) for target in range(outputs) if target != label
        )
    chosen = parse(spec)
    return () if chosen.target == label else (chosen,)


def is_of_class(spec: str) -> bool:
    """Whether what breaks the property is misclassified: the label is not strictly the largest."""
    name = spec.partition(":")[0]
    return name == "one-to-any" or name in TARGETED_FAMILIES


class _Parameters:
    """`name=value,name=value`, taken one by one."""

    def __init__(self, owner: str, text: str) -> None:
        self._owner = owner
        self._values: dict[str, str] = {}
        for part in text.split(",") if text else ():
            name, is_given, value = (piece.strip() for piece in part.partition("="))
            if not is_given or name in self._values:
                raise SpecificationError(
                    f"property '{owner}': '{part}' is not a parameter of the form name=value, "
                    "given once"
                )
            self._values[name] = value

    def number(self, name: str, where: str) -> float:
        """A parameter that must be given; `where` says in which range."""
        text = self._values.pop(name, None)
        if text is None:
            raise SpecificationError(
                f"property '{self._owner}' needs {name}, a number {where}: "
                f"{self._owner}:{name}=NUMBER"
            )
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise SpecificationError(
                f"property '{self._owner}': {name} must be a number {where}, but is '{text}'"
            )
        return value

    def word(self, name: str, choices: tuple[str, ...]) -> str:
        """A parameter that may be left out: it is the first of its choices then."""
        text = self._values.pop(name, choices[0])
        if text not in choices:
            raise SpecificationError(
                f"property '{self._owner}': {name}={text} is not possible; "
                f"{name} can be {' or '.join(choices)}"
            )
        return text

    def check_all_used(self) -> None:
        for name in self._values:
            raise SpecificationError(f"property '{self._owner}' has no parameter '{name}'")
