"""The study's own brackets: measured once, kept in the folder of the step that they belong to.

Every image is attacked; some of each class are given to the verifier as well. Brackets of targets
also use what follows from each other: an input that no class can win has no target that can, and
one that the target cannot even reach cannot become it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import DataError
from radii.statistics import Distribution
from radii_papers._steps import StudyScale, StudySettings
from radii_papers.classes._numbers import FROM_CLASS, GRID
from radii_papers.classes._source import ClassSource
from radii_papers.distributions._public import SPLITS, Split

if TYPE_CHECKING:
    from radii.datasets import Dataset

ONE_TO_ANY, TARGETED = "figure-1", "figure-5"
"""Steps whose folders hold the brackets: the first that need them."""

DEFINITIONS = ("one-to-one", "become")
"""The two meanings of a target, by the names of their properties."""

DOMAIN = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Images of each class and split that are attacked, and of these, given to the verifier.

    `seconds` are for each of the latter, attack and proofs together; a target counts as one.
    `fewer` has networks of which fewer are given to the verifier, since it mostly takes all its
    time there.
    """

    attacked: int
    proven: int
    seconds: float
    targeted: int
    targeted_proven: int
    targeted_seconds: float
    fewer: Mapping[str, int] = field(default_factory=dict)

    def proven_of(self, network: str) -> int:
        return self.fewer.get(network, self.proven)


SIZES = {
    StudyScale.SMALL: SampleSizes(5, 1, 2.0, 4, 1, 1.0),
    StudyScale.MACHINE: SampleSizes(100, 10, 3.0, 100, 1, 1.0, {"mnist-net_256x4": 2}),
    StudyScale.FULL: SampleSizes(100, 100, 7200.0, 100, 100, 7200.0),
}


def sizes_of(settings: StudySettings) -> SampleSizes:
    return SIZES[settings.scale]


def one_to_any(source: ClassSource, settings: StudySettings) -> Distribution:
    """Both splits on every network at hand; images that were only attacked have lower = 0."""
    sizes, folder = sizes_of(settings), settings.folder.parent / ONE_TO_ANY
    known = source.measured.get((ONE_TO_ANY, folder))
    if known is not None:
        return known
    parts = []
    for split in SPLITS:
        attacked = source.drawn(split, sizes.attacked)
        proven = {name: source.drawn(split, sizes.proven_of(name)) for name in source.networks}
        if attacked is not None:
            found = _both(source, settings, folder, split, attacked, proven, sizes.seconds, {})
            parts.append(found)
    source.measured[ONE_TO_ANY, folder] = _joined(parts)
    return source.measured[ONE_TO_ANY, folder]


def targeted(source: ClassSource, settings: StudySettings) -> Distribution:
    """Images of `FROM_CLASS` towards every other class, by both definitions, tightened."""
    sizes, folder = sizes_of(settings), settings.folder.parent / TARGETED
    known = source.measured.get((TARGETED, folder))
    if known is not None:
        return known
    parts = []
    for split in SPLITS:
        several = [source.drawn(split, n) for n in (sizes.targeted, sizes.targeted_proven)]
        attacked, some = (_of_class(images) for images in several)
        if attacked is None:
            continue
        proven = dict.fromkeys(source.networks, some)
        for name in DEFINITIONS:
            how: dict[str, Any] = {"property": name}
            seconds = sizes.targeted_seconds
            parts.append(_both(source, settings, folder, split, attacked, proven, seconds, how))
    found = tightened(_joined(parts), one_to_any(source, settings))
    source.measured[TARGETED, folder] = found
    return found


def definition_of(distribution: Distribution, name: str) -> Distribution:
    """The brackets of one of `DEFINITIONS`."""
    names = np.char.partition(distribution.column("property"), ":")[:, 0]
    return distribution.select(names == name)


def cpu_minutes(distribution: Distribution) -> str:
    """What brackets took, in every piece of a study that was cut off."""
    return f"{float(distribution.column('cpu_seconds').sum()) / 60:.0f} min of the CPU"


def given_to_verifier(distribution: Distribution) -> Distribution:
    """Brackets of images that were not only attacked."""
    return distribution.select(distribution.column("critical") >= 0)


def _of_class(images: Dataset | None) -> Dataset | None:
    if images is None or FROM_CLASS not in images.labels:
        return None
    return images.of_classes(FROM_CLASS)


def _joined(parts: list[Distribution]) -> Distribution:
    if not parts:
        raise DataError("no labelled images are at hand: radii data get mnist puts them in place")
    return Distribution.union(parts)


