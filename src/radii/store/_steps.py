"""A study grows in steps: what a store was asked for each time, and the parts that came of it.

`StoredSettings` is what a step was asked with, as a typed record.

Evidence is a fact about an instance, whoever asked for it, on whatever grid and within whatever
limits: all of it counts. What must not be mixed are questions. So brackets of one property, in one
norm, proven in one arithmetic, are a part, and a distribution is made of one part.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from sqlite3 import Row
from typing import Any, Self

import numpy as np

from radii.problem import Arithmetic, Domain, Features, Grid, Norm, Result, Shard
from radii.store._integrity import selection_of
from radii.store._rows import AnsweredQuestion, without_proof
from radii.strategy import Question

StepAnswer = tuple[int, Question, Result]
"""The number of the step in which it was asked, the question, and the answer."""


# --- what a step was asked with, read from JSON


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _texts_by_name(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not a mapping")
    return {_text(name): _text(text) for name, text in value.items()}


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return tuple(map(_text, value))


def _features(value: object) -> Features:
    try:
        return Features.from_json(value)  # type: ignore[arg-type]
    except (TypeError, KeyError, AttributeError):
        raise ValueError(f"{value!r} are no features") from None


def _read_by(read: Callable[[Any], Any], key: str = "") -> dict[str, Any]:
    """The metadata of a field: how it is read, and its key in JSON where that is another name."""
    return {"read": read, "key": key}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSettings:
    """How a run was measured, as its store describes it; None where it does not say.

    `source` is the text that names the inputs, `split` train or test. `networks` maps names to
    fingerprints, `domains` are the keys of their input domains in the same order, and `selection`
    is a digest of the instances. `features` say how far each value moves; `feature_names` are those
    of the data where nothing else is known of them; `class_names` are the data's words for labels
    0, 1, .... Times are in seconds. Of a shard, `whole` is the digest of the selection of which it
    is a part. Stores of older versions lack some fields; what a newer version has added is left
    out.
    """

    source: str | None = field(default=None, metadata=_read_by(_text))
    split: str | None = field(default=None, metadata=_read_by(_text))
    property: str | None = field(default=None, metadata=_read_by(_text))
    norm: Norm | None = field(default=None, metadata=_read_by(Norm))
    grid: Grid | None = field(default=None, metadata=_read_by(lambda v: Grid.parse(_text(v))))
    search: str | None = field(default=None, metadata=_read_by(_text))
    verifier: str | None = field(default=None, metadata=_read_by(_text))
    attack: str | None = field(default=None, metadata=_read_by(_text))
    arithmetic: Arithmetic | None = field(
        default=None, metadata=_read_by(lambda v: Arithmetic.parse(_text(v)))
    )
    k: int | None = field(default=None, metadata=_read_by(_whole))
    cuts: str | None = field(default=None, metadata=_read_by(_text))
    timeout: float | None = field(default=None, metadata=_read_by(_number))
    budget: float | None = field(default=None, metadata=_read_by(_number))
    seed: int | None = field(default=None, metadata=_read_by(_whole))
    networks: Mapping[str, str] = field(default_factory=dict, metadata=_read_by(_texts_by_name))
    domains: tuple[str, ...] = field(default=(), metadata=_read_by(_texts, "domain"))
    selection: str | None = field(default=None, metadata=_read_by(_text, "data"))
    features: Features | None = field(default=None, metadata=_read_by(_features))
    shard: Shard | None = field(default=None, metadata=_read_by(lambda v: Shard.parse(_text(v))))
    whole: str | None = field(default=None, metadata=_read_by(_text))
    feature_names: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))
    class_names: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """What a store holds; a ValueError or an InputError if a value cannot be one."""
        values = {}
        for each in dataclasses.fields(cls):
            value = stored.get(each.metadata["key"] or each.name)
            if value is not None:
                values[each.name] = each.metadata["read"](value)
        return cls(**values)

    def text_of(self, name: str) -> str | int | float | None:
        """A setting as JSON and tables show it."""
        value = getattr(self, name)
        return value if value is None or isinstance(value, str | int | float) else str(value)

    def class_text(self, label: int | None) -> str:
        """What the data call a class; its number where they do not say."""
        is_named = label is not None and 0 <= label < len(self.class_names)
        return self.class_names[label] if is_named and label is not None else str(label)

    def domain_of_network(self) -> dict[str, Domain]:
        """The input domain of each network, by fingerprint; none where the store has none."""
        if not self.networks or not self.domains:
            return {}
        pairs = zip(self.networks.values(), self.domains, strict=True)
        return {fingerprint: _domain(key) for fingerprint, key in pairs}


@lru_cache(maxsize=64)
def _domain(key: str) -> Domain:
    """The domain of `Domain.key`."""
    low, _, high = key.partition(":")
    return Domain(np.array(json.loads(low)), np.array(json.loads(high)))


@dataclass(frozen=True, slots=True, eq=False)
class KnownNetwork:
    """A network as a store knows it: its file, the domain of its inputs, and how they get into it.

    `domain` and `feeding` are None where older stores, or runs from Python, do not say.
    """

    fingerprint: str
    name: str
    path: str
    domain: Domain | None
    feeding: Mapping[str, Any] | None


# --- steps and parts


@dataclass(frozen=True, slots=True)
class StudyStep:
    """What was asked at one time; `summary` says in words what that added to what was there.

    Times are in UTC. `ended_at` is None while nobody has come to its end: it runs, or was stopped.
    `described` is JSON.
    """

    number: int
    asked_at: str
    ended_at: str | None
    described: Mapping[str, Any]
    summary: str

    @property
    def settings(self) -> StoredSettings:
        return StoredSettings.from_json(self.described)

    @property
    def sources(self) -> dict[str, str]:
        """The texts that name the inputs of its part as it then was: as they were given, and as
        they can be loaded from any folder."""
        source = self.described.get("source")
        return dict(self.described.get("sources") or ({source: source} if source else {}))


@dataclass(frozen=True, slots=True)
class PartChoice:
    """Which part of a study is meant; None: whichever it is."""

    property: str | None = None
    norm: Norm | None = None
    arithmetic: Arithmetic | None = None

    def admits(self, settings: StoredSettings) -> bool:
        return all(
            getattr(self, one.name) in (None, getattr(settings, one.name))
            for one in dataclasses.fields(self)
        )


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Shards of a sample of which others are not here; `whole` is the digest of the sample."""

    shard: Shard
    whole: str

    def __str__(self) -> str:
        one = "shard" if len(self.shard.numbers) == 1 else "shards"
        size = self.whole.partition(" ")[0]
        return f"{one} {self.shard.ranges} of {self.shard.count} of a sample of {size}"


