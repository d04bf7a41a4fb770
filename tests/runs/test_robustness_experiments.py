"""`radii run --property ...` for SR, SCR and LR: radii that are known by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radii.cli import main
from radii.errors import SpecificationError, UnsupportedQuery
from radii.runs import Experiment, prepare
from radii.statistics import ComparisonOptions, Distribution, compare_groups
from radii.store import Store
from radii.views import TableRecord, comparison_parts

pytestmark = pytest.mark.usefixtures("without_workers")

RADII = {
    # f is the identity on two inputs, so that it has slope 1 in Linf; tau is 1e-4.
    "sr:delta=0.2": (0.2, 0.2, 0.2, 0.2),
    "scr:eta=0.52": ((0.2 - math.log(0.52 / 0.48)) / 2, (0.5 - math.log(0.52 / 0.48)) / 2, 0, 0),
    "cr:of=prediction": (0.1, 0.25, 0.4, 0.0),
    "lr:L=0.99": (0.01, 0.01, 0.01, 0.01),
    "lr:L=1.1": (math.inf,) * 4,
}
"""Of the four points of `points_file`: the third is misclassified, the fourth a tie."""


def measured(network: Path, data: Path, out: Path, **options: Any) -> Distribution:
    told = {"networks": [str(network)], "data": str(data), "domain": "0:1", **options}
    with Store.create_or_open(out) as store:
        prepare(Experiment.from_options(told)).run(store, jobs=0)
        return Distribution(store.measurements())


@pytest.mark.parametrize("spec", RADII)
@pytest.mark.parametrize("search", ["native", "k-binary"])
def test_radii_known_by_hand(
    linear_file: Path, points_file: Path, tmp_path: Path, search: str, spec: str
) -> None:
    verifier = "native" if search == "native" else "milp"
    options = {"search": search, "verifier": verifier, "property": spec}
    found = measured(linear_file, points_file, tmp_path / "out", grid="0.005:0.5:0.01", **options)
    for m, radius in zip(found, RADII[spec], strict=True):
        assert m.bracket.lower <= radius + 1e-6
        assert m.bracket.upper >= radius - 1e-6
        assert m.bracket.width <= 0.01 + 1e-6 or (math.isinf(radius) and m.bracket.lower > 0.49)


def test_a_misclassified_input_can_be_robust(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    options = {"property": "sr:delta=0.2", "grid": "0.03:0.5:0.05"}
    found = measured(linear_file, points_file, tmp_path / "out", **options)
    assert found.correct.tolist() == [True, True, False, False]
    assert found.holds.all()
    assert found.robust_accuracy(0.1).proven == 1
    assert len(found.correctly_classified()) == 4
    assert {m.witness_class for m in found if m.input == 2} == {0}  # it keeps its class


def test_what_holds_is_told_apart_from_what_is_correct() -> None:
    told: dict[str, Any] = {
        "lower": [0.1, 0.2, 0.0],
        "upper": [0.2, 0.3, 0.0],
        "correct": [True, False, True],
    }
    about_class = Distribution.from_arrays(**told)
    assert about_class.holds.tolist() == [True, False, True]
    about_change = Distribution.from_arrays(**told, property="scr:eta=0.52")
    assert about_change.holds.tolist() == [True, True, False]
    assert about_change.correctly_classified().lower.tolist() == [0.1, 0.2]


def test_the_table_says_whose_radii_it_shows(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--network", str(linear_file), "--data", str(points_file), "--domain", "0:1"]
    command += ["--grid", "0.05:0.5:0.05", "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main([*command, "--property", "scr:eta=0.4"]) == 0
    shown = capsys.readouterr()
    assert "use eta > 0.5" in shown.err
    assert "inputs at which the property holds" in " ".join(shown.out.split())


def test_comparisons_are_of_inputs_at_which_the_property_holds() -> None:
    radii = np.linspace(0.1, 0.2, 8)
    parts = [
        Distribution.from_arrays(
            radii * factor, radii * factor, correct=False, network=name, property="sr:delta=0.3"
        )
        for factor, name in ((1, "one"), (2, "two"))
    ]
    compared = compare_groups(Distribution.union(parts), ComparisonOptions())
    assert list(compared.groups) == ["one", "two"]  # none of their inputs is classified correctly
    summary = next(comparison_parts(compared))
    assert isinstance(summary, TableRecord)
    assert "at which the property holds" in summary.notes[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"property": "sr:delta=0"}, "delta must be above 0"),
        ({"property": "scr:eta=2"}, "eta must lie between 0 and 1"),
        ({"property": "lr:L=1,on=probabilities"}, "on can be outputs"),
    ],
)
def test_bad_parameters_stop_before_anything_is_loaded(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(SpecificationError, match=words):
        measured(tmp_path / "none.onnx", tmp_path / "none.npz", tmp_path / "out", **options)


def test_what_a_verifier_cannot_decide_it_says_before_running(
    linear_file: Path, points_file: Path, tmp_path: Path
) -> None:
    options = {"verifier": "enumeration", "search": "binary", "property": "lr:L=1"}
    with pytest.raises(UnsupportedQuery, match="does not decide bounds on the change of outputs"):
        measured(linear_file, points_file, tmp_path / "out", **options)
