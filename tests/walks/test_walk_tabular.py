"""The first hour of somebody with a table: from a CSV file to counterexamples with names.

Only commands of docs/tabular.md, on the files that examples/credit_table.py makes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from conftest import work_in_this_process
from python_scripts import run_script
from radii.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "credit_table.py"


def test_from_a_table_to_named_counterexamples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_script(EXAMPLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    work_in_this_process(monkeypatch)
    mine = Path("credit_features.csv").read_text()
    Path("credit_features.csv").unlink()

    look = ["init", "--network", "credit.onnx", "--data", "credit.csv", "--label", "approved"]
    assert main([*look, "--inputs", "6", "--yes", "-o", "credit.toml"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"9\d\.\d%\)  each column's own mean and deviation .*<- chosen", said)
    guessed = pd.read_csv("credit_features.csv").set_index("feature")
    assert guessed.kind["purpose_car"] == "one-hot"
    assert guessed.kind["late_payments"] == "integer"

    Path("credit_features.csv").write_text(mine)  # age stays, the purpose may change from 0.5 on
    assert main(["run", "credit.toml", "--out", "applications"]) == 0
    assert main(["run", "credit.toml", "--out", "applications"]) == 0  # it goes on
    capsys.readouterr()
    assert main(["show", "applications", "--counterexamples"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and all("fixed: age" in line for line in lines)
    words = r"credit, input \d+ at [\d.]+: class (no becomes yes|yes becomes no): "
    assert all(re.match(words, line) for line in lines)
    assert any(re.search(r"income [+-][\d.]+ % \(\d+ to [\d.]+\)", line) for line in lines)

    assert main(["show", "applications", "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    for found in network["instances"]:
        for change in found["changes"] or ():
            assert change["feature"] != "age"
            if change["feature"] == "late_payments":
                assert change["after"] == int(change["after"])
            if change["feature"] != "purpose":
                assert abs(change["units"]) <= found["upper"] * (1 + 1e-9)

    assert main(["export", "applications", "--format", "features", "-o", "changes.csv"]) == 0
    assert {"income", "debt"} <= set(pd.read_csv("changes.csv").feature)

    # Application 9 is misclassified as it is: there is nothing to change.
    assert main(["run", "applications", "--data", "credit.csv[9:10]"]) == 0
    capsys.readouterr()
    assert main(["show", "applications", "--counterexamples"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"credit, input 9: class \w+ is taken for \w+ without any change\n", told)
