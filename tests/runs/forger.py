"""A forger of stores: changes a cell, and then everything else in the file that depends on it.

Whoever can write numbers into a store can also write what they are held against when it is read:
keys, brackets, digests, counts, and the table of checks. What a forger cannot make is a certificate
of something that is not so, another network of the same fingerprint, or other data.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from radii import problem
from radii.problem import Domain, Instance, Norm
from radii.store import STORE_FILE, StoredSettings, content_hash, selection_of

INSTANCES = "SELECT rowid, * FROM instances ORDER BY position"


class Forger:
    """An open store, changed by SQL; `mend` makes it agree with itself again."""

    def __init__(self, place: Path) -> None:
        self.db = sqlite3.connect(place / STORE_FILE)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA foreign_keys = OFF")

    def __enter__(self) -> Forger:
        return self

    def __exit__(self, *exception: object) -> None:
        self.db.commit()
        self.db.close()

    def described(self) -> dict[str, Any]:
        (text,) = self.db.execute("SELECT value FROM meta WHERE name = 'experiment'").fetchone()
        return dict(json.loads(text))

    def describe(self, name: str, value: object) -> None:
        """Set a value of what was asked for, wherever it is written down."""
        path = f"$.{name}"
        text = json.dumps(value)
        self.db.execute("UPDATE meta SET value = json_set(value, ?, json(?))", (path, text))
        self.db.execute(
            "UPDATE steps SET described = json_set(described, ?, json(?))", (path, text)
        )

    def remove(self, instances: str) -> None:
        """Take away the instances that meet a condition, and all that was answered about them."""
        self.remove_answers(instances)
        chosen = f"(SELECT key FROM instances WHERE {instances})"
        self.db.execute(f"DELETE FROM step_instances WHERE instance IN {chosen}")
        assert self.db.execute(f"DELETE FROM instances WHERE {instances}").rowcount

    def remove_answers(self, instances: str) -> None:
        chosen = f"(SELECT key FROM instances WHERE {instances})"
        of_them = f"(SELECT id FROM queries WHERE instance IN {chosen})"
        self.db.execute(f"DELETE FROM witnesses WHERE query IN {of_them}")
        for table in ("queries", "brackets", "checks"):
            self.db.execute(f"DELETE FROM {table} WHERE instance IN {chosen}")

    def mend(self) -> None:
        self._mend_contents()
        self._mend_instances()
        self._mend_answers()
        self._mend_selection()
        self._check_all()

    def _mend_contents(self) -> None:
        """Certificates are called by their hashes again."""
        for name, content in self.db.execute("SELECT hash, content FROM certificates").fetchall():
            own = content_hash(content)
            self.db.execute("UPDATE certificates SET hash = ? WHERE hash = ?", (own, name))
            self.db.execute("UPDATE queries SET certificate = ? WHERE certificate = ?", (own, name))

    def _mend_instances(self) -> None:
        """Classes follow from outputs, targets from properties, and keys from everything."""
        settings = StoredSettings.from_json(self.described())
        domains = settings.domain_of_network()
        for row in self.db.execute(INSTANCES).fetchall():
            if row["network"] not in domains:
                continue
            instance = self._instance(row, domains[row["network"]], settings)
            values = (instance.key, instance.predicted, int(instance.correct))
            target = instance.property.target
            self.db.execute(
                "UPDATE instances SET key = ?, predicted = ?, correct = ?, target = ?"
                " WHERE rowid = ?",
                (*values, target, row["rowid"]),
            )
            for table in ("queries", "brackets", "step_instances", "checks"):
                self.db.execute(
                    f"UPDATE OR IGNORE {table} SET instance = ? WHERE instance = ?",
                    (instance.key, row["key"]),
                )

    def _instance(self, row: sqlite3.Row, domain: Domain, settings: StoredSettings) -> Instance:
        image = np.frombuffer(row["input"], row["dtype"]).reshape(json.loads(row["shape"]))
        return Instance(
            network=row["network"],
            index=row["input_index"],
            input=image,
            label=row["label"],
            outputs=np.frombuffer(row["outputs"]),
            property=problem.parse_property(row["property"]),
            norm=Norm(row["norm"]),
            domain=domain,
            features=settings.features,
        )

    def _mend_answers(self) -> None:
        """Distances follow from inputs, verdicts from evidence, and brackets from all of it."""
        answers = self.db.execute(
            "SELECT q.id, q.instance, q.eps, q.kind, q.proof_eps, w.query, w.input, w.dtype,"
            " w.shape, w.outputs, i.input, i.dtype, i.shape, i.norm, w.distance"
            " FROM queries q LEFT JOIN witnesses w ON w.query = q.id"
            " JOIN instances i ON i.key = q.instance"
        ).fetchall()
        sides: dict[str, tuple[float, float]] = {}
        for number, key, eps, kind, proven, query, *witness in answers:
            lower, upper = sides.get(key, (0.0, np.inf))
            if query is not None:
                distance = self._mend_witness(query, witness)
                upper = min(upper, distance)
            verdict = "ROBUST" if proven is not None else "NOT_ROBUST" if query else None
            if verdict == "ROBUST" and kind == "prove":
                self.db.execute("UPDATE queries SET eps = ? WHERE id = ?", (proven, number))
            if verdict == "NOT_ROBUST" and eps < distance:
                verdict = "UNKNOWN"
            if verdict is not None:
                self.db.execute("UPDATE queries SET verdict = ? WHERE id = ?", (verdict, number))
            sides[key] = (max(lower, proven or 0.0), upper)
        self.db.execute("DELETE FROM brackets")
        rows = [
            (key, lower if lower < upper else 0.0, upper) for key, (lower, upper) in sides.items()
        ]
        self.db.executemany("INSERT INTO brackets VALUES (?, ?, ?)", rows)

    def _mend_witness(self, query: int, columns: list[Any]) -> float:
        data, dtype, shape, outputs, image, own_dtype, own_shape, norm, _ = columns
        moved = np.frombuffer(data, dtype).reshape(json.loads(shape)).astype(np.float64)
        still = np.frombuffer(image, own_dtype).reshape(json.loads(own_shape)).astype(np.float64)
        distance = float(Norm(norm).length(moved - still))
        values = (distance, int(np.argmax(np.frombuffer(outputs))), query)
        self.db.execute("UPDATE witnesses SET distance = ?, predicted = ? WHERE query = ?", values)
        return distance

    def _mend_selection(self) -> None:
        """Counts and digests of what was selected."""
        keys = [key for (key,) in self.db.execute("SELECT key FROM instances ORDER BY position")]
        for place, key in enumerate(keys):
            self.db.execute("UPDATE instances SET position = ? WHERE key = ?", (place, key))
        self.db.execute(
            "UPDATE meta SET value = json_set(value, '$.data', ?)", (selection_of(keys),)
        )
        for number, text in self.db.execute("SELECT id, described FROM steps").fetchall():
            (count,) = self.db.execute(
                "SELECT count(*) FROM step_instances WHERE step = ?", (number,)
            ).fetchone()
            stated = re.sub(r"^\d+", str(count), json.loads(text)["data"])
            self.db.execute(
                "UPDATE steps SET described = json_set(described, '$.data', ?) WHERE id = ?",
                (stated, number),
            )

    def _check_all(self) -> None:
        """Every certificate was accepted, as the file says."""
        self.db.execute("DELETE FROM checks")
        self.db.execute(
            "INSERT OR IGNORE INTO checks SELECT certificate, instance, proof_eps,"
            " proof_arithmetic, 'radii_check 9.9', '2030-01-01T00:00:00.000Z', 1, '', 'exact',"
            " 9, 9, 0.5, 0.1 FROM queries WHERE certificate IS NOT NULL"
        )


def columns_of(place: Path) -> list[tuple[str, str]]:
    """Every column of every table."""
    with closing(sqlite3.connect(place / STORE_FILE)) as db:
        tables = [
            name
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("sqlite_")
        ]
        return [
            (table, row[1]) for table in tables for row in db.execute(f"PRAGMA table_info({table})")
        ]
