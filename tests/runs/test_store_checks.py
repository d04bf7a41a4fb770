"""Proving a store again: what is accepted, and everything that must not be."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conftest import make_older, write_certified, write_wide
from radii.api import robustness_distribution
from radii.errors import NetworkError, StoreError
from radii.problem import (
    FLOAT,
    REAL,
    Arithmetic,
    Domain,
    Instance,
    Norm,
    Proof,
    ProofStatus,
    Result,
    Verdict,
)
from radii.runs import (
    EvidenceKind,
    Experiment,
    RefusedEvidence,
    StoreCheck,
    check_store,
    export_certificates,
    prepare,
)
from radii.runs._proof_checks import claim_difference
from radii.statistics import read_store
from radii.store import STORE_FILE, Store, content_hash
from radii.strategy import Question, QuestionKind
from radii_check import read_certificate
from radii_check._onnx import READERS


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certified(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def change(place: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(place / STORE_FILE) as db:
        db.execute(statement, values)
    db.close()


def asked(place: Path, query: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(place / STORE_FILE)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def failure(place: Path) -> RefusedEvidence:
    """The one thing that does not hold."""
    (refused,) = check_store(place).failed
    assert "\n" not in str(refused)
    return refused


def test_all_of_a_run_holds_and_the_store_knows_it(place: Path) -> None:
    done: list[tuple[int, int]] = []
    check = check_store(place, on_progress=lambda *counts: done.append(counts))
    assert (check.proofs, check.checked, check.without_certificate) == (3, 3, 0)
    assert (check.witnesses, check.replayed, check.failed, check.believed) == (4, 4, (), ())
    assert (done[0], done[-1]) == ((0, 7), (7, 7)), "three certificates and four inputs"
    assert check.checker.startswith("radii_check ")
    with Store.open(place) as store:
        measured = store.measurements()
        proofs = [record.proof for record in store.all_records()]
    assert [m.proof for m in measured] == [*[ProofStatus.CHECKED] * 3, None]
    assert {m.checked_by for m in measured} == {check.checker, None}
    for proof in proofs[:3]:
        assert proof is not None and proof.kept is not None and proof.kept.check is not None
        one = proof.kept
        assert one.check is not None
        assert one.check.is_accepted and one.check.reason == ""
        assert one.check.nodes and one.check.lemmas and one.check.margin is not None
        assert one.size > 100


def test_workers_say_the_same(place: Path) -> None:
    here, beside = check_store(place), check_store(place, jobs=2)
    assert beside.accepted == here.accepted
    assert len(beside.accepted) == beside.proofs == 3
    assert (beside.failed, beside.replayed) == ((), 4)


def test_a_raised_number_is_noticed(place: Path) -> None:
    """Also after an accepted check: what was checked was another number."""
    check_store(place)
    ((key,), *_) = asked(place, "SELECT instance FROM queries WHERE proof_eps = 0.07 ORDER BY id")
    change(place, "UPDATE queries SET proof_eps = 0.075 WHERE instance = ?", key)
    change(place, "UPDATE brackets SET lower = 0.075 WHERE instance = ?", key)
    with Store.open(place) as store:
        raised = store.measurements()[0]
    assert (raised.bracket.lower, raised.proof) == (0.075, ProofStatus.UNCHECKED)
    refused = failure(place)
    assert refused.reason == "its certificate shows eps 0.07, not 0.075"
    assert refused.kind is EvidenceKind.PROOF and refused.place.input == 0
    with Store.open(place) as store:
        assert store.measurements()[0].proof is ProofStatus.FAILED


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [truncated, flipped, lambda _: b"", lambda _: b"RADIICRT"])
def test_a_changed_content_is_noticed(place: Path, damage: Callable[[bytes], bytes]) -> None:
    ((name, content),) = asked(place, "SELECT hash, content FROM certificates LIMIT 1")
    assert isinstance(content, bytes)
    change(place, "UPDATE certificates SET content = ? WHERE hash = ?", damage(content), name)
    assert "has changed: what is kept in its place is" in failure(place).reason
    with pytest.raises(StoreError, match="is lost or has changed"):
        export_certificates(place, place.parent / "files")


@pytest.mark.parametrize("damage", [truncated, lambda _: b"", lambda _: b"RADIICRT" + bytes(9)])
def test_what_is_no_certificate_is_refused(place: Path, damage: Callable[[bytes], bytes]) -> None:
    """Though its name is its hash."""
    ((name, content),) = asked(place, "SELECT hash, content FROM certificates LIMIT 1")
    assert isinstance(content, bytes)
    other = damage(content)
    change(place, "UPDATE certificates SET content = ?, hash = ? WHERE hash = ?", other,
           content_hash(other), name)  # fmt: skip
    change(place, "UPDATE queries SET certificate = ? WHERE certificate = ?", content_hash(other),
           name)  # fmt: skip
    assert failure(place).reason.startswith("the certificate cannot be used: ")


def test_a_lost_certificate_is_a_failure(place: Path) -> None:
    change(place, "DELETE FROM certificates WHERE hash = (SELECT min(hash) FROM certificates)")
    assert "is not in the store any more" in failure(place).reason


def test_exchanged_certificates_are_noticed(place: Path) -> None:
    (one, *_), (other, *_), *_ = asked(
        place, "SELECT certificate FROM queries WHERE certificate IS NOT NULL AND proof_eps = 0.07"
    )
    change(place, "UPDATE queries SET certificate = ? WHERE certificate = ?", one, other)
    assert failure(place).reason == "its certificate is about another input"


def test_a_blob_of_another_type_is_one_sentence(place: Path) -> None:
    change(place, "UPDATE certificates SET content = 'text'")
    with pytest.raises(StoreError, match="the store is damaged"):
        check_store(place)


def test_a_witness_that_breaks_nothing_is_a_failure(place: Path) -> None:
    """A proof that it contradicts would be told as damage: so of an input without one."""
    ((query, data),) = asked(
        place,
        "SELECT w.query, i.input FROM witnesses w JOIN queries q ON q.id = w.query"
        " JOIN instances i ON i.key = q.instance WHERE w.distance > 0 LIMIT 1",
    )
    assert isinstance(data, bytes)
    change(place, "UPDATE queries SET proof_eps = NULL, proof_margin = NULL, verdict = 'UNKNOWN',"
                  " proof_arithmetic = NULL, certificate = NULL WHERE id = ?", query)  # fmt: skip
    change(place, "UPDATE witnesses SET input = ?, distance = 0 WHERE query = ?", data, query)
    change(place, "UPDATE brackets SET lower = 0, upper = 0 WHERE instance ="
                  " (SELECT instance FROM queries WHERE id = ?)", query)  # fmt: skip
    refused = failure(place)
    assert refused.kind is EvidenceKind.WITNESS
    assert "it breaks nothing on onnxruntime" in refused.reason


# --- networks


def test_a_network_that_has_moved_is_named(place: Path, whole: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere.onnx"
    shutil.copy(whole.parent / "wide.onnx", moved)
    change(place, "UPDATE networks SET path = '/nowhere/wide.onnx'")
    with pytest.raises(NetworkError, match=r"wide.onnx is not there any more at .*--network"):
        check_store(place)
    assert check_store(place, networks=[moved]).checked == 3
    with pytest.raises(NetworkError, match="cannot be read"):
        check_store(place, networks=[tmp_path / "none.onnx"])


def test_another_network_is_not_taken(place: Path, whole: Path, tmp_path: Path) -> None:
    model = onnx.load(whole.parent / "wide.onnx")
    bias = next(each for each in model.graph.initializer if each.name == "b0")
    bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + np.float32(1), "b0"))
    onnx.save(model, tmp_path / "wide.onnx")
    change(place, "UPDATE networks SET path = ?", str(tmp_path / "wide.onnx"))
    with pytest.raises(NetworkError, match=r"wide.onnx has changed at"):
        check_store(place)
    (tmp_path / "wide.onnx").write_bytes(b"no model")
    with pytest.raises(NetworkError, match=r"wide.onnx has changed at"):
        check_store(place)


def test_the_same_weights_in_another_file_are_another_file(
    place: Path, whole: Path, tmp_path: Path
) -> None:
    """Certificates name a file's content: an assessor must be able to tell which file is meant."""
    model = onnx.load(whole.parent / "wide.onnx")
    model.producer_name = "another exporter"
    onnx.save(model, tmp_path / "wide.onnx")
    check = check_store(place, networks=[tmp_path / "wide.onnx"])
    assert check.checked == 0
    assert all("it is about another network" in one.reason for one in check.failed)


