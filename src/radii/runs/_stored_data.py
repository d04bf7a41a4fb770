"""What a store was asked for, made again: its networks, inputs and labels from the data, questions.

All are looked for where they were, or wherever they are now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from radii import datasets, problem
from radii.datasets import Dataset, Spec
from radii.errors import DataError, InputError, NetworkError, SpecificationError, StoreError
from radii.networks import Network, structural_fingerprint
from radii.problem import Domain, Instance
from radii.runs._data_terms import DataTerms
from radii.runs._plan import fed_network
from radii.runs._replays import EvidenceKind, EvidencePlace, RefusedEvidence
from radii.runs._selection import AXIS_ORDERS, EXCHANGED_ORDERS, inputs_for
from radii.store import KnownNetwork, Record, Store, StudyStep

APART = ("networks", "domain", "data")
"""What a step says of itself alone: the store as a whole has more of it."""


@dataclass(frozen=True, slots=True)
class StoredNetwork:
    """A network of a store, and the file in which it was found; None: the store itself holds it."""

    name: str
    network: Network
    file: Path | None


def stored_networks(
    store: Store, records: Iterable[Record], given: Sequence[Path] = ()
) -> dict[str, StoredNetwork]:
    """The networks of some records by fingerprint: of the given files, or as the store knows them.

    A NetworkError says which is not there any more, or has changed.
    """
    for file in given:
        if not file.is_file():
            raise NetworkError(f"{file}: cannot be read: No such file or directory")
    known = store.networks()
    needed = (known[key] for key in dict.fromkeys(one.facts.fingerprint for one in records))
    return {one.fingerprint: _found(store, one, given) for one in needed}


def _found(store: Store, known: KnownNetwork, given: Sequence[Path]) -> StoredNetwork:
    if known.domain is None:
        raise StoreError(f"{store.place}: does not say which inputs of {known.name} are valid")
    path, content = Path(known.path), store.model(known.fingerprint)
    for file in (*given, *([path] if path.is_file() else []), None):
        source = content if file is None else file
        network = None if source is None else _loaded(known, known.domain, source)
        if network is not None:
            return StoredNetwork(known.name, network, file)
    lost = "has changed" if path.is_file() else "is not there any more"
    raise NetworkError(
        f"{store.place}: its network {known.name} {lost} at {path}; --network FILE "
        "takes the one that was measured"
    )


def _loaded(known: KnownNetwork, domain: Domain, source: Path | bytes) -> Network | None:
    """The network in a file, fed as it was, or the one whose content the store holds; None if it
    is another one."""
    for opaque in (False, True):
        try:
            if isinstance(source, bytes):
                network = Network.from_bytes(source, domain=domain, name=known.name, opaque=opaque)
            else:
                feeding = known.feeding or {}
                network = fed_network(source, known.name, domain, feeding, opaque=opaque)
        except InputError:  # a file of something else, or of operators that only run
            continue
        if network.fingerprint == known.fingerprint:
            return network
        if structural_fingerprint(network) == known.fingerprint:
            # It is the one that was measured, with operators that were handed in with it then: here
            # those only run, which is what replays need.
            network.fingerprint = known.fingerprint
            return network
    return None


# --- data and questions


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """The data set that a text selects from, and the labels of what it selects, by position.

    Without a data set, `reason` says why it cannot be read.
    """

    text: str
    dataset: Dataset | None = None
    selected: Mapping[int, int] = field(default_factory=dict)
    has_selection: bool = True
    reason: str = ""


class StoredData:
    """The data of a store, read again where they were.

    `given` is where they are now, if they have moved. `compared` counts the instances whose input
    and label were compared so far. `has_unknown_selection`: which inputs were asked for is not
    stored, so that some may have been left out.
    """

    def __init__(
        self, store: Store, networks: Mapping[str, Network], given: str | None = None
    ) -> None:
        self._networks, self._given = networks, given
        self._terms = DataTerms.of(store)
        self._feeding = {key: one.feeding for key, one in store.networks().items()}
        self._sets: dict[tuple[str, str | None, str | None], Dataset] = {}
        self._steps = store.steps()
        self._keys = {step.number: store.step_keys([step.number]) for step in self._steps}
        self._sources = {step.number: self._sources_of(step) for step in self._steps}
        self._described = store.experiment() or {}
        self.compared = 0
        self.has_unknown_selection = False

    @property
    def missing(self) -> dict[str, str]:
        """Why the data that a text names cannot be compared."""
        sources = (one for those in self._sources.values() for one in those)
        return {one.text: one.reason for one in sources if one.dataset is None}

    # --- reading

    def _sources_of(self, step: StudyStep) -> list[_Source]:
        label = next((str(fed["label"]) for fed in self._fed(step) if fed.get("label")), None)
        split = step.settings.split or None
        return [self._source(text, place, split, label) for text, place in step.sources.items()]

    def _source(self, text: str, place: str, split: str | None, label: str | None) -> _Source:
        try:
            named, spec = Spec.parse(text), Spec.parse(place)
            if (named.steps, Path(named.location).name) != (spec.steps, Path(spec.location).name):
                raise DataError(f"{place} is something else")
            named_set = spec.location in datasets.dataset_names()
            if self._given is not None:
                spec = replace(spec, location=self._given)
            elif not (named_set or Path(spec.location).is_absolute()):
                raise DataError(f"{text} was in the memory of a Python program")
            name = (spec.location, spec.split or split, label)
            if name not in self._sets:
                whole = Spec(spec.location, spec.split or split, ())
                read = datasets.load_whole(whole, label=label)
                self._sets[name] = self._terms.apply(read, list(self._networks.values()))
            chosen = spec.select(self._sets[name])
            selected = dict(zip(chosen.indices.tolist(), chosen.labels.tolist(), strict=True))
            return _Source(text, self._sets[name], selected, bool(spec.steps))
        except InputError as error:
            return _Source(text, reason=str(error))

    def _fed(self, step: StudyStep) -> list[Mapping[str, object]]:
        """How inputs get into the networks of a step; of those that come from Python nothing."""
        own = step.settings.networks.values()
        return [fed for fed in map(self._feeding.get, own) if fed is not None]

    # --- inputs and labels

    def refused(self, record: Record) -> RefusedEvidence | None:
        """Why an input or its label is not that of the data; None if it is, or they are missing."""
        steps = [number for number, keys in self._keys.items() if record.key in keys]
        sources = [one for number in steps for one in self._sources[number]]
        reason = None
        for dataset in {id(one.dataset): one.dataset for one in sources}.values():
            if dataset is not None and record.facts.input in dataset.indices:
                self.compared += 1
                reason = self._difference(record, dataset)
                break
        else:
            if sources and all(one.dataset is not None for one in sources):
                reason = f"{' and '.join(one.text for one in sources)} has no such input"
        place = EvidencePlace.of(record)
        return None if reason is None else RefusedEvidence(place, EvidenceKind.DATA, reason)

    def _difference(self, record: Record, dataset: Dataset) -> str | None:
        one = dataset.take(np.flatnonzero(dataset.indices == record.facts.input)[:1])
        if (label := int(one.labels[0])) != record.facts.label:
            return f"its label in {dataset.title} is {label}, not {record.facts.label}"
        reason = ""
        for layout in self._layouts(record.facts.fingerprint):
            try:
                image = inputs_for(self._networks[record.facts.fingerprint], one, layout)[0]
            except DataError as error:
                reason = reason or str(error)
                continue
            if image.dtype == record.input.dtype and np.array_equal(image, record.input):
                return None
            reason = f"it is not the one that {dataset.title} has there"
        return reason

    def _layouts(self, fingerprint: str) -> Sequence[Any]:
        """In which an input may have got into a network; every one, where nothing tells."""
        fed = self._feeding.get(fingerprint)
        return (None, *AXIS_ORDERS, *EXCHANGED_ORDERS) if fed is None else (fed.get("layout"),)

    # --- questions

    def other_question(self, record: Record, instance: Instance | None) -> RefusedEvidence | None:
        """Why a record does not answer what was asked for; None if it does."""
        steps = [step for step in self._steps if record.key in self._keys[step.number]]
        reasons = (_other_question(record, instance, step, self._networks) for step in steps)
        reason = next(filter(None, reasons), None if steps else "nobody asked for it")
        place = EvidencePlace.of(record)
        return None if reason is None else RefusedEvidence(place, EvidenceKind.QUESTION, reason)

    def left_out(self, records: Iterable[Record], place: Path) -> Iterator[RefusedEvidence]:
        """What was asked for and is not there, and where the store contradicts itself."""
        known = {record.key: record for record in records}
        latest = self._steps[-1].described if self._steps else {}
        for name in (name for name in latest if name not in APART):
            if self._described.get(name) != latest[name]:
                yield _contradiction(str(place), f"two places say different things of its {name}")
        for step in self._steps:
            if step.described.get("source") not in (None, " and ".join(step.sources)):
                yield _contradiction(str(place), "two places say different things of its inputs")
        for steps in self._questions():
            keys = set[str]().union(*(self._keys[step.number] for step in steps))
            own = [known[key] for key in keys if key in known]
            reasons = (_lost(steps[0], own, self._networks), self._uncovered(steps, own))
            yield from (_contradiction(str(place), reason) for reason in filter(None, reasons))

    def _questions(self) -> Iterable[list[StudyStep]]:
        """The steps, by what they ask of an input."""
        found: dict[object, list[StudyStep]] = {}
        for step in self._steps:
            found.setdefault((step.settings.property, step.settings.norm), []).append(step)
        return found.values()

    def _uncovered(self, steps: Sequence[StudyStep], records: Sequence[Record]) -> str | None:
        """Which inputs of a question are not there: all of them are those that texts select.

        Of a run from Python a text may name no more than the data set, so that nothing is known.
        """
        sources = [one for step in steps for one in self._sources[step.number]]
        if not sources or any(one.dataset is None for one in sources):
            return None
        names = {key: name for step in steps for name, key in step.settings.networks.items()}
        for fingerprint, name in names.items():
            asked = [wanted for step in steps for wanted in self._asked_inputs(step, fingerprint)]
            own = {one.facts.input for one in records if one.facts.fingerprint == fingerprint}
            rest = own.difference(*(each for each in asked if each <= own))
            pairs = zip(sources, asked, strict=True)
            partial = next((pair for pair in pairs if rest & pair[1] or not own), None)
            if partial is None:
                continue
            source, wanted = partial
            if source.has_selection or any(map(self._fed, steps)):
                return f"input {min(wanted - own)} of {source.text} is not there for {name}"
            self.has_unknown_selection = True
        return None

    def _asked_inputs(self, step: StudyStep, fingerprint: str) -> Iterator[set[int]]:
        """The inputs that a step asks about on a network, for each of its sources."""
        target, shard = _target(step), step.settings.shard
        asked = [
            [index for index, label in one.selected.items() if label != target]
            for one in self._sources[step.number]
        ]
        own = {index for inputs in asked for index in inputs}
        if shard is not None:
            places = {key: place for place, key in enumerate(step.settings.networks.values())}
            in_order = dict.fromkeys(index for inputs in asked for index in inputs)
            ranked = enumerate(
                in_order if fingerprint in places else (), places.get(fingerprint, 0)
            )
            own = {index for rank, index in ranked if rank in shard}
        yield from (own.intersection(inputs) for inputs in asked)


def _contradiction(where: str, reason: str) -> RefusedEvidence:
    return RefusedEvidence(EvidencePlace(where), EvidenceKind.QUESTION, reason)


def _other_question(
    record: Record, instance: Instance | None, step: StudyStep, networks: Mapping[str, Network]
) -> str | None:
    asked, facts = step.settings, record.facts
    if facts.fingerprint not in asked.networks.values():
        return f"{facts.network} was not asked about"
    if instance is not None and instance.norm is not asked.norm:
        return f"it is in the norm {instance.norm.value}, which was not asked for"
    outputs = networks[facts.fingerprint].output_size
    family = _family(asked.property or "", facts.label, outputs)
    if family is None:  # it was made in Python, or is one of its targets
        is_asked = facts.property == asked.property
        is_asked = is_asked or facts.property.startswith(f"{asked.property}:")
    else:
        is_asked = facts.property in family
    return None if is_asked else f"it is about {facts.property}, and not {asked.property}"


def _target(step: StudyStep) -> int | None:
    """The class of a targeted property, which is not asked of inputs of that class."""
    try:
        asked = problem.parse_family(step.settings.property or "")
    except SpecificationError:
        return None
    return None if isinstance(asked, type) else asked.target


def _family(asked: str, label: int, outputs: int) -> set[str] | None:
    """The properties that are asked of an input; None where no text says what they are."""
    try:
        return {one.spec for one in problem.property_family(asked, label, outputs)}
    except SpecificationError:
        return None


def _lost(
    step: StudyStep, records: Sequence[Record], networks: Mapping[str, Network]
) -> str | None:
    """Which targets of an input are not there."""
    counts = Counter((one.facts.fingerprint, one.facts.input, one.facts.label) for one in records)
    asked = step.settings.property or ""
    for (fingerprint, index, label), count in counts.items():
        family = _family(asked, label, networks[fingerprint].output_size)
        if family is not None and len(family) != count:
            return f"input {index} has {count} of the {len(family)} targets of {asked}"
    return None
