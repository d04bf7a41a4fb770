"""The first hour of a researcher: two ONNX files and a folder of images.

Only commands of docs/first-hour.md: look, write the experiment, run, look again, compare.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from conftest import work_in_this_process
from radii import datasets, demo
from radii.cli import main


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the researcher has: standard.onnx, adversarial.onnx, images/CLASS/NUMBER.png."""
    for name in ("standard", "adversarial"):
        shutil.copy(demo.network_path(f"mlp-{name}"), tmp_path / f"{name}.onnx")
    digits = datasets.load("digits", split="test").first(40)
    for number, (image, label) in enumerate(zip(digits.images, digits.labels, strict=True)):
        folder = tmp_path / "images" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.uint8(255 * image[0])).save(folder / f"{number:02d}.png")
    monkeypatch.chdir(tmp_path)
    work_in_this_process(monkeypatch)
    return tmp_path


def test_from_files_to_a_comparison(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    networks = ["--network", "standard.onnx", "--network", "adversarial.onnx"]
    assert main(["init", *networks, "--data", "images", "--inputs", "5", "--yes"]) == 0
    told = capsys.readouterr().out
    assert "looked at 40 inputs of 1x8x8" in told and "as they are  <- chosen" in told
    written = tomllib.loads(Path("experiment.toml").read_text())
    assert written["networks"] == ["standard.onnx", "adversarial.onnx"]

    assert main(["run", "experiment.toml", "--out", "results"]) == 0
    assert " standard " in capsys.readouterr().out
    assert main(["run", "experiment.toml", "--out", "results"]) == 0  # again: nothing to do
    capsys.readouterr()

    assert main(["show", "results", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["disagreements"] == []
    for network in shown["networks"]:
        assert len(network["instances"]) == 5
        for instance in network["instances"]:
            assert instance["upper"] is None or instance["lower"] <= instance["upper"]
            assert instance["missing"] == 0

    assert main(["report", "results"]) == 0
    page = Path("report.html").read_text()
    assert "standard" in page and "adversarial" in page
    capsys.readouterr()

    assert main(["compare", "results", "--eps", "0.05"]) == 0
    told = capsys.readouterr().out
    assert "Robust accuracy at eps" in told
    assert "Who is more robust where?" in told and "Are the same inputs hard?" in told
