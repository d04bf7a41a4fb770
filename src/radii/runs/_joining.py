"""What may join a store: which networks, inputs and labels, and why others may not.

What would silently become another question is refused before any work starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from radii.datasets import Spec, are_words, dataset_names, find_published, name_list
from radii.errors import ExperimentError, InputError
from radii.store import Store, input_digest

if TYPE_CHECKING:
    from radii.runs._plan import Plan


def joining_inputs(plan: Plan, store: Store, *, replace_changed: bool) -> dict[int, str]:
    """The inputs of a plan that are to replace those of the store, and what has changed about each.

    An ExperimentError says why the plan cannot join the store, also where inputs have changed and
    nobody asked to replace them.
    """
    if store.experiment() is None:
        return {}
    if (reason := refusal(plan, store)) is not None:
        raise ExperimentError(f"{store.place}: {reason}; choose another --out")
    changed = changed_inputs(plan, store)
    if changed and not replace_changed:
        raise ExperimentError(f"{store.place}: {_changes_text(changed)}")
    if changed and (reason := _refused_replacement(plan, store, changed)) is not None:
        raise ExperimentError(f"{store.place}: {reason}")
    return changed


def _refused_replacement(plan: Plan, store: Store, changed: Collection[int]) -> str | None:
    """Why inputs cannot be replaced: what else is known about them would be lost."""
    networks = {one.fingerprint for one in plan.networks}
    question = (plan.identity()["property"], plan.settings.norm)
    lost = {r.key: r for r in store.unanswered_records() if r.facts.input in changed}
    for step in store.steps():
        own = store.step_keys([step.number]) & lost.keys()
        if own and (step.settings.property, step.settings.norm) != question:
            return (
                "inputs that have changed were also asked another question, which --replace would "
                f"leave without them ({step.settings.property}, {step.settings.norm}); choose "
                "another --out"
            )
    for record in lost.values():
        if record.facts.fingerprint not in networks:
            return (
                f"inputs that have changed were also given to {record.facts.network}: replace them "
                f"for all networks together, with radii run {store.place} --replace"
            )
    return None


def refusal(plan: Plan, store: Store) -> str | None:
    """Why what is asked for cannot be kept beside what is in the store; None if it can."""
    known, shard = store.experiment() or {}, plan.settings.shard
    if shard is not None and known.get("shard") != str(shard):
        stored = "all shards" if known.get("shard") is None else f"shard {known['shard']}"
        return f"it holds {stored}, and shard {shard} belongs in a directory of its own"
    if (reason := _refused_networks(plan, store, known.get("networks") or {})) is not None:
        return reason
    if known.get("features") != plan.identity().get("features"):
        return "its features, or their scales, are others, so that eps is in other units"
    if (known.get("split") or "") != plan.split:
        return f"its inputs are of the split '{known.get('split') or ''}', not '{plan.split}'"
    classes, own = store.settings().class_names, plan.class_names
    if classes and are_words(own) and own != classes:
        return f"its classes were {name_list(classes)}, are {name_list(own)}"
    return _refused_inputs(plan, store)


def _refused_networks(plan: Plan, store: Store, names: Mapping[str, str]) -> str | None:
    domains, feeding = store.settings().domain_of_network(), store.feeding()
    given = dict(zip((one.fingerprint for one in plan.networks), plan.feeding, strict=False))
    for network in plan.networks:
        key, name = network.fingerprint, network.name
        if names.get(name, key) != key:
            return f"the network {name} has changed; give the new one another name"
        domain = domains.get(key, network.domain)
        if domain.key() != network.domain.key():
            return f"the domain of {name} was {domain}, is {network.domain}"
        was, now = feeding.get(key), given.get(key)
        if was and now and was.get("layout") != now.get("layout"):
            layouts = (one.get("layout") or "not given" for one in (was, now))
            return f"the layout of {name} was {', is '.join(layouts)}"
    return None


def _refused_inputs(plan: Plan, store: Store) -> str | None:
    sources = {name: place for step in store.steps() for name, place in step.sources.items()}
    places = {location_of(place) for place in sources.values()}
    own = {location_of(place) for place in (plan.sources or {plan.data: plan.data}).values()}
    if not places or any(_is_same_place(one, other) for one in places for other in own):
        return None
    known = set(store.instance_keys())
    if any(one.key in known for one in plan.instances):
        return None
    return f"its inputs are of {' and '.join(sources)}, not of {plan.data}"


def _is_same_place(one: str, other: str) -> bool:
    """Of data from Python no more than the name of the file may be known."""
    paths = Path(one), Path(other)
    is_known = all(path.is_absolute() for path in paths)
    return one == other or (not is_known and paths[0].name == paths[1].name)


def changed_inputs(plan: Plan, store: Store) -> dict[int, str]:
    """What is wrong with the inputs of a plan that the store has with another label or other
    values, by index.

    Labels and values are facts about the data, so that they are compared over all networks.
    """
    now = {one.index: one.label for one in plan.instances}
    received = {(one.network, one.index): one for one in plan.instances}
    digests = store.input_digests()
    changed: dict[int, str] = {}
    for record in store.unanswered_records():
        index, was = record.facts.input, record.facts.label
        if index not in now:
            continue
        same = received.get((record.facts.fingerprint, index))
        given = plan.inputs.get(index)
        is_other = given is not None and digests.get(index, given) != given
        if is_other or (same is not None and input_digest(same.input) != record.digest):
            changed[index] = f"input {index} of {plan.data} is not the one that was measured"
        elif was != now[index]:
            text = f"the label of input {index} of {plan.data} was {was}, is {now[index]}"
            changed.setdefault(index, text)
    return changed


def _changes_text(changed: Mapping[int, str]) -> str:
    first, others = next(iter(changed.values())), len(changed) - 1
    inputs = "input" if others == 1 else "inputs"
    more = f", and {others} other {inputs} changed as well" if others else ""
    whose = "them" if others else "it"
    return f"{first}{more}; choose another --out, or --replace what is stored about {whose}"


def location_of(source: str) -> str:
    """The same for all selections of one data set."""
    try:
        location = Spec.parse(source).location
    except InputError:
        return source
    published = find_published(location)
    name = published.name if published else location.lower()
    return name if name in map(str.lower, dataset_names()) else location


def absolute_source(source: str) -> str:
    """The text that names the same inputs from any folder."""
    location = Spec.parse(source).location
    path = Path(location).expanduser()
    if location.lower() in map(str.lower, dataset_names()) or not path.exists():
        return source
    return source.strip().replace(location, str(path.resolve()), 1)
