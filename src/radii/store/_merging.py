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
from typing import Any

from radii.problem import Shard, weigh
from radii.store._database import Store
from radii.store._files import explaining_errors
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
            self._copy_facts(source)
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

    def _copy_facts(self, source: Store) -> None:
        for table in COPIED:
            names = _columns(self.db, table)
            rows = source._db.execute(f"SELECT {', '.join(names)} FROM {table}")
            self.db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({_marks(names)})", rows)

    def _copy_instances(self, source: Store) -> None:
        """At the positions that they have there if these are free, else at the end."""
        names = _columns(self.db, "instances")
        key, place = names.index("key"), names.index("position")
        taken = dict(self.db.execute("SELECT key, position FROM instances"))
        there = dict(source._db.execute("SELECT key, position FROM instances"))
        new = {one: position for one, position in there.items() if one not in taken}
        if set(new.values()) & set(taken.values()):
            ordered = sorted(new, key=new.__getitem__)
            new = dict(zip(ordered, range(max(taken.values()) + 1, 1 << 62), strict=False))
        for row in source._db.execute(f"SELECT {', '.join(names)} FROM instances"):
            if row[key] in new:
                moved = (*row[:place], new[row[key]], *row[place + 1 :])
                self.db.execute(f"INSERT INTO instances VALUES ({_marks(names)})", moved)

    def _copy_answers(self) -> None:
        """In the order in which they were reported, over all sources."""
        names = [name for name in _columns(self.db, "queries") if name not in ("id", "step")]
        witness = [name for name in _columns(self.db, "witnesses") if name != "query"]
        known = {name for name, *_ in _answers(self.db, names)}
        ended = names.index("ended_at")
        answers = heapq.merge(
            *(_placed(place, source, names) for place, source in enumerate(self.sources)),
            key=lambda answer: answer[4 + ended],
        )
        for place, name, number, step, *row in answers:
            if name in known:
                continue
            known.add(name)
            cursor = self.db.execute(
                f"INSERT INTO queries ({', '.join(names)}, step) VALUES ({_marks(names)}, ?)",
                (*row, self.steps[place][step]),
            )
            found = self.sources[place]._db.execute(
                f"SELECT {', '.join(witness)} FROM witnesses WHERE query = ?", (number,)
            )
            self.db.executemany(
                f"INSERT INTO witnesses (query, {', '.join(witness)})"
                f" VALUES ({cursor.lastrowid}, {_marks(witness)})",
                found,
            )

    def _copy_checks(self, source: Store) -> None:
        """The latest check of each statement."""
        names = _columns(self.db, "checks")
        same = ("certificate", "instance", "eps", "arithmetic")
        older = " AND ".join(f"{name} = ?" for name in same)
        for row in source._db.execute(f"SELECT {', '.join(names)} FROM checks"):
            named = dict(zip(names, row, strict=True))
            known = self.db.execute(
                f"SELECT checked_at FROM checks WHERE {older}", [named[name] for name in same]
            ).fetchone()
            if known is None or known[0] < named["checked_at"]:
                self.db.execute(f"INSERT OR REPLACE INTO checks VALUES ({_marks(names)})", row)

    def _describe(self) -> None:
        """What the store is, as if its steps had been asked for one after the other."""
        keys = [key for (key,) in self.db.execute("SELECT key FROM instances ORDER BY position")]
        described: dict[str, Any] | None = None
        for step in self.target.steps():
            described = joined_description(described, step.described, keys)
        described = {**(described or {}), "data": selection_of(keys)}
        self.db.execute(
            "INSERT OR REPLACE INTO meta VALUES ('experiment', ?)", (json.dumps(described),)
        )

    def _weigh(self) -> None:
        self.target._domains = None
        self.target._numbers.clear()
        for key, answers in self.target._answered(has_inputs=False).items():
            bracket = weigh(result for _, _, result in answers).bracket
            self.db.execute(
                "INSERT OR REPLACE INTO brackets VALUES (?, ?, ?)",
                (key, bracket.lower, bracket.upper),
            )


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" * len(names))


def _placed(place: int, source: Store, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return ((place, *answer) for answer in _answers(source._db, names))


def _answers(db: sqlite3.Connection, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Every answer by its name, its number and step, and these columns; the earliest first.

    Its name is a digest of these columns, and of how many like it came before.
    """
    seen: Counter[bytes] = Counter()
    query = f"SELECT id, step, {', '.join(names)} FROM queries ORDER BY ended_at, id"
    for number, step, *row in db.execute(query):
        digest = hashlib.sha256(repr(row).encode()).digest()
        seen[digest] += 1
        yield (digest, seen[digest]), number, step, *row


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
    cursor = target._db.execute(
        "INSERT INTO steps (asked_at, described, summary) VALUES (?, ?, ?)",
        (step.asked_at, json.dumps(step.described), step.summary),
    )
    return int(cursor.lastrowid or 0)


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
