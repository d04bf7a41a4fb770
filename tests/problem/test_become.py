"""A run of `become`, from the command line to every view that knows targets; radii by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from conftest import in_this_process
from radii.cli import main
from radii.problem import Norm
from radii.statistics import Distribution, over_targets, read
from radii.testing import LinearClassifier
from radii.views import make_payload
from radii.vnnlib import read_problem

pytestmark = pytest.mark.usefixtures("without_workers")

GRID = "0.05:1.5:0.05"
CLASSIFIER = LinearClassifier.random(1, inputs=3, dtype=np.float32)
POINTS = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
LABELS = CLASSIFIER.network.replay(POINTS).argmax(axis=1)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("become")
    (folder / "net.onnx").write_bytes(CLASSIFIER.network.onnx_bytes)
    np.savez(folder / "points.npz", images=POINTS, labels=LABELS)
    network, data = str(folder / "net.onnx"), str(folder / "points.npz")
    return ["--network", network, "--data", data, "--domain=-1000:1000", "--property", "become"]


@pytest.fixture(scope="module")
def results(described: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results") / "become"
    with in_this_process():
        assert main(["run", *described, "--grid", GRID, "--out", str(out)]) == 0
    return out


def shown(results: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["show", str(results), "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    return list(network["instances"])


def test_brackets_hold_the_distance_to_each_class(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = shown(results, capsys)
    assert [row["target"] for row in rows[:3]] == [t for t in range(4) if t != LABELS[0]]
    for row in rows:
        target, place = int(str(row["target"])), int(str(row["input"]))
        radius = CLASSIFIER.become_radius(POINTS[place], target, Norm.LINF)
        upper = np.inf if row["upper"] is None else float(str(row["upper"]))
        assert float(str(row["lower"])) < radius * (1 + 1e-6)
        assert radius * (1 - 1e-6) <= upper
        assert upper - float(str(row["lower"])) <= 0.05 + 1e-6 or radius > 1.4
        assert row["witness_class"] == (None if row["upper"] is None else target)


def test_the_least_over_targets_is_the_radius(results: Path) -> None:
    combined = over_targets(Distribution.from_store(results))
    for x, label, lower, upper in zip(POINTS, LABELS, combined.lower, combined.upper, strict=True):
        assert lower < CLASSIFIER.radius(x, int(label), Norm.LINF) <= upper * (1 + 1e-6)


def test_running_again_asks_nothing_and_one_target_is_a_run_of_its_own(
    described: list[str], results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shown(results, capsys)
    assert main(["run", *described, "--grid", GRID, "--jobs", "1", "--out", str(results)]) == 0
    assert shown(results, capsys) == before
    goal = next(t for t in range(4) if t not in LABELS)
    one = [*described[:-1], f"become:{goal}"]
    out = tmp_path / "one"
    assert main(["run", *one, "--grid", GRID, "--jobs", "1", "--out", str(out)]) == 0
    alone = {row["input"]: row["lower"] for row in shown(out, capsys)}
    assert alone == {row["input"]: row["lower"] for row in before if row["target"] == goal}


def test_tables_and_figures(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(results)
    assert main(["show", place, "--instances"]) == 0
    assert main(["compare", place, "--by", "target"]) == 0
    assert "target 3" in capsys.readouterr().out
    figures = ["--kind", "targets,ks", "--by", "target", "--format", "svg", "-o", str(tmp_path)]
    assert main(["plot", place, *figures]) == 0
    assert {path.stem for path in tmp_path.iterdir()} >= {"targets", "ks"}
    assert main(["gate", place, "--require", "min > 0"]) in (0, 1)


def test_the_report_says_what_its_targets_mean(results: Path, tmp_path: Path) -> None:
    facts = make_payload([results]).facts
    assert facts["has_targets"]
    assert facts["targets_are_become"]
    assert main(["report", str(results), "-o", str(tmp_path / "page.html")]) == 0


@pytest.mark.parametrize("form", ["csv", "verona"])
def test_exported_tables_read_back_as_become(results: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"{form}.csv"
    assert main(["export", str(results), "--format", form, "-o", str(file)]) == 0
    stored, again = Distribution.from_store(results), read(file).brackets
    for name in ("property", "target", "label", "lower"):
        assert again.column(name).tolist() == stored.column(name).tolist()


def test_a_verona_folder_keeps_targets(results: Path, tmp_path: Path) -> None:
    assert main(["convert", "results", str(results), "--out", str(tmp_path / "folder")]) == 0
    again = read(tmp_path / "folder").brackets
    assert again.column("property").tolist() == (
        Distribution.from_store(results).column("property").tolist()
    )


def test_as_a_benchmark_every_comparison_is_asserted(described: list[str], tmp_path: Path) -> None:
    out = tmp_path / "bench"
    assert main(["convert", "vnnlib", *described, "--eps", "0.3", "--out", str(out)]) == 0
    with (out / "instances.csv").open() as lines:
        files = [row[1] for row in csv.reader(lines)]
    assert len(files) == 6
    for file in files:
        target = int(file.split("become_")[1][0])
        (specification,) = read_problem(out / file).specifications((3,))
        (polyhedron,) = specification.requirement.violations or ()
        assert polyhedron.matrix.shape == (3, 4)
        assert np.all(polyhedron.matrix[:, target] == -1)
        assert not polyhedron.offset.any()


def test_a_run_can_be_audited(
    described: list[str], results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its claims are asked as become: as one-to-one many would be refuted."""
    network, data = described[1], described[3]
    places = ["--network", network, "--data", data, "--domain=-1000:1000"]
    capsys.readouterr()
    flags = ["--jobs", "1", "--out", str(tmp_path / "audit"), "--json"]
    assert main(["audit", str(results), *places, *flags]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["claims"]
    assert {claim["status"] for claim in told["claims"]} == {"stands"}
