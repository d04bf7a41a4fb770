"""Reading what a report is about, from directories and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from radii.distributions import Distribution, read_results
from radii.errors import StoreError
from radii.report.following import Followed
from radii.report.sources import Source
from radii.store import FILE_NAME

if TYPE_CHECKING:
    from radii.ensembles import Known

__all__ = ["named_apart", "read_places"]

ENSEMBLE_FILE = "ensemble.sqlite"
"""As `radii.ensembles` calls it, which is loaded only where there is one: it brings PyTorch."""


def read_places(places: Sequence[Path]) -> tuple[list[Source], list[Known]]:
    """Experiments, without inputs and witnesses, which may be large, and ensembles.

    No two networks of experiments share a name.
    """
    seen: set[Path] = set()
    for place in places:
        if place.resolve() in seen:
            raise StoreError(f"{place}: the same experiment is given twice")
        seen.add(place.resolve())
    ensembles = [place for place in places if (place / ENSEMBLE_FILE).is_file()]
    others = [place for place in places if place not in ensembles or (place / FILE_NAME).is_file()]
    return named_apart([_read(place) for place in others]), _read_ensembles(ensembles)


def _read_ensembles(places: Sequence[Path]) -> list[Known]:
    if not places:
        return []
    from radii.ensembles import read_known

    return [read_known(place) for place in places]


def _read(place: Path) -> Source:
    if place.is_file():
        imported = read_results(place)
        notes = (*imported.notes, *_caveats(place.name, imported.distribution))
        return Source(place, {"source": place.name}, imported.distribution, notes)
    followed = Followed(place)
    followed.refresh()
    return followed.source()


def _caveats(name: str, distribution: Distribution) -> list[str]:
    """What a reader of a file's numbers must know, whatever is in it."""
    told = [f"{name}: proofs and counterexamples are its claims, which radii has not checked."]
    if distribution.correct.all():
        told.append(
            f"{name} has no misclassified inputs. Published files leave them out: robust accuracy "
            "is then that of correctly classified inputs."
        )
    return told


def named_apart(sources: list[Source]) -> list[Source]:
    """Networks of the same name in several experiments carry the experiment's name too."""
    counts = Counter(name for source in sources for name in source.distribution.networks)
    titles = _short_places([source.place for source in sources])
    named = []
    for source, title in zip(sources, titles, strict=True):
        names = {
            name: name if counts[name] == 1 else f"{name} ({title})"
            for name in source.distribution.networks
        }
        told = source.distribution.labelled(network=names)
        named.append(replace(source, distribution=told))
    return named


def _short_places(places: Sequence[Path]) -> list[str]:
    """The last parts of the paths, as many as tell them apart."""
    parts = [place.resolve().parts for place in places]
    short: list[str] = []
    for kept in range(1, max(map(len, parts), default=0) + 1):
        short = ["/".join(part[-kept:]) for part in parts]
        if len(set(short)) == len(short):
            break
    return short
