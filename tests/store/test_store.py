"""The store: durable, resumable, one clear sentence for whatever is wrong with it."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import make_older
from radii.errors import StoreError
from radii.problem import (
    FLOAT,
    REAL,
    Arithmetic,
    Bracket,
    Domain,
    Instance,
    Norm,
    OneToAny,
    Proof,
    Result,
    Verdict,
    Witness,
)
from radii.processes import Ending
from radii.store import ENSEMBLE_FILE, SCHEMA_VERSION, STORE_FILE, Store
from radii.strategy import Question, QuestionKind

FINGERPRINT = "a" * 64


def instances(count: int = 3) -> list[Instance]:
    return [
        Instance(
            network=FINGERPRINT,
            index=place,
            input=np.array([0.5, place / 10], np.float32),
            label=0,
            outputs=np.array([1.0, 0.0]),
            property=OneToAny(),
            norm=Norm.LINF,
            domain=Domain(np.float64(0), np.float64(1)),
        )
        for place in range(count)
    ]


ATTACKED = (
    Question(QuestionKind.ATTACK, 0.4),
    Result(
        Verdict.NOT_ROBUST,
        0.4,
        "minimum-norm",
        "1",
        0.5,
        witness=Witness(
            np.array([0.25, 0.125], np.float32), 0.25, 1, np.array([0.0, 0.5]), "onnxruntime 1"
        ),
    ),
)
PROVEN = (
    Question(QuestionKind.PROVE, 0.2),
    Result(Verdict.ROBUST, 0.2, "milp", "2", 1.5, proof=Proof(0.2, 1e-6), message="fine"),
)
TIMED_OUT = (Question(QuestionKind.PROVE, 0.3), Result(Verdict.TIMEOUT, 0.3, "milp", "2", 60.0))


def fill(store: Store, count: int = 3) -> list[str]:
    store.begin({"seed": 0}, {FINGERPRINT: ("net.onnx", "/tmp/net.onnx")}, instances(count))
    return store.instance_keys()


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *ATTACKED), (keys[0], *PROVEN), (keys[1], *TIMED_OUT)])
    with Store.open(tmp_path) as store:
        assert store.experiment() == {"seed": 0}
        assert store.instance_keys() == [instance.key for instance in instances()]
        told = store.results()
        question, result = told[keys[0]][0]
        assert question == ATTACKED[0]
        assert result.witness is not None
        assert result.witness.input.dtype == np.float32
        assert result.witness.input.tolist() == [0.25, 0.125]
        assert result.witness.outputs.tolist() == [0.0, 0.5]
        assert told[keys[0]][1] == PROVEN
        assert told[keys[1]] == [TIMED_OUT]
        first, second, third = store.measurements()
    assert first.bracket == Bracket(0.2, 0.25)
    assert (first.witness_class, first.queries, first.missing, first.seconds) == (1, 2, 0, 2.0)
    assert second.bracket == third.bracket == Bracket(0.0, math.inf)
    assert (second.missing, third.queries) == (1, 0)


@pytest.mark.parametrize("kind", [QuestionKind.RADIUS, QuestionKind.PROBE])
def test_a_radius_answer_keeps_the_eps_it_proved(tmp_path: Path, kind: QuestionKind) -> None:
    asked = Question(kind, 0.4)
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], asked, PROVEN[1])])
        assert store.results()[keys[0]] == [(asked, PROVEN[1])]
        assert store.measurements()[0].bracket == Bracket(0.2, math.inf)


def test_the_brackets_table_is_what_the_results_say(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *ATTACKED)])
        store.record([(keys[0], *PROVEN)])
    rows = sqlite3.connect(tmp_path / STORE_FILE).execute("SELECT * FROM brackets").fetchall()
    assert rows == [(keys[0], 0.2, 0.25)]


def test_disagreements_are_found(tmp_path: Path) -> None:
    wrong = Result(Verdict.ROBUST, 0.3, "liar", "1", 0.1, proof=Proof(0.3, 0.0))
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[2], *ATTACKED), (keys[2], Question(QuestionKind.PROVE, 0.3), wrong)])
        (network, index, disagreement) = store.disagreements()[0]
        assert (network, index) == ("net.onnx", 2)
        assert "liar" in str(disagreement)
        assert store.measurements()[2].bracket == Bracket(0.0, 0.25)


def test_only_one_run_writes(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        fill(store)
        with pytest.raises(StoreError, match="another run is writing"):
            Store.create_or_open(tmp_path)
        with Store.open(tmp_path) as reader:
            assert len(reader.instance_keys()) == 3
    with Store.create_or_open(tmp_path):
        pass


def test_what_no_experiment_began_in_is_removed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    for place in ("kept", "full", "new/and/deep"):
        with Store.create_or_open(tmp_path / place):
            assert (tmp_path / place / STORE_FILE).exists()
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"full", "full/notes.txt", "kept"}
    with Store.create_or_open(tmp_path / "new" / "one") as store:
        fill(store)
    with Store.create_or_open(tmp_path / "new" / "one") as store:
        assert store.experiment() is not None


def test_recording_is_all_or_nothing(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        unwritable = Result(Verdict.TIMEOUT, 0.1, "milp", "2", object())  # type: ignore[arg-type]
        with pytest.raises(StoreError):
            store.record(
                [(keys[0], *PROVEN), (keys[1], Question(QuestionKind.PROVE, 0.1), unwritable)]
            )
        assert store.results() == {}


WRITER = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_store import fill, TIMED_OUT
from radii.store import Store
store = Store.create_or_open(Path(sys.argv[1]))
keys = fill(store, 500)
for place, key in enumerate(keys):
    store.record([(key, *TIMED_OUT)])
    print(place, flush=True)
"""


