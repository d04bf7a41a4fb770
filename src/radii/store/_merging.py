"""Several stores become one: what each holds, once.

Rows are taken over as they are. An instance is known by its key, a certificate by its hash, and an
answer by everything that is stored about it, its time included: so what two stores share, or what
was taken over before, is not added again. It is one transaction: a merge that is killed has not
happened.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from radii.problem import Shard
from radii.store._database import Store
from radii.store._files import explaining_errors, insert
from radii.store._integrity import selection_of
from radii.store._steps import StudyStep, joined_description

COPIED = ("networks", "inputs", "certificates")
"""Tables whose rows are facts: one that is there stays."""

MERGED = ("steps", "step_instances", "instances", "queries", "witnesses", "checks")
"""Tables whose rows refer to others, or replace older ones."""

DERIVED = ("meta", "brackets")
"""Tables that follow from the others."""

OF_A_SHARD = ("data", "shard", "whole")
"""What differs between the shards of one run."""

OF_A_PLACE = ("source", "sources")
"""What differs where the same is run from another folder."""


@dataclass(frozen=True, slots=True)
class MergeCount:
    """Instances and answers that a store holds after a merge, and how many of them are new."""

    instances: int
    new_instances: int
    answers: int
    new_answers: int


def merge_stores(target: Store, sources: Sequence[Store]) -> MergeCount:
    """Take over what sources hold, all or nothing. They must be about the same networks and inputs,
    as far as these are called the same."""
    with ExitStack() as snapshots:
        for source in sources:
            snapshots.enter_context(source._snapshot())
            source.all_records()  # a StoreError where something is damaged
        with explaining_errors(target._place), target._db:
            return _Merge(target, sources).run()


class _Merge:
    def __init__(self, target: Store, sources: Sequence[Store]) -> None:
        self.target, self.sources = target, sources
        self.db = target._db
        self.steps: list[dict[int, int]] = []

    def run(self) -> MergeCount:
        before = self._count()
        for source in self.sources:
            for table in COPIED:
                for row in source._db.execute(f"SELECT * FROM {table}"):
                    insert(self.db, table, dict(row), "INSERT OR IGNORE")
            self._copy_instances(source)
        self.steps = _joined_steps(self.target, self.sources)
        self._copy_answers()
        for source in self.sources:
            self._copy_checks(source)
        self._describe()
        self._weigh()
        after = self._count()
        self.target._unused.clear()
        self.target._domains = None
        self.target._numbers.clear()
        return MergeCount(after[0], after[0] - before[0], after[1], after[1] - before[1])

    def _count(self) -> tuple[int, int]:
        counts = "SELECT (SELECT count(*) FROM instances), (SELECT count(*) FROM queries)"
        instances, answers = self.db.execute(counts).fetchone()
        return instances, answers

    def _copy_instances(self, source: Store) -> None:
        """At the positions that they have there if these are free, else at the end."""
        taken = dict(self.db.execute("SELECT key, position FROM instances"))
        there = dict(source._db.execute("SELECT key, position FROM instances ORDER BY position"))
        new = {key: position for key, position in there.items() if key not in taken}
        if set(new.values()) & set(taken.values()):
            first = max(taken.values()) + 1
            new = {key: place for place, key in enumerate(new, first)}
        for row in source._db.execute("SELECT * FROM instances"):
            if row["key"] in new:
                insert(self.db, "instances", {**dict(row), "position": new[row["key"]]})

    def _copy_answers(self) -> None:
        """In the order in which they were reported, over all sources."""
        known = {name for name, _, _ in _answers(self.db)}
        answers = heapq.merge(
            *(zip(repeat(place), _answers(one._db)) for place, one in enumerate(self.sources)),
            key=lambda answer: answer[1][2]["ended_at"],
        )
        for place, (name, (number, step), columns) in answers:
            if name in known:
                continue
            known.add(name)
            copy = insert(self.db, "queries", {**columns, "step": self.steps[place][step]})
            witness = "SELECT * FROM witnesses WHERE query = ?"
            for row in self.sources[place]._db.execute(witness, (number,)):
                insert(self.db, "witnesses", {**dict(row), "query": copy})

    def _copy_checks(self, source: Store) -> None:
        """The latest check of each statement."""
        same = ("certificate", "instance", "eps", "arithmetic")
        older = " AND ".join(f"{name} = ?" for name in same)
        for row in source._db.execute("SELECT * FROM checks"):
            known = self.db.execute(
                f"SELECT checked_at FROM checks WHERE {older}", [row[name] for name in same]
            ).fetchone()
            if known is None or known["checked_at"] < row["checked_at"]:
                insert(self.db, "checks", dict(row), "INSERT OR REPLACE")

    def _describe(self) -> None:
        """What the store is, as if its steps had been asked for one after the other."""
        keys = [key for (key,) in self.db.execute("SELECT key FROM instances ORDER BY position")]
        described: dict[str, Any] | None = None
        for step in self.target.steps():
            described = joined_description(described, step.described, keys)
        self.target._describe({**(described or {}), "data": selection_of(keys)})

    def _weigh(self) -> None:
        self.target._domains = None
        self.target._numbers.clear()
        for key, answers in self.target._answered(has_inputs=False).items():
            self.target._weigh(key, answers)


def _answers(
    db: sqlite3.Connection,
) -> Iterator[tuple[tuple[bytes, int], tuple[int, int], dict[str, Any]]]:
    """Every answer by its name, with its number and step, and its other columns; the earliest
    first.

    Its name is a digest of these columns, and of how many like it came before.
    """
    seen: Counter[bytes] = Counter()
    for row in db.execute("SELECT * FROM queries ORDER BY ended_at, id"):
        columns = dict(sorted(dict(row).items()))  # migrated stores have another order
        origin = columns.pop("id"), columns.pop("step")
        digest = hashlib.sha256(repr(columns).encode()).digest()
        seen[digest] += 1
        yield (digest, seen[digest]), origin, columns


# --- steps


def _joined_steps(target: Store, sources: Sequence[Store]) -> list[dict[int, int]]:
    """For each source, which step of the target each of its steps has become.

    Shards of one run become one step; so does what is there already.
    """
    known: dict[tuple[str, int], int] = {}
    seen: Counter[str] = Counter()
    for step in target.steps():
        name = _names(step)[-1]
        seen[name] += 1
        known[name, seen[name]] = step.number
    mapped = []
    joined: dict[int, list[StudyStep]] = defaultdict(list)
    for source in sources:
        own: Counter[str] = Counter()
        numbers = {}
        for step in source.steps():
            names = _names(step)
            own[names[-1]] += 1
            place = own[names[-1]]
            there = [known[name, place] for name in names if (name, place) in known]
            number = there[0] if there else _begun(target, step)
            known.setdefault((names[-1], place), number)
            numbers[step.number] = number
            joined[number].append(step)
            target._db.executemany(
                "INSERT OR IGNORE INTO step_instances VALUES (?, ?)",
                [(number, key) for key in source.step_keys([step.number])],
            )
        mapped.append(numbers)
    for number, steps in joined.items():
        _settle(target, number, steps)
    return mapped


def _names(step: StudyStep) -> list[str]:
    """By which a step is found where it asks the same, the last its own: of a shard, that of the
    whole, and that of all shards of this size."""
    rest = {
        name: value
        for name, value in step.described.items()
        if name not in (*OF_A_SHARD, *OF_A_PLACE)
    }
    shard = step.settings.shard
    whole = json.dumps([step.described.get("whole" if shard else "data"), rest], sort_keys=True)
    return [whole] if shard is None else [whole, f"{shard.count} {whole}"]


def _begun(target: Store, step: StudyStep) -> int:
    described = json.dumps(step.described)
    columns = {"asked_at": step.asked_at, "described": described, "summary": step.summary}
    return insert(target._db, "steps", columns)


def _settle(target: Store, number: int, steps: Sequence[StudyStep]) -> None:
    """Describe a step by all that it was joined of: which shards, since when, and whether the end
    of each was reached."""
    known = next(step for step in target.steps() if step.number == number)
    shard = _joined_shard([known, *steps])
    described, keys = dict(known.described), _keys_of_step(target, number)
    if shard is None:
        described.pop("whole", None)
    described.update(data=selection_of(keys), shard=None if shard is None else str(shard))
    ends = [step.ended_at for step in steps]
    has_all = _joined_shard(steps) == shard or known.ended_at is not None
    times = [each for each in (known.ended_at, *ends) if each is not None]
    target._db.execute(
        "UPDATE steps SET asked_at = ?, ended_at = ?, described = ?, summary = ? WHERE id = ?",
        (
            min(step.asked_at for step in (known, *steps)),
            max(times) if has_all and None not in ends else None,
            json.dumps(described),
            _summary(target, known, keys),
            number,
        ),
    )


def _joined_shard(steps: Sequence[StudyStep]) -> Shard | None:
    """All shards together; None where they are the whole."""
    shards = [step.settings.shard for step in steps]
    own = [shard for shard in shards if shard is not None]
    if len(own) < len(shards):
        return None
    joined = Shard(tuple(number for shard in own for number in shard.numbers), own[0].count)
    return None if joined.is_whole else joined


def _keys_of_step(target: Store, number: int) -> list[str]:
    own = "SELECT key FROM instances JOIN step_instances ON instance = key WHERE step = ?"
    return [key for (key,) in target._db.execute(f"{own} ORDER BY position", (number,))]


def _summary(target: Store, step: StudyStep, keys: Sequence[str]) -> str:
    """As a step of all these instances begins: with the number of its inputs."""
    if step.settings.shard is None:
        return step.summary
    places = dict(target._db.execute("SELECT key, input_index FROM instances"))
    count = len({places[key] for key in keys})
    inputs = rf"{count} \g<1>input{'' if count == 1 else 's'}"
    return re.sub(r"^\d+ (more )?inputs?\b", inputs, step.summary)
