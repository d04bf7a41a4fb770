"""What `radii ensemble --out` keeps: one SQLite file with the facts about one ensemble.

A fact is on disk when `keep_fooling` or `keep_finding` returns, so a run that is killed loses only
the question it was at. Facts belong to the networks, points and norm that the directory began with.
Beside them stand the best plays by eps, and what a report needs to name and draw it all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Self

import numpy as np

from radii.errors import StoreError
from radii.problem import REAL, Arithmetic, Array, Norm, Verdict
from radii.store._files import (
    copy_in_memory,
    explaining_damage,
    explaining_errors,
    read_only_address,
)

ENSEMBLE_FILE = "ensemble.sqlite"

ENSEMBLE_SCHEMA_VERSION = 3
"""1 had neither networks, points nor plays, 2 no arithmetic: opened for writing, a file gets them.
"""

ENSEMBLE_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS foolings (
    id INTEGER PRIMARY KEY,
    point INTEGER NOT NULL,
    fooled TEXT NOT NULL,  -- the places of the classifiers, as a JSON list
    distance REAL NOT NULL,
    input BLOB NOT NULL  -- in the networks' own type and shape
);
CREATE TABLE IF NOT EXISTS findings (
    id INTEGER PRIMARY KEY,
    point INTEGER NOT NULL,
    classifiers TEXT NOT NULL,
    eps REAL NOT NULL,
    verdict TEXT NOT NULL,
    verifier TEXT NOT NULL,
    version TEXT NOT NULL,
    seconds REAL NOT NULL,
    margin REAL NOT NULL,
    message TEXT NOT NULL,
    ended_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    arithmetic TEXT  -- which numbers a proof speaks of; NULL without one
);
CREATE TABLE IF NOT EXISTS networks (place INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS points (
    place INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,  -- in the data set
    label INTEGER NOT NULL,
    type TEXT NOT NULL,
    shape TEXT NOT NULL,
    input BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS plays (
    eps REAL PRIMARY KEY,
    lower TEXT NOT NULL,  -- the bracket of the value when it was measured, as fractions
    upper TEXT NOT NULL,
    attack TEXT NOT NULL,  -- [[probability, [the set fooled at each point]]]
    defence TEXT NOT NULL  -- the weight of each classifier
);
"""

ADD_ARITHMETIC = (
    "ALTER TABLE findings ADD COLUMN arithmetic TEXT",
    "UPDATE findings SET arithmetic = 'real' WHERE verdict = 'ROBUST' AND verifier != 'replay'",
)
"""To findings of versions 1 and 2: their margins were sampled, so they count as real."""

