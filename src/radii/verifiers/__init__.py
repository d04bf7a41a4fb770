"""Verifiers: who decides a query."""

from __future__ import annotations

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
from radii.verifiers.enumeration import Enumeration
from radii.verifiers.milp import Milp

__all__ = [
    "VERIFIERS",
    "Answer",
    "BranchAndBound",
    "Enumeration",
    "GridVerifier",
    "Limits",
    "Milp",
    "RadiusAnswer",
    "RadiusVerifier",
    "Verifier",
    "get",
]

VERIFIERS: tuple[type[Verifier], ...] = (BranchAndBound, Milp, Enumeration)
"""In the order in which the command line lists them."""


def get(name: str) -> Verifier:
    """The verifier called `name`, with its default options."""
    for verifier in VERIFIERS:
        if verifier.name == name:
            return verifier()
    raise SpecificationError(
        f"verifier '{name}' is not one of {', '.join(verifier.name for verifier in VERIFIERS)}"
    )
