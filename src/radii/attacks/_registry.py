"""From the name of an attack to the attack."""

from __future__ import annotations

from typing import Any

from radii.attacks._autoattack import AutoAttack
from radii.attacks._base import Attack
from radii.attacks._fixed_radius import Apgd, Fgsm, Pgd
from radii.attacks._foolbox import FoolboxAttack
from radii.attacks._minimum_norm import MinimumNorm
from radii.attacks._random_search import RandomSearch
from radii.errors import SpecificationError
from radii.plugins import (
    PluginGroup,
    load_plugin_class,
    made_with_options,
    options_from_text,
    plugin_names,
)

ATTACKS: tuple[type[Attack], ...] = (MinimumNorm, AutoAttack, Apgd, Pgd, Fgsm, RandomSearch)
"""In the order in which the command line lists them."""


def get(name: str, **options: Any) -> Attack:
    """The attack called `name`; options that are not given keep their defaults.

    `name` is one of radii's own, one that another package declares, `foolbox:NAME` for one of
    foolbox, or any of them with options, as `Attack.spec` writes them: `pgd:steps=100`.
    """
    family, _, text = name.partition(":")
    if family == "foolbox" and text:
        foreign, _, text = text.partition(":")
        return FoolboxAttack(foreign, **options_from_text(f"attack '{name}'", text), **options)
    given = options_from_text(f"attack '{name}'", text) if text else {}
    return made_with_options(f"attack '{name}'", _kind_of(family), {**given, **options})


def attack_names() -> tuple[str, ...]:
    """Radii's own and those of other packages, without foolbox's."""
    own = tuple(attack.name for attack in ATTACKS)
    return (*own, *(name for name in plugin_names(PluginGroup.ATTACKS) if name not in own))


def _kind_of(name: str) -> type[Attack]:
    for attack in ATTACKS:
        if attack.name == name:
            return attack
    plugin = load_plugin_class(PluginGroup.ATTACKS, name, Attack)  # type: ignore[type-abstract]
    if plugin is not None:
        return plugin
    names = ", ".join(attack_names())
    raise SpecificationError(f"attack '{name}' is not one of {names}, foolbox:NAME")
