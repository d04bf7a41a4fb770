"""`radii ensemble`: verdicts, attacks, curves, what is kept, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conftest import dense_model
from radii.cli import main
from radii.store import ENSEMBLE_FILE

pytestmark = pytest.mark.usefixtures("without_workers")


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


def shown_in(page: Path) -> dict[str, Any]:
    """What a report is told about its only ensemble."""
    held = page.read_text().split('id="facts">')[1].split("</script>")[0]
    (ensemble,) = json.loads(held)["ensembles"]
    assert isinstance(ensemble, dict)
    return ensemble


def test_an_ensemble_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ENSEMBLE_FILE).touch()
    for command in (["show"], ["gate", "--require", "accuracy >= 0.5"]):
        assert main([*command, str(tmp_path)]) == 2
        assert f"radii report {tmp_path} shows it" in capsys.readouterr().err


def test_networks_may_be_repeated(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, left, right, *rest = flags
    verify = ["ensemble", "verify", *rest, "--eps", "0.1", "--json"]
    assert main([*verify, "--network", left, "--network", right]) == 0
    assert told(capsys)["networks"] == ["left.onnx", "right.onnx"]


def test_verify_attack_and_curve(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ["--out", str(tmp_path / "kept"), "--jobs", "1"]
    assert (
        main(["ensemble", "verify", *flags, *kept, "--eps", "2", "--alpha", "0.5", "--json"]) == 1
    )
    found = told(capsys)
    assert found["robust"] is False
    assert (
        main(["ensemble", "verify", *flags, *kept, "--eps", "2", "--alpha", "0.6", "--json"]) == 0
    )
    found = told(capsys)
    assert (found["robust"], found["exact"]) == (True, "1/2")
    assert {tuple(each["classifiers"]) for each in found["impossible"]} == {(0, 1)}  # type: ignore[attr-defined]
    saved = tmp_path / "attack.npz"
    arguments = ["--eps", "2", "--json", "--save", str(saved)]
    assert main(["ensemble", "attack", *flags, *kept, *arguments]) == 0
    found = told(capsys)
    assert (found["achieved"], found["questions"]) == ("1/2", 0)  # all facts were kept
    with np.load(saved) as held:
        assert held["probabilities"].sum() == pytest.approx(1)
        assert held["perturbed"].shape[1:] == (2, 2)
        assert np.abs(held["perturbed"] - held["points"]).max() <= 2
    curve = ["--grid", "0:2:0.5", "--alpha", "0.5", "--json"]
    assert main(["ensemble", "curve", *flags, *kept, *curve]) == 0
    found = told(capsys)
    assert [each["exact"] for each in found["curve"]] == ["0", "0", "1/2", "1/2"]  # type: ignore[attr-defined]
    assert found["critical"] == {"alpha": 0.5, "lower": 0.5, "upper": 1.0}


def test_too_few_attacks_are_said(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    flags[flags.index("--data") + 1] += "[0:1]"  # with two points one attack fools each at one
    few = ["ensemble", "verify", *flags, "--norm", "l1", "--eps", "2", "--attacks", "1"]
    assert main([*few, "--json"]) == 0
    assert told(capsys)["limited"] == {"attacks": 1, "lower": 0.0, "upper": 0.0}
    assert main(few) == 0
    assert "with at most 1 deterministic attacks: 0 is attained" in capsys.readouterr().out


def test_advice_to_the_defender(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ensemble", "verify", *flags, "--eps", "2", "--json"]) == 0
    defences = told(capsys)["defences"]
    assert isinstance(defences, list)
    assert defences[0] == {
        "name": "best mix",
        "weights": ["1/2", "1/2"],
        "lower": 0.5,
        "upper": 0.5,
    }
    assert [each["name"] for each in defences[1:]] == [
        "uniform mix",
        "left.onnx alone",
        "right.onnx alone",
    ]


def test_tables(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ensemble", "verify", *flags, "--eps", "0.25"]) == 0
    shown = capsys.readouterr().out
    assert "value 0, exactly" in shown
    assert "(crown)" in shown
    page = tmp_path / "page.html"
    assert main(["ensemble", "attack", *flags, "--eps", "0.25", "--report", str(page)]) == 0
    assert "achieves 0" in capsys.readouterr().out
    assert [value["eps"] for value in shown_in(page)["values"]] == [0.25]
    kept = ["--out", str(tmp_path / "kept")]
    asked = ["--grid", "0:0.5:0.25", "--alpha", "1", "--report", str(page)]
    assert main(["ensemble", "curve", *flags, *asked, *kept]) == 0
    assert "broken: nowhere" in capsys.readouterr().out
    assert [value["eps"] for value in shown_in(page)["values"]] == [0.0, 0.25]
    again = tmp_path / "again.html"
    assert main(["report", kept[1], "-o", str(again)]) == 0
    assert shown_in(again) == shown_in(page)


def test_arithmetic(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, kept = tmp_path / "page.html", ["--out", str(tmp_path / "kept")]
    verify = ["ensemble", "verify", *flags, "--eps", "0.25", *kept]
    real = [*verify, "--arithmetic", "real"]
    assert main([*real, "--json", "--report", str(page)]) == 0
    found = told(capsys)
    assert found["arithmetic"] == "real"
    impossible = found["impossible"]
    assert isinstance(impossible, list)
    assert {each["arithmetic"] for each in impossible} == {"real"}
    shown = shown_in(page)
    assert shown["arithmetic"] == "real"
    (value,) = shown["values"]
    assert {one["arithmetic"] for at in value["points"] for one in at["impossible"]} == {"real"}
    assert main(real) == 0
    assert "proofs hold in real arithmetic" in capsys.readouterr().out
    assert main(verify) == 2
    error = capsys.readouterr().err
    assert "another arithmetic; go on with --arithmetic real" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alpha", "0"], "alpha 0 must be above 0 and at most 1"),
        (["--alpha", "1.5"], "alpha 1.5"),
        (["--eps", "-1"], "eps -1"),
        (["--norm", "l3"], "norm 'l3'"),
        (["--verifier", "nobody"], "verifier 'nobody'"),
        (["--arithmetic", "octal"], "arithmetic 'octal' is not one of"),
        (["--arithmetic", "float", "--verifier", "marabou"], "'marabou' proves in real"),
        (["--timeout", "0"], "timeout 0"),
        (["--budget", "0"], "--budget 0"),
        (["--mean", "0", "--mean", "0", "--mean", "0"], "--mean was given 3 times"),
        (["--mean", "x"], "--mean 'x'"),
        (["--norm", "l2", "--verifier", "milp"], "l2"),
        (["--data", "nothing.npz"], "nothing.npz"),
        (["--networks", "nothing.onnx"], "nothing.onnx"),
        (["--attacks", "0"], "--attacks 0"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], words: str, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ensemble", "verify", *flags, "--eps", "1", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
