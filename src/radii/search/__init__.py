"""Searches: how the questions about one instance are chosen."""

from __future__ import annotations

from radii.errors import SpecificationError
from radii.search._base import Kind, Question, Search
from radii.search.attack_guided import AttackGuided, AttackOnly
from radii.search.binary import Binary
from radii.search.native import Native

__all__ = [
    "SEARCHES",
    "AttackGuided",
    "AttackOnly",
    "Binary",
    "Kind",
    "Native",
    "Question",
    "Search",
    "get",
]

SEARCHES: tuple[type[Search], ...] = (Native, AttackGuided, Binary, AttackOnly)


def get(name: str) -> type[Search]:
    """The search called `name`."""
    for search in SEARCHES:
        if search.name == name:
            return search
    raise SpecificationError(
        f"search '{name}' is not one of {', '.join(search.name for search in SEARCHES)}"
    )
