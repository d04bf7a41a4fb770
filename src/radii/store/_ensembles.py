"""What `radii ensemble --out` keeps: one SQLite file with the facts about one ensemble.

A fact is on disk when `write` returns, so a run that is killed loses only the question it was at.
Facts belong to the networks, points and norm that the directory began with. Beside them stand the
best plays by eps, and what a report needs to name and draw it all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from radii.errors import StoreError
from radii.problem import REAL
from radii.store._files import (
    copy_in_memory,
    explaining_damage,
    explaining_errors,
    insert,
    read_only_address,
)

ENSEMBLE_FILE = "ensemble.sqlite"

ENSEMBLE_SCHEMA_VERSION = 3
"""1 had neither networks, points nor plays, 2 no arithmetic: opened for writing, a file gets them.
"""

VERSION_NAME = "version of this file"
"""Of the row of `meta` that holds it."""

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

Columns = Mapping[str, Any]
"""A row of a table, by the names of its columns."""


class EnsembleStore:
    """The tables of one ensemble at some points in one norm. Use as a context manager."""

    def __init__(self, connection: sqlite3.Connection, directory: Path) -> None:
        self._db = connection
        self._db.row_factory = sqlite3.Row
        self.directory = directory

    @classmethod
    def create_or_open(
        cls,
        directory: Path,
        identity: Mapping[str, str],
        networks: Sequence[Columns],
        points: Sequence[Columns],
    ) -> Self:
        """Open for writing; a StoreError if the directory is about something else, or in use.

        `identity` says what the facts are about, by the names that messages give it; rows of
        networks and points are in order.
        """
        path = directory / ENSEMBLE_FILE
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened: {error}") from None
        with explaining_errors(path):
            store = cls(sqlite3.connect(path, timeout=1.0, isolation_level=None), directory)
            try:
                store._begin(identity, networks, points)
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
        version = self.identity().get(VERSION_NAME)
        if version == "2":
            self._db = copy_in_memory(self._db)  # the file itself stays as it is
            self._migrate()
        elif version != str(ENSEMBLE_SCHEMA_VERSION):
            raise StoreError(
                f"{self.directory}: was written by another version of radii; run its command "
                "again, which asks nothing twice"
            )

    def _begin(
        self, identity: Mapping[str, str], networks: Sequence[Columns], points: Sequence[Columns]
    ) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("BEGIN EXCLUSIVE")
        for statement in ENSEMBLE_SCHEMA.split(";\n"):
            self._db.execute(statement)
        self._check_identity(identity)
        self._write_meta(identity)
        for table, rows in (("networks", networks), ("points", points)):
            for place, row in enumerate(rows):
                insert(self._db, table, {"place": place, **row}, "INSERT OR REPLACE")
        self._db.execute("COMMIT")

    def _check_identity(self, wanted: Mapping[str, str]) -> None:
        """A StoreError if the file is about something else; an older one is migrated."""
        if self.identity().get(VERSION_NAME) in ("1", "2"):
            self._migrate()
        known = self.identity()
        for name, value in {VERSION_NAME: str(ENSEMBLE_SCHEMA_VERSION), **wanted}.items():
            if known and known.get(name) != value:
                stored = known.get(name) if name == "arithmetic" else None
                advice = f"go on with --arithmetic {stored}, or " if stored else ""
                raise StoreError(
                    f"{self.directory}: holds results for another {name}; {advice}choose another "
                    "directory"
                )

    def _migrate(self) -> None:
        for statement in ADD_ARITHMETIC:
            self._db.execute(statement)
        self._write_meta({"arithmetic": str(REAL)})

    def _write_meta(self, values: Mapping[str, str]) -> None:
        for name, value in {**values, VERSION_NAME: str(ENSEMBLE_SCHEMA_VERSION)}.items():
            insert(self._db, "meta", {"name": name, "value": value}, "INSERT OR REPLACE")

    def identity(self) -> dict[str, str]:
        """What the facts are about, and the version of the file; empty while it is new."""
        with explaining_damage(self.directory):
            return {row["name"]: row["value"] for row in self._db.execute("SELECT * FROM meta")}

    def rows(self, table: str) -> list[Columns]:
        """All rows, in the order in which they were written; plays by increasing eps."""
        with explaining_damage(self.directory):
            return [dict(row) for row in self._db.execute(f"SELECT * FROM {table} ORDER BY 1")]

    def write(self, *rows: tuple[str, Columns]) -> None:
        """Rows with the tables that they are of, all or nothing. A play takes the place of that of
        its eps, which came from fewer facts."""
        with explaining_errors(self.directory):
            self._db.execute("BEGIN")
            for table, columns in rows:
                insert(self._db, table, columns, "INSERT OR REPLACE")
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
