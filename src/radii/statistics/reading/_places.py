"""Reading runs from wherever results lie: stores, tables, folders of VERONA."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from radii.errors import StoreError
from radii.statistics._distribution import Distribution
from radii.statistics.reading._published import columns_of_table
from radii.statistics.reading._run import Run
from radii.statistics.reading._store import ANY_PART, read_store
from radii.statistics.reading._verona import columns_of_folder
from radii.store import STORE_FILE, CertifiedStatement, PartChoice, StoredSettings


def read(
    place: Path | str,
    *,
    largest_eps: float | None = None,
    distrust: bool = False,
    split: str = "",
    training: str = "",
    choice: PartChoice | None = None,
    accepted: Collection[CertifiedStatement] | None = None,
) -> Run:
    """Read a file, or the folder of a VERONA experiment or of a radii run.

    A published value is a claim: nothing is replayed here (`radii audit` does that). Where a row
    claims a proof at or beyond its own counterexample, the claimed proof is kept as published and
    a note says so; with `distrust` it is dropped instead. `largest_eps` is the end of the grid:
    VERONA writes it into `smallest_sat_value` when it found no counterexample. `split` and
    `training` are for files that lack these columns. `choice` says which brackets are meant of a
    study that holds those of several questions. With `accepted`, only proofs count that one of
    these shows; files have none.
    """
    path = Path(place)
    if (path / STORE_FILE).is_file():
        run = read_store(path, choice or ANY_PART, accepted=accepted)
        return run.labelled(training=training, split=split or run.columns["split"])
    if accepted is not None:
        raise StoreError(f"{path}: a table holds no certificates; give the --out of a run")
    notes: list[str] = []
    if path.is_dir():
        columns = columns_of_folder(path, distrust, notes)
    else:
        columns = columns_of_table(path, largest_eps, distrust, notes)
    columns = {"split": split, "training": training, **columns}
    source = StoredSettings(source=path.name)
    return Run(path, Distribution.of_columns(columns), source, notes=tuple(notes))


def check_distinct(places: Sequence[Path]) -> None:
    """A StoreError unless all places exist and are different ones."""
    counts = Counter(place.resolve() for place in places)
    for place in places:
        if counts[place.resolve()] > 1:
            raise StoreError(f"{place}: the same results are given twice")
        if not place.exists():
            raise StoreError(f"{place}: no such file or directory")


def with_distinct_names(runs: Sequence[Run], *, joins_splits: bool = False) -> list[Run]:
    """Networks of the same name in several runs carry the name of the run's place, too.

    Names lose the ending `.onnx`, which published files leave out at will. With `joins_splits` what
    is one network on several splits keeps one name.
    """
    plain = _without_suffix if all(map(_is_distinct_without, runs)) else str
    counts = Counter(plain(name) for run in runs for name in run.networks)
    places = [run.place for run in runs]
    named = []
    for run in runs:
        title = _short_path(run.place, places, keeps_suffix=not joins_splits)
        names = {}
        for name in run.networks:
            shown = plain(name)
            is_one = counts[shown] == 1 or (joins_splits and _is_one_on_several_splits(shown, runs))
            names[name] = shown if is_one else f"{shown} ({title})"
        column = [names[name] for name in run.columns["network"].tolist()]
        named.append(run.labelled(network=column))
    return named


def _is_one_on_several_splits(shown: str, runs: Sequence[Run]) -> bool:
    """Whether all networks of that name have one fingerprint, each run on a split of its own."""
    fingerprints, splits = set(), []
    for run in runs:
        for name in run.networks:
            if _without_suffix(name) == shown:
                rows = run.columns["network"] == name
                fingerprints.update(run.columns["fingerprint"][rows].tolist())
                splits += np.unique(run.columns["split"][rows]).tolist()
    is_one = len(fingerprints) == 1 and all(fingerprints)
    return is_one and all(splits) and len(set(splits)) == len(splits)


def _is_distinct_without(run: Run) -> bool:
    return len({_without_suffix(name) for name in run.networks}) == len(run.networks)


def _without_suffix(network: str) -> str:
    """Also of a name that says which part of a study it is of, as in `net.onnx (l2)`."""
    return re.sub(r"\.onnx(?= \(|$)", "", network)


def _short_path(place: Path, places: Sequence[Path], *, keeps_suffix: bool) -> str:
    """The end of a path, as long as it takes to tell it from the others."""

    def parts_of(path: Path) -> tuple[str, ...]:
        resolved = path.resolve()
        return (resolved if keeps_suffix or resolved.is_dir() else resolved.with_suffix("")).parts

    parts = parts_of(place)
    others = [parts_of(other) for other in places if other.resolve() != place.resolve()]
    if parts in others:  # a.csv beside a.parquet
        return _short_path(place, places, keeps_suffix=True)
    kept = next(n for n in range(1, len(parts) + 1) if all(o[-n:] != parts[-n:] for o in others))
    return "/".join(parts[-kept:])