def excerpts_of(steps: Sequence[StudyStep]) -> tuple[Excerpt, ...]:
    """What steps have of samples of which they do not have all."""
    shards: dict[tuple[str, int], set[int]] = {}
    complete = set()
    for step in steps:
        described = step.settings
        if described.shard is None:
            complete.add(described.selection)
        else:
            sample = described.whole or "", described.shard.count
            shards.setdefault(sample, set()).update(described.shard.numbers)
    complete |= {whole for (whole, count), numbers in shards.items() if len(numbers) == count}
    return tuple(
        Excerpt(Shard(tuple(numbers), count), whole)
        for (whole, count), numbers in shards.items()
        if whole not in complete
    )


@dataclass(frozen=True, slots=True)
class StudyPart:
    """Instances that one distribution is made of: one property, norm and arithmetic of proofs.

    `settings` are those of its latest step that proves. `numbers` are those of its steps, `ends`
    where their grids end, and `arithmetics` by number what the proofs of each step speak of.
    `excerpts` are samples of which it has some shards only.
    """

    settings: StoredSettings
    numbers: tuple[int, ...]
    ends: tuple[float, ...]
    arithmetics: Mapping[int, Arithmetic | None]
    excerpts: tuple[Excerpt, ...] = ()

    @classmethod
    def of(cls, steps: Sequence[StudyStep], all_steps: Sequence[StudyStep]) -> Self:
        """The part that these steps are, in order."""
        described = [step.settings for step in steps]
        proving = [one for one in described if one.arithmetic is not None]
        grids = dict.fromkeys(one.grid for one in described if one.grid is not None)
        return cls(
            (proving or described)[-1],
            tuple(step.number for step in steps),
            tuple(grid[len(grid) - 1] for grid in grids),
            {step.number: step.settings.arithmetic for step in all_steps},
            excerpts_of(steps),
        )

    def count(self, step: int, question: Question, result: Result) -> Result | None:
        """An answer that an instance got in some step, as it counts here; None: not at all.

        A proof counts as far as it is one in this part's arithmetic, which a stronger one is; a
        witness and an attack always do, since they speak of the network that runs.
        """
        own = self.arithmetics.get(step)
        return counted_in(self.settings.arithmetic, own, question, result)


