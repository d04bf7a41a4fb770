"""From the text of a property to the property."""

from __future__ import annotations

import math

from radii.errors import SpecificationError
from radii.plugins import PluginGroup, load_plugin_class, options_from_text, plugin_names
from radii.problem._domains import Norm
from radii.problem.properties._base import Property, TargetedProperty
from radii.problem.properties._classification import (
    Become,
    OneToAny,
    OneToOne,
    PredictionStays,
    StrongClassification,
    TopK,
)
from radii.problem.properties._stability import LipschitzRobustness, StandardRobustness

PROPERTY_FORMS = (
    "one-to-any",
    "one-to-one",
    "one-to-one:TARGET",
    "become",
    "become:TARGET",
    "cr",
    "cr:of=prediction",
    "top:k=K",
    "scr:eta=ETA",
    "sr:delta=DELTA",
    "sr:delta=DELTA,on=probabilities",
    "sr:delta=DELTA,in=NORM",
    "lr:L=L",
    "lr:L=L,in=NORM",
)
"""Every way to ask for a property. `cr` is `one-to-any`."""

TARGETED_FAMILIES: dict[str, type[TargetedProperty]] = {
    "one-to-one": OneToOne,
    "become": Become,
}
"""Properties against one target; their names alone ask for every target, a property each."""


def parse_property(spec: str) -> Property:
    """The property called `spec`: one of `PROPERTY_FORMS`, or one of another package."""
    name, _, arguments = spec.partition(":")
    if name == "one-to-any" and not arguments:
        return OneToAny()
    if name in TARGETED_FAMILIES and arguments.isdecimal():
        return TARGETED_FAMILIES[name](int(arguments))
    if name in ("cr", "top", "scr", "sr", "lr"):
        return _parametrised(name, arguments)
    plugin = None if name in _OWN_NAMES else _plugin(name)
    if plugin is None:
        forms = ", ".join((*PROPERTY_FORMS, *plugin_names(PluginGroup.PROPERTIES)))
        raise SpecificationError(f"property '{spec}' is not one of {forms}")
    return plugin.from_arguments(arguments)


def parse_family(spec: str) -> Property | type[TargetedProperty]:
    """As `parse_property`, or the class where `spec` names a targeted property without a target."""
    if spec in TARGETED_FAMILIES:
        return TARGETED_FAMILIES[spec]
    plugin = None if spec in _OWN_NAMES or ":" in spec else _plugin(spec)
    if plugin is not None and issubclass(plugin, TargetedProperty):
        return plugin
    return parse_property(spec)


def property_family(
    asked: str | Property | type[TargetedProperty], label: int, outputs: int
) -> tuple[Property, ...]:
    """The properties to ask of an input; a targeted property without a target means all targets.

    `asked` is a property, the class of a targeted one, or the text of either.
    """
    chosen = parse_family(asked) if isinstance(asked, str) else asked
    if isinstance(chosen, type):
        return tuple(chosen(target) for target in range(outputs) if target != label)
    return () if chosen.target == label else (chosen,)


def property_family_spec(asked: Property | type[TargetedProperty]) -> str:
    """The text that `parse_family` turns back into what was asked."""
    return asked.name if isinstance(asked, type) else asked.spec


_OWN_NAMES = frozenset(form.partition(":")[0] for form in PROPERTY_FORMS)


def _plugin(name: str) -> type[Property] | None:
    return load_plugin_class(PluginGroup.PROPERTIES, name, Property)  # type: ignore[type-abstract]


def _parametrised(name: str, arguments: str) -> Property:
    parameters = _Parameters(name, arguments)
    chosen: Property
    if name == "cr":
        subject = parameters.word("of", ("label", "prediction"))
        chosen = PredictionStays() if subject == "prediction" else OneToAny()
    elif name == "top":
        k = parameters.number("k", "of classes")
        if k != int(k):
            raise SpecificationError(f"property 'top': k must be a whole number, not {k:g}")
        chosen = TopK(int(k))
    elif name == "scr":
        chosen = StrongClassification(parameters.number("eta", "between 0 and 1"))
    elif name == "sr":
        delta = parameters.number("delta", "above 0")
        on = parameters.word("on", ("outputs", "probabilities"))
        metric = Norm(parameters.word("in", tuple(Norm)))
        chosen = StandardRobustness(delta, on_probabilities=on == "probabilities", metric=metric)
    else:
        constant = parameters.number("L", "above 0")
        chosen = LipschitzRobustness(constant, metric=Norm(parameters.word("in", tuple(Norm))))
        parameters.word("on", ("outputs",))
    parameters.check_all_used()
    return chosen


def is_of_class(spec: str) -> bool:
    """Whether what breaks the property is misclassified: the label is not strictly the largest."""
    name = spec.partition(":")[0]
    return name == "one-to-any" or name in TARGETED_FAMILIES


class _Parameters:
    """`name=value,name=value`, taken one by one."""

    def __init__(self, owner: str, text: str) -> None:
        self._owner = owner
        self._values = options_from_text(f"property '{owner}'", text)

    def number(self, name: str, where: str) -> float:
        """A parameter that must be given; `where` says in which range."""
        value = self._values.pop(name, None)
        if value is None:
            raise SpecificationError(
                f"property '{self._owner}' needs {name}, a number {where}: "
                f"{self._owner}:{name}=NUMBER"
            )
        if isinstance(value, bool | str) or math.isnan(value):
            raise SpecificationError(
                f"property '{self._owner}': {name} must be a number {where}, but is '{value}'"
            )
        return float(value)

    def word(self, name: str, choices: tuple[str, ...]) -> str:
        """A parameter that may be left out: it is the first of its choices then."""
        text = str(self._values.pop(name, choices[0]))
        if text not in choices:
            raise SpecificationError(
                f"property '{self._owner}': {name}={text} is not possible; "
                f"{name} can be {' or '.join(choices)}"
            )
        return text

    def check_all_used(self) -> None:
        for name in self._values:
            raise SpecificationError(f"property '{self._owner}' has no parameter '{name}'")
