"""Stores that were damaged: the right numbers or one sentence, from everything that reads them."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from conftest import work_in_this_process, write_linear, write_points
from radii.cli import main
from radii.errors import InputError, StoreError
from radii.problem import REAL, CertificateCheck, CheckOutcome, Measurement, Proof, Result, Verdict
from radii.runs import Experiment, Plan, prepare
from radii.statistics import FollowedStore
from radii.store import STORE_FILE, CertifiedStatement, Store, content_hash
from radii.strategy import Question, QuestionKind

TABLES = (
    *("meta", "networks", "instances", "queries", "witnesses", "brackets"),
    *("certificates", "checks"),
)
VALUES = {
    "bad encoding": "CAST(x'ff80fe' AS TEXT)",
    "NULL": "NULL",
    "huge number": "9e307",
    "huge whole number": str(2**62),
    "negative number": "-1",
    "text": "'wrong'",
    "empty blob": "x''",
    "truncated": "CAST(substr({0}, 1, 5) AS BLOB)",
    "of another shape": "CAST({0} || {0} AS BLOB)",
}


@dataclass(frozen=True, eq=False)
class Made:
    """An undamaged store, and what made it."""

    place: Path
    plan: Plan
    numbers: list[tuple[object, ...]]
    flags: list[str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two inputs with radii 0.1 and 0.25, one misclassified, and answers of every kind."""
    files = tmp_path_factory.mktemp("whole")
    network, data, place = write_linear(files), write_points(files), files / "out"
    options = {"networks": [str(network)], "data": f"{data}[0:3]", "domain": "0:1"}
    plan = prepare(Experiment.from_options({**options, "grid": "0.01:0.4:0.02"}))
    late = Result(Verdict.TIMEOUT, 0.39, "milp", "1", 2.0, cpu_seconds=1.0, allowed_seconds=2.0)
    with Store.create_or_open(place) as store:
        plan.run(store, jobs=0)
        store.record([(plan.instances[0].key, Question(QuestionKind.PROVE, 0.39), late)])
        certify(store, plan.instances[1].key)
        found = store.measurements()
    assert [round(m.bracket.upper, 6) for m in found] == [0.1, 0.25, 0.0]
    assert [m.bracket.lower for m in found] == [0.09, 0.23, 0.0]
    flags = [f"--network={network}", f"--data={data}[0:3]", "--domain=0:1"]
    return Made(place, plan, numbers(found), flags)


def certify(store: Store, key: str) -> None:
    """A proof with a certificate, and a check of that."""
    proof = Proof(0.01, 0.0, REAL, certificate=b"shown")
    result = Result(Verdict.ROBUST, 0.01, "native", "1", 1.0, proof=proof)
    store.record([(key, Question(QuestionKind.PROVE, 0.01), result)])
    checked = CertificateCheck(
        "radii_check 1.0", "2030-01-01T00:00:00Z", CheckOutcome.ACCEPTED, nodes=1, lemmas=2
    )
    store.record_checks([(CertifiedStatement(content_hash(b"shown"), key, 0.01, REAL), checked)])


def numbers(measurements: list[Measurement]) -> list[tuple[object, ...]]:
    """What a distribution is made of."""
    return [
        (
            m.network,
            m.fingerprint,
            m.input,
            m.label,
            m.predicted,
            m.correct,
            m.property,
            m.target,
            *astuple(m.bracket),
            m.witness_class,
        )
        for m in measurements
    ]


def columns() -> list[tuple[str, str]]:
    with Store.in_memory() as store:
        return [
            (table, row[1])
            for table in TABLES
            for row in store._db.execute(f"PRAGMA table_info({table})")
        ]


