"""Results of several directories in one, as if they had come from one run.

Shards of a run are joined; so are runs on more inputs or networks, or in another norm, as a
directory that grows holds them. What would make one number speak of two things is refused: a
network, an input or a label that is another one under the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from radii.datasets import location_of, name_list
from radii.errors import ExperimentError
from radii.store import Excerpt, MergeCount, Store, merge_stores


@dataclass(frozen=True, slots=True)
class Merge:
    """What joining directories has brought, and what is still missing: `excerpts` are samples of
    which some shards are not there, `unfinished` the directories whose runs have not ended."""

    count: MergeCount
    excerpts: tuple[Excerpt, ...]
    unfinished: tuple[Path, ...]


def merge(places: Sequence[Path], out: Path) -> Merge:
    """Take over into `out` what directories hold; an ExperimentError if they do not fit together.

    All or nothing, and nothing twice: it may be repeated, also while the runs go on.
    """
    for place in places:
        if place.resolve() == out.resolve():
            raise ExperimentError(f"{out} is both merged and --out: name another directory")
    with ExitStack() as opened:
        sources = [opened.enter_context(Store.open(place)) for place in places]
        facts = [_Facts.of(source) for source in sources]
        target = opened.enter_context(Store.create_or_open(out))
        for one, other in combinations([_Facts.of(target), *facts], 2):
            _check(one, other)
        count = merge_stores(target, sources)
        excerpts = {each: None for part in target.parts() for each in part.excerpts}
    unfinished = (one.place for one in facts if not one.is_finished)
    return Merge(count, tuple(excerpts), tuple(unfinished))


@dataclass(frozen=True, slots=True)
class _Facts:
    """What must agree between directories, where both have it."""

    place: Path
    names: Mapping[str, str]
    domains: Mapping[str, str]
    layouts: Mapping[str, Any]
    described: Mapping[str, Any]
    classes: tuple[str, ...]
    locations: frozenset[str]
    labels: Mapping[int, int]
    inputs: Mapping[Any, str]
    samples: Mapping[tuple[Any, Any], set[str | None]]
    is_finished: bool

    @classmethod
    def of(cls, store: Store) -> _Facts:
        steps, records = store.steps(), list(store.unanswered_records())
        inputs: dict[Any, str] = dict(store.input_digests())
        inputs.update({(r.facts.fingerprint, r.facts.input): r.digest for r in records})
        samples: dict[tuple[Any, Any], set[str | None]] = {}
        for settings in (step.settings for step in steps):
            if settings.shard is not None:
                question = settings.property, settings.norm
                samples.setdefault(question, set()).add(settings.whole)
        return cls(
            store.place,
            {name: key for key, (name, _) in store.networks().items()},
            {key: domain.key() for key, domain in store.settings().domain_of_network().items()},
            {key: fed.get("layout") for key, fed in store.feeding().items() if fed is not None},
            store.experiment() or {},
            store.settings().class_names,
            frozenset(location_of(place) for step in steps for place in step.sources.values()),
            {record.facts.input: record.facts.label for record in records},
            inputs,
            samples,
            bool(steps) and all(step.ended_at is not None for step in steps),
        )

    @property
    def is_empty(self) -> bool:
        return not self.described


def _check(one: _Facts, other: _Facts) -> None:
    """An ExperimentError if two directories cannot be joined."""
    if not (one.is_empty or other.is_empty) and (reason := _refusal(one, other)) is not None:
        raise ExperimentError(f"{other.place} cannot be joined with {one.place}: {reason}")


def _refusal(one: _Facts, other: _Facts) -> str | None:
    for name in ("features", "split"):
        if (one.described.get(name) or None) != (other.described.get(name) or None):
            return f"the {name} of their inputs are not the same"
    for name in one.names.keys() & other.names.keys():
        if one.names[name] != other.names[name]:
            return f"the network {name} is another one in each"
    names = {key: name for name, key in one.names.items()}
    for what, was, now in (
        ("domain", one.domains, other.domains),
        ("layout", one.layouts, other.layouts),
    ):
        for key in was.keys() & now.keys():
            if was[key] != now[key]:
                return f"the {what} of {names.get(key, key)} is another one in each"
    return _refused_inputs(one, other)


def _refused_inputs(one: _Facts, other: _Facts) -> str | None:
    shared = one.inputs.keys() & other.inputs.keys()
    if one.locations and other.locations and not one.locations & other.locations and not shared:
        return "their inputs are of different data sets"
    for key in shared:
        if one.inputs[key] != other.inputs[key]:
            return f"input {key if isinstance(key, int) else key[1]} is another one in each"
    for index in one.labels.keys() & other.labels.keys():
        if one.labels[index] != other.labels[index]:
            return (
                f"input {index} has label {one.labels[index]} in the one and "
                f"{other.labels[index]} in the other"
            )
    if one.classes and other.classes and one.classes != other.classes:
        return f"the classes are {name_list(one.classes)} here, {name_list(other.classes)} there"
    for question in one.samples.keys() & other.samples.keys():
        if not one.samples[question] & other.samples[question]:
            return "they are shards of different samples"
    return None
