"""`radii run` for those who wait: estimates, budgets, events, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import work_in_this_process, write_linear
from radii.cli import main
from radii.cli._run import EventLog, TerminationSignal
from radii.problem import Domain, Grid, Instance, Norm, OneToAny, Proof, Result, Verdict, Witness
from radii.runs import Plan, Settings
from radii.store import STORE_FILE
from radii.strategy import Case, Native, Question, QuestionKind
from radii.testing._simulated import Raising

COUNT = 60


@pytest.fixture
def flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sixty points of a linear classifier, in this process; every third one is misclassified."""
    work_in_this_process(monkeypatch)
    chance = np.random.default_rng(0)
    images = chance.uniform(0.2, 0.8, (COUNT, 2)).astype(np.float32)
    labels = (images[:, 0] < images[:, 1]).astype(int)
    labels[::3] = 1 - labels[::3]
    np.savez(tmp_path / "many.npz", images=images, labels=labels)
    return [
        *("--network", str(write_linear(tmp_path)), "--data", str(tmp_path / "many.npz")),
        *("--domain", "0:1", "--grid", "0.01:0.5:0.01", "--out", str(tmp_path / "out")),
    ]


def queries(out: Path, columns: str = "instance, kind, eps, allowed_seconds") -> list[Any]:
    db = sqlite3.connect(out / STORE_FILE)
    try:
        return db.execute(f"SELECT {columns} FROM queries ORDER BY id").fetchall()
    finally:
        db.close()


def test_corrected_labels_are_reported_before_any_work(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = [*flags, "--search", "attack-only", "--attack", "fgsm"]
    assert main(["run", *quick, "--quiet"]) == 0
    before = queries(tmp_path / "out")
    data = dict(np.load(tmp_path / "many.npz"))
    data["labels"][::3] = 1 - data["labels"][::3]
    np.savez(tmp_path / "many.npz", **data)
    capsys.readouterr()
    for again in (quick, [str(tmp_path / "out")]):
        assert main(["run", *again]) == 2
        error = capsys.readouterr().err
        assert "the label of input 0 of" in error and "and 19 other inputs changed" in error
        assert "choose another --out, or --replace what is stored about them" in error
    assert queries(tmp_path / "out") == before
    assert main(["run", *quick, "--replace"]) == 0
    said = capsys.readouterr()
    assert "out grows: 20 changed inputs measured anew" in said.err
    assert main(["show", str(tmp_path / "out"), "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert sorted(one["input"] for one in network["instances"]) == list(range(COUNT))
    assert all(one["correct"] for one in network["instances"])


def test_a_store_that_counts_an_input_twice_says_so(
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    quick = [*flags, "--search", "attack-only", "--attack", "fgsm"]
    assert main(["run", *quick, "--quiet"]) == 0
    data = dict(np.load(tmp_path / "many.npz"))
    data["labels"][:2] = 1 - data["labels"][:2]
    np.savez(tmp_path / "many.npz", **data)
    with monkeypatch.context() as patched:  # as radii once did
        patched.setattr("radii.runs._joining.JoinedFacts.changed_inputs", lambda *_: {})
        assert main(["run", *quick, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "out")]) == 0
    assert (
        "input 0 and 1 more is counted once for each of several labels" in capsys.readouterr().err
    )
    assert main(["run", *quick, "--replace", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "out")]) == 0
    assert "counted" not in capsys.readouterr().err


def test_an_estimate_measures_a_few_and_the_run_goes_on_from_them(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *flags, "--estimate", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (network,) = found["networks"]
    assert (network["inputs"], network["misclassified"]) == (COUNT, COUNT // 3)
    assert 5 <= network["finished"] <= 40
    assert 0 <= found["seconds"]["low"] <= found["seconds"]["middle"] <= found["seconds"]["high"]
    assert 0 < network["closed"]["low"] <= network["closed"]["high"] <= 1
    assert network["width"]["low"] <= network["width"]["middle"] < 0.02
    before = queries(tmp_path / "out")
    assert main(["run", *flags]) == 0
    after = queries(tmp_path / "out")
    assert after[: len(before)] == before
    assert len(set(after)) == len(after), "nothing was asked twice"
    capsys.readouterr()
    assert main(["run", *flags, "--estimate"]) == 0
    shown = capsys.readouterr().out
    assert "Nothing is left to do." in shown
    assert " linear " in shown


def test_a_budget_ends_with_brackets_and_again_continues(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *flags, "--budget", "60s", "--json"]) == 0
    said = capsys.readouterr()
    assert "60 of 60 brackets are closed; nothing is left to do" in said.err
    shown = json.loads(said.out)["networks"][0]["instances"]
    assert all(one["upper"] is not None for one in shown)
    before = queries(tmp_path / "out")
    assert {allowed is None for _, kind, _, allowed in before if kind == "radius"} == {False}
    assert main(["run", *flags, "--budget", "1h"]) == 0
    assert main(["run", *flags]) == 0, "and so does a plain run"
    assert queries(tmp_path / "out") == before


def test_a_budget_that_is_over_at_once_leaves_a_store_to_continue(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *flags, "--budget", "0.001s"]) == 0
    assert "20 of 60 brackets are closed; run again for more" in capsys.readouterr().err
    assert {kind for _, kind, *_ in queries(tmp_path / "out")} == {"replay"}
    assert main(["run", *flags]) == 0


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            ["--budget", "soon"],
            "--budget 'soon' must be a number of seconds above 0, or a length of",
        ),
        (["--budget", "0h"], "--budget '0h' must be a number of seconds above 0, or a length of"),
        (["--timeout", "soon"], "or a length of time such as 30s, 10m or 1h30m"),
        (["--mean", "0.1,x"], "--mean '0.1,x' must be a number, or one number per channel"),
        (["--budget", "0"], "--budget 0 must be a number of seconds above 0"),
        (["--estimate", "--budget", "2h"], "--estimate measures a few inputs and stops"),
        (["--log-format", "xml"], "--log-format 'xml' is not one of bar, json"),
        (["--log-file", "/nowhere/at/all"], "/nowhere/at/all: cannot be written"),
    ],
)
def test_what_makes_no_sense_is_refused(
    flags: list[str], more: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *flags, *more]) == 2
    assert sentence in capsys.readouterr().err


