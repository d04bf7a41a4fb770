"""`radii gate`: exit codes and reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from radii import datasets, load_network
from radii.cli import main
from radii.runs import Plan, Settings, plan
from radii.statistics import Distribution
from radii.store import Store


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Twenty inputs of two classes: 18 proven at 0.02, one open, one misclassified (class 1)."""
    made = Distribution.from_arrays(
        lower=[0.03] * 18 + [0.01, 0.0],
        upper=[0.04] * 18 + [0.05, 0.0],
        label=[0] * 10 + [1] * 10,
        network="net",
    )
    path = tmp_path / "results.csv"
    made.to_pandas().to_csv(path, index=False)
    return path


def gate(results: Path, *requirements: str) -> int:
    flags = [word for text in requirements for word in ("--require", text)]
    return main(["gate", str(results), *flags])


@pytest.mark.parametrize(
    ("requirement", "code"),
    [
        ("robust_accuracy(0.02) >= 0.90", 0),
        ("robust_accuracy(0.02) >= 90%", 0),
        ("robust_accuracy(0.02) >= 0.91", 1),
        ("robust_accuracy(0.02) >= 0.90 @ 95%", 1),
        ("robust_accuracy(0.02) >= 0.70 @ 95%", 0),
        ("not_refuted robust_accuracy(0.02) >= 0.95", 0),
        ("not_refuted robust_accuracy(0.02) >= 0.96", 1),
        ("robust_recall(class=0, 0.02) >= 1", 0),
        ("robust_recall(class=1, 0.02) >= 0.81", 1),
        ("worst_recall(0.02) >= 0.8", 0),
        ("worst_recall(0.02) >= 0.9", 1),
        ("recall_spread(0.02) <= 0.2", 0),
        ("accuracy >= 0.95", 0),
        ("min > 0", 0),
        ("min > 0.01", 1),
        ("robust_acuracy(0.02) >= 0.9", 2),
        ("robust_accuracy >= 0.9", 2),
        ("robust_accuracy(0.02) is high", 2),
        ("robust_accuracy(0.02) >= 0.9 @ 120%", 2),
        ("robust_recall(class=7, 0.02) >= 0.9", 2),
    ],
)
def test_exit_codes(
    results: Path, requirement: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(results, requirement) == code
    captured = capsys.readouterr()
    if code == 2:
        assert captured.out == ""
        assert captured.err.startswith("radii: ")
        assert captured.err.count("\n") == 1
    else:
        assert requirement in captured.out
        assert ("NOT MET" in captured.out) == bool(code)


def test_the_reason_names_the_figure(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(results, "robust_accuracy(0.02) >= 0.94") == 1
    told = capsys.readouterr().out
    assert "18 of 20 inputs are proven at eps 0.02 (0.9)" in told
    assert "But 19 of 20 inputs are not refuted at eps 0.02: longer proofs may still" in told


def test_one_missed_requirement_is_enough(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--require", "accuracy >= 0.9", "--require", "worst_recall(0.02) >= 0.9", "--json"]
    assert main(["gate", str(results), *flags]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["passed"] is False
    assert [outcome["is_met"] for outcome in told["outcomes"]] == [True, False]
    assert told["outcomes"][1]["figure"] == pytest.approx(0.8)
    assert told["outcomes"][1]["network"] == "net"


def test_published_results_are_said_to_lack_misclassified_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "image_id,epsilon_value,smallest_sat_value,network_path\n0,0.03,0.05,net\n"
    (tmp_path / "published.csv").write_text(rows)
    assert gate(tmp_path / "published.csv", "robust_accuracy(0.02) >= 0.9") == 0
    assert "net: published results without misclassified inputs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("told", "clause", "weakest"),
    [
        ("float", "; proofs hold for floating point\n", "float"),
        ("real", "; proofs hold in real arithmetic\n", "real"),
        (["real", *["float"] * 18, ""], "arithmetic, 18 of 19 also for floating point\n", "real"),
        (["", *["float"] * 18, ""], "point; 1 more do not say in which arithmetic\n", None),
        ("", "all requirements are met\n", None),
    ],
)
def test_it_says_what_proofs_hold_for(
    results: Path,
    told: str | list[str],
    clause: str,
    weakest: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    brackets = Distribution.from_pandas(pd.read_csv(results)).labelled(arithmetic=told)
    brackets.to_pandas().to_csv(results, index=False)
    assert gate(results, "robust_accuracy(0.02) >= 0.9") == 0
    assert capsys.readouterr().out.endswith(clause)
    main(["gate", str(results), "--require", "robust_accuracy(0.02) >= 0.9", "--json"])
    assert json.loads(capsys.readouterr().out)["arithmetic"] == weakest


def test_no_requirement_is_bad_input(results: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["gate", str(results)])
    assert stopped.value.code == 2


def test_no_results_are_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(tmp_path / "nothing", "accuracy >= 0") == 2
    assert "nothing: no such file" in capsys.readouterr().err


def planned_run(network: Path, points: Path, **settings: Any) -> Plan:
    return plan(
        [load_network(network, domain=(0, 1))],
        datasets.load_spec(str(points)),
        Settings(**settings),
    )


def test_an_unfinished_run_is_refused(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody tried to break is not refuted, and must not pass for that."""
    planned = planned_run(linear_file, points_file, grid="0.01:0.5:0.02")
    with Store.create_or_open(tmp_path / "out") as store:
        planned.begin(store)
    assert gate(tmp_path / "out", "not_refuted robust_accuracy(0.02) >= 0.5") == 2
    assert "were not measured yet" in capsys.readouterr().err
    with Store.create_or_open(tmp_path / "out") as store:
        planned.run(store)
    assert gate(tmp_path / "out", "not_refuted robust_accuracy(0.02) >= 0.5") == 0
    assert gate(tmp_path / "out", "not_refuted robust_accuracy(0.02) >= 0.51") == 1


def test_what_was_not_searched_does_not_pass_for_not_refuted(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Radii 0.1 and 0.25, two misclassified inputs; attacked up to 0.02 only."""
    planned = planned_run(linear_file, points_file, grid="0.01:0.03:0.01", search="attack-only")
    out = tmp_path / "out"
    with Store.create_or_open(out) as store:
        planned.run(store)
    assert gate(out, "not_refuted robust_accuracy(0.02) >= 0.5") == 0
    assert gate(out, "not_refuted median >= 0.02") == 0
    capsys.readouterr()
    for text in ("robust_accuracy(0.021) >= 0.5", "median >= 0.03", "mean >= 0.03", "min > 0.1"):
        assert gate(out, f"not_refuted {text}") == 2
        told = capsys.readouterr()
        assert "is not known: the search for counterexamples ended at 0.02; search" in told.err
        assert told.err.count("\n") == 1
        assert told.out == ""
    # Two of four are misclassified: whatever a search beyond 0.02 finds, this is not met.
    assert gate(out, "not_refuted robust_accuracy(0.3) >= 0.9") == 1
    capsys.readouterr()
    assert gate(out, "robust_accuracy(0.02) >= 0.5") == 1
    assert "no input has a proof: a search that proves may show it." in capsys.readouterr().out
    assert gate(out, "robust_accuracy(0.3) >= 0.5") == 1
    assert "the search for counterexamples ended at 0.02." in capsys.readouterr().out
    csv = tmp_path / "out.csv"
    assert main(["export", str(out), "-o", str(csv)]) == 0
    assert gate(csv, "not_refuted robust_accuracy(0.3) >= 0.5") == 2


def test_time_outs_are_no_attempts(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from radii.problem import Result, Verdict
    from radii.strategy import Question, QuestionKind

    planned = planned_run(linear_file, points_file, grid="0.01:0.5:0.02")
    question = Question(QuestionKind.ATTACK, 0.49)
    with Store.create_or_open(tmp_path / "out") as store:
        planned.begin(store)
        for instance in planned.instances:
            late = Result(Verdict.TIMEOUT, 0.49, "minimum-norm", "1", 3.0)
            store.record([(instance.key, question, late)])
    assert gate(tmp_path / "out", "not_refuted robust_accuracy(0.02) >= 0.5") == 2
    told = capsys.readouterr().err
    assert "no search for counterexamples was answered for 2 of 4 inputs" in told
    assert gate(tmp_path / "out", "robust_accuracy(0.02) >= 0.5") == 1


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["gate", "--help"])
    assert 'radii gate results --require "robust_accuracy' in capsys.readouterr().out


def test_statements_with_a_confidence_are_corrected_for_being_many(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """18 of 20: at least 0.7174 with 95 %, 0.6838 with 97.5 %; so one is met only uncorrected."""
    alone = "robust_accuracy(0.02) >= 0.70 @ 95%"
    other = "accuracy >= 0.5 @ 95%"
    assert gate(results, alone) == 0
    assert "statements" not in capsys.readouterr().out
    assert gate(results, alone, other) == 1
    told = capsys.readouterr().out
    assert "with 95 % confidence, together with 1 other statement, it is at least 0.6" in told
    assert "all that are met hold together with 95 % confidence" in told
    words = ["--require", alone, "--require", other, "--require", "min >= 0"]
    assert main(["gate", str(results), *words, "--uncorrected"]) == 0
    told = capsys.readouterr().out
    assert "2 statements have a confidence, each its own (uncorrected)" in told
    assert "at least 90 % confidence" in told


def test_json_says_how_sure_statements_are_together(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--require",
        "accuracy >= 0.5 @ 95%",
        "--require",
        "worst_recall(0.02, classes=2) >= 0.3 @ 95%",
    ]
    assert main(["gate", str(results), *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    sentence = told["confidence"].pop("sentence")
    assert told["confidence"] == {"statements": 2, "corrected": True, "together": 0.95}
    assert "Bonferroni" in sentence
    assert {outcome["tested_at"] for outcome in told["outcomes"]} == {0.975}
    assert main(["gate", str(results), *words, "--json", "--uncorrected"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["confidence"]["corrected"] is False
    assert told["confidence"]["together"] == pytest.approx(0.9)
    assert main(["gate", str(results), "--require", "accuracy >= 0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["confidence"] is None
