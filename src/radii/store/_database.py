"""The database of one experiment: what was to be measured, and every answer as it was reported."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from radii.errors import StoreError
from radii.problem import (
    Array,
    CertificateCheck,
    Disagreement,
    Domain,
    Features,
    Instance,
    Measurement,
    Result,
    weigh,
)
from radii.store._ensembles import ENSEMBLE_FILE
from radii.store._files import (
    LOCK_FILE,
    PauseFlag,
    copy_in_memory,
    explaining_damage,
    explaining_errors,
    insert,
    is_taken,
    read_only_address,
)
from radii.store._integrity import (
    check_bracket,
    check_moment,
    check_result,
    check_witness,
    checked_instance,
    instance_of,
    selection_of,
)
from radii.store._rows import (
    AnsweredQuestion,
    CertifiedStatement,
    Record,
    StoredResult,
    certificate_of,
    check_columns,
    content_hash,
    input_digest,
    instance_columns,
    kept_blob,
    query_columns,
    result_of,
    witness_columns,
)
from radii.store._schema import MIGRATIONS, SCHEMA, SCHEMA_VERSION
from radii.store._steps import (
    KnownNetwork,
    StepAnswer,
    StoredSettings,
    StudyPart,
    StudyStep,
    counted,
    joined_description,
    parts_of,
    step_of_row,
)
from radii.strategy import Question, QuestionKind

STORE_FILE = "radii.sqlite"

MOST_KEYS = 500
"""As many instances are looked up by name at once; for more, all are read."""

SELECT_INSTANCES = (
    "SELECT n.name, i.* FROM instances i LEFT JOIN networks n ON n.fingerprint = i.network"
)

SELECT_ANSWERS = """
SELECT i.network, i.norm, length(i.outputs) AS outputs_size,
    i.dtype AS center_dtype, i.shape AS center_shape,
    CASE WHEN w.query IS NULL THEN NULL ELSE i.input END AS center_input,
    w.distance, w.predicted, w.dtype, w.shape, w.input, w.outputs, w.replayed_on,
    length(c.content) AS certificate_size, k.checker, k.checked_at, k.accepted, k.reason, k.numbers,
    k.nodes AS check_nodes, k.lemmas AS check_lemmas, k.margin AS check_margin,
    k.seconds AS check_seconds, q.*
FROM queries q
LEFT JOIN instances i ON i.key = q.instance
LEFT JOIN witnesses w ON w.query = q.id
LEFT JOIN certificates c ON c.hash = q.certificate
LEFT JOIN checks k ON k.certificate = q.certificate AND k.instance = q.instance
    AND k.eps = q.proof_eps AND k.arithmetic = q.proof_arithmetic
