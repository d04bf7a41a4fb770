"""Attacks: searching for counterexamples. A failed attack proves nothing."""

from __future__ import annotations

from radii.attacks._autoattack import AutoAttack
from radii.attacks._base import Attack
from radii.attacks._batches import Clock, objective_depths
from radii.attacks._fixed_radius import Apgd, Fgsm, Pgd
from radii.attacks._foolbox import FoolboxAttack
from radii.attacks._geometry import DomainRows, Geometry, geometry
from radii.attacks._minimum_norm import MinimumNorm
from radii.attacks._random_search import RandomSearch
from radii.attacks._registry import ATTACKS, attack_names, get
from radii.attacks._specifications import attack_specification
from radii.attacks._violations import softmax_log_odds, violation

__all__ = [
    "ATTACKS",
    "Apgd",
    "Attack",
    "AutoAttack",
    "Clock",
    "DomainRows",
    "Fgsm",
    "FoolboxAttack",
    "Geometry",
    "MinimumNorm",
    "Pgd",
    "RandomSearch",
    "attack_names",
    "attack_specification",
    "geometry",
    "get",
    "objective_depths",
    "softmax_log_odds",
    "violation",
]
