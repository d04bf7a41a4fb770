"""Reading what `radii ensemble --out` keeps, without its networks: for reports."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from radii.balls import Norm
from radii.ensembles._ensemble import Fooling, Point, full_set, is_within, set_of
from radii.ensembles._facts import EnsembleResults, Facts, Play
from radii.ensembles._game import DeterministicAttack
from radii.ensembles._proofs import JointResult
from radii.ensembles._value import REPLAY
from radii.errors import StoreError
from radii.store import ENSEMBLE_FILE
from radii.verdicts import REAL, Arithmetic, Verdict

FILE_NAME = ENSEMBLE_FILE

VERSION_KEY = "version of this file"
ARITHMETIC_KEY = "arithmetic"
ENSEMBLE_SCHEMA_VERSION = 3
"""1 had neither networks, points nor plays, 2 no arithmetic: opened for writing, a file gets them.
"""


def read_ensemble_results(directory: Path) -> EnsembleResults:
    """All that a directory keeps; a StoreError if a run is writing there, or it is none of ours."""
    path = directory / FILE_NAME
    if not path.is_file():
        raise StoreError(f"{directory}: holds no results of radii ensemble")
    with explaining_damage(path):
        address = f"{path.resolve().as_uri()}?mode=ro"
        with (
            closing(sqlite3.connect(address, uri=True, timeout=1.0)) as file,
            closing(sqlite3.connect(":memory:")) as copy,
        ):
            if _version(file) != "2":
                return _read(file, directory)
            file.backup(copy)  # the file itself stays as it is
            add_arithmetic(copy)
            row = (ARITHMETIC_KEY, str(REAL))
            copy.execute("INSERT INTO meta VALUES (?, ?)", row)
            copy.execute(
                "UPDATE meta SET value = ? WHERE name = ?", (ENSEMBLE_SCHEMA_VERSION, VERSION_KEY)
            )
            return _read(copy, directory)


def add_arithmetic(database: sqlite3.Connection) -> None:
    """To findings from before it was told: their margins were sampled, so they count as real."""
    database.execute("ALTER TABLE findings ADD COLUMN arithmetic TEXT")
    database.execute(
        "UPDATE findings SET arithmetic = ? WHERE verdict = ? AND verifier != ?",
        (str(REAL), Verdict.ROBUST.value, REPLAY),
    )


def _version(database: sqlite3.Connection) -> str | None:
    row = database.execute("SELECT value FROM meta WHERE name = ?", (VERSION_KEY,)).fetchone()
    return None if row is None else str(row[0])


@contextmanager
def explaining_damage(path: Path) -> Iterator[None]:
    """What goes wrong while a file is read is one sentence about the file."""
    try:
        yield
    except (sqlite3.DatabaseError, ArithmeticError, ValueError, TypeError, LookupError) as error:
        reason = "a run is writing there now" if "locked" in str(error) else f"damaged ({error})"
        raise StoreError(f"{path}: cannot be read: {reason}") from None


def _read(database: sqlite3.Connection, directory: Path) -> EnsembleResults:
    told = dict(database.execute("SELECT name, value FROM meta").fetchall())
    if told.get(VERSION_KEY) != str(ENSEMBLE_SCHEMA_VERSION):
        raise StoreError(
            f"{directory}: was written by another version of radii; run its command again, which "
            "asks nothing twice"
        )
    names = [name for (name,) in database.execute("SELECT name FROM networks ORDER BY place")]
    rows = database.execute("SELECT number, label, type, shape, input FROM points ORDER BY place")
    points = tuple(
        Point(number, label, np.frombuffer(content, np.dtype(kind)).reshape(json.loads(shape)))
        for number, label, kind, shape, content in rows
    )
    known = EnsembleResults(
        tuple(names),
        points,
        Norm(told["norm"]),
        told["domain"],
        tuple(read_facts(database, points)),
        read_plays(database),
        directory,
        Arithmetic.parse(told[ARITHMETIC_KEY]),
    )
    _check(known)
    return known


def _check(known: EnsembleResults) -> None:
    """Plays are of these points and networks, and mixes are mixes: else a value would not be one.

    Raises a ValueError that says what is wrong.
    """
    if not known.names or not known.points:
        raise ValueError("it has no networks or no points")
    everyone = full_set(len(known.names))
    sets = [each.fooled for facts in known.facts for each in facts.foolings]
    sets += [each.classifiers for facts in known.facts for each in facts.findings]
    for play in known.plays:
        sets += [mask for each in play.attack for mask in each.sets]
        for mix in ([each.probability for each in play.attack], play.defence):
            if min(mix, default=-1) < 0 or sum(mix) != 1:
                raise ValueError(f"a mix at eps {play.eps:g} does not add up to 1")
        if len(play.defence) != len(known.names):
            raise ValueError(f"the defence at eps {play.eps:g} is of other networks")
        if any(len(each.sets) != len(known.points) for each in play.attack):
            raise ValueError(f"an attack at eps {play.eps:g} is of other points")
    if not all(is_within(mask, everyone) for mask in sets):
        raise ValueError("a set has networks that the ensemble does not have")


def read_facts(database: sqlite3.Connection, points: Sequence[Point]) -> list[Facts]:
    """What is known of each point."""
    found = [Facts() for _ in points]
    rows = database.execute("SELECT point, fooled, distance, input FROM foolings ORDER BY id")
    for place, fooled, distance, content in rows:
        like = points[place].input
        perturbed = np.frombuffer(content, like.dtype).reshape(like.shape)
        found[place].foolings.append(Fooling(_mask(fooled), float(distance), perturbed))
    rows = database.execute(
        "SELECT point, classifiers, eps, verdict, verifier, version, seconds, margin, message,"
        " arithmetic FROM findings ORDER BY id"
    )
    for place, classifiers, eps, verdict, *rest, arithmetic in rows:
        finding = JointResult(_mask(classifiers), float(eps), Verdict(verdict), *rest)
        spoken = None if arithmetic is None else Arithmetic.parse(arithmetic)
        found[place].findings.append(replace(finding, arithmetic=spoken))
    return found


def read_plays(database: sqlite3.Connection) -> tuple[Play, ...]:
    """The best plays, by increasing eps."""
    rows = database.execute("SELECT eps, attack, defence FROM plays ORDER BY eps")
    return tuple(
        Play(
            float(eps),
            tuple(
                DeterministicAttack(Fraction(probability), tuple(map(set_of, sets)))
                for probability, sets in json.loads(attack)
            ),
            tuple(Fraction(weight) for weight in json.loads(defence)),
        )
        for eps, attack, defence in rows
    )


def _mask(text: str) -> int:
    return set_of(json.loads(text))
