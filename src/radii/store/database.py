"""The database of one experiment. Only this module and `tables` know SQL."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

from radii.brackets import Disagreement, Measurement, Weighing, weigh
from radii.errors import StoreError
from radii.pausing import PauseFlag
from radii.queries import Instance
from radii.search import Kind, Question
from radii.store.locks import LOCK_NAME, is_taken
from radii.store.rows import (
    Answer,
    Answered,
    Record,
    Subject,
    array_of,
    instance_row,
    measurement_of,
    query_row,
    result_of,
    witness_row,
)
from radii.store.tables import MIGRATIONS, SCHEMA, SCHEMA_VERSION
from radii.verdicts import Result

__all__ = ["ENSEMBLE_FILE", "FILE_NAME", "Store"]

FILE_NAME = "radii.sqlite"
ENSEMBLE_FILE = "ensemble.sqlite"
"""What `radii ensemble --out` keeps instead."""

MEASURED = (
    "SELECT i.key, i.dtype, i.shape, i.input, n.name, n.fingerprint, i.input_index, i.label,"
    " i.predicted, i.correct, i.property, i.target FROM instances i"
    " JOIN networks n ON n.fingerprint = i.network"
)


ANSWERED = (
    "q.kind, q.eps, q.verdict, q.seconds, q.verifier, q.version, q.proof_eps, q.proof_margin,"
    " q.proof_arithmetic, q.message, q.cpu_seconds, q.added_seconds, q.allowed_seconds,"
    " w.distance, w.predicted"
)
WITNESS = "w.dtype, w.shape, w.input, w.outputs, w.replayed_on"
WITNESS_WITHOUT_INPUT = "'float32', '[0]', x'', w.outputs, w.replayed_on"
ANSWERS = "FROM queries q LEFT JOIN witnesses w ON w.query = q.id"


class Store:
    """The results of one experiment. Use as a context manager."""

    def __init__(self, connection: sqlite3.Connection, place: str, lock: IO[str] | None) -> None:
        self._db = connection
        self._place = place
        self._lock = lock
        self._unused: list[Path] = []  # made for an experiment that has not begun

    @classmethod
    def create_or_open(cls, directory: Path) -> Self:
        """Open for writing; makes the directory and the file where they are missing.

        What it made is removed again if no experiment begins, as when a cluster does not answer.
        """
        made = [place for place in (directory, *directory.parents) if not place.exists()]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = (directory / LOCK_NAME).open("w")
        except OSError as error:
            raise StoreError(f"{directory}: cannot be written ({error.strerror})") from None
        if not is_taken(lock):
            lock.close()
            raise StoreError(f"{directory}: another run is writing here; wait or stop it")
        is_new = not (directory / FILE_NAME).exists()
        store = cls._connect(str(directory / FILE_NAME), str(directory), lock)
        if is_new:
            store._unused = [directory / FILE_NAME, directory / LOCK_NAME, *made]
        return store

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open for reading; the store must exist. Safe while a run writes."""
        path = directory / FILE_NAME
        if not directory.exists():
            raise StoreError(
                f"{directory}: no radii experiment is here: there is no such directory"
            )
        if not path.is_file() and (directory / ENSEMBLE_FILE).is_file():
            raise StoreError(
                f"{directory}: holds an ensemble, not a run; radii report {directory} shows it"
            )
        if not path.is_file():
            raise StoreError(f"{directory}: no radii experiment is here ({FILE_NAME} is missing)")
        return cls._connect(f"{path.resolve().as_uri()}?mode=ro", str(directory), None)

    @classmethod
    def in_memory(cls) -> Self:
        """A store that is gone when it is closed."""
        return cls._connect(":memory:", "memory", None)

    @classmethod
    def _connect(cls, address: str, place: str, lock: IO[str] | None) -> Self:
        with _explained(place):
            connection = sqlite3.connect(address, uri=address.startswith("file:"), timeout=30)
            store = cls(connection, place, lock)
            try:
                store._prepare(is_writable=not address.endswith("mode=ro"))
            except BaseException:
                store.close()
                raise
        return store

    def _prepare(self, *, is_writable: bool) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        is_empty = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if is_writable:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # a reported result survives a power cut
        if is_empty and is_writable:
            script = f"BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            self._db.executescript(script)
        elif version in MIGRATIONS:
            if not is_writable:
                self._read_a_copy()
            self._migrate(version)
        elif version != SCHEMA_VERSION:
            raise StoreError(
                f"{self._place}: its store has version {version}, this radii reads up to version "
                f"{SCHEMA_VERSION}; use the radii that wrote it, or another directory"
            )

    def _read_a_copy(self) -> None:
        """Go on with a copy in memory, which can be migrated where the file must not be."""
        copy = sqlite3.connect(":memory:")
        self._db.backup(copy)
        self._db.close()
        self._db = copy

    def _migrate(self, version: int) -> None:
        steps = "".join(MIGRATIONS[step] for step in range(version, SCHEMA_VERSION))
        script = f"BEGIN; {steps} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        self._db.executescript(script)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()
        for place in self._unused:
            with suppress(OSError):  # others have put something there
                place.rmdir() if place.is_dir() else place.unlink()
        self._unused.clear()
        if self._lock is not None:
            self._lock.close()

    @property
    def pause_flag(self) -> PauseFlag | None:
        """How the run that writes it is asked to pause; None without a directory."""
        return None if self._lock is None else PauseFlag(Path(self._lock.name).parent)

    # --- the experiment and its instances

    def experiment(self) -> dict[str, Any] | None:
        """The description the store was made for; None while it is new."""
        with _explained(self._place):
            row = self._db.execute("SELECT value FROM meta WHERE name = 'experiment'").fetchone()
        return None if row is None else json.loads(row[0])

    def begin(
        self,
        experiment: Mapping[str, Any],
        networks: Mapping[str, tuple[str, str]],
        instances: Sequence[Instance],
    ) -> None:
        """Write down what will be measured, all or nothing; `networks` maps to (name, path)."""
        with _explained(self._place), self._db:
            self._db.execute("INSERT INTO meta VALUES ('experiment', ?)", (json.dumps(experiment),))
            self._db.executemany(
                "INSERT INTO networks VALUES (?, ?, ?)",
                [(fingerprint, *described) for fingerprint, described in networks.items()],
            )
            self._db.executemany(
                f"INSERT INTO instances VALUES ({', '.join('?' * 14)})",
                [instance_row(place, instance) for place, instance in enumerate(instances)],
            )
        self._unused.clear()

    def instance_keys(self) -> list[str]:
        """The keys of all instances, in the order of the selection."""
        with _explained(self._place):
            rows = self._db.execute("SELECT key FROM instances ORDER BY position").fetchall()
        return [row[0] for row in rows]

    def networks(self) -> dict[str, tuple[str, str]]:
        """Name and file of each network, by fingerprint."""
        with _explained(self._place):
            rows = self._db.execute("SELECT fingerprint, name, path FROM networks").fetchall()
        return {fingerprint: (name, path) for fingerprint, name, path in rows}

    # --- results

    def record(self, answers: Sequence[tuple[str, Question, Result]]) -> None:
        """Write results by instance key, all or nothing; they are on disk when this returns."""
        with _explained(self._place), self._db:
            for key, question, result in answers:
                self._insert_result(key, question, result)
            for key in dict.fromkeys(key for key, _, _ in answers):
                bracket = self._weighed(key).bracket
                self._db.execute(
                    "INSERT OR REPLACE INTO brackets VALUES (?, ?, ?)",
                    (key, bracket.lower, bracket.upper),
                )

    def _insert_result(self, key: str, question: Question, result: Result) -> None:
        cursor = self._db.execute(
            "INSERT INTO queries (instance, kind, eps, verdict, seconds, verifier, version,"
            " proof_eps, proof_margin, proof_arithmetic, message, cpu_seconds, added_seconds,"
            f" allowed_seconds) VALUES ({', '.join('?' * 14)})",
            query_row(key, question, result),
        )
        if result.witness is not None:
            self._db.execute(
                f"INSERT INTO witnesses VALUES ({', '.join('?' * 8)})",
                witness_row(cursor.lastrowid, result.witness),
            )

    def results(self, keys: Sequence[str] | None = None) -> dict[str, list[Answered]]:
        """What was answered, by instance key, in the order in which it was reported."""
        query = f"SELECT q.instance, {ANSWERED}, {WITNESS} {ANSWERS}"
        if keys is not None:
            query += f" WHERE q.instance IN ({', '.join('?' * len(keys))})"
        return self._answered(query, keys or ())

    def _answered(self, query: str, values: Sequence[str] = ()) -> dict[str, list[Answered]]:
        answered: dict[str, list[Answered]] = defaultdict(list)
        with _explained(self._place):
            for key, kind, eps, *columns in self._db.execute(f"{query} ORDER BY q.id", values):
                question = Question(Kind(kind), eps)
                answered[key].append((question, result_of(question, columns)))
        return answered

    def measurements(self) -> list[Measurement]:
        """One measurement an instance, in the order of the selection."""
        results = self._answered(
            f"SELECT q.instance, {ANSWERED}, {WITNESS_WITHOUT_INPUT} {ANSWERS}"
        )
        with _explained(self._place):
            rows = self._db.execute(
                "SELECT i.key, n.name, n.fingerprint, i.input_index, i.label, i.predicted,"
                " i.correct, i.property, i.target FROM instances i"
                " JOIN networks n ON n.fingerprint = i.network ORDER BY i.position"
            ).fetchall()
        return [measurement_of(columns, results[key]) for key, *columns in rows]

    def records(self, keys: Iterable[str] | None = None) -> Iterator[Record]:
        """One record an instance, in the order of the selection or of `keys`.

        Only one is in memory at a time: inputs and witnesses of a large experiment are gigabytes.
        """
        with _explained(self._place):
            if keys is None:
                for row in self._db.execute(f"{MEASURED} ORDER BY i.position"):
                    yield self._record(row)
                return
            for key in keys:
                yield self._record(
                    self._db.execute(f"{MEASURED} WHERE i.key = ?", (key,)).fetchone()
                )

    def _record(self, row: Sequence[Any]) -> Record:
        key, dtype, shape, data, *columns = row
        answered = tuple(self.results([key])[key])
        return Record(
            key, measurement_of(columns, answered), array_of(dtype, shape, data), answered
        )

    def subjects(self) -> Iterator[Subject]:
        """The instances, in the order of the selection, without what was asked of them."""
        with _explained(self._place):
            for row in self._db.execute(f"{MEASURED} ORDER BY i.position"):
                key, dtype, shape, data, *columns = row
                digest = hashlib.sha256(f"{dtype}{shape}".encode())
                digest.update(data)
                yield Subject(key, digest.hexdigest(), tuple(columns))

    def answers(self, *, after: int = 0) -> Iterator[Answer]:
        """What was reported after the answer of that number; inputs of witnesses are left out."""
        query = (
            f"SELECT q.id, q.instance, q.ended_at, {ANSWERED}, {WITNESS_WITHOUT_INPUT} {ANSWERS}"
            " WHERE q.id > ? ORDER BY q.id"
        )
        with _explained(self._place):
            for number, key, ended_at, kind, eps, *columns in self._db.execute(query, (after,)):
                question = Question(Kind(kind), eps)
                yield Answer(number, key, ended_at, question, result_of(question, columns))

    def first_answer_at(self) -> str:
        """When the first result was reported, in UTC; empty while there is none."""
        with _explained(self._place):
            row = self._db.execute("SELECT ended_at FROM queries ORDER BY id LIMIT 1").fetchone()
        return "" if row is None else str(row[0])

    def disagreements(self) -> list[tuple[str, int, Disagreement]]:
        """Claims of proofs that a replayed witness contradicts: network, input, and which."""
        with _explained(self._place):
            rows = self._db.execute(
                "SELECT i.key, n.name, i.input_index FROM instances i"
                " JOIN networks n ON n.fingerprint = i.network WHERE i.key IN"
                " (SELECT q.instance FROM queries q JOIN brackets b ON b.instance = q.instance"
                " WHERE q.proof_eps >= b.upper) ORDER BY i.position"
            ).fetchall()
        return [
            (network, index, disagreement)
            for key, network, index in rows
            for disagreement in self._weighed(key).disagreements
        ]

    def _weighed(self, key: str) -> Weighing:
        return weigh(result for _, result in self.results([key])[key])


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """Turn SQLite's errors (full disk, read-only, not a database) into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        with suppress(AttributeError):
            if error.sqlite_errorname == "SQLITE_NOTADB":
                raise StoreError(f"{place}: {FILE_NAME} is not a radii store") from None
        raise StoreError(f"{place}: the store cannot be used ({error})") from None