def test_what_was_reported_survives_kill_9(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), *map(str, Path(__file__).parents[:2])],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    reported = [writer.stdout.readline() for _ in range(5)]
    time.sleep(0.05)
    os.kill(writer.pid, signal.SIGKILL)
    reported += writer.stdout.readlines()
    writer.wait()
    writer.stdout.close()
    with Store.open(tmp_path) as store:
        assert len(reported) <= len(store.results()) <= len(reported) + 1
    with Store.create_or_open(tmp_path) as store:
        assert len(store.instance_keys()) == 500


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no radii experiment is here"):
        Store.open(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=f"{STORE_FILE} is missing"):
        Store.open(tmp_path)
    (tmp_path / ENSEMBLE_FILE).touch()
    with pytest.raises(StoreError, match="holds an ensemble, not a run; radii report"):
        Store.open(tmp_path)


def test_not_a_database(tmp_path: Path) -> None:
    (tmp_path / STORE_FILE).write_bytes(b"this is not a database, " * 100)
    with pytest.raises(StoreError, match="not a radii store"):
        Store.open(tmp_path)


def test_another_version(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        fill(store)
    with sqlite3.connect(tmp_path / STORE_FILE) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    for opened in (Store.open, Store.create_or_open):
        with pytest.raises(StoreError, match=f"has version {SCHEMA_VERSION + 1}"):
            opened(tmp_path)


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        Store.create_or_open(tmp_path / "file")


def test_a_full_disk(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store._db.execute("PRAGMA max_page_count = 1")  # SQLite then answers as on a full disk
        with pytest.raises(StoreError, match="full"):
            for _ in range(1000):
                store.record([(keys[0], *PROVEN)])
    with Store.open(tmp_path) as store:
        assert len(store.instance_keys()) == 3


def test_a_store_of_the_first_version_is_read_and_continued(tmp_path: Path) -> None:
    fresh, old = tmp_path / "fresh", tmp_path / "old"
    with Store.create_or_open(old) as store:
        keys = fill(store)
        store.record([(keys[0], *ATTACKED), (keys[0], *PROVEN)])
    with Store.create_or_open(fresh) as store:
        fill(store)
    make_older(old, 1)
    with Store.open(old) as store:
        assert store.results()[keys[0]][1] == PROVEN
        assert store.results()[keys[0]][1][1].allowed_seconds is None
        (first, *_) = store.measurements()
        assert (first.seconds, first.cpu_seconds, first.bracket) == (2.0, None, Bracket(0.2, 0.25))
    assert version_of(old) == 1, "reading must not change the file"
    with Store.create_or_open(old) as store:
        store.record([(keys[1], *TIMED_OUT)])
        assert store.results()[keys[0]][1] == PROVEN
        assert store.results()[keys[1]] == [TIMED_OUT]
    assert version_of(old) == SCHEMA_VERSION
    assert columns_of(old) == columns_of(fresh)


def test_proofs_keep_their_arithmetic(tmp_path: Path) -> None:
    wide = Arithmetic.parse("float:8")
    proofs = [
        Result(Verdict.ROBUST, 0.2, "milp", "2", 1.0, proof=Proof(0.2, 0.0, arithmetic))
        for arithmetic in (REAL, FLOAT, wide)
    ]
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(key, PROVEN[0], proof) for key, proof in zip(keys, proofs, strict=True)])
    with Store.open(tmp_path) as store:
        told = [store.results()[key][0][1].proof for key in keys]
        assert [proof and proof.arithmetic for proof in told] == [REAL, FLOAT, wide]
        assert [m.arithmetic for m in store.measurements()] == [REAL, FLOAT, wide]
    assert _asked(tmp_path, "SELECT proof_arithmetic FROM queries ORDER BY id") == [
        ("real",),
        ("float",),
        ("float:8",),
    ]


