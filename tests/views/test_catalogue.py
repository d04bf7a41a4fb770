"""A statistic is registered once: show, report, plot, export and gate follow."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made_experiments import ROBUST, STANDARD, write_experiment

import radii
from radii.cli import main
from radii.statistics import CATALOGUE, Distribution, StatisticUnit, statistics_of

ROOT = Path(radii.__file__).parents[2]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    return write_experiment(folder, {"standard": STANDARD, "robust": ROBUST})


def test_every_statistic_is_in_show_and_export(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = statistics_of(Distribution.from_store(place).only(network="standard"))
    assert main(["show", str(place), "--json"]) == 0
    (told, _) = json.loads(capsys.readouterr().out)["networks"]
    assert told["summary"] == pytest.approx(known)
    assert main(["export", str(place), "--format", "statistics"]) == 0
    row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {name for name, value in known.items() if value is None} == {"cpu_seconds"}
    shown = {name: float(row[name]) if row[name] else None for name in known}
    assert shown == pytest.approx(known)
    assert (row["network"], row["inputs"]) == ("standard", "6")


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_statistic_can_be_required(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = statistics_of(Distribution.from_store(place).only(network="standard"))
    is_bracket = CATALOGUE[name].unit is StatisticUnit.BRACKET
    value = values[f"{name}_lower" if is_bracket else name] or 0.0
    assert main(["gate", str(place), "--require", f"{name} >= {value!r}", "--json"]) in (0, 1)
    outcome, _ = json.loads(capsys.readouterr().out)["outcomes"]
    assert outcome["is_met"] == (name != "cpu_seconds"), "what is not known meets nothing"
    if outcome["is_met"]:
        assert outcome["figure"] == pytest.approx(value)


def test_the_diff_in_contributing_is_all_that_a_statistic_takes(
    place: Path, tmp_path: Path
) -> None:
    """Applied to a copy of the package; by hand the quartiles are 0.03 and 0.08, 0.15 and 0.25."""
    page, figure = tmp_path / "report.html", tmp_path / "spread.svg"
    name, known = "interquartile_range", [pytest.approx(0.05), pytest.approx(0.10)]
    commands = [
        ["show", place, "--json"],
        ["show", place],
        ["export", place, "--format", "statistics"],
        ["gate", place, "--require", f"{name} <= 0.2"],
        ["gate", place, "--require", f"{name} <= 0.07"],
        ["report", place, "-o", page],
        ["plot", place, "--kind", name, "-o", figure],
    ]
    json_text, table, csv_text, met, *_ = said_by(
        with_diff(tmp_path), commands, [0] * 4 + [1, 0, 0]
    )
    assert [one["summary"][name] for one in json.loads(json_text)["networks"]] == known
    assert "spread" in table
    assert [float(row[name]) for row in csv.DictReader(io.StringIO(csv_text))] == known
    assert "spread is 0.05 " in met
    assert f'"name":"{name}","title":"spread"' in page.read_text("utf-8")
    assert len(re.findall(rf'"{name}":0\.\d+', page.read_text("utf-8"))) == 2
    assert figure.with_suffix(".txt").read_text("utf-8").startswith("Spread: distance between")


EACH = """
import contextlib, io, json, sys
from radii.cli import main
said = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        said.append((main(words), out.getvalue()))
print(json.dumps(said))
"""


def said_by(package: Path, commands: list[list[object]], codes: list[int]) -> list[str]:
    """What each command prints, in one process that has this package."""
    environment = {**os.environ, "PYTHONPATH": str(package), "COLUMNS": "200"}
    words = json.dumps([[str(word) for word in command] for command in commands])
    command = [sys.executable, "-c", EACH, words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [code for code, _ in said] == codes, done.stderr
    return [text for _, text in said]


def with_diff(folder: Path) -> Path:
    """A folder with the package as the diff leaves it: links, but for the one file."""
    blocks = re.findall(r"```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.S)
    (diff,) = [block for block in blocks if "_catalogue.py" in block]
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++", "@@"))]
    before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    source = (ROOT / "src/radii/statistics/_catalogue.py").read_text("utf-8")
    assert source.count(before) == 1
    package = folder / "radii"
    for part in (package, package / "statistics"):
        part.mkdir()
        for path in (ROOT / "src" / part.relative_to(folder)).iterdir():
            if path.name not in ("statistics", "_catalogue.py"):
                (part / path.name).symlink_to(path)
    (package / "statistics/_catalogue.py").write_text(source.replace(before, after), "utf-8")
    return folder
