"""`radii run`, reports and Python with what the example package adds: by name, as instances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radii
from radii.cli import main
from radii.testing import Sketch

pytestmark = pytest.mark.usefixtures("example_package")

WEIGHTS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
"""The classes of `blobs`, which it tells apart by x, y and -x - y."""
GRID = "0.01:0.8:0.01"
NAMES = [
    *("--data", "blobs:test[0:3]"),
    *("--verifier", "bounds-alone"),
    *("--attack", "random-corners"),
    *("--search", "thirds"),
    *("--property", "among-top:k=1"),
]


@pytest.fixture
def linear(tmp_path: Path) -> Path:
    sketch = Sketch([1, 2])
    value = sketch.apply("MatMul", "x", sketch.constant(WEIGHTS.T))
    path = tmp_path / "corners.onnx"
    path.write_bytes(sketch.network(value, domain=(-1, 1)).onnx_bytes)
    return path


def flags(network: Path, out: Path, *more: str) -> list[str]:
    return [
        *("run", "--network", str(network), "--domain=-1:1", "--grid", GRID, "--out", str(out)),
        *more,
    ]


def radii_of_blobs() -> list[float]:
    """In closed form: a rival gains on the label by at most |w_rival - w_label|_1 times eps."""
    data = radii.datasets.load_spec("blobs:test[0:3]")
    found = []
    for point, label in zip(data.images, data.labels, strict=True):
        outputs = WEIGHTS @ point
        rivals = [rival for rival in range(3) if rival != label]
        found.append(
            min(
                (outputs[label] - outputs[rival]) / np.abs(WEIGHTS[label] - WEIGHTS[rival]).sum()
                for rival in rivals
            )
        )
    return found


def shown(out: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["show", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["disagreements"]
    return [one for network in found["networks"] for one in network["instances"]]


def check_radii(instances: list[dict[str, Any]]) -> None:
    for one, radius in zip(instances, radii_of_blobs(), strict=True):
        assert radius - 0.02 <= one["lower"] <= radius
        assert one["upper"] is not None
        assert radius - 1e-5 <= one["upper"] <= 1.5 * radius


def test_all_of_them_by_name_in_worker_processes(
    linear: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(flags(linear, out, *NAMES, "--jobs", "1", "--quiet")) == 0
    check_radii(shown(out, capsys))
    assert main(flags(linear, out, *NAMES, "--jobs", "1")) == 0  # nothing is left to do
    page = tmp_path / "report.html"
    assert main(["report", str(out), "-o", str(page)]) == 0
    text = page.read_text()
    assert "bounds-alone" in text
    assert "among-top:k=1" in text


@pytest.mark.usefixtures("without_workers")
def test_another_attack_is_another_question_of_a_store(
    linear: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    attack = ["--attack", "random-corners:tries=64"]
    assert main(flags(linear, out, *NAMES, *attack, "--jobs", "1")) == 0
    check_radii(shown(out, capsys))
    assert main(flags(linear, out, *NAMES, "--jobs", "1")) == 0
    grown = "grows: attack was random-corners:tries=64, is random-corners"
    assert grown in capsys.readouterr().err


@pytest.mark.usefixtures("without_workers")
def test_instances_in_python(linear: Path, tmp_path: Path) -> None:
    from radii_example import AmongTop, BoundsAlone, RandomCorners, Thirds, blobs

    measured = radii.robustness_distribution(
        str(linear),
        blobs("test").take(slice(0, 3)),
        domain=(-1, 1),
        grid=radii.Grid("0.01", "0.8", "0.01"),
        verifier=BoundsAlone(margin=1e-5),
        attack=RandomCorners(tries=128),
        search=Thirds,
        property=AmongTop(1),
        out=tmp_path / "out",
        jobs=1,
    )
    for one, radius in zip(measured, radii_of_blobs(), strict=True):
        assert radius - 0.02 <= one.bracket.lower <= radius <= one.bracket.upper + 1e-5


@pytest.mark.usefixtures("without_workers")
def test_an_operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """|x| > |y| holds at (0.8, -0.2) within 0.3."""
    sketch = Sketch([1, 2])
    path, points = tmp_path / "absolute.onnx", tmp_path / "points.npz"
    path.write_bytes(sketch.model(sketch.apply("Abs", "x")).SerializeToString())
    np.savez(points, images=np.array([[0.8, -0.2]], np.float32), labels=np.array([0]))
    out = tmp_path / "out"
    words = ["--data", str(points), "--jobs", "1", "--timeout", "3"]  # 0.3 itself stays open
    assert main(flags(path, out, *words)) == 0
    (one,) = shown(out, capsys)
    assert 0.28 <= one["lower"] <= 0.3 <= one["upper"] + 1e-5 < 0.31


def test_what_is_added_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from radii.testing import plugins, tools

    added = {(status.family, status.name) for status in plugins() if not status.problem}
    assert {
        ("verifier", "bounds-alone"),
        ("attack", "random-corners"),
        ("search", "thirds"),
        ("property", "among-top"),
        ("data set", "blobs"),
    } <= added
    assert ("bounds-alone", "0.1", None) in [(t.name, t.version, t.refusal) for t in tools()]
    assert main(["run", "--network", "x", "--data", "nosuch:test", "--domain=0:1"]) == 2
