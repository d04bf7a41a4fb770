"""`radii train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

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
        (["--eps", "wide"], "--eps 'wide' is not a number"),
        (["--std", "0"], "all above 0"),
        (["--threads", "0"], "--threads 0"),
        (["--device", "abacus"], "device 'abacus' is not one of cpu"),
        (["--device", "meta"], "device 'meta' is not one of cpu"),
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


@pytest.mark.parametrize("flags", [[], ["--tune", "1"]])
def test_the_device_is_where_networks_are_trained(
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of every kind of training; that they compute where their module is, is theirs."""
    moved: list[object] = []
    really_to = nn.Module.to

    def to(module: nn.Module, *place: Any, **more: Any) -> nn.Module:
        moved.extend(place)
        return module if place == ("abacus",) else really_to(module, *place, **more)

    monkeypatch.setattr("radii.training._runs.check_device", lambda name: None)
    monkeypatch.setattr("radii.verifiers.check_device", lambda name: None)
    monkeypatch.setattr(nn.Module, "to", to)
    assert main(["train", *FAST, *flags, "--device", "abacus", "--out", str(tmp_path)]) == 0
    assert moved.count("abacus") == 1 + bool(flags)
    moved.clear()
    assert main(["train", *FAST, *flags, "--out", str(tmp_path / "other")]) == 0
    assert "abacus" not in moved


def test_the_device_that_is_the_default_changes_nothing(tmp_path: Path) -> None:
    for name, flags in (("one", []), ("two", ["--device", "cpu"])):
        assert main(["train", *FAST, *flags, "--out", str(tmp_path / name)]) == 0
    one, two = ((tmp_path / name / "network.onnx").read_bytes() for name in ("one", "two"))
    assert one == two
