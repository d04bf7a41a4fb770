"""`radii cycle` and `radii train --tune`: exit codes, tables, JSON and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radii.cli import main

pytestmark = pytest.mark.usefixtures("without_workers")

BASE = [
    "cycle", "--data", "digits:train[0:150]", "--test", "digits:test[0:4]", "--arch", "dense:8",
    "--epochs", "1", "--attacked", "10", "--verified", "0", "--timeout", "10", "--jobs", "1",
]  # fmt: skip


@pytest.mark.slow
def test_the_budget_ends_first_with_1_and_an_easy_requirement_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hard = [*BASE, "--require", "robust_accuracy(0.5) >= 0.99", "--out", str(tmp_path / "hard")]
    assert main([*hard, "--rounds", "1", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["met"] is False and len(told["rounds"]) == 1
    assert main([*hard, "--rounds", "2"]) == 1
    shown = capsys.readouterr()
    assert "NOT MET" in shown.out and "round 0: seeking counterexamples" in shown.err
    assert (tmp_path / "hard" / "report.html").is_file()
    easy = [*BASE, "--require", "robust_accuracy(0.001) >= 0", "--out", str(tmp_path / "easy")]
    assert main(easy) == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["--require", "accuracy >= 0.9"], "name no eps"),
        (["--require", "robust_accuracy(0.1) >= 1", "--rounds", "0"], "leaves nothing to do"),
        (["--require", "robust_accuracy(0.1) >= 1", "--later-regime", "luck"], "'luck'"),
        (["--require", "robust_accuracy(0.1) >= 1", "--jobs", "0"], "--jobs 0"),
    ],
)
def test_bad_input(
    changes: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*BASE, "--out", str(tmp_path / "out"), *changes]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_tuned_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "train", "--data", "digits:train[0:150]", "--test", "digits:test[0:20]", "--arch",
        "dense:8", "--regime", "sr:delta=2,eps=0.05,steps=1", "--epochs", "1", "--tune", "2",
        "--out", str(tmp_path), "--json",
    ]  # fmt: skip
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "trial 1: score" in shown.err
    settings = json.loads(shown.out)["settings"]
    assert settings["rate"] != 0.001 and "beta=0.2," not in settings["regime"]
    assert main([*command, "--rate", "0.1"]) == 2
    assert "--tune searches" in capsys.readouterr().err
