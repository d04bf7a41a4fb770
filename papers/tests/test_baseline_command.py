"""`radii study baseline`: what the methods of the literature claim, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from conftest import dense_model
from radii.cli import main


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Two classifiers, one fooled left of -1 and one right of 1, and two points between."""
    for name, slope in (("left", -1.0), ("right", 1.0)):
        model = dense_model((np.array([[0.0, 0.0], [slope, 0.0]]), np.array([1.0, 0.0])))
        onnx.save(model, tmp_path / f"{name}.onnx")
    images = np.array([[0.0, 0.0], [0.5, 0.0]], np.float32)
    np.savez(tmp_path / "points.npz", images=images, labels=np.zeros(2, int))
    networks = [str(tmp_path / f"{name}.onnx") for name in ("left", "right")]
    return [
        *("--networks", *networks),
        *("--data", str(tmp_path / "points.npz")),
        "--domain=-4:4",
    ]


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    held = json.loads(capsys.readouterr().out)
    assert isinstance(held, dict)
    return held


@pytest.mark.parametrize("method", ["milp", "maxmilp", "smt", "ua", "bda"])
def test_methods_of_the_literature(
    method: str, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if method == "smt":
        pytest.importorskip("z3", reason="the SMT encoding needs z3-solver")
    verify = ["study", "baseline", *flags, "--norm", "l1", "--eps", "2", "--method", method]
    assert main([*verify, "--alpha", "0.5", "--json"]) == 1
    found = told(capsys)
    is_attack = method != "bda"  # which fools one of the two
    assert found["robust"] is (False if is_attack else None)
    assert found["value"] == ("1/2" if is_attack else "0") and found["replayed"] is True
    assert found["solver"] and found["believed"] is False
    assert main([*verify, "--alpha", "0.6"]) == 1  # robust, but nobody proved it
    shown = capsys.readouterr().out
    is_claimed = method in ("milp", "maxmilp", "smt")
    assert ("claimed: robust, for every randomized attack (believed" in shown) is is_claimed


def test_too_few_attacks_are_said(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    flags[flags.index("--data") + 1] += "[0:1]"  # with two points one attack fools each at one
    few = ["study", "baseline", *flags, "--norm", "l1", "--eps", "2", "--attacks", "1"]
    assert main([*few, "--method", "milp", "--alpha", "0.4"]) == 1
    assert "for mixes of 1 deterministic attacks only: 2 can be" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "milp"], "give --alpha"),
        (["--method", "bda", "--attacks", "2"], "'bda' attacks every classifier once"),
        (["--method", "ua", "--solver", "highs"], "--solver is of --method milp and maxmilp"),
        (["--method", "ua", "--alpha", "1.5"], "alpha 1.5"),
        (["--method", "ua", "--mean", "0", "--mean", "0", "--mean", "0"], "--mean was given 3"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], words: str, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "baseline", *flags, "--eps", "1", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
