"""Certificates in a store: with their results, once, and with what checkers said of them."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import make_older
from radii.errors import StoreError
from radii.problem import (
    FLOAT,
    REAL,
    Bracket,
    CertificateCheck,
    CheckOutcome,
    Domain,
    Instance,
    Norm,
    OneToAny,
    Proof,
    ProofStatus,
    Result,
    Verdict,
    weigh,
)
from radii.store import SCHEMA_VERSION, STORE_FILE, CertifiedStatement, Store, content_hash
from radii.strategy import Question, QuestionKind
from radii.verifiers import certificate_hash

FINGERPRINT = "a" * 64
SHOWN = b"what shows it"
ACCEPTED = CertificateCheck(
    "radii_check 1.0",
    "2030-01-01T00:00:00.000Z",
    CheckOutcome.ACCEPTED,
    nodes=3,
    lemmas=7,
    margin=0.25,
    seconds=0.5,
)


def fill(store: Store) -> list[str]:
    instances = [
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
        for place in range(3)
    ]
    store.begin({"seed": 0}, {FINGERPRINT: ("net.onnx", "/tmp/net.onnx")}, instances)
    return store.instance_keys()


def proven(eps: float, certificate: bytes | None = SHOWN) -> tuple[Question, Result]:
    proof = Proof(eps, 0.0, FLOAT, certificate)
    result = Result(Verdict.ROBUST, eps, "native", "1", 1.0, proof=proof)
    return Question(QuestionKind.PROVE, eps), result


def checked(key: str, eps: float = 0.2) -> CertifiedStatement:
    return CertifiedStatement(content_hash(SHOWN), key, eps, FLOAT)


def change(directory: Path, *statements: str) -> None:
    with sqlite3.connect(directory / STORE_FILE) as db:
        for each in statements:
            db.execute(each)
    db.close()


def test_a_result_names_its_certificate_whose_bytes_stay_in_the_store(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *proven(0.2)), (keys[1], *proven(0.1, None))])
    with Store.open(tmp_path) as store:
        ((_, result),) = store.results()[keys[0]]
        assert result.proof is not None and result.proof.kept is not None
        assert result.proof.certificate is None, "bytes do not travel"
        assert result.proof.kept.hash == content_hash(SHOWN) == certificate_hash(SHOWN)
        assert result.proof.kept.size == len(SHOWN)
        assert store.certificate(result.proof.kept.hash) == SHOWN
        assert store.certificate("0" * 64) is None
        first, second, third = store.measurements()
    assert (first.proof, first.checked_by) == (ProofStatus.UNCHECKED, None)
    assert first.certificate == content_hash(SHOWN)
    assert (second.proof, second.certificate) == (ProofStatus.BELIEVED, None)
    assert (third.proof, third.certificate) == (None, None)


def test_nothing_is_kept_twice(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(key, *proven(0.2)) for key in keys])
        store.record([(keys[0], *proven(0.1))])
    with sqlite3.connect(tmp_path / STORE_FILE) as db:
        assert db.execute("SELECT count(*) FROM certificates").fetchone() == (1,)
    db.close()


def test_a_certificate_comes_with_its_result_or_not_at_all(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        with pytest.raises(StoreError):
            store.record([(keys[0], *proven(0.2)), (keys[1], *proven(math.nan, b"other"))])
    with Store.open(tmp_path) as store:
        assert store.certificate(content_hash(SHOWN)) is None
        assert store.results() == {}


def test_a_check_counts_for_the_statement_that_was_checked(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *proven(0.2)), (keys[1], *proven(0.2))])
        store.record_checks([(checked(keys[0]), ACCEPTED)])
        first, second, _ = store.all_records()
        assert first.proof is not None and first.proof.kept is not None
        assert first.proof.kept.check == ACCEPTED
        assert first.measurement.proof is ProofStatus.CHECKED
        assert first.measurement.checked_by == "radii_check 1.0"
        assert second.measurement.proof is ProofStatus.UNCHECKED, "the same content, another claim"
        refused = replace(ACCEPTED, outcome=CheckOutcome.REFUSED, reason="lemma 3 does not hold")
        store.record_checks([(checked(keys[0]), refused)])
        assert store.measurements()[0].proof is ProofStatus.FAILED
    change(
        tmp_path,
        "UPDATE queries SET proof_eps = 0.3, eps = 0.3",
        "UPDATE brackets SET lower = 0.3",
    )
    with Store.open(tmp_path) as store:
        raised = store.measurements()[0]
        assert (raised.bracket.lower, raised.proof) == (0.3, ProofStatus.UNCHECKED)


def test_a_lost_certificate_is_no_reason_to_lose_the_results(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *proven(0.2))])
    change(tmp_path, "DELETE FROM certificates")
    with Store.open(tmp_path) as store:
        proof = store.all_records()[0].proof
        assert proof is not None and proof.kept is not None
        assert (proof.eps, proof.kept.size, proof.status) == (0.2, 0, ProofStatus.UNCHECKED)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE queries SET certificate = 'mine'",
        "UPDATE queries SET certificate = 5",
        "UPDATE checks SET accepted = 7",
        "UPDATE checks SET checker = x'00'",
        "UPDATE checks SET lemmas = 'many'",
    ],
)
def test_damage_is_one_sentence(tmp_path: Path, damage: str) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *proven(0.2))])
        store.record_checks([(checked(keys[0]), ACCEPTED)])
    change(tmp_path, damage)
    with (
        pytest.raises(StoreError, match="the store is damaged") as raised,
        Store.open(tmp_path) as store,
    ):
        store.measurements()
    assert "\n" not in str(raised.value)


def test_a_store_from_before_certificates_goes_on(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path) as store:
        keys = fill(store)
        store.record([(keys[0], *proven(0.2, None))])
    make_older(tmp_path, 5)
    with Store.open(tmp_path) as store:
        assert store.measurements()[0].proof is ProofStatus.BELIEVED
    with Store.create_or_open(tmp_path) as store:
        store.record([(keys[1], *proven(0.2))])
        assert [m.proof for m in store.measurements()[:2]] == ["believed", "unchecked"]
    with sqlite3.connect(tmp_path / STORE_FILE) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    db.close()


def test_of_equal_proofs_the_one_that_rests_on_more_counts() -> None:
    believed, shown = proven(0.2, None)[1], proven(0.2)[1]
    for results in ([believed, shown], [shown, believed]):
        weighed = weigh(results)
        assert weighed.bracket == Bracket(0.2, math.inf)
        assert weighed.proof is shown.proof
    larger = Result(Verdict.ROBUST, 0.3, "milp", "1", 1.0, proof=Proof(0.3, 0.0, REAL))
    assert weigh([shown, larger]).proof is larger.proof
