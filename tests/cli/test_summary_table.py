"""The table of `radii show`: what is not known is a dash, and gaps are those of `compare`."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest

from conftest import work_in_this_process, write_linear, write_points
from radii.cli import main
from radii.statistics import CATALOGUE, Distribution
from radii.views import Console, instance_table, summary_table


def shown(distribution: Distribution) -> list[str]:
    console = Console(file=io.StringIO(), width=120)
    console.print(summary_table(distribution))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def row(distribution: Distribution) -> list[str]:
    (line,) = (line for line in shown(distribution) if "/" in line)
    return line.split()


def test_what_is_not_known_is_a_dash() -> None:
    (wrong,) = (
        line for line in shown(Distribution.from_arrays([0.0] * 3, [0.0] * 3)) if "/" in line
    )
    assert wrong.split() == ["network", "0/3", "-", "-", "-", "-", "-", "-"]
    (attacked,) = (
        line for line in shown(Distribution.from_arrays([0.1], [math.inf])) if "/" in line
    )
    assert attacked.split() == ["network", "1/1", *["0.1000–none"] * 4, "-", "-"]


def test_the_gap_is_that_of_compare() -> None:
    """Misclassified inputs have no bracket to be wide."""
    dist = Distribution.from_arrays([0.1, 0.2, 0.0], [0.12, 0.24, 0.0], seconds=1.0)
    assert math.isclose(CATALOGUE["mean_gap"](dist), 0.03)
    assert row(dist)[-2:] == ["0.0300", "1.00"]
    assert (
        "radii of correct inputs, proven–witnessed; gap: mean width of brackets" in shown(dist)[-1]
    )


def test_no_number_of_an_instance_is_ever_cut() -> None:
    dist = Distribution.from_arrays(
        [0.123456, 0.0], [0.1345678, 0.0], network="a-network-with-a-long-name", seconds=123.456
    )
    for width in (80, 120):
        console = Console(file=io.StringIO(), width=width)
        console.print(instance_table(dist))
        assert isinstance(console.file, io.StringIO)
        told = console.file.getvalue()
        assert "0.123456" in told and "0.134568" in told
        assert "predicted" in told and "target" not in told
        assert "queries" in told and "123.46" in told


def test_results_without_an_answer_are_counted() -> None:
    several = Distribution.from_arrays([0.0, 0.2, 0.3], [math.inf, 0.3, 0.4], seconds=1.0)
    assert row(several)[1:3] == ["3/3", "1"]
    told = " ".join(" ".join(shown(several)).split())
    assert "no answer: nothing proven, nothing witnessed" in told
    assert "no answer" not in " ".join(shown(several.solved()))


def test_where_one_eps_was_asked_about_robust_accuracy_stands_for_the_quantiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The radii are 0.1, 0.25, 0 and 0."""
    work_in_this_process(monkeypatch)
    flags = ["--network", str(write_linear(tmp_path)), "--data", str(write_points(tmp_path))]
    out = str(tmp_path / "out")
    assert main(["run", *flags, "--domain", "0:1", "--eps", "0.2", "--out", out]) == 0
    ran = capsys.readouterr().out
    assert main(["show", out]) == 0
    for told in (ran, capsys.readouterr().out):
        assert "robust accuracy at 0.2" in told and "[0.250, 0.250]" in told
        assert "median" not in told and "[proven, not refuted]" in told
    assert main(["run", out, "--grid", "0.05:0.25:0.05"]) == 0
    assert main(["show", out]) == 0
    grown = capsys.readouterr().out
    assert "median" in grown and "robust accuracy at" not in grown
    assert "grid was eps 0.2, is 0.05:0.25:0.05" in grown
