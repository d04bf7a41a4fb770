"""From the name of a search to the search."""

from __future__ import annotations

import inspect
import math
from typing import Any

from radii.errors import SpecificationError
from radii.plugins import PluginGroup, load_plugin_class, plugin_names
from radii.problem import Grid
from radii.strategy._attack_first import AttackGuided, AttackOnly, Native
from radii.strategy._base import Search
from radii.strategy._scans import Binary, Cuts, KBinary, Linear

SEARCHES: tuple[type[Search], ...] = (Native, AttackGuided, KBinary, Binary, Linear, AttackOnly)
"""In the order in which the command line lists them."""


def get(name: str) -> type[Search]:
    """The search called `name`: one of radii's own, or one that another package declares."""
    for search in SEARCHES:
        if search.name == name:
            return search
    plugin = load_plugin_class(PluginGroup.SEARCHES, name, Search)  # type: ignore[type-abstract]
    if plugin is not None:
        return plugin
    raise SpecificationError(f"search '{name}' is not one of {', '.join(search_names())}")


def search_names() -> tuple[str, ...]:
    """Radii's own and those of other packages."""
    own = tuple(search.name for search in SEARCHES)
    return (*own, *(name for name in plugin_names(PluginGroup.SEARCHES) if name not in own))


def make(
    search: str | type[Search],
    grid: Grid,
    *,
    k: int | None = None,
    cuts: Cuts | str | None = None,
    seconds: float = math.inf,
    probes: bool = False,
) -> Search:
    """A search for one instance, by its class or its name.

    `k` and `cuts` are only for searches that have them; without them, they are as by default.
    `seconds` is what its questions may take; see `Search.allow`. `probes`: see `Search`.
    """
    kind = get(search) if isinstance(search, str) else search
    options: dict[str, Any] = {}
    if k is not None:
        if kind.default_k is None:
            raise SpecificationError(f"k {k}: search '{kind.name}' asks one question at a time")
        options["k"] = k
    if cuts is not None:
        if "cuts" not in inspect.signature(kind).parameters:
            raise SpecificationError(
                f"cuts '{cuts}' are of search 'k-binary', not of '{kind.name}'"
            )
        if cuts not in tuple(Cuts):
            raise SpecificationError(f"cuts '{cuts}' are not one of {', '.join(Cuts)}")
        options["cuts"] = Cuts(cuts)
    new_search = kind(grid, **options)
    new_search.allow(seconds)
    new_search.probes = probes
    return new_search
