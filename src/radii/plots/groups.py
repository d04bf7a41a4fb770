"""Which brackets are drawn together: one line, box or row for each group of a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from radii.errors import DataError

if TYPE_CHECKING:
    from radii.distributions import Distribution

__all__ = ["Group", "groups_of", "left_out_text", "missing_group"]

HOW_TO_GET = {
    "class": "the results do not tell the class of an input",
    "target": "measure with --property one-to-one or become",
    "split": "the results do not tell what is training and what is test data",
    "training": "the results do not tell how networks were trained",
}


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A part of a distribution; `keys` are its values of what it was grouped by."""

    name: str
    keys: tuple[Any, ...]
    distribution: Distribution


def groups_of(distribution: Distribution, by: str | Sequence[str] = "network") -> list[Group]:
    """Groups by one or more of network, class, target, split and training, with names to show."""
    names = (by,) if isinstance(by, str) else tuple(by)
    parts = distribution.group_by(*names)
    found = []
    for key, part in parts.items():
        keys = key if len(names) > 1 else (key,)
        told = [
            _told(name, value, alone=len(names) == 1)
            for name, value in zip(names, keys, strict=True)
        ]
        found.append(Group(", ".join(filter(None, told)), keys, part))
    for place, name in enumerate(names):
        if name != "network" and all(group.keys[place] is None for group in found):
            raise missing_group(name)
    return found


def left_out_text(count: int) -> str:
    """What a figure of values says about results without any answer; empty if there are none."""
    if not count:
        return ""
    return f"left out: {count} {'result' if count == 1 else 'results'} without an answer"


def missing_group(name: str) -> DataError:
    """What to say where nothing can be grouped by `name`."""
    return DataError(f"no bracket has a {name}: {HOW_TO_GET[name]}")


def _told(name: str, value: Any, *, alone: bool) -> str:
    if value is None:
        return f"no {name}" if alone else ""
    return f"{name} {value}" if name in ("class", "target") else str(value)