def test_normalisation_is_part_of_the_network(tmp_path: Path) -> None:
    place = write_certified(tmp_path, mean=[0.1], std=[1.25])
    check = check_store(place)
    assert check.checked == check.proofs > 0
    assert not check.failed


def test_a_network_from_python_is_kept_in_the_store(tmp_path: Path) -> None:
    network, data = write_wide(tmp_path)
    robustness_distribution(
        network, str(data), domain=(0, 1), mean=0.1, std=2.0, grid="0.01:0.3:0.02", jobs=0,
        out=tmp_path / "out", progress=False,
    )  # fmt: skip
    network.unlink()
    check = check_store(tmp_path / "out")
    assert check.checked == check.proofs > 0
    assert check.replayed == check.witnesses > 0
    change(tmp_path / "out", "UPDATE networks SET model = x'00'")
    with pytest.raises(NetworkError, match="--network"):
        check_store(tmp_path / "out")


def test_worker_processes_and_portfolios_hand_certificates_on(tmp_path: Path) -> None:
    """Of a portfolio those of whoever is first; what milp proves, native's tree proves again."""
    network, data = write_wide(tmp_path)
    described = {"networks": [str(network)], "data": f"{data}[0:2]", "domain": "0:1"}
    racing = {"verifier": "portfolio:native,milp", "arithmetic": "real", "grid": "0.02:0.2:0.02"}
    with Store.create_or_open(tmp_path / "racing") as store:
        prepare(Experiment.from_options({**described, **racing})).run(store, jobs=1)
        proofs = [r for one in store.all_records() for r in one.results if r.proof is not None]
    assert proofs
    for result in proofs:
        assert result.proof is not None
        assert result.proof.kept is not None
    assert not check_store(tmp_path / "racing").failed
    with Store.create_or_open(tmp_path / "worked") as store:
        prepare(Experiment.from_options({**described, "grid": "0.01:0.5:0.01"})).run(store, jobs=1)
        assert [m.proof for m in store.measurements()] == [ProofStatus.UNCHECKED] * 2


