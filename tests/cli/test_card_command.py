"""`radii card`: true sentences, from a run and from published claims."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from conftest import make_older
from radii import __version__, datasets, load_network
from radii.cli import main
from radii.problem import Grid
from radii.problem import parse_property as parse
from radii.runs import Settings, plan
from radii.statistics import Distribution
from radii.store import Store
from radii.testing import Sketch


@pytest.fixture
def run(linear_file: Path, points_file: Path, tmp_path: Path) -> Path:
    """Four inputs: radii 0.1 and 0.25, and two that are misclassified."""
    planned = plan(
        [load_network(linear_file, domain=(0, 1))],
        datasets.load_spec(str(points_file)),
        Settings(grid=Grid.parse("0.01:0.5:0.02")),
        data="points.npz",
    )
    with Store.create_or_open(tmp_path / "out") as store:
        planned.run(store)
    return tmp_path / "out"


def test_a_run_is_described(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["card", str(run), "--eps", "0.05,0.2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## Robustness to small changes of the input\n\n### linear\n")
    assert "linear classifies 2 of 4 inputs (points.npz) correctly." in text
    assert (
        "For half of the correctly classified inputs the answer provably stays right under every "
        "change within 0.09 (no value changes by more than eps); their median radius is [0.090, "
    ) in text
    assert "| 0 | 50.0 % | 50.0 % | 6.8 % to 93.2 % |" in text
    assert "| 0.05 | 50.0 % | 50.0 % |" in text
    assert "| 0.2 | 25.0 % | 25.0 % |" in text
    assert "The smallest change known to break a correct answer is 0.1 (input 0)." in text
    assert "robust recall differs by" in text
    assert "Limitations:" in text
    assert "grid 0.01:0.5:0.02" in text
    assert "verifier native, arithmetic float, " in text
    assert "- Proofs hold for floating point.\n" in text
    assert "without rounding" not in text
    assert f"native {__version__}" in text
    assert f"replayed on onnxruntime {version('onnxruntime')}" in text
    assert "published claims" not in text


def test_answers_are_of_one_network_and_the_end_of_the_search_is_told(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sketch = Sketch([1, 2], dtype=np.float32)
    weights = sketch.constant(np.array([[-1.0, 0.0], [0.0, -1.0]]))
    other = sketch.network(sketch.apply("Gemm", "x", weights), domain=(0.0, 1.0))
    planned = plan(
        [load_network(linear_file, domain=(0, 1)), other],
        datasets.load_spec(str(points_file)),
        Settings(grid=Grid.parse("0.01:0.03:0.01"), search="attack-only"),
        data="points.npz",
    )
    with Store.create_or_open(tmp_path / "out") as store:
        planned.run(store)
        counts: dict[str, int] = {}
        for record in store.records():
            name = record.measurement.network
            counts[name] = counts.get(name, 0) + len(record.answered)
    assert main(["card", str(tmp_path / "out"), "--eps", "0.02,0.3"]) == 0
    text = capsys.readouterr().out
    assert "| 0.02 | 0.0 % | 50.0 % |" in text
    assert "| 0.3 | 0.0 % | not searched |" in text
    assert "Not searched: the search for counterexamples ended at 0.02, so what is not" in text
    told = [line for line in text.splitlines() if line.startswith("- Answers by: ")]
    totals = [sum(int(part.partition(")")[0]) for part in line.split("(")[1:]) for line in told]
    assert totals == list(counts.values())


def test_other_properties_are_not_called_answers(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All four inputs have SR, right or wrong."""
    planned = plan(
        [load_network(linear_file, domain=(0, 1))],
        datasets.load_spec(str(points_file)),
        Settings(grid=Grid.parse("0.01:0.5:0.02"), property=parse("sr:delta=0.2")),
    )
    with Store.create_or_open(tmp_path / "out") as store:
        planned.run(store)
    assert main(["card", str(tmp_path / "out"), "--eps", "0.05"]) == 0
    text = capsys.readouterr().out
    assert "The property sr:delta=0.2 holds for linear at 4 of 4 inputs" in text
    assert "the property provably holds under every change within" in text
    assert "Constraint satisfaction: the share of inputs" in text
    assert "correct" not in text
    assert "| 0 | 100.0 % | 100.0 % |" in text


def test_claims_are_called_claims(tmp_path: Path) -> None:
    made = Distribution.from_arrays(
        lower=np.linspace(0.01, 0.1, 10), upper=np.inf, network="net", split="train"
    )
    table, out = tmp_path / "published.csv", tmp_path / "card.md"
    made.to_pandas().to_csv(table, index=False)
    assert main(["card", str(table), "-o", str(out)]) == 0
    text = out.read_text()
    assert "by published claims stays right" in text
    assert "which radii has not checked" in text
    assert "Inputs are training inputs" in text
    assert "For 10 inputs no counterexample is known." in text
    assert "provably" not in text
    assert "accuracy is not known" in text
    assert "classifies 10 of 10" not in text
    # About three quarters, half and a quarter of the inputs are proven at the default radii.
    assert [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| 0")] == [
        *("80.0 %", "60.0 %", "30.0 %")
    ]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["nothing"], "nothing: no such file or directory"),
        ([".", "--eps", "much"], "--eps 'much' is not a number"),
        ([".", "--level", "2"], "--level 2"),
    ],
)
def test_bad_input_is_one_sentence(
    flags: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["card", *flags]) == 2
    assert sentence in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["card", "--help"])
    assert "radii card results" in capsys.readouterr().out


def test_real_proofs_are_a_limitation(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_older(run, 3)
    assert main(["card", str(run)]) == 0
    text = capsys.readouterr().out
    assert "- Proofs hold in real arithmetic.\n" in text
    assert "holds for the network without rounding" in text
