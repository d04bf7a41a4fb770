"""A researcher grows a study: more inputs, a finer grid, another network, more time.

Only commands of docs/growing.md; after each step the table and the page are looked at.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import work_in_this_process
from radii import demo
from radii.cli import main

Brackets = dict[tuple[str, int], tuple[float, float]]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("standard", "adversarial"):
        shutil.copy(demo.network_path(f"mlp-{name}"), tmp_path / f"{name}.onnx")
    monkeypatch.chdir(tmp_path)
    work_in_this_process(monkeypatch)
    return tmp_path


def looked_at(
    capsys: pytest.CaptureFixture[str], networks: int, inputs: int, steps: int
) -> Brackets:
    """Table, JSON and page agree on what is there; returns the brackets."""
    capsys.readouterr()
    assert main(["show", "results"]) == 0
    assert ("What was asked" in capsys.readouterr().out) is (steps > 1)
    assert main(["show", "results", "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert len(shown["networks"]) == networks and len(shown["history"]) == steps
    assert all(step["ended_at"] for step in shown["history"])
    assert all(len(network["instances"]) == inputs for network in shown["networks"])
    assert main(["report", "results"]) == 0
    page = Path("report.html").read_text()
    assert all(network["network"].removesuffix(".onnx") in page for network in shown["networks"])
    return {
        (network["network"], one["input"]): (one["lower"], one["upper"] or float("inf"))
        for network in shown["networks"]
        for one in network["instances"]
    }


def narrows(before: Brackets, after: Brackets) -> None:
    for key, (lower, upper) in before.items():
        assert after[key][0] >= lower and after[key][1] <= upper


def test_a_study_grows_three_times_and_gets_more_time(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ["--network", "standard.onnx", "--data", "digits:test[0:3]", "--domain", "0:1"]
    limits = ["--grid", "0.01:0.2:0.02", "--timeout", "0.001"]
    assert main(["run", *first, *limits, "--out", "results"]) == 0
    begun = looked_at(capsys, networks=1, inputs=3, steps=1)

    assert main(["run", "results", "--data", "digits:test[0:5]"]) == 0
    assert "results grows: 2 more inputs of digits:test[0:5]" in capsys.readouterr().err
    more = looked_at(capsys, networks=1, inputs=5, steps=2)
    narrows(begun, more)

    assert main(["run", "results", "--grid", "0.005:0.2:0.005"]) == 0
    assert "grid was 0.01:0.2:0.02, is 0.005:0.2:0.005" in capsys.readouterr().err
    finer = looked_at(capsys, networks=1, inputs=5, steps=3)
    narrows(more, finer)

    assert main(["run", "results", "--network", "adversarial.onnx"]) == 0
    assert "the network adversarial.onnx is new" in capsys.readouterr().err
    both = looked_at(capsys, networks=2, inputs=5, steps=4)
    narrows(finer, both)

    assert main(["run", "results", "--timeout", "30", "--retry", "timeouts"]) == 0
    assert "timeout was 0.001, is 30; timeouts are asked again" in capsys.readouterr().err
    longer = looked_at(capsys, networks=2, inputs=5, steps=5)
    narrows(both, longer)
    assert all(upper - lower <= 0.005 + 1e-6 for lower, upper in longer.values())

    assert main(["run", "results"]) == 0
    assert "grows" not in capsys.readouterr().err
    assert looked_at(capsys, networks=2, inputs=5, steps=5) == longer

    assert main(["compare", "results", "--eps", "0.05"]) == 0
    assert "Who is more robust where?" in capsys.readouterr().out


def test_another_norm_is_a_row_of_its_own(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = ["--network", "standard.onnx", "--data", "digits:test[0:2]", "--domain", "0:1"]
    assert main(["run", *first, "--eps", "0.05", "--out", "results"]) == 0
    assert main(["run", "results", "--norm", "l2", "--grid", "0.1:0.6:0.1"]) == 0
    capsys.readouterr()
    assert main(["show", "results"]) == 0
    told = capsys.readouterr().out
    assert "(linf)" in told and "(l2)" in told and "norm l2 beside linf" in " ".join(told.split())
    assert main(["report", "results"]) == 0

    require = ["--require", "accuracy >= 0.1"]
    assert main(["gate", "results", *require]) == 2
    assert "choose --norm linf or --norm l2" in capsys.readouterr().err
    assert main(["gate", "results", "--norm", "l2", *require]) == 0
    assert main(["export", "results", "--norm", "linf"]) == 0
    assert capsys.readouterr().out.count("standard") >= 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--out", "elsewhere"],
            "holds results, which grow where they are: leave out --out",
        ),
        (["--retry", "all"], "--retry 'all' is not one of timeouts, memouts, missing"),
        (["--data", "digits:train[0:2]"], "digits:train[0:2] needs another --out"),
        (["--domain", "-1:1"], "the domain of standard.onnx was 0:1, is -1:1"),
        (["--eps", "0.1", "--grid", "pixels"], "--eps and --grid say the same thing"),
        (["--eps", "0"], "eps 0.0 must be above 0"),
    ],
)
def test_what_makes_no_sense_is_told(
    desk: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    first = ["--network", "standard.onnx", "--data", "digits:test[0:2]", "--domain", "0:1"]
    assert (
        main(["run", *first, "--eps", "0.05", "--search", "attack-only", "--out", "results"]) == 0
    )
    capsys.readouterr()
    assert main(["run", "results", *words]) == 2
    assert sentence in capsys.readouterr().err
