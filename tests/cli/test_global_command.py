"""`radii global`: plans, results, curves, files and bad input."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import write_linear
from radii.cli import main

pytestmark = pytest.mark.usefixtures("without_workers")


@pytest.fixture
def subject(tmp_path: Path) -> list[str]:
    """The network y0 - y1 = x0 - x1 on 40 points, of which 30 are robust at 0.05."""
    gaps = np.repeat([0.06, 0.3], [10, 30])
    images = np.stack([0.5 + gaps / 2, 0.5 - gaps / 2], axis=1).astype(np.float32)
    np.savez(tmp_path / "points.npz", images=images, labels=np.zeros(40, int))
    network = write_linear(tmp_path)
    return [
        "global",
        *("--network", str(network), "--data", str(tmp_path / "points.npz")),
        *("--domain", "0:1", "--eps", "0.05", "--jobs", "1"),
    ]


CHANGE_WITHIN = ["--measure", "change", "--within", "0.1"]


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["global", "--plan", "--error", "0.05", "--confidence", "0.95"]) == 0
    assert capsys.readouterr().out.startswith("738 inputs")
    assert main(["global", "--plan", "--error", "0.1", "--range", "0:2", "--json"]) == 0
    assert told(capsys)["samples"] == 738


def test_plan_of_a_small_set(subject: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*subject, "--plan"]) == 0
    assert "has 40 inputs, fewer than 738" in capsys.readouterr().out
    assert main([*subject, "--plan", "--about", "source"]) == 2
    assert "needs 738 inputs" in capsys.readouterr().err


def test_result_and_files(
    subject: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, table = tmp_path / "out", tmp_path / "inputs.csv"
    flags = ["--samples", "40", "--out", str(out), "--csv", str(table), "--json"]
    assert main([*subject, *flags]) == 0
    found = told(capsys)
    assert found["estimate"]["low"] == found["estimate"]["high"] == 0.75
    assert found["estimate"]["population"] == 40
    assert "finite-population" in found["estimate"]["statement"]
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert sum(float(row["lower"]) for row in rows) == 30
    assert main(["global", "--curve", str(out), "--json"]) == 0
    (curve,) = told(capsys)["networks"].values()
    assert [point["proven"] for point in curve if point["eps"] == 0.05] == [0.75]
    assert main(["global", "--curve", str(out)]) == 0
    assert "i.i.d." in capsys.readouterr().out


def test_decisions(subject: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*subject, "--sequential", "--decide", "0.4"]) == 0
    assert "R >= 0.4: yes" in capsys.readouterr().out
    assert main([*subject, "--sequential", "--decide", "0.95", "--by", "attack"]) == 1
    assert "R >= 0.95: no" in capsys.readouterr().out


def test_change(subject: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--measure", "change", "--on", "outputs", "--range", "0:1", "--samples", "40"]
    assert main([*subject, *flags]) == 0
    assert "largest change of outputs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "arithmetic", "scope"),
    [
        ([], "float", "  proofs      hold for floating point\n"),
        pytest.param(
            *(["--arithmetic", "real"], "real", "  proofs      hold in real arithmetic\n"),
            marks=pytest.mark.slow,
        ),
        pytest.param(["--by", "attack"], None, "", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "measure", [[], ["--measure", "change", "--on", "outputs", "--range", "0:1"]]
)
def test_arithmetic(
    subject: list[str],
    measure: list[str],
    flags: list[str],
    arithmetic: str | None,
    scope: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [*subject, "--samples", "40", *measure, *flags]
    assert main([*command, "--json"]) == 0
    assert told(capsys)["arithmetic"] == arithmetic
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert scope in shown if scope else "  proofs" not in shown


def test_changes_are_kept_with_their_arithmetic(
    subject: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--measure", "change", "--on", "outputs", "--range", "0:1", "--samples", "40"]
    command = [*subject, *flags, "--out", str(tmp_path / "out")]
    assert main(command) == 0
    capsys.readouterr()
    assert main([*command, "--arithmetic", "real"]) == 2
    error = capsys.readouterr().err
    assert "its proofs hold for floating point: go on with --arithmetic float" in error
    assert error.count("\n") == 1
    # As written before the arithmetic was told.
    file = tmp_path / "out" / "changes.jsonl"
    head, rest = file.read_text().split("\n", 1)
    before = {name: value for name, value in json.loads(head).items() if name != "arithmetic"}
    file.write_text(json.dumps(before) + "\n" + rest)
    assert main(command) == 2
    assert "its proofs hold in real arithmetic: go on with" in capsys.readouterr().err
    assert main([*command, "--arithmetic", "real"]) == 0


def test_a_curve_says_what_proofs_hold_for(
    subject: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert main([*subject, "--samples", "40", "--arithmetic", "real", "--out", out]) == 0
    capsys.readouterr()
    assert main(["global", "--curve", out, "--json"]) == 0
    assert told(capsys)["arithmetic"] == "real"
    assert main(["global", "--curve", out]) == 0
    assert capsys.readouterr().out.endswith("proofs hold in real arithmetic\n")


@pytest.mark.parametrize(
    "flags",
    [
        ["--arithmetic", "octal"],
        ["--measure", "change", "--arithmetic", "octal"],
        ["--arithmetic", "float", "--verifier", "marabou"],
        [*CHANGE_WITHIN, "--arithmetic", "float", "--verifier", "marabou"],
        ["--error", "0"],
        ["--error", "1.5"],
        ["--confidence", "1"],
        ["--eps", "-1"],
        ["--method", "guess"],
        ["--samples", "41"],
        ["--jobs", "0"],
        ["--range", "0:1"],
        ["--within", "0.1"],
        ["--sequential", "--method", "exact"],
        ["--generator", "x.py:f"],
        ["--property", "sr:delta=-1"],
        ["--measure", "change", "--property", "cr"],
        ["--measure", "change", "--on", "outputs"],
        ["--measure", "change", "--range", "0:0.001"],
        ["--csv", "/nowhere/at/all.csv", "--samples", "1"],
    ],
)
def test_bad_input(
    flags: list[str], subject: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*subject, *flags]) == 2
    error = capsys.readouterr().err
    assert error.startswith("radii: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "span"),
    [
        (["5"], "above 0 and at most 1"),
        (["0"], "above 0 and at most 1"),
        (["-0.5", "--measure", "change"], "above 0 and at most 1"),
        (["9", "--measure", "change", "--on", "outputs", "--range", "0:8"], "at most 8"),
        (["nan"], "R lies between 0 and 1"),
    ],
)
def test_decisions_that_are_none(
    flags: list[str],
    span: str,
    subject: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("radii.cli._global._load_network", None)  # nothing may be measured
    assert main([*subject, "--decide", *flags]) == 2
    assert span in capsys.readouterr().err


def test_one_network_an_estimate(subject: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*subject, *subject[subject.index("--network") :][:2]]) == 2
    assert "given 2 times" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["--network", "--data", "--domain", "--eps"])
def test_missing_flags(
    missing: str, subject: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    place = subject.index(missing)
    assert main(subject[:place] + subject[place + 2 :]) == 2
    assert "missing" in capsys.readouterr().err