def test_a_number_is_of_each_input_and_says_so(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *flags, "--budget", "30"]) == 0
    told = capsys.readouterr().err
    assert "write --budget-per-input 30, or --budget 30s for the whole run" in told
    assert main(["run", *flags, "--budget-per-input", "30"]) == 0
    assert "grows" not in capsys.readouterr().err  # the same experiment
    text = "\n".join([f'networks = ["{flags[1]}"]', f'data = "{flags[3]}"', 'domain = "0:1"'])
    (tmp_path / "e.toml").write_text(text + '\nbudget = "2h"\n')
    assert main(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "b")]) == 2
    assert "that of the whole run is a flag: --budget 2h" in capsys.readouterr().err


def test_a_budget_of_the_whole_is_refused_where_there_is_none(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["metrics", *flags[:6], "--eps", "0.1", "--budget", "2h"]) == 2
    assert "is for radii run and radii attack" in capsys.readouterr().err


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_events_are_lines_of_json_on_standard_error(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *flags, "--log-format", "json", "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    first, *middle, last = events(said.err)
    assert (first["event"], first["instances"], first["networks"]) == ("start", 60, ["linear.onnx"])
    assert first["settings"]["timeout"] == 60
    assert {one["event"] for one in middle} == {"instance"}
    assert len({one["input"] for one in middle}) == COUNT
    assert all(one["lower"] <= one["upper"] and one["closed"] for one in middle)
    assert (last["event"], last["reason"], last["exit_code"]) == ("end", "done", 0)
    assert last["finished"] == COUNT


def test_events_of_several_runs_are_appended_to_a_file(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "events.jsonl"
    for _ in range(2):
        assert main(["run", *flags, "--log-file", str(log)]) == 0
    assert capsys.readouterr().err == ""
    found = events(log.read_text())
    assert [one["event"] for one in found].count("start") == 2
    second = found[len(found) // 2 :]
    assert all(one["stored"] for one in second if one["event"] == "instance")


def test_events_tell_failures_and_the_end_of_a_budget(
    flags: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ["run", *flags, "--log-format", "json", "--verifier", "milp", "--json"]
    monkeypatch.setattr(Settings, "make_verifier", lambda _: Raising())
    assert main([*run, "--budget", "0.001s"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert json.loads(lines[-1])["reason"] == "budget"
    assert main(run) == 2, "a verifier that only fails ends the run"
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    told = [json.loads(line) for line in lines]
    failures = [one for one in told if one["event"] == "failure"]
    assert failures
    assert {(one["verdict"], one["ending"]) for one in failures} == {("ERROR", "failed")}
    assert "ZeroDivisionError" in failures[0]["message"]
    assert (told[-1]["reason"], told[-1]["exit_code"]) == ("error", 2)


def test_events_tell_a_disagreement_once(capsys: pytest.CaptureFixture[str]) -> None:
    point, outputs = np.array([0.5, 0.1], np.float32), np.array([1.0, 0.0])
    domain = Domain(np.float64(0), np.float64(1))
    about = Instance("n", 7, point, 0, outputs, OneToAny(), Norm.LINF, domain)
    case, question = Case(about, Native(Grid.parse("mnist")), 0), Question(QuestionKind.RADIUS, 0.3)
    witness = Witness(point, 0.1, 1, outputs[::-1], "test")
    found = Result(Verdict.NOT_ROBUST, 0.3, "attack", "1", 0.0, witness=witness)
    claimed = Result(Verdict.ROBUST, 0.2, "liar", "1", 0.0, Proof(0.2, 0.0))
    with EventLog(None, {"n": "net.onnx"}, {}) as log:
        case.search.tell(Question(QuestionKind.ATTACK, 0.399), found)
        log.answered(case, question, claimed)
        log.answered(case, question, claimed)
    told, end = events(capsys.readouterr().err)
    assert (told["event"], told["network"], told["input"]) == ("disagreement", "net.onnx", 7)
    assert (
        "liar 1 claims a proof at eps 0.2 in real arithmetic, but a replayed witness lies"
        in told["message"]
    )
    assert end["disagreements"] == 1


def test_quiet_says_nothing_but_keeps_the_results(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *flags, "--quiet"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    assert main(["run", *flags, "--quiet", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["networks"][0]["instances"]) == COUNT


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_signals_end_a_run_in_order(
    flags: list[str],
    number: int,
    code: int,
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(*_: object, **__: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr(Plan, "run", stopped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["run", *flags, "--log-format", "json"]) == code
    finally:
        signal.signal(signal.SIGINT, before)
    line, sentence = capsys.readouterr().err.splitlines()
    assert (json.loads(line)["reason"], json.loads(line)["exit_code"]) == (reason, code)
    assert f"radii: {reason}; what was found is in" in sentence


@pytest.mark.slow
def test_killed_with_a_budget_and_continued_loses_nothing(tmp_path: Path) -> None:
    from radii import demo

    out = tmp_path / "out"
    flags = [
        *("--network", str(demo.network_path("cnn-adversarial")), "--data", "digits:test[0:12]"),
        *("--domain", "0:1", "--grid", "0.005:0.5:0.005", "--jobs", "1", "--out", str(out)),
    ]
    command = [sys.executable, "-m", "radii", "run", *flags, "--budget", "10m", "--quiet"]
    with subprocess.Popen(command) as run:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and _proofs(out) < 3:
            time.sleep(0.1)
        run.send_signal(signal.SIGKILL)
    before = queries(out)
    assert _proofs(out) >= 3
    assert main(["run", *flags, "--budget", "15s", "--quiet"]) == 0
    after = queries(out)
    assert after[: len(before)] == before
    assert len(set(after)) == len(after), "the same limit was tried twice"


def _proofs(out: Path) -> int:
    try:
        return sum(kind == "radius" for _, kind, *_ in queries(out))
    except sqlite3.Error:
        return 0


DOCS = Path(__file__).parents[2] / "docs" / "budget.md"


def test_every_documented_exit_code_is_one_that_commands_end_with(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = DOCS.read_text().partition("## Exit codes")[2]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    seen = {main(["run", *flags, "--quiet"])}
    assert seen == {0}
    seen.add(main(["gate", str(tmp_path / "out"), "--require", "robust_accuracy(0.4) >= 0.99"]))
    assert seen == {0, 1}
    seen.add(main(["run", *flags[:-1], str(tmp_path / "many.npz")]))
    for error in (RuntimeError, KeyboardInterrupt, TerminationSignal):

        def stopped(*_: object, error: type[BaseException] = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(Plan, "run", stopped)
        seen.add(main(["run", *flags]))
    assert seen == documented == {0, 1, 2, 3, 130, 143}
