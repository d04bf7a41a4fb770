"""`radii check`, and what other commands say of what was checked."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import radii_check
from conftest import work_in_this_process, write_certified, write_wide
from radii.cli import main
from radii.problem import FLOAT, Proof, Result, Verdict
from radii.runs import export_certificates
from radii.store import STORE_FILE, Store
from radii.strategy import Question, QuestionKind
from radii_check._onnx import READERS

CHECKER = f"radii_check {radii_check.__version__}"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    work_in_this_process(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certified(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def files(whole: Path, tmp_path: Path) -> Path:
    """Certificates as files."""
    export_certificates(whole, tmp_path / "files")
    return tmp_path / "files"


def told(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    assert main(list(map(str, words))) == code
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one sentence of bad input."""
    assert main(list(map(str, words))) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("radii: ") and said.err.count("\n") == 1
    return said.err


def break_one(place: Path, row: int = 1) -> None:
    shorter = "UPDATE certificates SET content = substr(content, 1, 99) WHERE rowid = ?"
    with sqlite3.connect(place / STORE_FILE) as db:
        db.execute(shorter, (row,))
    db.close()


def believe_one(place: Path) -> None:
    proof = Proof(0.075, 0.0, FLOAT)
    result = Result(Verdict.ROBUST, 0.075, "milp", "9", 1.0, proof=proof)
    with Store.create_or_open(place) as store:
        store.record([(store.instance_keys()[0], Question(QuestionKind.PROVE, 0.075), result)])


# --- of a run


def test_a_run_is_proven_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network, proofs, witnesses, inputs, verdict = told(capsys, "check", place).splitlines()
    assert network.startswith("network wide.onnx (fingerprint ")
    assert network.endswith("/wide.onnx")
    assert proofs == f"3 proofs: 3 checked by {CHECKER}"
    assert witnesses.startswith("4 counterexamples: 4 replayed on onnxruntime ")
    assert inputs.endswith(" again, 4 inputs and labels compared with the data")
    assert verdict.startswith("all of it holds; ")
    found = json.loads(told(capsys, "check", place, "--json", "--exact"))
    counts = ("proofs", "checked", "witnesses", "replayed", "without_certificate")
    assert [found[name] for name in counts] == [3, 3, 4, 4, 0]
    assert (found["failed"], found["believed"], found["numbers"]) == ([], [], "exact")
    assert found["checker"] == CHECKER


