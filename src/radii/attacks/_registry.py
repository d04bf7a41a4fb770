"""Attacks: searching for counterexamples. A failed attack proves nothing."""

from __future__ import annotations

from radii.attacks._base import Attack
from radii.attacks._fixed_radius import Apgd, Fgsm, Pgd
from radii.attacks._foolbox import FoolboxAttack
from radii.attacks._minimum_norm import MinimumNorm
from radii.errors import SpecificationError

ATTACKS: tuple[type[Attack], ...] = (MinimumNorm, Apgd, Pgd, Fgsm)


def get(name: str) -> Attack:
    """The attack called `name`, with its default options; `foolbox:NAME` for one of foolbox."""
    family, _, foreign = name.partition(":")
    if family == "foolbox" and foreign:
        return FoolboxAttack(foreign)
    for attack in ATTACKS:
        if attack.name == name:
            return attack()
    names = ", ".join(attack.name for attack in ATTACKS)
    raise SpecificationError(f"attack '{name}' is not one of {names}, foolbox:NAME")
