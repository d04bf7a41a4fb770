"""`radii train`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from radii import datasets
from radii.cli import main

FAST = ["--data", "digits:train[0:200]", "--arch", "dense:8", "--epochs", "2"]


def test_trains_shows_and_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", *FAST, "--regime", "fgsm:eps=0.05", "--out", str(tmp_path), "--json"]
    assert main(command) == 0
    shown = capsys.readouterr()
    card = json.loads(shown.out)
    assert "epoch   2  loss" in shown.err
    assert "under PGD" in shown.err
    assert card == json.loads((tmp_path / "card.json").read_text())
    assert card["tested"]["title"] == "digits:test"
    assert card["settings"]["eps"] == 0.05
    assert main(command) == 0
    again = capsys.readouterr()
    assert again.out == shown.out
    assert "epoch" not in again.err


def test_own_arrays_without_a_test_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digits = datasets.load("digits").first(100)
    np.savez(tmp_path / "own.npz", images=digits.images, labels=digits.labels)
    out = str(tmp_path / "run")
    own = ["--data", str(tmp_path / "own.npz"), "--arch", "relu_3_6", "--epochs", "1"]
    assert main(["train", *own, "--mean", "0.3", "--std", "0.4", "--out", out]) == 0
    assert "which it was trained on" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--arch", "vgg"], "architecture 'vgg' is not one of"),
        (["--regime", "pgd:eps=-1"], "eps -1 must be above 0"),
        (["--eps", "wide"], "--eps wide is not a number"),
        (["--std", "0"], "all above 0"),
        (["--threads", "0"], "--threads 0"),
        (["--data", "nowhere.npz"], "neither a data set"),
        (["--domain", "1:0"], "low <= high"),
        (["--batch", "0"], "batch 0 must be at least 1"),
        (["--test", "digits:test[class 11]"], "no image of class 11"),
    ],
)
def test_bad_input_is_one_sentence(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *FAST, *flags, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()