# --- what has no certificate


def believed(place: Path, eps: float) -> None:
    """A proof of the first input by somebody who shows nothing."""
    with Store.create_or_open(place) as store:
        result = Result(Verdict.ROBUST, eps, "milp", "9", 1.0, proof=Proof(eps, 0.0, FLOAT))
        store.record([(store.instance_keys()[0], Question(QuestionKind.PROVE, eps), result)])


def test_what_is_believed_is_said_to_be(place: Path) -> None:
    believed(place, 0.075)
    check = check_store(place)
    assert (check.proofs, check.checked, check.without_certificate) == (4, 3, 1)
    assert [(one.input, one.eps, one.by) for one in check.believed] == [(0, 0.075, "milp 9")]
    assert check.believed_by == {"milp 9": 1}
    assert not check.failed
    only = read_store(place, accepted=check.accepted)
    assert read_store(place).columns["lower"].tolist() == [0.075, 0.09, 0.07, 0]
    assert only.columns["lower"].tolist() == [0.07, 0.09, 0.07, 0]
    assert np.array_equal(only.columns["upper"], read_store(place).columns["upper"])


def test_without_certificates_nothing_counts_as_checked(tmp_path: Path) -> None:
    place = write_certified(tmp_path, certificates=False)
    check = check_store(place)
    assert (check.proofs, check.checked, check.without_certificate) == (3, 0, 3)
    assert len(check.believed) == 3
    assert read_store(place, accepted=check.accepted).columns["lower"].tolist() == [0, 0, 0, 0]
    assert asked(place, "SELECT count(*) FROM certificates") == [(0,)]


