"""The first hour of a student: reproduce "Robustness Distributions in Neural Network Verification".

First a picture, by the commands of docs/five-minutes.md. Then the published results are imported,
three images measured anew, both compared and drawn, and the published claims audited: commands of
docs/compare.md, docs/figures.md and docs/audit.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd
import pytest

from conftest import SHARED_DATA, needs_shared_data, work_in_this_process
from radii import demo
from radii.cli import main
from radii.statistics import Distribution

PAPER = SHARED_DATA / "jair"
NETWORK = "mnist-net_256x2"
STEP = 0.002


def test_a_picture_within_two_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    work_in_this_process(monkeypatch)
    began = time.monotonic()
    network = str(demo.network_path("cnn-adversarial"))
    given = ["--network", network, "--data", "digits:test[0:4]", "--domain", "0:1"]
    assert main(["run", *given, "--grid", "0.01:0.4:0.01", "--out", "results"]) == 0
    assert main(["report", "results"]) == 0
    assert main(["plot", "results", "--kind", "ecdf,closest", "-o", "figures"]) == 0
    assert time.monotonic() - began < 120
    capsys.readouterr()
    assert {path.stem for path in Path("figures").iterdir()} >= {"ecdf", "closest"}
    assert Path("report.html").exists()


@needs_shared_data
def test_from_published_results_to_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    work_in_this_process(monkeypatch)
    published = str(PAPER / "published_results.csv")
    assert main(["import", published, "-o", "published.csv", "--split", "train"]) == 0
    told = capsys.readouterr()
    assert "279 brackets" in told.out and "6 of 279 rows claim a proof" in told.err

    images = f"{PAPER / 'mnist_train_0_49.npz'}[0:3]"
    network = str(PAPER / "networks" / f"{NETWORK}.onnx")
    given = ["--data", images, "--domain", "0:1"]
    grid = ["--grid", "mnist", "--timeout", "60", "--out", "results"]
    assert main(["run", "--network", network, *given, *grid]) == 0
    capsys.readouterr()

    mine = Distribution.from_store("results")
    theirs = pd.read_csv("published.csv").query("network == @NETWORK").set_index("input")
    for row in mine:
        claimed = theirs.loc[row.input]
        assert row.bracket.upper > claimed["lower"], "a refuted claim; there should be none"
        assert row.bracket.lower < claimed["upper"]
        assert row.bracket.width <= STEP + 1e-9, "as narrow as the grid allows"

    drawn = ["plot", "results", "published.csv", "--split", "train", "-o", "figures"]
    assert main([*drawn, "--kind", "ecdf,scatter"]) == 0
    assert {path.stem for path in Path("figures").iterdir()} == {"ecdf", "scatter"}
    assert main(["compare", "results", "published.csv"]) == 0
    capsys.readouterr()
    assert main(["audit", "published.csv", "--networks", network, *given, "--out", "audit"]) == 0
    assert Path("audit/audit.csv").exists()