def counted_in(
    asked: Arithmetic | None, own: Arithmetic | None, question: Question, result: Result
) -> Result | None:
    """A result as it counts where proofs are `asked` in one arithmetic, and its own step asked for
    another; None: not at all.

    What a proof itself says decides, not what its step asked for: a verifier may answer in a
    weaker arithmetic than it was asked for, as a tool of a portfolio that knows no other.
    """
    if asked is None:
        return result
    if result.proof is None:
        is_other = own is not None and own != asked and not question.kind.begins_with_attack
        return None if is_other and result.witness is None else result
    if result.proof.arithmetic.strength >= asked.strength:
        return result
    return None if result.witness is None else without_proof(result)


def counted(answers: Iterable[StepAnswer], part: StudyPart | None) -> tuple[AnsweredQuestion, ...]:
    """What counts of the answers of an instance in a part; without one, all."""
    found = []
    for step, question, result in answers:
        counts = result if part is None else part.count(step, question, result)
        if counts is not None:
            found.append((question, counts))
    return tuple(found)


def parts_of(steps: Sequence[StudyStep]) -> tuple[StudyPart, ...]:
    """The parts in the order in which they were begun.

    What was only attacked belongs to the proofs of the same question, where there are any.
    """
    groups: dict[tuple[Any, ...], list[StudyStep]] = {}
    proven = {_question(s.settings) for s in steps if s.settings.arithmetic is not None}
    for step in steps:
        settings = step.settings
        question = _question(settings)
        if settings.arithmetic is None and question in proven:
            continue
        groups.setdefault((*question, settings.arithmetic), []).append(step)
    for step in steps:
        if step.settings.arithmetic is None and _question(step.settings) in proven:
            for key, group in groups.items():
                if key[:2] == _question(step.settings):
                    group.append(step)
    ordered = (sorted(group, key=lambda step: step.number) for group in groups.values())
    return tuple(StudyPart.of(group, steps) for group in ordered)


def _question(settings: StoredSettings) -> tuple[Any, ...]:
    return settings.property, settings.norm


def joined_description(
    known: Mapping[str, Any] | None, described: Mapping[str, Any], keys: Sequence[str]
) -> dict[str, Any]:
    """What describes a store that has grown: the latest settings, all networks and instances."""
    if known is None:
        return dict(described)
    domains: dict[str, str] = {}
    names: dict[str, str] = {}
    for one in (known, described):
        pairs = zip((one.get("networks") or {}).items(), one.get("domain") or (), strict=False)
        for (name, fingerprint), domain in pairs:
            if fingerprint not in domains:
                names[name], domains[fingerprint] = fingerprint, domain
    joined = {**described, "data": selection_of(keys)}
    return {**joined, "networks": names, "domain": list(domains.values())} if domains else joined


def step_of_row(row: Row) -> StudyStep:
    """A row of `steps`; a ValueError if it is damaged."""
    described = json.loads(row["described"])
    if not isinstance(described, dict) or not isinstance(row["summary"], str):
        raise ValueError(f"what was asked at {row['asked_at']!r} is {row['described']!r}")
    return StudyStep(row["id"], str(row["asked_at"]), row["ended_at"], described, row["summary"])
