"""Where the facts about an ensemble live: one SQLite file in a directory.

A fact is on disk when `keep_fooling` or `keep_finding` returns, so a run that is killed loses only
the question it was at. Facts belong to the networks, points and norm that the directory began with.
Beside them stand the best plays by eps, and what a report needs to name and draw it all.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Self

import numpy as np

from radii.balls import Norm
from radii.ensembles._ensemble import Ensemble, Fooling, Point, members
from radii.ensembles._facts import Facts, Play
from radii.ensembles._proofs import JointResult
from radii.ensembles._reading import (
    ARITHMETIC_KEY,
    ENSEMBLE_SCHEMA_VERSION,
    FILE_NAME,
    VERSION_KEY,
    add_arithmetic,
    explaining_damage,
    read_facts,
    read_plays,
)
from radii.errors import StoreError
from radii.verdicts import REAL, Arithmetic, Verdict

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


class Records:
    """The facts of one ensemble at some points in one norm. Use as a context manager."""

    def __init__(self, connection: sqlite3.Connection, directory: Path) -> None:
        self._db = connection
        self.directory = directory

    @classmethod
    def create_or_open(
        cls,
        directory: Path,
        ensemble: Ensemble,
        points: Sequence[Point],
        norm: Norm,
        arithmetic: Arithmetic,
    ) -> Self:
        """Open for writing; a StoreError if the directory is about something else, or in use."""
        path = directory / FILE_NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        except (OSError, sqlite3.DatabaseError) as error:
            raise StoreError(f"{path}: cannot be opened: {error}") from None
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN EXCLUSIVE")
            for statement in ENSEMBLE_SCHEMA.split(";\n"):
                connection.execute(statement)
            records = cls(connection, directory)
            records._begin(_description(ensemble, points, norm, arithmetic))
            records._describe(ensemble.names, points)
            connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            connection.close()
            reason = "in use by another run" if "locked" in str(error) else str(error)
            raise StoreError(f"{path}: cannot be opened: {reason}") from None
        except StoreError:
            connection.close()
            raise
        return records

    def facts(self, points: Sequence[Point]) -> list[Facts]:
        """What is known of each point; what nobody answered is left out, to be asked again."""
        with explaining_damage(self.directory / FILE_NAME):
            found = read_facts(self._db, points)
        for facts in found:
            facts.findings = [f for f in facts.findings if f.verdict is not Verdict.ERROR]
        return found

    def plays(self) -> tuple[Play, ...]:
        """The best plays, by increasing eps."""
        with explaining_damage(self.directory / FILE_NAME):
            return read_plays(self._db)

    def keep_play(self, play: Play, lower: Fraction, upper: Fraction) -> None:
        """Whatever was kept of this eps came from fewer facts."""
        attack = [
            [str(each.probability), [members(mask) for mask in each.sets]] for each in play.attack
        ]
        self._db.execute(
            "INSERT OR REPLACE INTO plays VALUES (?, ?, ?, ?, ?)",
            (
                play.eps,
                str(lower),
                str(upper),
                json.dumps(attack),
                json.dumps([str(weight) for weight in play.defence]),
            ),
        )

    def keep_fooling(self, place: int, fooling: Fooling) -> None:
        content = np.ascontiguousarray(fooling.input).tobytes()
        self._db.execute(
            "INSERT INTO foolings (point, fooled, distance, input) VALUES (?, ?, ?, ?)",
            (place, _text(fooling.fooled), fooling.distance, content),
        )

    def keep_finding(self, place: int, finding: JointResult) -> None:
        """An answer; the input that it brought is a fooling of its own."""
        self._db.execute("BEGIN")
        if finding.fooling is not None:
            self.keep_fooling(place, finding.fooling)
        self._db.execute(
            "INSERT INTO findings (point, classifiers, eps, verdict, verifier, version, seconds,"
            " margin, message, arithmetic) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                place,
                _text(finding.classifiers),
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

    def _begin(self, description: dict[str, str]) -> None:
        known = dict(self._db.execute("SELECT name, value FROM meta").fetchall())
        if known.get(VERSION_KEY) in ("1", "2"):
            add_arithmetic(self._db)
            known |= {VERSION_KEY: str(ENSEMBLE_SCHEMA_VERSION), ARITHMETIC_KEY: str(REAL)}
        for name, value in description.items():
            if known and known.get(name) != value:
                held = known.get(name) if name == ARITHMETIC_KEY else None
                way = f"go on with --arithmetic {held}, or " if held else ""
                raise StoreError(
                    f"{self.directory}: holds results for another {name}; {way}choose another "
                    "directory"
                )
        rows = sorted(description.items())
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def _describe(self, names: Sequence[str], points: Sequence[Point]) -> None:
        """What networks are called now, and the points."""
        self._db.executemany("INSERT OR REPLACE INTO networks VALUES (?, ?)", enumerate(names))
        self._db.executemany(
            "INSERT OR IGNORE INTO points VALUES (?, ?, ?, ?, ?, ?)",
            (
                (
                    place,
                    point.index,
                    point.label,
                    point.input.dtype.str,
                    json.dumps(point.input.shape),
                    np.ascontiguousarray(point.input).tobytes(),
                )
                for place, point in enumerate(points)
            ),
        )

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _description(
    ensemble: Ensemble, points: Sequence[Point], norm: Norm, arithmetic: Arithmetic
) -> dict[str, str]:
    digest = hashlib.sha256()
    for point in points:
        digest.update(f"{point.index} {point.label} {point.input.dtype}".encode())
        digest.update(np.ascontiguousarray(point.input).tobytes())
    networks = [network.fingerprint for network in ensemble.networks]
    return {
        VERSION_KEY: str(ENSEMBLE_SCHEMA_VERSION),
        "list of networks": json.dumps(networks),
        "selection of points": digest.hexdigest(),
        "norm": norm.value,
        "domain": ensemble.domain.key(),
        ARITHMETIC_KEY: str(arithmetic),
    }


def _text(mask: int) -> str:
    return json.dumps(members(mask))
