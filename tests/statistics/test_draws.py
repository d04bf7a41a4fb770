"""How inputs were drawn, read from the texts that name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from radii.cli import main
from radii.statistics import Distribution, InputDraw, draw_of, fairness


@pytest.mark.parametrize(
    ("source", "draw"),
    [
        (None, InputDraw.UNKNOWN),
        ("my inputs", InputDraw.UNKNOWN),
        ("mnist:test", InputDraw.UNKNOWN),
        ("mnist:test[random 100 seed 1]", InputDraw.RANDOM),
        ("mnist:test[class 3,5][random 100]", InputDraw.RANDOM),
        ("mnist:test[0:100]", InputDraw.ORDERED),
        ("mnist:test[first 10]", InputDraw.ORDERED),
        ("mnist:test[0:1000][random 100]", InputDraw.ORDERED),
        ("mnist:test[stratified 100 seed 1]", InputDraw.STRATIFIED),
        ("mnist:test[per-class 10 seed 1]", InputDraw.PER_CLASS),
        ("mnist:test[per-class 10]", InputDraw.FIRST_PER_CLASS),
        ("mnist:test[random 50] and mnist:test[random 50 seed 1]", InputDraw.RANDOM),
        ("mnist:test[random 50] and mnist:test[0:10]", InputDraw.ORDERED),
        ("mnist:test[stratified 50] and mnist:test[stratified 80 seed 1]", InputDraw.PER_CLASS),
        ("mnist:test[0:100][stratified 50]", InputDraw.FIRST_PER_CLASS),
    ],
)
def test_texts(source: str | None, draw: InputDraw) -> None:
    assert draw_of(source) is draw


@pytest.mark.usefixtures("without_workers")
def test_a_run_knows_its_draw_and_its_classes(
    relu_file: Path, relu_points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--network", str(relu_file), "--domain", "0:1", "--grid", "0.1:0.3:0.1"]
    out = str(tmp_path / "out")
    data = f"{relu_points_file}[0:8]"
    assert main([*command, "--data", data, "--jobs", "1", "--out", out]) == 0
    dist = Distribution.from_store(out)
    assert set(dist.column("draw")) == {"in order"}
    assert set(dist.column("classes")) == {3}
    assert {part.column("draw")[0] for part in dist.group_by("class").values()} == {"in order"}
    by_class = dist.labelled(draw="first per class").group_by("class")
    assert {part.column("draw")[0] for part in by_class.values()} == {"in order"}
    capsys.readouterr()
    assert main(["gate", out, "--require", "accuracy >= 0.1 @ 95%"]) == 0
    assert "were taken in the order of their file" in capsys.readouterr().out


def test_a_class_without_inputs_may_be_the_worst() -> None:
    dist = Distribution.from_arrays([0.3] * 40, [0.4] * 40, label=[0, 1] * 20)
    assert fairness(dist, 0.2, permutations=1).absent is None
    found = fairness(dist.labelled(classes=4), 0.2, permutations=1)
    assert found.absent == (2, 3)
    assert found.worst_confident == (0, 1, 2, 3)
    assert found.spread_high == 1
    assert found.spread == (0, 0)