def _both(
    source: ClassSource,
    settings: StudySettings,
    folder: Path,
    split: Split,
    attacked: Dataset,
    proven: Mapping[str, Dataset | None],
    seconds: float,
    how: dict[str, Any],
) -> Distribution:
    """Attacks on all, brackets of some, which `proven` has by network."""
    place = folder / "-".join([settings.scale.value, split, *how.values()])
    quick = _measured(
        source, attacked, place.with_name(f"{place.name}-attacked"), settings,
        {**how, "search": "attack-only"},
    )  # fmt: skip
    slow = [
        _measured(
            source.only(name), images, place.with_name(f"{place.name}-proven-{name}"), settings,
            {**how, "budget_per_input": seconds},
        )
        for name, images in proven.items()
        if images is not None
    ]  # fmt: skip
    if not slow:
        return quick.labelled(split=split, critical=None)
    return merged(Distribution.union(slow), quick).labelled(split=split)


def _measured(
    source: ClassSource,
    images: Dataset,
    folder: Path,
    settings: StudySettings,
    options: dict[str, Any],
) -> Distribution:
    """What the folder holds, once all of it is measured."""
    from radii.networks import load_network
    from radii.runs import Settings, plan
    from radii.store import Store

    networks = [load_network(path, domain=DOMAIN) for path in source.networks.values()]
    planned = plan(networks, images, Settings.from_options({"grid": GRID, **options}))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Store.create_or_open(folder) as store:
        planned.run(store, jobs=settings.jobs, observer=settings.progress.inside())
        found = Distribution.from_store(store)
    names = np.char.replace(found.network, ".onnx", "")
    return found.labelled(network=names)


def merged(slow: Distribution, quick: Distribution) -> Distribution:
    """All of `quick`; where `slow` measured the same, its proofs and the closer witness.

    `critical` tells the two apart afterwards: it is -1 for what was only attacked.
    """
    places = {key: place for place, key in enumerate(_keys(slow))}
    at = np.array([places.get(key, -1) for key in _keys(quick)])
    is_shared = at >= 0
    lower, upper = quick.lower.copy(), quick.upper.copy()
    goes_to = quick.column("witness_class").copy()
    rows = at[is_shared]
    lower[is_shared] = np.maximum(lower[is_shared], slow.lower[rows])
    is_closer = np.zeros(len(quick), np.bool_)
    is_closer[is_shared] = slow.upper[rows] < upper[is_shared]
    upper[is_closer] = slow.upper[at[is_closer]]
    goes_to[is_closer] = slow.column("witness_class")[at[is_closer]]
    critical = np.full(len(quick), -1)
    critical[is_shared] = np.maximum(slow.column("critical")[rows], 0)
    spent = np.nan_to_num(quick.column("cpu_seconds"))
    spent[is_shared] += np.nan_to_num(slow.column("cpu_seconds")[rows])
    return quick.labelled(
        lower=lower, upper=upper, witness_class=goes_to, critical=critical, cpu_seconds=spent
    )


def tightened(targets: Distribution, any_class: Distribution) -> Distribution:
    """With what the radii imply: one-to-any <= one-to-one:t <= become:t, on the same image.

    A proof of one that a counterexample of another contradicts is no bracket: it raises.
    """
    lower, upper = targets.lower.copy(), targets.upper.copy()
    witness = targets.column("witness_class").copy()
    least = dict(zip(_keys(any_class), any_class.lower.tolist(), strict=True))
    keys = _keys(targets)
    lower = np.maximum(lower, [least.get((*key[:3], -1), 0.0) for key in keys])
    is_become = np.char.startswith(targets.column("property"), "become")
    places = {key: row for row, key in enumerate(keys) if not is_become[row]}
    for row in np.flatnonzero(is_become):
        other = places.get(keys[row])
        if other is None:
            continue
        lower[row] = max(lower[row], lower[other])
        if upper[row] < upper[other]:
            upper[other], witness[other] = upper[row], targets.column("target")[row]
    lower = np.where(targets.correct, lower, np.minimum(lower, upper))
    return targets.labelled(lower=lower, upper=upper, witness_class=witness)


def _keys(distribution: Distribution) -> list[tuple[Any, ...]]:
    """Network, split, input and target of each row."""
    names = ("network", "split", "input", "target")
    columns = [distribution.column(name).tolist() for name in names]
    return list(zip(*columns, strict=True))