def damaged(made: Made, place: Path, statement: str) -> bool:
    """A copy of the store after the statement; False if SQLite itself prevents that."""
    place.mkdir()
    shutil.copy(made.place / STORE_FILE, place / STORE_FILE)
    with closing(sqlite3.connect(place / STORE_FILE)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")
        db.commit()
    with closing(sqlite3.connect(place / STORE_FILE)) as db:
        try:
            db.execute(statement)
        except sqlite3.IntegrityError:
            return False
        db.commit()
    return True


def deletions(made: Made) -> Iterator[str]:
    with closing(sqlite3.connect(made.place / STORE_FILE)) as db:
        for table in TABLES:
            count = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            key = db.execute(f"PRAGMA table_info({table})").fetchone()[1]
            yield f"DELETE FROM {table}"
            for place in range(count if count > 1 else 0):
                one = f"SELECT {key} FROM {table} LIMIT 1 OFFSET {place}"
                yield f"DELETE FROM {table} WHERE {key} = ({one})"


def followed(place: Path) -> list[tuple[object, ...]]:
    """As the report and the live page read it."""
    store = FollowedStore(place)
    store.refresh()
    return numbers([record.measurement for record in store.records])


def one_record(store: Store, key: str) -> Measurement:
    (record,) = store.records([key])
    return record.measurement


def read(made: Made, place: Path) -> Iterator[Callable[[], object]]:
    """Each way to read a store; those that give numbers give the right ones."""

    def opened(reader: Callable[[Store], object]) -> Callable[[], object]:
        def call() -> object:
            with Store.open(place) as store:
                return reader(store)

        return call

    yield opened(lambda store: numbers(store.measurements()))
    yield opened(lambda store: numbers([record.measurement for record in store.records()]))
    yield lambda: followed(place)
    yield opened(lambda store: numbers([one_record(store, k) for k in store.instance_keys()]))
    yield opened(lambda store: [case.search.bracket for case in made.plan.cases(store)])
    yield opened(Store.experiment)
    yield opened(Store.networks)
    yield opened(Store.instance_keys)
    yield opened(Store.disagreements)
    yield opened(Store.first_answer_at)


NUMERIC = 5
"""As many ways to read a store, the first ones, give numbers."""
SENTENCE = re.compile(r"[^\n]+: [^\n]+[^.\n]")


@pytest.mark.sampled(200)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("place", columns(), ids=".".join)
def test_a_damaged_column_is_told_or_does_no_harm(
    made: Made, tmp_path: Path, place: tuple[str, str], value: str
) -> None:
    table, column = place
    for number, where in enumerate(("", f" WHERE rowid = (SELECT max(rowid) FROM {table})")):
        if table == "meta" and where:
            continue  # it has one row, and no rowid
        statement = f"UPDATE {table} SET {column} = {value.format(column)}{where}"
        check_reading(made, tmp_path / str(number), statement)


def test_deleted_rows_are_told_or_do_no_harm(made: Made, tmp_path: Path) -> None:
    for number, statement in enumerate(deletions(made)):
        check_reading(made, tmp_path / str(number), statement)


@cache
def whole_numbers(made: Made) -> list[object]:
    """What each way to read the undamaged store gives."""
    return [call() for _, call in zip(range(NUMERIC), read(made, made.place), strict=False)]


def check_reading(made: Made, place: Path, statement: str) -> None:
    if not damaged(made, place, statement):
        return
    for number, call in enumerate(read(made, place)):
        try:
            found = call()
        except InputError as error:
            assert SENTENCE.fullmatch(str(error)), statement
            continue
        if number < NUMERIC:
            assert found == whole_numbers(made)[number], statement


DAMAGES = {
    "no witness": "DELETE FROM witnesses WHERE query = 1",
    "another distance": "UPDATE witnesses SET distance = distance * 0.9",
    "outside of the domain": "UPDATE witnesses SET input = x'0000c0bf0000003f', distance = 2.1",
    "another input": "UPDATE instances SET input = x'0000003f0000003f'",
    "another label": "UPDATE instances SET label = 1 - label, correct = 1 - correct",
    "a higher proof": "UPDATE queries SET proof_eps = eps, proof_margin = 0",
    "a lower bracket": "UPDATE brackets SET lower = 0.01",
    "another name": "UPDATE networks SET name = 'other.onnx'",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_what_does_not_agree_is_refused(made: Made, tmp_path: Path, damage: str) -> None:
    assert damaged(made, tmp_path / "d", damage)
    with Store.open(tmp_path / "d") as store, pytest.raises(StoreError, match="is damaged"):
        store.measurements()


def test_a_witness_outside_of_the_domain_is_refused(made: Made, tmp_path: Path) -> None:
    """Though it is as far away as it says, and its bracket too."""
    outside = np.array([-0.25, 0.5], np.float32)
    distance = 0.75  # from [0.5, 0.3]
    place = tmp_path / "d"
    assert damaged(made, place, "UPDATE queries SET eps = 2 WHERE verdict = 'NOT_ROBUST'")
    with closing(sqlite3.connect(place / STORE_FILE)) as db:
        key = made.plan.instances[0].key
        own = "SELECT id FROM queries WHERE instance = ?"
        db.execute(
            f"UPDATE witnesses SET input = ?, distance = ? WHERE query IN ({own})",
            (outside.tobytes(), distance, key),
        )
        db.execute("UPDATE brackets SET upper = ? WHERE instance = ?", (distance, key))
        db.commit()
    with Store.open(place) as store, pytest.raises(StoreError, match="outside of the domain"):
        store.measurements()


COMMANDS = {
    "show": ["show", "{place}", "--json"],
    "statistics": ["show", "{place}", "--statistics"],
    "export": ["export", "{place}"],
    "verona": ["export", "{place}", "--format", "verona"],
    "card": ["card", "{place}"],
    "gate": ["gate", "{place}", "--require", "robust_accuracy(0.05) >= 0.5"],
    "compare": ["compare", "{place}", "{whole}"],
    "report": ["report", "{place}", "--output", "{out}.html"],
    "run": ["run", "--out", "{place}", "--grid=0.01:0.4:0.02", "{flags}"],
    "audit": ["audit", "{place}", "--out", "{out}", "{flags}"],
}


def exit_code(made: Made, command: str, place: Path, out: Path) -> int:
    words = {"place": place, "whole": made.place, "out": out}
    told = [part.format(**words) for part in COMMANDS[command] if part != "{flags}"]
    return main([*told, *(made.flags if "{flags}" in COMMANDS[command] else [])])


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_what_is_damaged(
    made: Made,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    work_in_this_process(monkeypatch)
    shutil.copytree(made.place, tmp_path / "whole")
    assert exit_code(made, command, tmp_path / "whole", tmp_path / "before") == 0
    for number, damage in enumerate((*DAMAGES.values(), *DECODED)):
        capsys.readouterr()
        assert damaged(made, tmp_path / str(number), damage)
        assert exit_code(made, command, tmp_path / str(number), tmp_path / "out") == 2, damage
        said = capsys.readouterr().err.strip().splitlines()
        assert SENTENCE.fullmatch(said[-1].removeprefix("radii: ")), damage


DECODED = (
    "UPDATE networks SET name = CAST(x'ff80fe' AS TEXT)",
    "UPDATE queries SET verdict = NULL",
    "UPDATE witnesses SET input = substr(input, 1, 5)",
    "UPDATE instances SET shape = '[3]'",
    "UPDATE meta SET value = '[]'",
)
"""Damage that used to be an internal error."""


def test_what_follows_a_store_says_that_it_is_damaged(made: Made, tmp_path: Path) -> None:
    for number, damage in enumerate((*DAMAGES.values(), *DECODED)):
        place = tmp_path / str(number)
        assert damaged(made, place, damage)
        with pytest.raises(StoreError, match=r"damaged|cannot be used"):
            FollowedStore(place).refresh()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_damage_is_an_internal_error_of_a_command(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    work_in_this_process(monkeypatch)
    statements = [
        f"UPDATE {table} SET {column} = {value.format(column)}"
        for table, column in columns()
        for value in VALUES.values()
    ]
    for number, statement in enumerate((*statements, *deletions(made))):
        place = tmp_path / str(number)
        if damaged(made, place, statement):
            code = exit_code(made, command, place, tmp_path / "out")
            assert code in (0, 2), statement
        shutil.rmtree(place)
