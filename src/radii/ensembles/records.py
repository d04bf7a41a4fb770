"""Where the facts about an ensemble live: one SQLite file in a directory.

A fact is on disk when `keep_fooling` or `keep_finding` returns, so a run that is killed loses only
the question it was at. Facts belong to the networks, points and norm that the directory began with.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from radii.balls import Norm
from radii.ensembles.ensemble import Ensemble, Fooling, Point
from radii.ensembles.facts import Facts
from radii.ensembles.proving import Finding
from radii.ensembles.sets import members, set_of
from radii.errors import StoreError
from radii.verdicts import Verdict

__all__ = ["FILE_NAME", "Records"]

FILE_NAME = "ensemble.sqlite"
SCHEMA_VERSION = 1

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE foolings (
    id INTEGER PRIMARY KEY,
    point INTEGER NOT NULL,
    fooled TEXT NOT NULL,  -- the places of the classifiers, as a JSON list
    distance REAL NOT NULL,
    input BLOB NOT NULL  -- in the networks' own type and shape
);
CREATE TABLE findings (
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
    ended_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
"""


class Records:
    """The facts of one ensemble at some points in one norm. Use as a context manager."""

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self._db = connection
        self._place = place

    @classmethod
    def create_or_open(
        cls, directory: Path, ensemble: Ensemble, points: Sequence[Point], norm: Norm
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
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if not tables:
                for statement in SCHEMA.split(";\n"):
                    connection.execute(statement)
            connection.execute("COMMIT")
            records = cls(connection, str(path))
            records._begin(_description(ensemble, points, norm))
        except sqlite3.DatabaseError as error:
            connection.close()
            reason = "in use by another run" if "locked" in str(error) else str(error)
            raise StoreError(f"{path}: cannot be opened: {reason}") from None
        except StoreError:
            connection.close()
            raise
        return records

    def facts(self, points: Sequence[Point]) -> list[Facts]:
        """What is known of each point."""
        found = [Facts() for _ in points]
        rows = self._db.execute("SELECT point, fooled, distance, input FROM foolings ORDER BY id")
        for place, fooled, distance, content in rows:
            like = points[place].input
            perturbed = np.frombuffer(content, like.dtype).reshape(like.shape)
            found[place].foolings.append(Fooling(_mask(fooled), distance, perturbed))
        rows = self._db.execute(
            "SELECT point, classifiers, eps, verdict, verifier, version, seconds, margin, message"
            " FROM findings ORDER BY id"
        )
        for place, classifiers, eps, verdict, *rest in rows:
            finding = Finding(_mask(classifiers), eps, Verdict(verdict), *rest)
            found[place].findings.append(finding)
        return found

    def keep_fooling(self, place: int, fooling: Fooling) -> None:
        content = np.ascontiguousarray(fooling.input).tobytes()
        self._db.execute(
            "INSERT INTO foolings (point, fooled, distance, input) VALUES (?, ?, ?, ?)",
            (place, _text(fooling.fooled), fooling.distance, content),
        )

    def keep_finding(self, place: int, finding: Finding) -> None:
        """An answer; the input that it brought is a fooling of its own."""
        self._db.execute("BEGIN")
        if finding.fooling is not None:
            self.keep_fooling(place, finding.fooling)
        self._db.execute(
            "INSERT INTO findings (point, classifiers, eps, verdict, verifier, version, seconds,"
            " margin, message) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            ),
        )
        self._db.execute("COMMIT")

    def _begin(self, description: dict[str, str]) -> None:
        known = dict(self._db.execute("SELECT name, value FROM meta").fetchall())
        if not known:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT INTO meta VALUES (?, ?)", sorted(description.items()))
            self._db.execute("COMMIT")
            return
        for name, value in description.items():
            if known.get(name) != value:
                raise StoreError(
                    f"{self._place}: holds results for another {name}; choose another directory"
                )

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _description(ensemble: Ensemble, points: Sequence[Point], norm: Norm) -> dict[str, str]:
    digest = hashlib.sha256()
    for point in points:
        digest.update(f"{point.index} {point.label} {point.input.dtype}".encode())
        digest.update(np.ascontiguousarray(point.input).tobytes())
    networks = [network.fingerprint for network in ensemble.networks]
    return {
        "version of this file": str(SCHEMA_VERSION),
        "list of networks": json.dumps(networks),
        "selection of points": digest.hexdigest(),
        "norm": norm.value,
        "domain": ensemble.domain.key(),
    }


def _text(mask: int) -> str:
    return json.dumps(members(mask))


def _mask(text: str) -> int:
    return set_of(json.loads(text))
