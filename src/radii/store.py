"""Where an experiment's results live: one SQLite file in its directory. Only this module knows SQL.

A result is on disk when `record` returns. The file can be read while a run writes it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from radii.brackets import Bracket, Disagreement, Measurement, weigh
from radii.errors import StoreError
from radii.pausing import PauseFlag
from radii.queries import Instance
from radii.search import Kind, Question
from radii.verdicts import Array, Proof, Result, Verdict, Witness

__all__ = [
    "FILE_NAME",
    "SCHEMA_VERSION",
    "Answer",
    "Record",
    "Store",
    "Subject",
    "written_since",
]

FILE_NAME = "radii.sqlite"
LOCK_NAME = ".lock"
LOCK_PAUSES = (0.0, 0.02, 0.1)  # seconds before each attempt
SCHEMA_VERSION = 2

SCHEMA = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE networks (
    fingerprint TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    path TEXT NOT NULL
);
CREATE TABLE instances (
    key TEXT PRIMARY KEY,
    position INTEGER NOT NULL UNIQUE,
    network TEXT NOT NULL REFERENCES networks (fingerprint),
    input_index INTEGER NOT NULL,
    label INTEGER NOT NULL,
    predicted INTEGER NOT NULL,
    correct INTEGER NOT NULL,
    property TEXT NOT NULL,
    target INTEGER,
    norm TEXT NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,
    input BLOB NOT NULL,
    outputs BLOB NOT NULL
);
CREATE TABLE queries (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL REFERENCES instances (key),
    kind TEXT NOT NULL,
    eps REAL NOT NULL,
    verdict TEXT NOT NULL,
    seconds REAL NOT NULL,
    verifier TEXT NOT NULL,
    version TEXT NOT NULL,
    proof_eps REAL,
    proof_margin REAL,
    message TEXT NOT NULL,
    ended_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    cpu_seconds REAL,  -- NULL: not measured
    added_seconds REAL  -- to the wall time of the instance; NULL: all of `seconds`
);
CREATE INDEX queries_of_instance ON queries (instance);
CREATE TABLE witnesses (
    query INTEGER PRIMARY KEY REFERENCES queries (id),
    distance REAL NOT NULL,
    predicted INTEGER NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,
    input BLOB NOT NULL,
    outputs BLOB NOT NULL,
    replayed_on TEXT NOT NULL
);
CREATE TABLE brackets (
    instance TEXT PRIMARY KEY REFERENCES instances (key),
    lower REAL NOT NULL,
    upper REAL NOT NULL  -- Infinity without a witness
);
"""

MIGRATIONS = {
    1: """
    ALTER TABLE queries ADD COLUMN cpu_seconds REAL;
    ALTER TABLE queries ADD COLUMN added_seconds REAL;
    """,
}
"""What makes a store of each older version one of the next."""

Answered = tuple[Question, Result]

