"""Searches: how the questions about one instance are chosen."""

from __future__ import annotations

import math

from radii.errors import SpecificationError
from radii.queries import Grid
from radii.search._attack_guided import AttackGuided, AttackOnly
from radii.search._base import Search
from radii.search._k_binary import Binary, KBinary
from radii.search._linear import Linear
from radii.search._native import Native
from radii.search._splitting import Cuts

SEARCHES: tuple[type[Search], ...] = (Native, AttackGuided, KBinary, Binary, Linear, AttackOnly)


def get(name: str) -> type[Search]:
    """The search called `name`."""
    for search in SEARCHES:
        if search.name == name:
            return search
    raise SpecificationError(
        f"search '{name}' is not one of {', '.join(search.name for search in SEARCHES)}"
    )


def make(
    name: str,
    grid: Grid,
    *,
    k: int | None = None,
    cuts: str | None = None,
    seconds: float = math.inf,
) -> Search:
    """A search called `name`; `k` and `cuts` only for those that have them, as they default.

    `seconds` is what its questions may take; see `Search.allow`.
    """
    made = _make(name, grid, k, cuts)
    made.allow(seconds)
    return made


def _make(name: str, grid: Grid, k: int | None, cuts: str | None) -> Search:
    kind = get(name)
    if k is not None and kind.default_k is None:
        raise SpecificationError(f"k {k}: search '{name}' asks one question at a time")
    if cuts is not None and kind is not KBinary:
        raise SpecificationError(f"cuts '{cuts}' are of search 'k-binary', not of '{name}'")
    if cuts is not None and cuts not in tuple(Cuts):
        raise SpecificationError(f"cuts '{cuts}' are not one of {', '.join(Cuts)}")
    if kind is KBinary:
        return KBinary(grid, k=_default(k, kind), cuts=Cuts(cuts or Cuts.EQUAL))
    if kind is Linear:
        return Linear(grid, k=_default(k, kind))
    return kind(grid)


def _default(k: int | None, kind: type[Search]) -> int:
    return k if k is not None else kind.default_k or 1
