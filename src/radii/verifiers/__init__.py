"""Verifiers: who decides a query."""

from __future__ import annotations

import inspect

from radii.errors import SpecificationError
from radii.verifiers._base import (
    Answer,
    GridVerifier,
    Limits,
    RadiusAnswer,
    RadiusVerifier,
    Verifier,
)
from radii.verifiers.branch_and_bound import BranchAndBound
from radii.verifiers.devices import check_device
from radii.verifiers.enumeration import Enumeration
from radii.verifiers.marabou import Marabou
from radii.verifiers.milp import Milp
from radii.verifiers.vnncomp import VnnComp

__all__ = [
    "VERIFIERS",
    "Answer",
    "BranchAndBound",
    "Enumeration",
    "GridVerifier",
    "Limits",
    "Marabou",
    "Milp",
    "RadiusAnswer",
    "RadiusVerifier",
    "Verifier",
    "VnnComp",
    "check_device",
    "get",
]

VERIFIERS: tuple[type[Verifier], ...] = (BranchAndBound, Milp, Enumeration, Marabou, VnnComp)
"""In the order in which the command line lists them."""


def get(name: str, **options: object) -> Verifier:
    """The verifier called `name`; options that are not given keep their defaults."""
    for verifier in VERIFIERS:
        if verifier.name == name:
            known = inspect.signature(verifier).parameters
            for option in options:
                if option not in known:
                    raise SpecificationError(f"verifier '{name}' has no option '{option}'")
            return verifier(**options)
    raise SpecificationError(
        f"verifier '{name}' is not one of {', '.join(verifier.name for verifier in VERIFIERS)}"
    )
