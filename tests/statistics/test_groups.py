"""Groups of inputs by a column of the data: a feature, a category, or an attribute beside it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from conftest import dense_model, work_in_this_process
from radii.cli import main
from radii.errors import DataError
from radii.statistics import Distribution, grouped, read

ROWS = 16


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table: y1 - y0 = score - 5, so that the radius is |score - 5|.

    The first half is of group a, with radius 1; the second of b, with radius 3. Nobody's network
    sees `town`.
    """
    folder = tmp_path_factory.mktemp("people")
    with (folder / "people.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["label", "score", "age", "sex_a", "sex_b"])
        for place in range(ROWS):
            is_a = place < ROWS // 2
            score = 5 + (1 if is_a else 3) * (1 if place % 2 else -1)
            writer.writerow([int(score > 5), score, 20 + place, int(is_a), int(not is_a)])
    with (folder / "towns.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [["input", "town"], *([ROWS - 1 - k, "east" if k % 2 else "west"] for k in range(ROWS))]
        )
    (folder / "features.csv").write_text(
        "feature,kind,low,high,scale,group\nscore,number,0,10,1,\nage,fixed,0,100,,\n"
        "sex_a,one-hot,,,,sex\nsex_b,one-hot,,,,sex\n"
    )
    weights = np.array([[0.0, 0, 0, 0], [1.0, 0, 0, 0]])
    onnx.save(dense_model((weights, np.array([0.0, -5.0]))), folder / "score.onnx")
    with pytest.MonkeyPatch.context() as patch:
        work_in_this_process(patch)
        flags = ["--grid", "0.5:4:0.5", "--features", str(folder / "features.csv")]
        where = ["--data", str(folder / "people.csv"), "--out", str(folder / "results")]
        assert main(["run", "--network", str(folder / "score.onnx"), *where, *flags]) == 0
    return folder


def radii_of(people: Path, column: str, table: Path | None = None) -> dict[str, list[float]]:
    run = grouped(read(people / "results"), column, table)
    groups = Distribution.from_run(run).group_by("group")
    return {name: part.upper.round(3).tolist() for name, part in groups.items()}


def test_by_a_category(people: Path) -> None:
    found = radii_of(people, "sex")
    assert list(found) == ["sex=a", "sex=b"]
    assert found["sex=a"] == pytest.approx([1.0] * 8, abs=0.01)
    assert found["sex=b"] == pytest.approx([3.0] * 8, abs=0.01)


def test_numbers_are_cut_at_quartiles(people: Path) -> None:
    found = radii_of(people, "age")
    assert list(found) == ["age=to 23", "age=23 to 27", "age=27 to 31", "age=above 31"]
    assert [len(part) for part in found.values()] == [4, 4, 4, 4]
    assert len(radii_of(people, "score")) == 4  # four different numbers stay as they are


def test_by_an_attribute_that_the_network_does_not_see(people: Path) -> None:
    """Inputs are found by their number, whatever the order of the table."""
    found = radii_of(people, "town", people / "towns.csv")
    run = grouped(read(people / "results"), "town", people / "towns.csv")
    places = run.columns["input"][run.columns["group"] == "town=east"]
    assert set(found) == {"town=east", "town=west"}
    assert all((ROWS - 1 - place) % 2 == 1 for place in places)


def test_compare_by_a_column(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", str(people / "results"), "--json", "--permutations", "99"]
    assert main([*command, "--by", "sex", "--eps", "2"]) == 0
    told = json.loads(capsys.readouterr().out)
    shares = [row["robust_accuracy"][0]["proven"] for row in told["summary"]]
    assert shares == [0.0, 1.0] and len(told["comparisons"]) == 1
    assert main([*command, "--by", "town", "--groups", str(people / "towns.csv")]) == 0
    assert "town=east" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("column", "rows", "message"),
    [
        ("shoe", None, "'shoe' is not one of the features sex, score, age"),
        ("town", "input,city\n0,x\n", "'town' is not one of its columns, input, city"),
        ("town", "town\neast\n", "has no 'town' for input"),
        ("town", "input,town\n0,x\n0,y\n", "an input is named twice"),
        ("town", "input,town\nzero,x\n", "must be the number of an input"),
    ],
)
def test_what_cannot_be_grouped_is_said(
    people: Path, tmp_path: Path, column: str, rows: str | None, message: str
) -> None:
    table = None
    if rows is not None:
        table = tmp_path / "groups.csv"
        table.write_text(rows)
    with pytest.raises(DataError, match=message):
        grouped(read(people / "results"), column, table)


def test_results_without_names_and_files_that_are_not_there(people: Path, tmp_path: Path) -> None:
    run = read(people / "results")
    with pytest.raises(DataError, match="no such file of groups"):
        grouped(run, "town", tmp_path / "none.csv")
    published = tmp_path / "table.csv"
    published.write_text("network,input,lower,upper\na,0,0.1,0.2\n")
    with pytest.raises(DataError, match="features have no names"):
        grouped(read(published), "sex")


def test_a_table_of_groups_needs_a_column(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", str(people / "results"), "--groups", str(people / "towns.csv")]
    assert main(command) == 2
    assert "--groups has no use without --by" in capsys.readouterr().err
