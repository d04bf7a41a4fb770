"""How a study grows: the step that a plan begins or goes on with, and what may join a store.

A step of a study asks for more inputs, more networks, another grid, property, norm or arithmetic,
or for more time. What would silently become another question is refused before any work starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from radii.datasets import are_words
from radii.errors import ExperimentError
from radii.problem import Arithmetic, Grid
from radii.runs._data_terms import SALTED_DRAW, DataTerms
from radii.runs._fields import differences
from radii.runs._joining import JoinedFacts
from radii.runs._knowledge import Retry
from radii.store import Store, StudyStep

if TYPE_CHECKING:
    from radii.runs._plan import Plan

PART_FIELDS = ("property", "norm", "arithmetic")


def same_step(plan: Plan, store: Store, *, retry: Retry | None, is_grown: bool) -> StudyStep | None:
    """The step that this plan goes on with; None if it asks for something else.

    Where the store may not grow it is all of a step that is all of the store.
    """
    identity, keys = plan.identity(), {one.key for one in plan.instances}
    steps = store.steps()
    latest = next(reversed(_same_part(steps, identity)), None)
    if latest is None or _setting_changes(latest.described, identity):
        return None
    own = store.step_keys([latest.number])
    if not (keys <= own if is_grown else keys == own and len(steps) == 1):
        return None
    changed = JoinedFacts.of_store(store).changed_inputs(JoinedFacts.of_plan(plan))
    if changed:  # the store has their former labels as well
        return None
    if retry is None:
        return latest
    is_under_way = latest.described.get("retry") == retry and latest.ended_at is None
    return latest if is_under_way else None


def _same_part(steps: Iterable[StudyStep], identity: Mapping[str, Any]) -> list[StudyStep]:
    """The steps of the part that a plan is of, in order."""
    own = [identity[name] for name in PART_FIELDS]
    return [step for step in steps if [step.described.get(n) for n in PART_FIELDS] == own]


def other_arithmetics(plan: Plan, store: Store) -> list[str]:
    """In which a store has proofs of the plan's question, if it has none in the plan's own."""
    identity = plan.identity()
    same = [
        step.described.get("arithmetic")
        for step in store.steps()
        if all(step.described.get(n) == identity[n] for n in ("property", "norm"))
    ]
    proven = [text for text in same if text]
    is_new = identity["arithmetic"] is not None and identity["arithmetic"] not in proven
    return proven if is_new else []


def _setting_changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    apart = ("networks", "domain", "data", "whole")
    return differences(was, {name: now[name] for name in now if name not in apart})


@dataclass(frozen=True, slots=True)
class NewStep:
    """What a store keeps of a step that begins, and what that adds to the others, in words.

    `replaced` are the inputs about which everything that is stored is dropped.
    """

    described: Mapping[str, Any]
    summary: str
    replaced: tuple[int, ...] = ()


def new_step(plan: Plan, store: Store, retry: Retry | None, *, replace_changed: bool) -> NewStep:
    """The step that begins with a plan; an ExperimentError says why it cannot join the others.

    With `replace_changed`, inputs that have another label or other values than when they were
    measured are measured anew; otherwise they are refused.
    """
    changed = joining_inputs(plan, store, replace_changed=replace_changed)
    described, words = _described(plan, store, retry)
    if changed:
        words.append(f"{_count(len(changed), 'changed input')} measured anew")
    return NewStep(described, "; ".join(words) or UNCHANGED, tuple(changed))


UNCHANGED = "the latest settings for more of it"
"""The summary of a step that adds nothing else."""


def _described(plan: Plan, store: Store, retry: Retry | None) -> tuple[dict[str, Any], list[str]]:
    identity, steps = plan.identity(), store.steps()
    part = _same_part(steps, identity)
    latest = part[-1] if part else None
    indices = {one.index for one in plan.instances}
    known: dict[str, set[int]] = {}
    asked = store.step_keys(step.number for step in part)
    for record in store.unanswered_records() if steps else ():
        if record.key in asked:
            known.setdefault(record.facts.fingerprint, set()).add(record.facts.input)
    inputs: set[int] = set().union(*known.values())
    sources = dict(plan.sources or {plan.data: plan.data})
    if latest is not None and not inputs <= indices:
        sources = {**latest.sources, **sources}
    terms = DataTerms.of(store)
    classes = plan.class_names or terms.classes
    has_names = bool(plan.feature_names) and plan.settings.features is None
    described = {
        **identity,
        "source": " and ".join(sources),
        "sources": sources,
        "split": plan.split,
        **({"feature_names": list(plan.feature_names)} if has_names else {}),
        **({"class_names": list(classes)} if are_words(classes) else {}),
        **({"draw": SALTED_DRAW} if terms.is_salted else {}),
        **({"retry": retry.value} if retry else {}),
    }
    if not steps:
        return described, [_first_summary(plan)]
    words = [] if latest else _new_part_words(plan, steps, identity)
    if latest:
        more = len(indices - inputs)
        words = [f"{_count(more, 'more input')} of {plan.data}"] if more else []
        new = [network.name for network in plan.networks if network.fingerprint not in known]
        words += [f"the network {name} is new" for name in new]
    before = (latest or steps[-1]).described
    changed = {name: now for name, now in identity.items() if latest or name not in PART_FIELDS}
    words += _setting_changes(_worded(before), _worded(changed))
    words += [f"{retry} are asked again"] if retry else []
    return described, words


def _worded(described: Mapping[str, Any]) -> dict[str, Any]:
    """With a grid of one value as people ask for it: eps 0.1."""
    text = described.get("grid")
    values = Grid.parse(text).values if isinstance(text, str) else ()
    return {**described, "grid": f"eps {values[0]:g}"} if len(values) == 1 else dict(described)


def _first_summary(plan: Plan) -> str:
    inputs = len({one.index for one in plan.instances})
    names = ", ".join(network.name for network in plan.networks)
    return f"{_count(inputs, 'input')} of {plan.data} on {names}"


def _new_part_words(
    plan: Plan, steps: Sequence[StudyStep], identity: Mapping[str, Any]
) -> list[str]:
    """As in: norm l2 beside linf."""
    beside = []
    for name in PART_FIELDS:
        others = dict.fromkeys(step.described.get(name) for step in steps)
        if identity[name] not in others:
            beside.append(f"{name} {identity[name]} beside {' and '.join(map(str, others))}")
    return [*(beside or ["another question"]), _first_summary(plan)]


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


# --- what may join a store


def joining_inputs(plan: Plan, store: Store, *, replace_changed: bool) -> dict[int, str]:
    """The inputs of a plan that are to replace those of the store, and what has changed about each.

    An ExperimentError says why the plan cannot join the store, also where inputs have changed and
    `replace_changed` was not given.
    """
    if store.experiment() is None:
        return {}
    known, new = JoinedFacts.of_store(store), JoinedFacts.of_plan(plan)
    reason = _refused_shard(plan, store) or known.refusal(new)
    if reason is not None:
        raise ExperimentError(f"{store.place}: {reason}; choose another --out")
    changed = known.changed_inputs(new)
    if changed and not replace_changed:
        raise ExperimentError(f"{store.place}: {_changes_text(changed)}")
    if changed and (reason := _refused_replacement(plan, store, changed)) is not None:
        raise ExperimentError(f"{store.place}: {reason}")
    return changed


def _refused_shard(plan: Plan, store: Store) -> str | None:
    """Why a shard cannot be kept beside what is there: each has a directory of its own."""
    known, shard = (store.experiment() or {}).get("shard"), plan.settings.shard
    if shard is None or known == str(shard):
        return None
    stored = "all shards" if known is None else f"shard {known}"
    return f"it holds {stored}, and shard {shard} belongs in a directory of its own"


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


def _changes_text(changed: Mapping[int, str]) -> str:
    first, others = next(iter(changed.values())), len(changed) - 1
    inputs = "input" if others == 1 else "inputs"
    more = f", and {others} other {inputs} changed as well" if others else ""
    whose = "them" if others else "it"
    return f"{first}{more}; choose another --out, or --replace what is stored about {whose}"


# --- where a directory may not grow


def _changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """How two experiments differ, in words."""
    old, new = was.get("networks") or {}, now["networks"]
    changes = [
        f"the network {name} has changed" for name in new if old.get(name, new[name]) != new[name]
    ]
    changes += [f"the network {name} is new" for name in new if name not in old]
    changes += [f"the network {name} is left out" for name in old if name not in new]
    changes += _setting_changes(was, now)
    domain, other = (" and ".join(dict.fromkeys(each["domain"])) for each in (was, now))
    changes += differences({"domain": domain}, {"domain": other})
    return changes or ["other inputs"]  # every other change alters the instances, too


def other_experiment(was: Mapping[str, Any], plan: Plan) -> str:
    """Why a directory is not gone on with. Proofs in two arithmetics are never mixed unasked."""
    changes = _changes(was, plan.identity())
    old, new = was.get("arithmetic"), plan.identity()["arithmetic"]
    if len(changes) == 1 and old and new and old != new:
        return arithmetic_refusal(old, new)
    return f"this directory holds another experiment ({'; '.join(changes)}); choose another --out"


def arithmetic_refusal(old: str, new: str) -> str:
    """Why proofs in another arithmetic than those that are there are not begun unasked."""
    old_scope, new_scope = (Arithmetic.parse(text).scope for text in (old, new))
    return (
        f"the proofs in this directory hold {old_scope}: go on with --arithmetic {old}, or "
        f"choose --arithmetic {new} or another --out for proofs {new_scope}"
    )
