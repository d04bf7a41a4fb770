"""Experiments below the directories that are served, and nothing outside of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from radii.errors import StoreError
from radii.store import FILE_NAME

__all__ = ["Found", "check_places", "find_experiments"]

DEPTH = 6
"""How far below a served directory experiments are looked for."""


@dataclass(frozen=True, slots=True)
class Found:
    """An experiment's directory. A request names it by its `id`; no path is ever part of one."""

    id: str
    name: str
    place: Path


def check_places(places: Sequence[Path]) -> list[Path]:
    """The directories as they are on disk; each must exist, experiments may come later."""
    for place in places:
        if not place.is_dir():
            raise StoreError(f"{place}: is no directory; name one that holds experiments, or will")
    return list(dict.fromkeys(place.resolve() for place in places))


def find_experiments(roots: Sequence[Path]) -> list[Found]:
    """In the order of the directories, then by name."""
    found: dict[Path, Found] = {}
    for root in roots:
        for place in _below(root):
            if place not in found:
                found[place] = Found(_id(place), _name(place, root, len(roots) > 1), place)
    return list(found.values())


def _below(root: Path) -> list[Path]:
    """Links are not followed: neither to directories nor to a store."""
    places = []
    for folder, folders, files in os.walk(root):
        place = Path(folder)
        depth = len(place.relative_to(root).parts)
        folders[:] = [] if depth >= DEPTH else sorted(f for f in folders if not f.startswith("."))
        if FILE_NAME in files and not (place / FILE_NAME).is_symlink():
            places.append(place)
    return places


def _id(place: Path) -> str:
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:16]


def _name(place: Path, root: Path, has_others: bool) -> str:
    below = place.relative_to(root)
    shown = root.name / below if has_others or not below.parts else below
    return os.fsencode(shown).decode("utf-8", "replace")
