"""`radii init` asks or takes flags, and writes what `radii run` takes."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from radii import demo
from radii.cli import main

pytestmark = pytest.mark.usefixtures("without_workers")

NETWORK = str(demo.network_path("mlp-standard"))
FLAGS = ["init", "--network", NETWORK, "--data", "digits:test", "--yes"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_flags_and_then_a_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FLAGS, "--inputs", "2"]) == 0
    told = capsys.readouterr().out
    assert "mlp-standard.onnx: 1x8x8 -> 10 classes" in told
    assert "as they are  <- chosen" in told
    assert "Next: radii run experiment.toml --out results" in told
    assert tomllib.loads(Path("experiment.toml").read_text())["data"].endswith("[random 2 seed 0]")
    assert tomllib.loads(Path("experiment.toml").read_text())["arithmetic"] == "float"
    assert main(["run", "experiment.toml", "--out", "results", "--jobs", "1"]) == 0
    assert "mlp-standard" in capsys.readouterr().out


def test_a_file_that_is_there_is_kept(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiment.toml").write_text("mine")
    assert main(FLAGS) == 2
    assert "experiment.toml exists already" in capsys.readouterr().err
    assert Path("experiment.toml").read_text() == "mine"
    assert main([*FLAGS, "--force"]) == 0
    assert "networks" in Path("experiment.toml").read_text()


def test_it_asks_for_what_is_missing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "net.onnx").write_bytes(Path(NETWORK).read_bytes())
    asked = []
    answers = iter(["", "digits:test", "7"])

    def answer(question: str) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert main(["init", "-o", "asked.toml"]) == 0
    assert asked == [
        "Networks: ONNX files, with commas between them [net.onnx]: ",
        "Data: a set such as mnist:test, a file, or a folder: ",
        "How many of the 500 inputs [100]: ",
    ]
    told = tomllib.loads(Path("asked.toml").read_text())
    assert told["networks"] == ["net.onnx"]
    assert told["data"] == "digits:test[random 7 seed 0]"


def test_what_is_given_is_not_guessed(here: Path) -> None:
    assert main([*FLAGS, "--mean", "0.1", "--std", "2", "--domain", "0:2"]) == 0
    told = tomllib.loads(Path("experiment.toml").read_text())
    assert (told["mean"], told["std"], told["domain"]) == ([0.1], [2.0], "0:2")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["init", "--yes"], "--network is missing"),
        (["init", "--network", NETWORK, "--yes"], "--data is missing"),
        ([*FLAGS, "--mean", "1"], "--mean and --std are given together"),
        (
            [*FLAGS, "--mean", "x", "--std", "1"],
            "mean 'x' must be a number, or one number per channel",
        ),
        ([*FLAGS, "--inputs", "0"], "--inputs 0 must be at least 1"),
        ([*FLAGS, "--domain", "up"], "domain 'up'"),
        ([*FLAGS, "--layout", "wch"], "layout 'wch' is not one of chw, hwc"),
        ([*FLAGS, "-o", "no/where.toml"], "the directory does not exist"),
        (["init", "--network", "no.onnx", "--data", "digits", "--yes"], "no.onnx"),
        (["init", "--network", NETWORK, "--data", "no.npz", "--yes"], "no.npz"),
    ],
)
def test_bad_input_is_one_sentence(
    flags: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not Path("experiment.toml").exists()