"""
"""Each answer with its instance, its witness, and the certificate of its proof."""


class Store:
    """The results of one experiment. Use as a context manager."""

    def __init__(self, connection: sqlite3.Connection, place: str, lock: IO[str] | None) -> None:
        self._db = connection
        self._db.row_factory = sqlite3.Row
        self._place = place
        self._lock = lock
        self._unused: list[Path] = []  # made for an experiment that has not begun
        self._domains: dict[str, Domain] | None = None  # by fingerprint, once they were read
        self._features: Features | None = None  # read along with the domains
        self._numbers: set[object] = set()  # of steps that were read
        self._step: int | None = None  # in which answers are recorded; the latest, if not said

    @classmethod
    def create_or_open(cls, directory: Path) -> Self:
        """Open for writing; makes the directory and the file where they are missing.

        What it made is removed again if no experiment begins, as when a cluster does not answer.
        """
        made = [place for place in (directory, *directory.parents) if not place.exists()]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = (directory / LOCK_FILE).open("w")
        except OSError as error:
            raise StoreError(f"{directory}: cannot be written ({error.strerror})") from None
        if not is_taken(lock):
            lock.close()
            raise StoreError(f"{directory}: another run is writing here; wait or stop it")
        is_new = not (directory / STORE_FILE).exists()
        store = cls._connect(str(directory / STORE_FILE), str(directory), lock)
        if is_new:
            store._unused = [directory / STORE_FILE, directory / LOCK_FILE, *made]
        return store

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open for reading; the store must exist. Safe while a run writes."""
        path = directory / STORE_FILE
        if not directory.exists():
            raise StoreError(
                f"{directory}: no radii experiment is here: there is no such directory"
            )
        if not path.is_file() and (directory / ENSEMBLE_FILE).is_file():
            raise StoreError(
                f"{directory}: holds an ensemble, not a run; radii report {directory} shows it"
            )
        if not path.is_file():
            raise StoreError(f"{directory}: no radii experiment is here ({STORE_FILE} is missing)")
        return cls._connect(read_only_address(path), str(directory), None)

    @classmethod
    def in_memory(cls) -> Self:
        """A store that is gone when it is closed."""
        return cls._connect(":memory:", "memory", None)

    @classmethod
    def _connect(cls, address: str, place: str, lock: IO[str] | None) -> Self:
        with explaining_errors(place):
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
                self._db = copy_in_memory(self._db)  # the file itself stays as it is
            self._migrate(version)
        elif version != SCHEMA_VERSION:
            raise StoreError(
                f"{self._place}: its store has version {version}, this radii reads up to version "
                f"{SCHEMA_VERSION}; use the radii that wrote it, or another directory"
            )

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
    def place(self) -> Path:
        """The directory, or `memory`."""
        return Path(self._place)

    @property
    def is_on_disk(self) -> bool:
        """What is recorded here will be there when it is closed."""
        return self._lock is not None

    @property
    def pause_flag(self) -> PauseFlag | None:
        """How the run that writes it is asked to pause; None without a directory."""
        return None if self._lock is None else PauseFlag(Path(self._lock.name).parent)

    # --- the experiment and its instances

    def settings(self) -> StoredSettings:
        """What the store was made for; without any value while it is new."""
        described = self.experiment()
        with explaining_damage(self._place):
            return StoredSettings.from_json(described or {})

    def experiment(self) -> dict[str, Any] | None:
        """The description the store was made for, as JSON; None while it is new."""
        with explaining_damage(self._place):
            row = self._db.execute("SELECT value FROM meta WHERE name = 'experiment'").fetchone()
            if row is None:
                if self._db.execute("SELECT 1 FROM instances LIMIT 1").fetchone():
                    raise ValueError("what was to be measured is not there")
                return None
            described = json.loads(row[0])
            if not isinstance(described, dict):
                raise ValueError(f"what was to be measured is {row[0]!r}")
        return described

    def begin(
        self,
        described: Mapping[str, Any],
        networks: Mapping[str, tuple[str, str]],
        instances: Sequence[Instance],
        *,
        feeding: Mapping[str, Mapping[str, Any] | None] | None = None,
        models: Mapping[str, bytes] | None = None,
        inputs: Mapping[int, str] | None = None,
        replaced: Iterable[int] = (),
        positions: Sequence[int] = (),
        summary: str = "",
    ) -> None:
        """Write down what will be measured beside what is there, all or nothing: a step begins.

        `networks` maps to (name, path), `feeding` to how inputs get into it, `models` to ONNX of
        those that no file has, `inputs` to digests of what the data set gives. Those that are known
        stay as they are, and so do instances; but everything about the inputs in `replaced` is
        dropped first. `positions` are those that instances have in the selection of which they are
        a shard. `summary` says what is new.
        """
        with explaining_errors(self._place), self._db:
            self._drop_inputs(list(replaced))
            known = self.experiment()
            for key, (name, path) in networks.items():
                columns = {
                    "fingerprint": key,
                    "name": name,
                    "path": path,
                    "feeding": json.dumps((feeding or {}).get(key)),
                    "model": kept_blob((models or {}).get(key)),
                }
                insert(self._db, "networks", columns, "INSERT OR IGNORE")
            self._db.executemany(
                "INSERT OR IGNORE INTO inputs VALUES (?, ?)", (inputs or {}).items()
            )
            keys = self._add_instances(instances, positions)
            self._describe(joined_description(known, described, keys))
            columns = {"described": json.dumps(described), "summary": summary}
            self._step = insert(self._db, "steps", columns)
            self._db.executemany(
                "INSERT INTO step_instances VALUES (?, ?)",
                [(self._step, one.key) for one in instances],
            )
        self._unused.clear()
        self._domains = None

    def _add_instances(self, instances: Sequence[Instance], positions: Sequence[int]) -> list[str]:
        """Add those that are not there, where they belong if these places are free, else at the
        end; the keys of all, in order."""
        if self.experiment() is not None:
            self.instance_keys()  # which checks that all are there
        ordered = "SELECT key, position FROM instances ORDER BY position"
        taken = dict(self._db.execute(ordered).fetchall())
        wanted = zip(positions or range(len(instances)), instances, strict=True)
        new = [(place, one) for place, one in wanted if one.key not in taken]
        if {place for place, _ in new} & set(taken.values()):
            first = max(taken.values()) + 1
            new = [(place, one) for place, (_, one) in enumerate(new, first)]
        for place, one in new:
            insert(self._db, "instances", instance_columns(place, one))
        return [key for key, _ in self._db.execute(ordered)]

    def _drop_inputs(self, inputs: Sequence[int]) -> None:
        """Remove instances of these inputs, all that was answered about them, and steps that had no
        others."""
        if not inputs:
            return
        of_inputs = "SELECT key FROM instances WHERE input_index = ?"
        of_queries = f"SELECT id FROM queries WHERE instance IN ({of_inputs})"
        chosen = [(index,) for index in inputs]
        self._db.executemany(f"DELETE FROM witnesses WHERE query IN ({of_queries})", chosen)
        for table in ("checks", "brackets", "step_instances", "queries"):
            self._db.executemany(f"DELETE FROM {table} WHERE instance IN ({of_inputs})", chosen)
        for table in ("instances", "inputs"):
            self._db.executemany(f"DELETE FROM {table} WHERE input_index = ?", chosen)
        self._db.execute("DELETE FROM steps WHERE id NOT IN (SELECT step FROM step_instances)")
        in_use = "SELECT certificate FROM queries WHERE certificate IS NOT NULL"
        self._db.execute(f"DELETE FROM certificates WHERE hash NOT IN ({in_use})")
        keys = self._db.execute("SELECT key FROM instances ORDER BY position").fetchall()
        # Positions are unique at every moment, so that all move out of the way first.
        self._db.execute("UPDATE instances SET position = -1 - position")
        self._db.executemany(
            "UPDATE instances SET position = ? WHERE key = ?",
            [(place, key) for place, (key,) in enumerate(keys)],
        )
        selection = selection_of([key for (key,) in keys])
        self._describe({**(self.experiment() or {}), "data": selection})

    def _describe(self, described: Mapping[str, Any]) -> None:
        columns = {"name": "experiment", "value": json.dumps(described)}
        insert(self._db, "meta", columns, "INSERT OR REPLACE")

    def input_digests(self) -> dict[int, str]:
        """What the data set gave for each input, by index; not of those from before schema 7."""
        with explaining_damage(self._place):
            return dict(self._db.execute("SELECT input_index, digest FROM inputs"))

    def go_on(self, step: int) -> None:
        """Record answers in a step that is there."""
        self._step = step

    @property
    def step(self) -> int:
        """The number of the step in which answers are recorded: one that was begun or gone on with
        here, or else the latest."""
        if self._step is None:
            row = self._db.execute("SELECT max(id) FROM steps").fetchone()
            self._step = row[0] or 1
        return self._step

    def end_step(self) -> None:
        """Nothing is left to ask in the step."""
        with explaining_errors(self._place), self._db:
            self._db.execute(
                "UPDATE steps SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
                " WHERE id = ? AND ended_at IS NULL",
                (self.step,),
            )

    def steps(self) -> tuple[StudyStep, ...]:
        """What was asked when, in order."""
        with explaining_damage(self._place):
            rows = self._db.execute("SELECT * FROM steps ORDER BY id").fetchall()
            return tuple(map(step_of_row, rows))

    def step_keys(self, numbers: Iterable[int]) -> set[str]:
        """The instances of some steps."""
        wanted = tuple(numbers)
        marks = ", ".join("?" * len(wanted))
        with explaining_damage(self._place):
            query = f"SELECT instance FROM step_instances WHERE step IN ({marks})"
            return {key for (key,) in self._db.execute(query, wanted)}

    def parts(self) -> tuple[StudyPart, ...]:
        """Of which questions the store holds brackets; each makes a distribution of its own."""
        with explaining_damage(self._place):
            return parts_of(self.steps())

    def instance_keys(self) -> list[str]:
        """The keys of all instances, in the order of the selection."""
        with explaining_damage(self._place):
            rows = self._db.execute("SELECT key, position FROM instances ORDER BY position")
            return self._checked_selection(rows.fetchall())

    def networks(self) -> dict[str, KnownNetwork]:
        """What is known of each network, by fingerprint."""
        with explaining_damage(self._place):
            known, domains = {}, self._known_domains()
            for key, name, path, text in self._db.execute(
                "SELECT fingerprint, name, path, feeding FROM networks"
            ):
                if not all(isinstance(each, str) for each in (key, name, path)):
                    raise ValueError(f"a network is {(key, name, path)!r}")
                feeding = json.loads(text) if text else None
                if not isinstance(feeding, dict | None):
                    raise ValueError(f"inputs get into a network by {feeding!r}")
                known[key] = KnownNetwork(key, name, path, domains.get(key), feeding)
        return known

    def model(self, fingerprint: str) -> bytes | None:
        """A network as ONNX, where the store holds it; it may be damaged."""
        with explaining_damage(self._place):
            query = "SELECT model FROM networks WHERE fingerprint = ?"
            row = self._db.execute(query, (fingerprint,)).fetchone()
        return row[0] if row and isinstance(row[0], bytes) else None

    def _checked_selection(self, keyed: Sequence[tuple[str, int]]) -> list[str]:
        """The keys of all instances with their positions; a ValueError if not all are there."""
        keys = [key for key, _ in keyed]
        stored = self.settings().selection or ""
        is_digest = re.fullmatch(r"\d+ instances, [0-9a-f]{16}", stored)
        positions = [position for _, position in keyed]
        if not is_digest and positions != list(range(len(keyed))):
            raise ValueError("some instances are not there")
        if is_digest and stored != selection_of(keys):
            raise ValueError(f"there were {stored}, and there are {selection_of(keys)}")
        return keys

    def _instances(self, key: str | None = None, *, has_inputs: bool = True) -> Iterator[Record]:
        """All instances, or one, without what was answered."""
        names, keyed = self.settings().networks, []
        order, values = ("WHERE i.key = ?", (key,)) if key else ("ORDER BY i.position", ())
        for row in self._db.execute(f"{SELECT_INSTANCES} {order}", values):
            if names and names.get(row["name"]) != row["network"]:
                raise ValueError(f"an instance is of network {row['name']!r}")
            image, facts = checked_instance(row, self._known_domains(), self._features)
            kept = image if has_inputs else np.empty(0, image.dtype)
            outputs = np.frombuffer(row["outputs"] if has_inputs else b"")
            yield Record(row["key"], facts, input_digest(image), kept, outputs)
            keyed.append((row["key"], row["position"]))
        if key is None:
            self._checked_selection(keyed)
        elif not keyed:
            raise ValueError(f"instance {key!r} is not there")

    def instance(self, key: str) -> Instance | None:
        """The instance itself; None where no text stands for its property or its domain.

        Whether outputs are probabilities is a fact about the network, which a store does not know.
        """
        with explaining_damage(self._place):
            row = self._db.execute(f"{SELECT_INSTANCES} WHERE i.key = ?", (key,)).fetchone()
            if row is None:
                raise ValueError(f"instance {key!r} is not there")
            checked_instance(row, self._known_domains(), self._features)
            return instance_of(row, self._known_domains(), self._features)

    def outputs(self) -> dict[str, Array]:
        """What the network is said to give for the input of each instance, by its key."""
        with explaining_damage(self._place):
            rows = self._db.execute("SELECT key, outputs FROM instances").fetchall()
            return {key: np.frombuffer(data) for key, data in rows}

    def _known_domains(self) -> dict[str, Domain]:
        if self._domains is None:
            settings = self.settings()
            self._domains, self._features = settings.domain_of_network(), settings.features
        return self._domains

    # --- results

    def record(self, answers: Sequence[tuple[str, Question, Result]]) -> None:
        """Write results by instance key, all or nothing; they are on disk when this returns."""
        with explaining_errors(self._place), self._db:
            for key, question, result in answers:
                self._insert_result(key, question, result)
            for key in dict.fromkeys(key for key, _, _ in answers):
                with explaining_damage(self._place):
                    known = self._answered([key], has_inputs=False)[key]
                self._weigh(key, known)

    def _weigh(self, key: str, answers: Sequence[StepAnswer]) -> None:
        """Write the bracket that these answers of an instance allow."""
        bracket = weigh(result for _, _, result in answers).bracket
        columns = {"instance": key, "lower": bracket.lower, "upper": bracket.upper}
        insert(self._db, "brackets", columns, "INSERT OR REPLACE")

    def _insert_result(self, key: str, question: Question, result: Result) -> None:
        number = insert(self._db, "queries", query_columns(key, question, result, self.step))
        content = certificate_of(result)
        if content is not None:
            columns = {"hash": content_hash(content), "content": content}
            insert(self._db, "certificates", columns, "INSERT OR IGNORE")
        if result.witness is not None:
            insert(self._db, "witnesses", witness_columns(number, result.witness))

    def results(self, keys: Sequence[str] | None = None) -> dict[str, list[AnsweredQuestion]]:
        """What was answered, by instance key, in the order in which it was reported."""
        answered = self.results_of_steps(keys)
        found: dict[str, list[AnsweredQuestion]] = defaultdict(list)
        for key, each in answered.items():
            found[key] = [(question, result) for _, question, result in each]
        return found

    def results_of_steps(self, keys: Sequence[str] | None = None) -> dict[str, list[StepAnswer]]:
        """As `results`, each with the number of the step in which it was asked."""
        with explaining_damage(self._place), self._snapshot():
            answered = self._answered(keys)
            self._check_brackets(answered, keys)
        return answered

    def _answered(
        self, keys: Sequence[str] | None = None, *, has_inputs: bool = True
    ) -> dict[str, list[StepAnswer]]:
        answered: dict[str, list[StepAnswer]] = defaultdict(list)
        of_keys = "" if keys is None else f"WHERE q.instance IN ({', '.join('?' * len(keys))})"
        rows = self._db.execute(f"{SELECT_ANSWERS} {of_keys} ORDER BY q.id", keys or ())
        for row in rows:
            key, answer = self._decoded(row, has_inputs=has_inputs)
            answered[key].append(answer)
        return answered

    def _decoded(self, row: sqlite3.Row, *, has_inputs: bool) -> tuple[str, StepAnswer]:
        """Instance, and step, question and result of one row; a ValueError if it is damaged."""
        key, step, network = row["instance"], row["step"], row["network"]
        if network is None:
            raise ValueError(f"an answer is of instance {key!r}, which is not there")
        if step not in self._numbers:
            self._numbers = {number for (number,) in self._db.execute("SELECT id FROM steps")}
            if step not in self._numbers:
                raise ValueError(f"an answer is of step {step!r}, which is not there")
        question = Question(QuestionKind(row["kind"]), row["eps"])
        result = result_of(question, row)
        check_result(question, result)
        if result.witness is None:
            return key, (step, question, result)
        domain = self._known_domains().get(network)
        check_witness(result.witness, row, domain, self._features)
        if not has_inputs:
            nothing = np.empty(0, result.witness.input.dtype)
            result = replace(result, witness=replace(result.witness, input=nothing))
        return key, (step, question, result)

    def _check_brackets(
        self, answered: Mapping[str, Sequence[StepAnswer]], keys: Sequence[str] | None = None
    ) -> None:
        """A ValueError unless the brackets of these instances, or of all, are what they say."""
        of_keys = "" if keys is None else f"WHERE instance IN ({', '.join('?' * len(keys))})"
        rows = self._db.execute(f"SELECT * FROM brackets {of_keys}", keys or ())
        stored = {row["instance"]: (row["lower"], row["upper"]) for row in rows}
        for key in {*stored, *answered}:
            check_bracket(stored.get(key), (result for _, _, result in answered.get(key, ())))

    # --- certificates and their checks

    def certificate(self, name: str) -> bytes | None:
        """The content that is kept under a hash, which may be damaged; None if it is missing."""
        with explaining_damage(self._place):
            query = "SELECT content FROM certificates WHERE hash = ?"
            row = self._db.execute(query, (name,)).fetchone()
            if row is not None and not isinstance(row[0], bytes):
                raise ValueError(f"certificate {name[:12]} is {type(row[0]).__name__}")
        return None if row is None else row[0]

    def record_checks(self, checks: Iterable[tuple[CertifiedStatement, CertificateCheck]]) -> None:
        """Write what became of certificates, all or nothing; earlier checks are replaced."""
        with explaining_errors(self._place), self._db:
            for statement, check in checks:
                insert(self._db, "checks", check_columns(statement, check), "INSERT OR REPLACE")

    def last_check_at(self) -> str:
        """When the last certificate was checked, in UTC; empty if none was."""
        with explaining_damage(self._place):
            (moment,) = self._db.execute("SELECT max(checked_at) FROM checks").fetchone()
        return moment if isinstance(moment, str) else ""

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """All that is read meanwhile was true at one moment, also while a run writes."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.rollback()

    def all_records(self, part: StudyPart | None = None) -> list[Record]:
        """One record an instance, in the order of the selection, as they were at one moment.

        Of a part: its instances, with what counts there. Inputs and witnesses' inputs are left out.
        """
        with explaining_damage(self._place), self._snapshot():
            answered = self._answered(has_inputs=False)
            self._check_brackets(answered)
            return [
                replace(record, answered=counted(answered[record.key], part))
                for record in self._instances_of(part)
            ]

    def _instances_of(self, part: StudyPart | None) -> Iterator[Record]:
        wanted = None if part is None else self.step_keys(part.numbers)
        for record in self._instances(has_inputs=False):
            if wanted is None or record.key in wanted:
                yield record

    def measurements(self) -> list[Measurement]:
        """One measurement an instance, in the order of the selection."""
        return [record.measurement for record in self.all_records()]

    def records(self, keys: Iterable[str] | None = None) -> Iterator[Record]:
        """One record an instance, in the order of the selection or of `keys`.

        Only one is in memory at a time: inputs and witnesses of a large experiment are gigabytes.
        """
        with explaining_damage(self._place):
            for chosen in [None] if keys is None else keys:
                for record in self._instances(chosen):
                    yield replace(record, answered=tuple(self.results([record.key])[record.key]))

    def unanswered_records(self, part: StudyPart | None = None) -> Iterator[Record]:
        """The instances, in the order of the selection, without inputs and what was answered."""
        with explaining_damage(self._place):
            yield from self._instances_of(part)

    def answers(self, *, after: int = 0, part: StudyPart | None = None) -> Iterator[StoredResult]:
        """What was reported after the answer of that number; inputs of witnesses are left out.

        Of a part: what counts there. Afterwards the brackets of these instances are compared with
        all their answers.
        """
        query = f"{SELECT_ANSWERS} WHERE q.id > ? ORDER BY q.id"
        answered: dict[str, list[StepAnswer]] = defaultdict(list)
        with explaining_damage(self._place), self._snapshot():
            wanted = None if part is None else self.step_keys(part.numbers)
            if (self._db.execute("SELECT min(id) FROM queries").fetchone()[0] or 1) < 1:
                raise ValueError("an answer has a number below 1")
            for row in self._db.execute(query, (after,)):
                check_moment(row["ended_at"])
                key, answer = self._decoded(row, has_inputs=False)
                answered[key].append(answer)
                if wanted is None or key in wanted:
                    for question, result in counted([answer], part):
                        yield StoredResult(row["id"], key, row["ended_at"], question, result)
            chosen = None if after == 0 or len(answered) > MOST_KEYS else tuple(answered)
            if after:
                answered = self._answered(chosen, has_inputs=False)
            self._check_brackets(answered, chosen)

    def first_answer_at(self) -> str:
        """When the first result was reported, in UTC; empty while there is none."""
        return self._answer_at("ASC")

    def last_answer_at(self) -> str:
        """When the last result was reported, in UTC; empty while there is none."""
        return self._answer_at("DESC")

    def _answer_at(self, order: str) -> str:
        query = f"SELECT ended_at FROM queries ORDER BY id {order} LIMIT 1"
        with explaining_damage(self._place):
            row = self._db.execute(query).fetchone()
            if row is not None:
                check_moment(row[0])
        return "" if row is None else str(row[0])

    def disagreements(self) -> list[tuple[str, int, Disagreement]]:
        """Claims of proofs that a replayed witness contradicts: network, input, and which."""
        return [
            (record.facts.network, record.facts.input, disagreement)
            for record in self.all_records()
            for disagreement in record.disagreements
        ]
