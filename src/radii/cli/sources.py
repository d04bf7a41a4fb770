"""The results that a command is given: runs of radii, published files, folders of VERONA."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.errors import DataError, StoreError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.distributions import Distribution


SELECTION_COLUMNS = {
    "network": "network",
    "class": "label",
    "target": "target",
    "split": "split",
    "training": "training",
}
"""What `--only` chooses by, and the column that holds it."""


def add_only_flag(group: Any) -> None:
    """Which of the rows of results count: see `selected`."""
    group.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="network, class, target, split or training; repeat for more",
    )


def read_distributions(
    places: Sequence[Path], *, split: str = "", distrust: bool = False
) -> Distribution:
    """All brackets of several places; what cannot be taken at its word goes to standard error.

    Networks of the same name in several places carry the place's name too, unless they are one
    network on several splits. `split` names the inputs of places that do not tell it themselves.
    """
    from radii.distributions import Distribution, read_results

    several = Counter(place.resolve() for place in places)
    for place in places:
        if several[place.resolve()] > 1:
            raise StoreError(f"{place}: the same results are given twice")
        if not place.exists():
            raise StoreError(f"{place}: no such file or directory")
    parts = []
    for place in places:
        read = read_results(place, distrust=distrust)
        for note in read.notes:
            say(f"radii: {note}", file=sys.stderr)
        parts.append(read.distribution)
    if split:
        parts = [_with_split(part, split) for part in parts]
    counts = Counter(_without_suffix(name) for part in parts for name in part.networks)
    named = []
    for place, part in zip(places, parts, strict=True):
        title = _short_path(place, places)
        names = {}
        for name in part.networks:
            plain = _without_suffix(name)
            is_one = counts[plain] == 1 or _is_one_on_several_splits(plain, parts)
            names[name] = plain if is_one else f"{plain} ({title})"
        named.append(part.labelled(network=names))
    return Distribution.union(named)


def selected(distribution: Distribution, only: list[str]) -> Distribution:
    """The rows that have one of the wanted values of every name, as in `class=3`."""
    import numpy as np

    wanted: dict[str, list[str]] = {}
    for text in only:
        name, sign, value = text.partition("=")
        if name not in SELECTION_COLUMNS or not sign:
            raise DataError(
                f"--only {text}: write one of {', '.join(SELECTION_COLUMNS)}, =, and a value"
            )
        wanted.setdefault(name, []).append(value)
    for name, values in wanted.items():
        told = distribution.column(SELECTION_COLUMNS[name]).astype(np.str_)
        absent = [value for value in values if value not in told]
        if absent:
            known = ", ".join(dict.fromkeys(told.tolist()))
            raise DataError(f"--only {name}={absent[0]}: the results have {known}")
        distribution = distribution.select(np.isin(told, values))
    return distribution


def note_published(distribution: Distribution) -> None:
    """Say on standard error that published files leave out what their networks misclassify."""
    claimed = [
        name
        for name, part in distribution.by_network().items()
        if part.correct.all() and not any(part.column("fingerprint"))
    ]
    if claimed:
        say(
            f"radii: {', '.join(claimed)}: published results without misclassified inputs, "
            "so shares are of correctly classified ones",
            file=sys.stderr,
        )


def note_arithmetics(distribution: Distribution) -> None:
    """Say on standard error that the proofs of networks hold in different arithmetics."""
    from radii.distributions import weakest_arithmetic

    names: dict[str, list[str]] = {}
    for name, part in distribution.by_network().items():
        if (weakest := weakest_arithmetic(part)) is not None:
            names.setdefault(weakest.scope, []).append(name)
    if len(names) > 1:
        parts = "; ".join(f"those of {', '.join(those)} {scope}" for scope, those in names.items())
        say(f"radii: proofs hold in different arithmetics: {parts}", file=sys.stderr)


def _is_one_on_several_splits(plain: str, parts: Sequence[Distribution]) -> bool:
    """Whether all networks of that name have one fingerprint, each part on a split of its own."""
    found = [
        part.only(network=name)
        for part in parts
        for name in part.networks
        if _without_suffix(name) == plain
    ]
    fingerprints = {text for part in found for text in part.column("fingerprint").tolist()}
    splits = [text for part in found for text in set(part.column("split").tolist())]
    is_one = len(fingerprints) == 1 and all(fingerprints)
    return is_one and all(splits) and len(set(splits)) == len(splits)


def _without_suffix(network: str) -> str:
    """Published files name a network with and without the ending of its file."""
    return network.removesuffix(".onnx")


def _with_split(distribution: Distribution, split: str) -> Distribution:
    told = distribution.column("split")
    return distribution.labelled(split=[str(name) or split for name in told])


def _short_path(place: Path, places: Sequence[Path]) -> str:
    """The end of a path, as long as it takes to tell it from the others."""
    parts = place.resolve().parts
    others = [other.resolve().parts for other in places if other.resolve() != place.resolve()]
    for kept in range(1, len(parts) + 1):
        if all(other[-kept:] != parts[-kept:] for other in others):
            break
    short = "/".join(parts[-kept:])
    return short.removesuffix(place.suffix) if place.is_file() else short