Places = Sequence[int]
"""Of a set of classifiers."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredPoint:
    """An input of the ensemble; `number` is its place in the data set."""

    number: int
    label: int
    input: Array


@dataclass(frozen=True, slots=True, eq=False)
class StoredFooling:
    """An input near the point of that place, and whom it fools."""

    point: int
    fooled: Places
    distance: float
    input: Array


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """An answer about a set of classifiers at the point of that place."""

    point: int
    classifiers: Places
    eps: float
    verdict: Verdict
    verifier: str
    version: str
    seconds: float
    margin: float
    message: str
    arithmetic: Arithmetic | None


@dataclass(frozen=True, slots=True)
class StoredPlay:
    """Optimal mixes of both sides at eps.

    An attack has its probability and, for each point, the places that it fools.
    """

    eps: float
    attack: Sequence[tuple[Fraction, Sequence[Places]]]
    defence: Sequence[Fraction]


@dataclass(frozen=True, slots=True)
class EnsembleIdentity:
    """What the facts of a file are about; `selection` is a digest of the points."""

    fingerprints: tuple[str, ...]
    selection: str
    norm: Norm
    domain: str
    arithmetic: Arithmetic

    def rows(self) -> dict[str, str]:
        """The rows of `meta`; their names are those of messages, too."""
        return {
            "version of this file": str(ENSEMBLE_SCHEMA_VERSION),
            "list of networks": json.dumps(list(self.fingerprints)),
            "selection of points": self.selection,
            "norm": self.norm.value,
            "domain": self.domain,
            "arithmetic": str(self.arithmetic),
        }

    @classmethod
    def from_rows(cls, rows: dict[str, str]) -> Self:
        return cls(
            fingerprints=tuple(json.loads(rows["list of networks"])),
            selection=rows["selection of points"],
            norm=Norm(rows["norm"]),
            domain=rows["domain"],
            arithmetic=Arithmetic.parse(rows["arithmetic"]),
        )


class EnsembleStore:
    """The facts of one ensemble at some points in one norm. Use as a context manager."""

    def __init__(self, connection: sqlite3.Connection, directory: Path) -> None:
        self._db = connection
        self.directory = directory

    @classmethod
    def create_or_open(
        cls,
        directory: Path,
        identity: EnsembleIdentity,
        names: Sequence[str],
        points: Sequence[StoredPoint],
    ) -> Self:
        """Open for writing; a StoreError if the directory is about something else, or in use."""
        path = directory / ENSEMBLE_FILE
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened: {error}") from None
        with explaining_errors(path):
            store = cls(sqlite3.connect(path, timeout=1.0, isolation_level=None), directory)
            try:
                store._begin(identity, names, points)
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open for reading; a StoreError if a run is writing there, or it is none of ours."""
        path = directory / ENSEMBLE_FILE
        if not path.is_file():
            raise StoreError(f"{directory}: holds no results of radii ensemble")
        with explaining_errors(path):
            store = cls(sqlite3.connect(read_only_address(path), uri=True, timeout=1.0), directory)
            try:
                store._prepare_reading()
            except BaseException:
                store.close()
                raise
        return store

    def _prepare_reading(self) -> None:
        version = self._meta().get("version of this file")
        if version == "2":
            self._db = copy_in_memory(self._db)  # the file itself stays as it is
            self._migrate()
            self._db.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", self._migrated_rows().items()
            )
        elif version != str(ENSEMBLE_SCHEMA_VERSION):
            raise StoreError(
                f"{self.directory}: was written by another version of radii; run its command "
                "again, which asks nothing twice"
            )

    def _begin(
        self, identity: EnsembleIdentity, names: Sequence[str], points: Sequence[StoredPoint]
    ) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("BEGIN EXCLUSIVE")
        for statement in ENSEMBLE_SCHEMA.split(";\n"):
            self._db.execute(statement)
        self._check_identity(identity.rows())
        rows = sorted(identity.rows().items())
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
        self._db.executemany("INSERT OR REPLACE INTO networks VALUES (?, ?)", enumerate(names))
        self._db.executemany(
            "INSERT OR IGNORE INTO points VALUES (?, ?, ?, ?, ?, ?)",
            (
                (
                    place,
                    point.number,
                    point.label,
                    point.input.dtype.str,
                    json.dumps(point.input.shape),
                    np.ascontiguousarray(point.input).tobytes(),
                )
                for place, point in enumerate(points)
            ),
        )
        self._db.execute("COMMIT")

    def _check_identity(self, wanted: dict[str, str]) -> None:
        """A StoreError if the file is about something else; an older one is migrated."""
        known = self._meta()
        if known.get("version of this file") in ("1", "2"):
            self._migrate()
            known |= self._migrated_rows()
        for name, value in wanted.items():
            if known and known.get(name) != value:
                held = known.get(name) if name == "arithmetic" else None
                advice = f"go on with --arithmetic {held}, or " if held else ""
                raise StoreError(
                    f"{self.directory}: holds results for another {name}; {advice}choose another "
                    "directory"
                )

    def _migrate(self) -> None:
        for statement in ADD_ARITHMETIC:
            self._db.execute(statement)

    @staticmethod
    def _migrated_rows() -> dict[str, str]:
        return {
            "version of this file": str(ENSEMBLE_SCHEMA_VERSION),
            "arithmetic": str(REAL),
        }

    def _meta(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT name, value FROM meta").fetchall())

    # --- reading

    def identity(self) -> EnsembleIdentity:
        """What the facts are about."""
        with explaining_damage(self.directory):
            return EnsembleIdentity.from_rows(self._meta())

    def names(self) -> list[str]:
        """What the networks are called."""
        with explaining_damage(self.directory):
            rows = self._db.execute("SELECT name FROM networks ORDER BY place")
            return [name for (name,) in rows]

    def points(self) -> list[StoredPoint]:
        query = "SELECT number, label, type, shape, input FROM points ORDER BY place"
        with explaining_damage(self.directory):
            return [
                StoredPoint(
                    number,
                    label,
                    np.frombuffer(content, np.dtype(kind)).reshape(json.loads(shape)),
                )
                for number, label, kind, shape, content in self._db.execute(query)
            ]

    def foolings(self, points: Sequence[Array]) -> Iterator[StoredFooling]:
        """In the order in which they were found; `points` are the inputs of the points."""
        query = "SELECT point, fooled, distance, input FROM foolings ORDER BY id"
        with explaining_damage(self.directory):
            for place, fooled, distance, content in self._db.execute(query):
                like = points[place]
                perturbed = np.frombuffer(content, like.dtype).reshape(like.shape)
                yield StoredFooling(place, json.loads(fooled), float(distance), perturbed)

    def findings(self) -> Iterator[StoredFinding]:
        """In the order in which they were answered."""
        names = "point, classifiers, eps, verdict, verifier, version, seconds, margin, message"
        with explaining_damage(self.directory):
            rows = self._db.execute(f"SELECT {names}, arithmetic FROM findings ORDER BY id")
            for row in rows:
                columns = dict(zip([*names.split(", "), "arithmetic"], row, strict=True))
                arithmetic = columns["arithmetic"]
                columns["classifiers"] = json.loads(columns["classifiers"])
                columns["eps"] = float(columns["eps"])
                columns["verdict"] = Verdict(columns["verdict"])
                columns["arithmetic"] = arithmetic and Arithmetic.parse(arithmetic)
                yield StoredFinding(**columns)

    def plays(self) -> list[StoredPlay]:
        """The best plays, by increasing eps."""
        query = "SELECT eps, attack, defence FROM plays ORDER BY eps"
        with explaining_damage(self.directory):
            return [
                StoredPlay(
                    float(eps),
                    tuple(
                        (Fraction(probability), tuple(sets))
                        for probability, sets in json.loads(attack)
                    ),
                    tuple(Fraction(weight) for weight in json.loads(defence)),
                )
                for eps, attack, defence in self._db.execute(query)
            ]

    # --- writing

    def keep_play(self, play: StoredPlay, lower: Fraction, upper: Fraction) -> None:
        """Whatever was kept of this eps came from fewer facts."""
        attack = [[str(probability), list(sets)] for probability, sets in play.attack]
        defence = [str(weight) for weight in play.defence]
        with explaining_errors(self.directory):
            self._db.execute(
                "INSERT OR REPLACE INTO plays VALUES (?, ?, ?, ?, ?)",
                (play.eps, str(lower), str(upper), json.dumps(attack), json.dumps(defence)),
            )

    def keep_fooling(self, fooling: StoredFooling) -> None:
        with explaining_errors(self.directory):
            self._insert_fooling(fooling)

    def keep_finding(self, finding: StoredFinding, fooling: StoredFooling | None) -> None:
        """An answer, and the input that it brought; both or nothing."""
        with explaining_errors(self.directory):
            self._db.execute("BEGIN")
            if fooling is not None:
                self._insert_fooling(fooling)
            self._db.execute(
                "INSERT INTO findings (point, classifiers, eps, verdict, verifier, version,"
                " seconds, margin, message, arithmetic) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    finding.point,
                    json.dumps(list(finding.classifiers)),
                    finding.eps,
                    finding.verdict.value,
                    finding.verifier,
                    finding.version,
                    finding.seconds,
                    finding.margin,
                    finding.message,
                    None if finding.arithmetic is None else str(finding.arithmetic),
                ),
            )
            self._db.execute("COMMIT")

    def _insert_fooling(self, fooling: StoredFooling) -> None:
        self._db.execute(
            "INSERT INTO foolings (point, fooled, distance, input) VALUES (?, ?, ?, ?)",
            (
                fooling.point,
                json.dumps(list(fooling.fooled)),
                fooling.distance,
                np.ascontiguousarray(fooling.input).tobytes(),
            ),
        )

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