def test_without_a_proof_there_is_no_arithmetic(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *ATTACKED), (keys[1], *TIMED_OUT)])
        assert [m.arithmetic for m in store.measurements()] == [None, None, None]


def test_proofs_from_before_arithmetic_was_told_are_real(tmp_path: Path) -> None:
    proven = Result(Verdict.ROBUST, 0.2, "milp", "2", 1.5, proof=Proof(0.2, 1e-6, FLOAT))
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], PROVEN[0], proven), (keys[1], *ATTACKED)])
    make_older(tmp_path, 3)
    with Store.open(tmp_path) as store:
        assert [m.arithmetic for m in store.measurements()] == [REAL, None, None]
        assert store.experiment() == {"seed": 0, "arithmetic": "real"}
    assert version_of(tmp_path) == 3, "reading must not change the file"
    with Store.create_or_open(tmp_path) as store:
        store.record([(keys[2], PROVEN[0], proven)])
        assert [m.arithmetic for m in store.measurements()] == [REAL, None, FLOAT]
    assert version_of(tmp_path) == SCHEMA_VERSION


FROM_BEFORE_ENDINGS = [
    # verdict, message, proof_eps, cpu_seconds -> ending, verdict
    ("TIMEOUT", "", None, 1.0, Ending.TIME_LIMIT, Verdict.TIMEOUT),
    ("TIMEOUT", "killed: it overran its CPU limit", None, 1.0, Ending.CPU_LIMIT, Verdict.TIMEOUT),
    ("TIMEOUT", "", None, 8.5, Ending.CPU_LIMIT, Verdict.TIMEOUT),
    ("MEMOUT", "out of memory", None, None, Ending.MEMORY_LIMIT, Verdict.MEMOUT),
    ("UNKNOWN", "a layer of 9 units does not fit", None, 1.0, Ending.MEMORY_LIMIT, Verdict.MEMOUT),
    ("UNKNOWN", "", None, 1.0, Ending.GAVE_UP, Verdict.UNKNOWN),
    ("CANCELLED", "", None, 1.0, Ending.CANCELLED, Verdict.CANCELLED),
    ("ERROR", "boom", None, 1.0, Ending.FAILED, Verdict.ERROR),
    ("ROBUST", "", 0.2, 1.0, Ending.ANSWERED, Verdict.ROBUST),
    ("ROBUST", "left open at its time limit", 0.2, 1.0, Ending.TIME_LIMIT, Verdict.ROBUST),
    ("ROBUST", "overran its CPU limit", 0.2, 1.0, Ending.CPU_LIMIT, Verdict.ROBUST),
    ("ROBUST", "overran its memory limit", 0.2, 1.0, Ending.MEMORY_LIMIT, Verdict.ROBUST),
    ("ROBUST", "out of memory", 0.2, 1.0, Ending.MEMORY_LIMIT, Verdict.ROBUST),
]  # fmt: skip


def test_endings_of_a_store_from_before_are_read_from_its_messages(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        networks = {FINGERPRINT: ("net.onnx", "/tmp/net.onnx")}
        store.begin({"seed": 0, "cpu_timeout": 8.0}, networks, instances())
        key = store.instance_keys()[0]
        store.record([(key, PROVEN[0], PROVEN[1])] * len(FROM_BEFORE_ENDINGS))
    make_older(tmp_path, 6)
    with sqlite3.connect(tmp_path / STORE_FILE) as db:
        for number, (verdict, message, proof, cpu, *_) in enumerate(FROM_BEFORE_ENDINGS, 1):
            db.execute(
                "UPDATE queries SET verdict = ?, message = ?, proof_eps = ?, proof_arithmetic = ?,"
                " cpu_seconds = ? WHERE id = ?",
                (verdict, message, proof, "float" if proof else None, cpu, number),
            )
    db.close()
    expected = [(ending, verdict) for *_, ending, verdict in FROM_BEFORE_ENDINGS]
    with Store.open(tmp_path) as store:
        found = [(result.ending, result.verdict) for _, result in store.results()[key]]
    assert found == expected
    assert version_of(tmp_path) == 6, "reading must not change the file"
    with Store.create_or_open(tmp_path) as store:
        found = [(result.ending, result.verdict) for _, result in store.results()[key]]
    assert found == expected and version_of(tmp_path) == SCHEMA_VERSION


def test_an_ending_that_its_verdict_cannot_have_is_damage(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *TIMED_OUT)])
        store._db.execute("UPDATE queries SET ending = 'memory limit'")
        store._db.commit()
        with pytest.raises(StoreError, match="damaged"):
            store.results()