def test_what_fails_is_named_and_the_exit_code_is_1(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    break_one(place)
    believe_one(place)
    text = told(capsys, "check", place, code=1)
    assert f"4 proofs: 2 checked by {CHECKER}, 1 REFUSED, 1 believed" in text
    assert (
        "NOT CHECKED: lower bounds without a certificate, which rest on a word alone: milp 9 (1)"
        in text
    )
    assert "FAILED wide.onnx, input " in text
    assert "NOT all of it holds" in text
    found = json.loads(told(capsys, "check", place, "--json", code=1))
    (failure,) = found["failed"]
    assert failure["network"] == "wide.onnx"
    assert failure["kind"] == "proof"
    assert "has changed" in failure["reason"]
    assert found["believed"] == [
        {"network": "wide.onnx", "input": 0, "target": None, "eps": 0.075, "by": "milp 9"}
    ]


def test_what_nobody_can_check_passes_only_where_that_is_not_required(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tool that always says unsat, and an empty directory, must not look as if they hold."""
    place = write_certified(tmp_path, certificates=False)
    text = told(capsys, "check", place)
    assert f"3 proofs: 0 checked by {CHECKER}, 3 believed" in text
    assert "\nwhat was checked holds; " in text and "all of it holds" not in text
    found = json.loads(told(capsys, "check", place, "--json", "--require-checked", code=1))
    assert (found["outcome"], found["failed"], len(found["not_checked"])) == ("not checked", [], 1)
    with Store.create_or_open(tmp_path / "empty") as store:
        store.begin({"property": "one-to-any"}, {}, [])
    text = told(capsys, "check", tmp_path / "empty")
    assert "NOT CHECKED: nothing is stored here\nnothing was checked; " in text
    told(capsys, "check", tmp_path / "empty", "--require-checked", code=1)
    require = "--require=robust_accuracy(0) >= 0"
    lines = told(capsys, "gate", place, "--checked", require).splitlines()
    assert lines[-2].startswith("0 of 3 proofs count")
    assert lines[-1].startswith("NOT CHECKED: lower bounds without a certificate")


def test_all_of_a_run_meets_the_requirement(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(told(capsys, "check", place, "--json", "--require-checked"))
    assert (found["outcome"], found["not_checked"]) == ("holds", [])
    assert (found["instances"], found["compared"]) == (4, 4)
    (network,) = found["networks"]
    assert (network["network"], len(network["fingerprint"])) == ("wide.onnx", 64)


def test_bad_places_are_one_sentence(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert "no such file or directory" in refused(capsys, "check", tmp_path / "nothing")
    assert "holds neither" in refused(capsys, "check", tmp_path / "empty")
    assert "results are checked one at a time" in refused(capsys, "check", place, place)
    with sqlite3.connect(place / STORE_FILE) as db:
        db.execute("UPDATE networks SET path = '/nowhere/wide.onnx'")
    db.close()
    assert "--network FILE takes the one" in refused(capsys, "check", place)
    assert "--network FILE takes the one" in refused(
        capsys, "gate", place, "--require=min > 0", "--checked"
    )
    assert "--network FILE takes the one" in refused(
        capsys, "export", place, "--certificates", tmp_path / "x"
    )
    (place / STORE_FILE).write_bytes(b"no database at all, but long enough to be looked at")
    assert "not a radii store" in refused(capsys, "check", place)


def test_exact_numbers_need_a_package(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    assert "radii[exact]" in refused(capsys, "check", place, "--exact")


# --- files


def test_certificates_are_files_for_any_machine(files: Path, tmp_path: Path) -> None:
    """With the checker's folder alone, and nothing of radii."""
    alone = tmp_path / "alone"
    shutil.copytree(Path(radii_check.__file__).parent, alone / "radii_check")
    certificates = sorted((files / "wide").glob("*.cert"))
    assert len(certificates) == 3
    done = subprocess.run(
        [sys.executable, "-m", "radii_check", *certificates, "--network", files / "wide.onnx"],
        env={**os.environ, "PYTHONPATH": str(alone)},
        cwd=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (files / "certificates.csv").read_text().splitlines()
    assert lines[0].startswith("file,network,input,label,target,property,norm,eps,arithmetic")
    assert [line.split(",")[0] for line in sorted(lines[1:])] == [
        path.relative_to(files).as_posix() for path in certificates
    ]


def test_files_are_checked_one_by_one_or_as_a_folder(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, *_) = sorted(files.rglob("*.cert"))
    network = files / "wide.onnx"
    text = told(capsys, "check", first, "--network", network)
    assert text.startswith(f"{first}: accepted: the class stays ")
    assert "within 0.07 in linf, for floating point; " in text
    assert told(capsys, "check", files).endswith(f"3 of 3 accepted by {CHECKER}\n")
    found = json.loads(told(capsys, "check", files, "--json"))
    assert (found["proofs"], found["checked"], found["failed"]) == (3, 3, [])
    claim = found["certificates"][0]["claim"]
    assert (claim["norm"], claim["eps"]) == ("linf", 0.07)


def test_what_is_no_certificate_of_the_network_exits_with_2(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, second, *_) = sorted(files.rglob("*.cert"))
    network = files / "wide.onnx"
    assert "name the network" in refused(capsys, "check", first)
    other = tmp_path / "other"
    other.mkdir()
    linear, _ = write_wide(other)
    linear.write_bytes(linear.read_bytes())
    content = first.read_bytes()
    for name, wrong in (("half", content[:200]), ("none", b"text"), ("empty", b"")):
        (tmp_path / name).write_bytes(wrong)
        text = told(capsys, "check", tmp_path / name, "--network", network, code=2)
        assert text.startswith(f"{tmp_path / name}: not usable: ") and text.count("\n") == 1
    from conftest import write_linear

    text = told(capsys, "check", first, "--network", write_linear(tmp_path), code=2)
    assert "it is about a network" in text and "that was not given" in text
    (tmp_path / "net.onnx").write_bytes(b"no model")
    assert "net.onnx" in refused(capsys, "check", first, "--network", tmp_path / "net.onnx")
    found = json.loads(
        told(capsys, "check", tmp_path / "half", second, "--network", network, "--json", code=2)
    )
    assert (found["proofs"], found["checked"], len(found["failed"])) == (2, 1, 1)


def test_a_run_without_certificates_has_none_to_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write_certified(tmp_path, certificates=False)
    assert "holds no certificates" in refused(capsys, "export", place, "--certificates", tmp_path)
    clause = "one of the 3 proofs has a certificate: their provers are believed"
    require = "--require=min >= 0"
    for words in (["show"], ["show", "--instances"], ["card"], ["gate", require]):
        text = " ".join(told(capsys, words[0], place, *words[1:]).split())
        assert clause in text.replace("\\", ""), words
    assert told(capsys, "show", place, "--instances").count("believed") == 4
    capsys.readouterr()
    shutil.copytree(place, tmp_path / "other")
    assert main(["compare", str(place), str(tmp_path / "other")]) == 0
    assert clause in capsys.readouterr().err


# --- what the checker cannot read


@pytest.fixture
def without_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker that does not know an operator of a network whose proofs are valid."""
    monkeypatch.delitem(READERS, "Relu")


RELU = "operator Relu is not known to this checker"


@pytest.mark.usefixtures("without_relu")
def test_proofs_that_cannot_be_read_have_not_failed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(capsys, "check", place)
    assert f"3 proofs: 0 checked by {CHECKER}, 3 not readable\n" in text
    assert f"NOT CHECKED: proofs whose certificate {CHECKER} cannot read: {RELU} (3)\n" in text
    assert "FAILED" not in text and "REFUSED" not in text
    found = json.loads(told(capsys, "check", place, "--json"))
    assert (found["proofs"], found["checked"], found["failed"]) == (3, 0, [])
    assert {one["reason"] for one in found["unreadable"]} == {RELU}
    assert {one["by"].split()[0] for one in found["unreadable"]} == {"native"}
    assert told(capsys, "show", place, "--instances").count("unreadable") == 3
    words = "all 3 proofs with a certificate that the checker cannot read"
    assert words in told(capsys, "show", place)
    assert "whose certificate the checker cannot read: 3." in told(capsys, "card", place)
    table = told(capsys, "export", place).splitlines()
    assert [",unreadable," in row for row in table[1:]] == [True, True, True, False]
    require = "--require=robust_accuracy(0.05) >= 0.5"
    text = told(capsys, "gate", place, require, "--checked", code=1)
    assert "0 of 3 proofs count" in text
    assert f"NOT CHECKED: proofs whose certificate {CHECKER} cannot read: {RELU} (3)" in text


def test_files_that_cannot_be_read_have_not_failed(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2; a file that fails outweighs them."""
    (first, second, *_) = sorted(files.rglob("*.cert"))
    network = ("--network", files / "wide.onnx")
    content = bytearray(first.read_bytes())
    content[8] = 7
    first.write_bytes(content)
    text = told(capsys, "check", first, *network, code=2)
    assert text == f"{first}: not readable: it has version 7, this checker reads version 1\n"
    found = json.loads(told(capsys, "check", first, second, *network, "--json", code=2))
    assert (found["checked"], found["failed"], len(found["unreadable"])) == (1, [], 1)
    assert [one["outcome"] for one in found["certificates"]] == ["unreadable", "accepted"]
    monkeypatch.setattr("radii_check._rows.UNDERFLOW", 1e9)
    text = told(capsys, "check", first, second, *network, code=1)
    assert f"{second}: REFUSED: " in text


# --- other commands


def test_commands_say_who_has_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "checked" not in told(capsys, "show", place), "until somebody has"
    assert "checked" not in told(capsys, "show", place, "--instances")
    told(capsys, "check", place)
    assert told(capsys, "show", place, "--instances").count("checked") == 4
    checked = f"all 3 proofs checked by {CHECKER}"
    assert checked in told(capsys, "show", place)
    assert f"A{checked[1:]}." in told(capsys, "card", place).replace("\\", "")
    (network,) = json.loads(told(capsys, "show", place, "--json"))["networks"]
    first, *_, last = network["instances"]
    assert (first["proof"], first["checked_by"]) == ("checked", CHECKER)
    assert len(first["certificate"]) == 64
    assert (last["proof"], last["checked_by"], last["certificate"]) == (None, None, None)
    header, row, *_ = told(capsys, "export", place).splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert (cells["proof"], cells["checked_by"]) == ("checked", CHECKER)
    believe_one(place)
    assert f"2 of 3 proofs checked by {CHECKER}, 1 believed" in told(capsys, "show", place)
    assert "without a certificate, whose prover is believed: 1." in told(capsys, "card", place)
    break_one(place, 2)
    told(capsys, "check", place, code=1)
    assert "1 REFUSED by the checker" in told(capsys, "show", place)


def test_the_gate_counts_what_was_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    believe_one(place)
    require = "--require=robust_accuracy(0.075) >= 0.5"
    assert "met" in told(capsys, "gate", place, require)
    text = told(capsys, "gate", place, require, "--checked", code=1)
    assert "1 of 4 inputs are proven at eps 0.075" in text
    assert f"3 of 4 proofs count: their certificates were checked by {CHECKER}" in text
    found = json.loads(told(capsys, "gate", place, "--require=min >= 0", "--checked", "--json"))
    assert found["checked"][0]["checker"] == CHECKER
    assert (found["checked"][0]["checked"], found["checked"][0]["proofs"]) == (3, 4)
    assert found["passed"]
    assert (
        json.loads(told(capsys, "gate", place, "--require=min >= 0", "--json"))["checked"] is None
    )
    break_one(place)
    require = "--require=robust_accuracy(0.06) >= 0.6"
    text = told(capsys, "gate", place, require, "--checked", code=1)
    assert "; REFUSED: 1" in text


def test_a_table_has_no_certificates_to_count(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    assert main(["export", str(place), "-o", str(table)]) == 0
    assert "needs the --out of a run" in refused(
        capsys, "gate", table, "--require=min >= 0", "--checked"
    )


def test_a_refused_bound_is_on_the_report(place: Path, tmp_path: Path) -> None:
    from radii.views import make_payload

    break_one(place)
    assert main(["check", str(place)]) == 1
    facts = make_payload([place]).facts
    assert any("failed the check of its certificate" in note for note in facts["notes"])
    assert facts["checks"]["status"] != []


# --- VNN-LIB


def vnnlib(box: float, target: int) -> str:
    """Inputs around 1/2; class `target` reaches class 0."""
    lines = [f"(declare-const X_{i} Real)" for i in range(16)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(3)]
    for i in range(16):
        lines += [f"(assert (>= X_{i} {0.5 - box}))", f"(assert (<= X_{i} {0.5 + box}))"]
    return "\n".join([*lines, f"(assert (<= Y_0 Y_{target}))"])


def test_verify_writes_what_shows_unsat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network, _ = write_wide(tmp_path)
    answers = {}
    for target in (1, 2):
        file, proof = tmp_path / f"{target}.vnnlib", tmp_path / f"{target}.cert"
        file.write_text(vnnlib(0.01, target))
        text = told(capsys, "verify", network, file, "--certificate", proof)
        answers[text.split()[0]] = proof
    assert answers["unsat"].is_file() and not answers["sat"].exists()
    text = told(capsys, "check", answers["unsat"], "--network", network)
    assert "accepted: " in text
    file = answers["unsat"].with_suffix(".vnnlib")
    found = json.loads(
        told(capsys, "verify", network, file, "--certificate", answers["unsat"], "--json")
    )
    assert found["certificates"] == [str(answers["unsat"])]
    other = ("--certificate", tmp_path / "x", "--verifier", "enumeration")
    assert "writes no certificates" in refused(capsys, "verify", network, file, *other)
    assert "cannot be written" in refused(
        capsys, "verify", network, file, "--certificate", tmp_path
    )


def test_several_proofs_are_several_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, _ = write_wide(tmp_path)
    file, proof = tmp_path / "two.vnnlib", tmp_path / "two.cert"
    text = vnnlib(0.01, 1) + "\n"
    halves = "(assert (or (and (<= X_0 0.5) (<= X_1 0.5)) (and (>= X_0 0.5) (>= X_1 0.5))))"
    file.write_text(text + halves)
    first = told(capsys, "verify", network, file, "--certificate", proof).split()[0]
    if first == "sat":
        file.write_text(vnnlib(0.01, 2) + "\n" + halves)
        first = told(capsys, "verify", network, file, "--certificate", proof).split()[0]
    assert first == "unsat"
    both = [tmp_path / "two-1.cert", tmp_path / "two-2.cert"]
    assert told(capsys, "check", *both, "--network", network).endswith("2 of 2 accepted by "
        f"{CHECKER}\n")  # fmt: skip