def test_an_older_store_has_witnesses_to_replay_and_stays_as_it_is(place: Path) -> None:
    make_older(place, 5)
    check = check_store(place)
    assert (check.checked, check.without_certificate, check.replayed) == (0, 3, 4)
    assert asked(place, "PRAGMA user_version") == [(5,)]


# --- keeping the outcome


def test_a_run_that_writes_is_no_reason_to_wait(place: Path) -> None:
    with Store.create_or_open(place):
        check = check_store(place)
    assert check.checked == 3
    assert "another run is writing here" in check.not_kept
    with Store.open(place) as store:
        assert store.measurements()[0].proof is ProofStatus.UNCHECKED
    assert check_store(place).not_kept == ""


def test_a_stopped_check_is_no_acceptance(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the checker itself is broken\nin two lines")

    monkeypatch.setattr("radii_check.check", fail)
    check = check_store(place)
    assert (check.checked, check.failed) == (0, ())
    assert {one.reason for one in check.unreadable} == {
        "the checker failed on it: RuntimeError: the checker itself is broken"
    }
    monkeypatch.undo()
    monkeypatch.setattr("radii_check._check.read_network", _out_of_memory)
    assert "needs more memory" in check_store(place).unreadable[0].reason


def _out_of_memory(*_: object) -> StoreCheck:
    raise MemoryError


def test_what_cannot_be_read_counts_as_neither(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the checker does not know: nothing is said against the proof, nor for it."""
    with monkeypatch.context() as patch:
        patch.delitem(READERS, "Relu")
        check = check_store(place)
    assert (check.proofs, check.checked, check.failed) == (3, 0, ())
    assert len(check.unreadable) == 3 and check.accepted == frozenset()
    assert "operator Relu is not known" in str(check.unreadable[0])
    with Store.open(place) as store:
        assert [m.proof for m in store.measurements()] == [*[ProofStatus.UNREADABLE] * 3, None]
    assert check_store(place).checked == 3, "a checker that knows it accepts them"


def test_older_checks_are_read_as_they_would_be_now(place: Path) -> None:
    """Before schema 7 what the checker could not read counted as refused."""
    check_store(place)
    lost = "the certificate cannot be used: operator Erf is not known to this checker"
    for row, reason in ((1, lost), (2, "lemma 3 of node 1 does not hold")):
        change(place, "UPDATE checks SET accepted = 0, reason = ? WHERE rowid = ?", reason, row)
    make_older(place, 6)
    with Store.open(place) as store:
        found = [m.proof for m in store.measurements() if m.proof is not None]
    assert sorted(found) == [ProofStatus.CHECKED, ProofStatus.FAILED, ProofStatus.UNREADABLE]


# --- what a certificate must claim


CHANGES: dict[str, Callable[[Instance], Instance]] = {
    "is about linf, not l2": lambda one: replace(one, norm=Norm.L2),
    "is about another input": lambda one: replace(one, input=np.full(16, 0.5, np.float32)),
    "is about another property or class": lambda one: replace(one, label=(one.label + 1) % 3),
    "is about a smaller domain": lambda one: replace(one, domain=Domain.parse("-1:1")),
}


@pytest.mark.parametrize("words", CHANGES)
def test_a_certificate_must_be_about_the_instance(whole: Path, words: str) -> None:
    with Store.open(whole) as store:
        record = store.all_records()[0]
        instance, proof = store.instance(record.key), record.proof
        assert instance is not None and proof is not None and proof.kept is not None
        certificate = read_certificate(store.certificate(proof.kept.hash) or b"")
    assert claim_difference(certificate, instance, proof.eps, FLOAT) is None
    assert claim_difference(certificate, instance, proof.eps, REAL) is None, "float is stronger"
    wide = Arithmetic.parse("float:8")
    alone = "its certificate holds for floating point alone"
    assert claim_difference(certificate, instance, proof.eps, wide) == alone
    found = claim_difference(certificate, CHANGES[words](instance), proof.eps, FLOAT)
    assert found is not None and words in found