def test_an_attack_from_before_has_no_arithmetic(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        networks = {FINGERPRINT: ("net.onnx", "/tmp/net.onnx")}
        store.begin({"search": "attack-only"}, networks, instances())
    make_older(tmp_path, 3)
    with Store.open(tmp_path) as store:
        assert store.experiment() == {"search": "attack-only"}


def version_of(directory: Path) -> int:
    return int(_asked(directory, "PRAGMA user_version")[0][0])


def columns_of(directory: Path) -> list[tuple[object, ...]]:
    return _asked(directory, "PRAGMA table_info(queries)")


def _asked(directory: Path, query: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(directory / STORE_FILE)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def test_what_queries_cost_is_kept(tmp_path: Path) -> None:
    aside = Result(Verdict.CANCELLED, 0.1, "milp", "2", 3.0, cpu_seconds=2.5, added_seconds=0.25)
    late = Result(Verdict.TIMEOUT, 0.3, "milp", "2", 4.0, cpu_seconds=3.5, added_seconds=4.0)
    full = Result(Verdict.MEMOUT, 0.4, "milp", "2", 1.0, cpu_seconds=1.0)
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        told = [
            (Question(QuestionKind.PROVE, result.eps), result) for result in (aside, late, full)
        ]
        store.record([(keys[0], *answer) for answer in told])
        assert store.results()[keys[0]] == told
        (first, *_) = store.measurements()
    assert (first.queries, first.cancelled, first.timeouts, first.memouts) == (3, 1, 1, 1)
    assert (first.missing, first.seconds, first.cpu_seconds) == (2, 5.25, 7.0)


def _climbed(
    lower: float, ending: Ending = Ending.ANSWERED, eps: float = 0.3
) -> tuple[Question, Result]:
    proof = Proof(lower, 0.0)
    result = Result(Verdict.ROBUST, lower, "native", "1", 1.0, proof=proof, ending=ending)
    return Question(QuestionKind.RADIUS, eps), result


LEFT_OPEN = _climbed(0.1, Ending.TIME_LIMIT)
KILLED = _climbed(0.1, Ending.CPU_LIMIT)
FULL = _climbed(0.1, Ending.MEMORY_LIMIT)
PROBED = (Question(QuestionKind.PROBE, 0.3), LEFT_OPEN[1])
PROVEN_LATER = (
    Question(QuestionKind.PROVE, 0.3),
    Result(Verdict.ROBUST, 0.3, "milp", "2", 1.0, proof=Proof(0.3, 0.0)),
)
CANCELLED = (Question(QuestionKind.RADIUS, 0.3), Result(Verdict.CANCELLED, 0.3, "native", "1", 0.0))


@pytest.mark.parametrize(
    ("answers", "count"),
    [
        ([LEFT_OPEN], 1),
        ([KILLED], 1),
        ([LEFT_OPEN, LEFT_OPEN], 1),
        ([LEFT_OPEN, CANCELLED], 1),
        ([LEFT_OPEN, _climbed(0.3)], 0),
        ([LEFT_OPEN, PROVEN_LATER], 0),
        ([_climbed(0.3)], 0),
        ([_climbed(0.1, Ending.GAVE_UP)], 0),
        ([PROBED], 0),
    ],
)
def test_a_radius_that_its_time_left_open_is_a_time_out(
    tmp_path: Path, answers: list[tuple[Question, Result]], count: int
) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *answer) for answer in answers])
        first, *_ = store.measurements()
    assert (first.timeouts, first.missing, first.memouts) == (count, count, 0)


@pytest.mark.parametrize(
    ("answers", "count"),
    [([FULL], 1), ([FULL, LEFT_OPEN], 0), ([FULL, _climbed(0.3)], 0), ([FULL, PROVEN_LATER], 0)],
)
def test_a_radius_that_memory_left_open_is_a_memory_out(
    tmp_path: Path, answers: list[tuple[Question, Result]], count: int
) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *answer) for answer in answers])
        first, *_ = store.measurements()
        assert store.results()[keys[0]] == answers
    assert first.memouts == count