MEASURED = (
    "SELECT i.key, i.dtype, i.shape, i.input, n.name, n.fingerprint, i.input_index, i.label,"
    " i.predicted, i.correct, i.property, i.target FROM instances i"
    " JOIN networks n ON n.fingerprint = i.network"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """An instance before anything was asked; `digest` is equal for equal inputs."""

    key: str
    digest: str
    columns: tuple[Any, ...]

    def measured(self, answered: Sequence[Answered]) -> Measurement:
        """Its measurement, given all its answers."""
        return _measurement(self.columns, answered)


@dataclass(frozen=True, slots=True)
class Answer:
    """A result as it was reported. Later ones have larger numbers; `ended_at` is in UTC."""

    number: int
    key: str
    ended_at: str
    question: Question
    result: Result


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Everything a store holds about one instance; `answered` in the order it was reported."""

    key: str
    measurement: Measurement
    input: Array
    answered: tuple[Answered, ...]

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """Claims of proofs that a replayed witness contradicts."""
        return weigh(result for _, result in self.answered)[1]


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
        if not _is_locked(lock):
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
                [_instance_row(place, instance) for place, instance in enumerate(instances)],
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
                bracket, _ = weigh(result for _, result in self.results([key])[key])
                self._db.execute(
                    "INSERT OR REPLACE INTO brackets VALUES (?, ?, ?)",
                    (key, bracket.lower, bracket.upper),
                )

    def _insert_result(self, key: str, question: Question, result: Result) -> None:
        proof, witness = result.proof, result.witness
        cursor = self._db.execute(
            "INSERT INTO queries (instance, kind, eps, verdict, seconds, verifier, version,"
            " proof_eps, proof_margin, message, cpu_seconds, added_seconds)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                key,
                question.kind.value,
                question.eps,
                result.verdict.value,
                result.seconds,
                result.verifier,
                result.version,
                proof.eps if proof else None,
                proof.margin if proof else None,
                result.message,
                result.cpu_seconds,
                result.added_seconds,
            ),
        )
        if witness is not None:
            self._db.execute(
                "INSERT INTO witnesses VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    cursor.lastrowid,
                    witness.distance,
                    witness.predicted,
                    *_array_columns(witness.input),
                    witness.outputs.astype(np.float64).tobytes(),
                    witness.replayed_on,
                ),
            )

    def results(self, keys: Sequence[str] | None = None) -> dict[str, list[Answered]]:
        """What was answered, by instance key, in the order in which it was reported."""
        query = (
            "SELECT q.instance, q.kind, q.eps, q.verdict, q.seconds, q.verifier, q.version,"
            " q.proof_eps, q.proof_margin, q.message, q.cpu_seconds, q.added_seconds,"
            " w.distance, w.predicted, w.dtype, w.shape, w.input, w.outputs, w.replayed_on"
            " FROM queries q LEFT JOIN witnesses w ON w.query = q.id"
        )
        if keys is not None:
            query += f" WHERE q.instance IN ({', '.join('?' * len(keys))})"
        answered: dict[str, list[Answered]] = defaultdict(list)
        with _explained(self._place):
            for key, kind, eps, *columns in self._db.execute(query + " ORDER BY q.id", keys or ()):
                question = Question(Kind(kind), eps)
                answered[key].append((question, _result(question, columns)))
        return answered

    def measurements(self) -> list[Measurement]:
        """One measurement an instance, in the order of the selection."""
        results = self.results()
        with _explained(self._place):
            rows = self._db.execute(
                "SELECT i.key, n.name, n.fingerprint, i.input_index, i.label, i.predicted,"
                " i.correct, i.property, i.target FROM instances i"
                " JOIN networks n ON n.fingerprint = i.network ORDER BY i.position"
            ).fetchall()
        return [_measurement(columns, results[key]) for key, *columns in rows]

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
        return Record(key, _measurement(columns, answered), _array(dtype, shape, data), answered)

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
            "SELECT q.id, q.instance, q.ended_at, q.kind, q.eps, q.verdict, q.seconds, q.verifier,"
            " q.version, q.proof_eps, q.proof_margin, q.message, q.cpu_seconds, q.added_seconds,"
            " w.distance, w.predicted, 'float32', '[0]', x'', w.outputs, w.replayed_on"
            " FROM queries q LEFT JOIN witnesses w ON w.query = q.id WHERE q.id > ? ORDER BY q.id"
        )
        with _explained(self._place):
            for number, key, ended_at, kind, eps, *columns in self._db.execute(query, (after,)):
                question = Question(Kind(kind), eps)
                yield Answer(number, key, ended_at, question, _result(question, columns))

    def first_answer_at(self) -> str:
        """When the first result was reported, in UTC; empty while there is none."""
        with _explained(self._place):
            row = self._db.execute("SELECT ended_at FROM queries ORDER BY id LIMIT 1").fetchone()
        return "" if row is None else str(row[0])

    def disagreements(self) -> list[tuple[str, int, Disagreement]]:
        """Claims of proofs that a replayed witness contradicts: network, input, and which."""
        results = self.results()
        with _explained(self._place):
            rows = self._db.execute(
                "SELECT i.key, n.name, i.input_index FROM instances i"
                " JOIN networks n ON n.fingerprint = i.network ORDER BY i.position"
            ).fetchall()
        return [
            (network, index, disagreement)
            for key, network, index in rows
            for disagreement in weigh(result for _, result in results[key])[1]
        ]


def written_since(directory: Path) -> float | None:
    """When the run began that has this directory's store open, in seconds since 1970.

    None: no run has it open now.
    """
    try:
        with (directory / LOCK_NAME).open() as lock:
            began = os.fstat(lock.fileno()).st_mtime
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return began
    except OSError:  # there is no lock, or it may not be read
        return None
    return None


def _is_locked(lock: IO[str]) -> bool:
    """Take the lock, unless another run has it or has just removed its file.

    Who only looks whether it is taken has it for an instant, so it is tried more than once.
    """
    for pause in LOCK_PAUSES:
        time.sleep(pause)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(lock.fileno()), Path(lock.name).stat())
        except OSError:
            continue
    return False


def _instance_row(position: int, instance: Instance) -> tuple[object, ...]:
    return (
        instance.key,
        position,
        instance.network,
        instance.index,
        instance.label,
        instance.predicted,
        int(instance.correct),
        instance.property.spec,
        instance.property.target,
        instance.norm.value,
        *_array_columns(instance.input),
        np.asarray(instance.outputs, np.float64).tobytes(),
    )


def _array_columns(array: Array) -> tuple[str, str, bytes]:
    """An array as dtype, shape and bytes; read back by `_array`."""
    return str(array.dtype), json.dumps(array.shape), np.ascontiguousarray(array).tobytes()


def _array(dtype: str, shape: str, data: bytes) -> Array:
    return np.frombuffer(data, dtype=np.dtype(dtype)).reshape(json.loads(shape))


def _result(question: Question, columns: Sequence[Any]) -> Result:
    verdict, seconds, verifier, version, proof_eps, margin, message, *times, distance = columns[:10]
    rest = columns[10:]
    # A search for the radius is asked up to an eps and answers at the one that it could prove.
    is_lower = question.kind is Kind.RADIUS and proof_eps is not None
    eps = proof_eps if is_lower else question.eps
    witness = None
    if distance is not None:
        predicted, dtype, shape, data, outputs, replayed_on = rest
        witness = Witness(
            _array(dtype, shape, data), distance, predicted, np.frombuffer(outputs), replayed_on
        )
    proof = None if proof_eps is None else Proof(proof_eps, margin)
    return Result(
        Verdict(verdict), eps, verifier, version, seconds, proof, witness, message, *times
    )


def _measurement(columns: Sequence[Any], answered: Sequence[Answered]) -> Measurement:
    network, fingerprint, index, label, predicted, correct, spec, target = columns
    results = [result for _, result in answered]
    bracket: Bracket
    bracket, _ = weigh(results)
    closest = min(
        (r.witness for r in results if r.witness is not None),
        key=lambda witness: witness.distance,
        default=None,
    )
    tried = [result for question, result in answered if question.kind is not Kind.REPLAY]
    proofs = [result for question, result in answered if question.kind in (Kind.PROVE, Kind.RADIUS)]
    return Measurement(
        network=network,
        fingerprint=fingerprint,
        input=index,
        label=label,
        predicted=predicted,
        correct=bool(correct),
        property=spec,
        target=target,
        bracket=bracket,
        witness_class=None if closest is None else _class_of(closest, label, spec),
        seconds=sum(result.own_seconds for result in results),
        queries=len(tried),
        missing=sum(r.verdict.is_missing and r.verdict is not Verdict.CANCELLED for r in proofs),
        cancelled=sum(result.verdict is Verdict.CANCELLED for result in tried),
        timeouts=sum(result.verdict is Verdict.TIMEOUT for result in tried),
        memouts=sum(result.verdict is Verdict.MEMOUT for result in tried),
        cpu_seconds=_total(result.cpu_seconds for result in tried),
    )


def _total(amounts: Iterable[float | None]) -> float | None:
    """The sum of what was measured; None if one was not."""
    known = list(amounts)
    return None if None in known else sum(amount or 0.0 for amount in known)


def _class_of(witness: Witness, label: int, spec: str) -> int:
    """The class a witness goes to: the largest output but the label's, which it may only tie.

    What breaks another property than that of the label's class may leave the class as it is.
    """
    others = witness.outputs.copy()
    if spec.startswith("one-to-"):
        others[label] = -np.inf
    return int(np.argmax(others))


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
