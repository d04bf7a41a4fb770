"""What may join a directory of results: a plan that grows it, or what other directories hold.

Shards of a run are joined; so are runs on more inputs or networks, or in another norm. What would
make one number speak of two things is refused: a network, an input or a label that is another one
under the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from radii.datasets import are_words, location_of, name_list
from radii.errors import ExperimentError
from radii.problem import Domain
from radii.store import Excerpt, MergeCount, Store, input_digest, merge_stores

if TYPE_CHECKING:
    from radii.runs._plan import Plan

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedFacts:
    """What must agree between a store and what joins it, where both have it.

    `data` names the inputs in words. `networks` are fingerprints by name; domains and layouts, as
    far as these are known, are by fingerprint. `digests` are those of inputs: by index as the data
    give them, and by fingerprint and index as networks take them. Labels and digests are all that
    there are of an input: older stores may hold several.
    """

    data: str
    networks: Mapping[str, str]
    domains: Mapping[str, Domain]
    layouts: Mapping[str, str | None]
    features: Mapping[str, Any] | None
    split: str
    classes: tuple[str, ...]
    places: frozenset[str]
    labels: Mapping[int, frozenset[int]]
    digests: Mapping[Any, frozenset[str]]

    @classmethod
    def of_store(cls, store: Store) -> JoinedFacts:
        records, described = list(store.unanswered_records()), store.experiment() or {}
        sources = {name: place for step in store.steps() for name, place in step.sources.items()}
        received = (((one.facts.fingerprint, one.facts.input), one.digest) for one in records)
        networks = store.networks()
        return cls(
            data=" and ".join(sources),
            networks={one.name: key for key, one in networks.items()},
            domains={key: one.domain for key, one in networks.items() if one.domain is not None},
            layouts={
                key: one.feeding.get("layout") for key, one in networks.items() if one.feeding
            },
            features=described.get("features"),
            split=described.get("split") or "",
            classes=store.settings().class_names,
            places=frozenset(map(location_of, sources.values())),
            labels=_collected((record.facts.input, record.facts.label) for record in records),
            digests=_collected(chain(store.input_digests().items(), received)),
        )

    @classmethod
    def of_plan(cls, plan: Plan) -> JoinedFacts:
        keys = [network.fingerprint for network in plan.networks]
        fed = zip(keys, plan.feeding, strict=False)
        received = {(one.network, one.index): one.input for one in plan.instances}
        digests = ((key, input_digest(one)) for key, one in received.items())
        sources = plan.sources or {plan.data: plan.data}
        return cls(
            data=plan.data,
            networks={network.name: network.fingerprint for network in plan.networks},
            domains={network.fingerprint: network.domain for network in plan.networks},
            layouts={key: feeding.get("layout") for key, feeding in fed if feeding},
            features=plan.identity().get("features"),
            split=plan.split,
            classes=plan.class_names if are_words(plan.class_names) else (),
            places=frozenset(map(location_of, sources.values())),
            labels=_collected((one.index, one.label) for one in plan.instances),
            digests=_collected(chain(plan.inputs.items(), digests)),
        )

    def refusal(self, new: JoinedFacts) -> str | None:
        """Why what is new cannot be kept beside this; None if it can, but for changed inputs."""
        for name in self.networks.keys() & new.networks.keys():
            if self.networks[name] != new.networks[name]:
                return f"the network {name} has changed; give the new one another name"
        if self.features != new.features:
            return "its features, or their scales, are others, so that eps is in other units"
        names = {key: name for name, key in self.networks.items()}
        for key in self.domains.keys() & new.domains.keys():
            was, now = self.domains[key], new.domains[key]
            if was.key() != now.key():
                return f"the domain of {names[key]} was {was}, is {now}"
        for key in self.layouts.keys() & new.layouts.keys():
            layouts = [one.layouts[key] or "not given" for one in (self, new)]
            if len(set(layouts)) > 1:
                return f"the layout of {names[key]} was {', is '.join(layouts)}"
        if self.split != new.split:
            return f"its inputs are of the split '{self.split}', not '{new.split}'"
        if self.classes and new.classes and self.classes != new.classes:
            return f"its classes were {name_list(self.classes)}, are {name_list(new.classes)}"
        is_near = any(_is_same_place(one, other) for one in self.places for other in new.places)
        is_elsewhere = bool(self.places and new.places) and not is_near
        shared = self.digests.keys() & new.digests.keys()
        if is_elsewhere and not any(self.digests[key] & new.digests[key] for key in shared):
            return f"its inputs are of {self.data}, not of {new.data}"
        return None

    def changed_inputs(self, new: JoinedFacts) -> dict[int, str]:
        """What is wrong with inputs that have another label or other values than here, by index.

        Labels and values are facts about the data, so that they are compared over all networks.
        """
        changed: dict[int, str] = {}
        for index, labels in self.labels.items():
            if (now := new.labels.get(index, labels)) != labels:
                ends = [min(one - other or one) for one, other in ((labels, now), (now, labels))]
                words = ", is ".join(map(str, ends))
                changed[index] = f"the label of input {index} of {new.data} was {words}"
        for key, digests in self.digests.items():
            index = key if isinstance(key, int) else key[1]
            if index in new.labels and new.digests.get(key, digests) != digests:
                changed[index] = f"input {index} of {new.data} is not the one that was measured"
        return dict(sorted(changed.items()))


def _collected(pairs: Iterable[tuple[Any, T]]) -> dict[Any, frozenset[T]]:
    """All values of each key."""
    collected: dict[Any, frozenset[T]] = {}
    for key, value in pairs:
        collected[key] = collected.get(key, frozenset()) | {value}
    return collected


def _is_same_place(one: str, other: str) -> bool:
    """Of data from Python no more than the name of the file may be known."""
    paths = Path(one), Path(other)
    is_known = all(path.is_absolute() for path in paths)
    return one == other or (not is_known and paths[0].name == paths[1].name)


# --- several directories in one, as if they had come from one run


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
        target = opened.enter_context(Store.create_or_open(out))
        begun = [store for store in (target, *sources) if store.experiment() is not None]
        facts = [(store, JoinedFacts.of_store(store)) for store in begun]
        for (one, known), (other, new) in combinations(facts, 2):
            changed = iter(known.changed_inputs(new).values())
            reason = known.refusal(new) or next(changed, _other_samples(one, other))
            if reason is not None:
                raise ExperimentError(f"{other.place} cannot be joined with {one.place}: {reason}")
        count = merge_stores(target, sources)
        excerpts = {each: None for part in target.parts() for each in part.excerpts}
        ends = {one.place: [step.ended_at for step in one.steps()] for one in sources}
    unfinished = [place for place, own in ends.items() if None in own or not own]
    return Merge(count, tuple(excerpts), tuple(unfinished))


def _other_samples(one: Store, other: Store) -> str | None:
    """Shards of one question must be parts of one sample."""
    known, new = _samples(one), _samples(other)
    if any(not known[question] & new[question] for question in known.keys() & new.keys()):
        return "they are shards of different samples"
    return None


def _samples(store: Store) -> dict[object, set[str | None]]:
    samples: dict[object, set[str | None]] = {}
    for settings in (step.settings for step in store.steps()):
        if settings.shard is not None:
            question = settings.property, settings.norm
            samples.setdefault(question, set()).add(settings.whole)
    return samples
