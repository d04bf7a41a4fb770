"""Reading what a report is about, from directories and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from radii.distributions import Distribution, read_results
from radii.errors import StoreError
from radii.report.following import Followed
from radii.report.sources import Source

__all__ = ["named_apart", "read_sources"]


def read_sources(places: Sequence[Path]) -> list[Source]:
    """Everything but inputs and witnesses, which may be large; no two networks share a name."""
    seen: set[Path] = set()
    for place in places:
        if place.resolve() in seen:
            raise StoreError(f"{place}: the same experiment is given twice")
        seen.add(place.resolve())
    return named_apart([_read(place) for place in places])


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
    for kept in range(1, max(map(len, parts)) + 1):
        short = ["/".join(part[-kept:]) for part in parts]
        if len(set(short)) == len(short):
            break
    return short
