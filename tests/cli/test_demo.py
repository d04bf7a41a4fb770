"""The demo from start to figures, small; and that what it says follows from its brackets."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from conftest import work_in_this_process
from radii import datasets, demo
from radii.cli import main
from radii.errors import NetworkError
from radii.networks import load_network
from radii.problem import Bracket, Measurement
from radii.runs import Plan
from radii.statistics import Distribution
from radii.views import finding_sentences

INPUTS = 2
FIGURES = ("ecdf", "robust-accuracy", "boxes", "counterexamples")


@dataclass(frozen=True)
class Finished:
    directory: Path
    printed: str


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    directory = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        work_in_this_process(patch)
        assert main(["demo", "--out", str(directory), "--inputs", str(INPUTS)]) == 0
    return Finished(directory, printed.getvalue())


def shown(finished: Finished, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["show", str(finished.directory), "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_it_is_an_ordinary_experiment(
    finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    result = shown(finished, capsys)
    assert [network["network"] for network in result["networks"]] == list(demo.NETWORKS)
    assert result["disagreements"] == []
    for network in result["networks"]:
        assert [instance["input"] for instance in network["instances"]] == list(range(INPUTS))
        for instance in network["instances"]:
            assert instance["missing"] == 0
            assert 0 <= instance["upper"] - instance["lower"] <= 0.005 + 1e-9


def test_it_prints_table_and_findings(finished: Finished) -> None:
    for name in demo.NETWORKS:
        assert name in finished.printed
    assert "When every pixel may change by 0.1" in finished.printed
    times = re.search(r"The table took ([\d.]+) s, all of it ([\d.]+) s\.\n$", finished.printed)
    assert times is not None
    assert 0 < float(times[1]) <= float(times[2])
    assert str(finished.directory / "ecdf.png") in finished.printed.replace("\n", "")


def test_figures_are_pictures(finished: Finished) -> None:
    for name in FIGURES:
        with Image.open(finished.directory / f"{name}.png") as picture:
            pixels = np.asarray(picture.convert("L"))
        assert pixels.shape[0] > 200
        assert pixels.std() > 1
        assert (finished.directory / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_it_ends_with_a_report(finished: Finished) -> None:
    page = finished.directory / "report.html"
    assert "<title>radii demo · radii</title>" in page.read_text()[:1000]
    assert str(page) in finished.printed.replace("\n", "")


def test_again_it_only_reads(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    expected = shown(finished, capsys)
    flags = ["--out", str(finished.directory), "--inputs", str(INPUTS), "--json"]
    assert main(["demo", *flags]) == 0
    assert json.loads(capsys.readouterr().out) == expected


def test_another_size_needs_another_directory(
    finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(finished.directory), "--inputs", "3"]) == 2
    assert "holds another experiment" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--inputs", "0"], ["--inputs", "501"], ["--jobs", "0"]])
def test_bad_numbers(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path / "out"), *flags]) == 2
    assert capsys.readouterr().err.startswith("radii: ")
    assert not (tmp_path / "out").exists()


def test_interrupted_it_says_how_to_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Plan, "run", interrupted)
    assert main(["demo", "--out", str(tmp_path / "out"), "--inputs", "1"]) == 130
    assert "run again to continue" in capsys.readouterr().err


@pytest.mark.slow
def test_training_makes_networks_like_the_embedded_ones(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "scripts" / "train_demo_networks.py"
    subprocess.run([sys.executable, str(script), "--out", str(tmp_path)], check=True)
    data = datasets.load("digits", split="test")
    for name in demo.NETWORKS:
        trained = load_network(tmp_path / f"{name}.onnx", domain=demo.DOMAIN)
        predicted = trained.replay(data.images).argmax(axis=1)
        assert np.mean(predicted == data.labels) > 0.88


@pytest.mark.parametrize("name", demo.NETWORKS)
def test_networks_are_small_and_right(name: str) -> None:
    assert demo.network_path(name).stat().st_size < 10_000
    data = datasets.load("digits", split="test")
    predicted = demo.load_network(name).replay(data.images).argmax(axis=1)
    accuracy = np.mean(predicted == data.labels)
    assert accuracy >= (0.93 if name.endswith("standard") else 0.9)


def test_unknown_network_is_named() -> None:
    with pytest.raises(NetworkError, match="'dense' is not one of mlp-standard, "):
        demo.network_path("dense")


def distribution(**brackets: list[tuple[float, float]]) -> Distribution:
    return Distribution(
        Measurement(
            network=network,
            fingerprint=network,
            input=place,
            label=0,
            predicted=0 if upper > 0 else 1,
            correct=upper > 0,
            property="one-to-any",
            target=None,
            bracket=Bracket(lower, upper),
            witness_class=1,
            seconds=0.0,
            queries=1,
            missing=0,
            cancelled=0,
        )
        for network, rows in brackets.items()
        for place, (lower, upper) in enumerate(rows)
    )


def test_findings_rank_by_the_median_of_correct_inputs() -> None:
    weak, strong = [(0.0, 0.0), (0.0, 0.0), (0.1, 0.12), (0.1, 0.13)], [(0.3, 0.31)]
    told = finding_sentences(distribution(weak=weak, strong=strong), eps=0.1)
    assert told == [
        "Over correct inputs, the median radius of strong, [0.300, 0.310), is the largest; "
        "that of weak is [0.100, 0.120), at least 2.5 times smaller.",
        "When every pixel may change by 0.1, accuracy falls from 0.500 to 0.500 for weak, "
        "from 1.000 to 1.000 for strong.",
        "5 brackets: no answer is missing, each has a counterexample, the widest is 0.0300.",
    ]


def test_findings_do_not_rank_what_overlaps() -> None:
    told = finding_sentences(distribution(a=[(0.1, 0.3)], b=[(0.2, 0.4)]), eps=0.25)
    assert told[0].endswith("none is shown to be more robust.")
    assert "from 1.000 to [0.000, 1.000] for a," in told[1]
    assert told[1].endswith("(from what is proven to what is not refuted).")


def test_findings_name_all_that_may_be_first() -> None:
    a, b, c = [(0.2, 0.3)], [(0.25, 0.4)], [(0.0, 0.0), (0.01, 0.02)]
    told = finding_sentences(distribution(a=a, b=b, c=c, d=[(0.0, 0.0)]), eps=0.1)
    assert told[0] == (
        "Over correct inputs, the median radii of a, [0.200, 0.300), and b, [0.250, 0.400), are "
        "the largest, and overlap; that of c is [0.010, 0.020), at least 12.5 times smaller. "
        "d has no correct inputs."
    )
    assert finding_sentences(distribution(d=[(0.0, 0.0)]), eps=0.1)[0] == (
        "There is no median radius: there are no correct inputs."
    )


def test_findings_round_outward() -> None:
    told = finding_sentences(distribution(a=[(0.0998, 0.1004)]), eps=0.05)
    assert told[0] == "Over correct inputs, the median radius of a is [0.099, 0.101)."


def test_findings_without_a_witness() -> None:
    told = finding_sentences(distribution(a=[(0.1, math.inf)]), eps=0.05)
    assert told[0] == "Over correct inputs, the median radius of a is at least 0.100."
    assert told[2] == "1 bracket: no answer is missing, 1 has no counterexample."
