"""Grids from files, as flags, TOML and Python take them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from radii.datasets import read_grid
from radii.errors import InputError
from radii.problem import Grid
from radii.runs import Settings, values_of_file

UNEVEN = Grid.parse("0.001,0.01,0.1")


def test_lists_of_numbers(tmp_path: Path) -> None:
    for text in ("0.001, 0.01\n0.1\n", "0.1 0.01 0.001", "0.001\n0.01\n1/10"):
        place = tmp_path / "eps.txt"
        place.write_text(text)
        assert read_grid(place) == UNEVEN


def test_what_verona_keeps(tmp_path: Path) -> None:
    """A configuration, tables of queries, and a folder with either."""
    run = tmp_path / "experiment" / "results" / "run"
    image = run / "tmp" / "net" / "image_3"
    image.mkdir(parents=True)
    table = image / "epsilons_df.csv"
    table.write_text(",epsilon_value, result\n0,0.1,SAT\n1,0.009999999999999998,UNSAT\n2,0.001,\n")
    assert read_grid(table) == UNEVEN
    assert read_grid(tmp_path / "experiment") == UNEVEN
    configuration = run / "configuration.json"
    listed = [str(value) for value in np.arange(0.001, 0.4, 0.002)]
    configuration.write_text(json.dumps({"epsilon_list": listed}))
    assert str(read_grid(configuration)) == "0.001:0.401:0.002"
    older = tmp_path / "experiment" / "configuration.json"
    older.write_text('{"epsilon_list": [0.5]}')
    os.utime(older, (1, 1))
    assert len(read_grid(tmp_path / "experiment")) == 200


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("eps.txt", "", "holds no eps values"),
        ("eps.txt", "0.1 many", "neither a list of numbers"),
        ("eps.txt", "0.1 -0.2", "none be below 0"),
        ("configuration.json", "[]", "neither a list of numbers"),
        ("result_df.csv", "image_id,epsilon_value,smallest_sat_value\n1,0.1,0.2", "per_epsilon"),
    ],
)
def test_what_is_no_grid_is_named(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_grid(tmp_path / name)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=r"has no configuration\.json"):
        read_grid(tmp_path)


def test_flags_toml_and_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "eps.txt").write_text("0.001 0.01 0.1")
    toml = tmp_path / "experiment.toml"
    for written in ('"0.001,0.01,0.1"', "[0.001, 0.01, 0.1]", '"eps.txt"', '"log:0.001:0.1:3"'):
        toml.write_text(f"grid = {written}\n")
        assert Settings.from_options(values_of_file(toml)).grid == UNEVEN
    monkeypatch.chdir(tmp_path)
    for given in ("eps.txt", Path("eps.txt"), np.array([0.001, 0.01, 0.1]), (0.001, 0.01, 0.1)):
        assert Settings.from_options({"grid": given}).grid == UNEVEN
    stored = Settings.from_options({"grid": "eps.txt"}).to_json()["grid"]
    assert stored == "0.001,0.01,0.1"  # no file is needed to read results
    for bad in ("absent.txt", 3, [0.2, 0.1], ["a"]):
        with pytest.raises(InputError):
            Settings.from_options({"grid": bad})
