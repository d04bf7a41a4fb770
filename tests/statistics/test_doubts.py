"""Quirks of published tables: each is read, or refused in a sentence, and none in silence."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from conftest import SHARED_DATA, needs_shared_data
from radii.errors import InputError
from radii.statistics import CATALOGUE, read

PUBLIC = SHARED_DATA / "jair" / "public"

QUERIES = "epsilon_value,result,time,network,image,split\n"
INSTANCES = "image_id,epsilon_value,total_time,smallest_sat_value,network_path,split\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_eps_in_a_first_column_without_a_name(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        ",split,result,runtime,network,image\n"
        "0.011,test,timeout,360.0,a,image_4\n"
        "0.009,test,error,1.5,a,image_4\n"
        "0.013,test,sat,2.5,a,image_4\n"
        "0.007,test,unsat,2.5,a,image_4\n"
        "0.015,test,cancelled,2.5,a,image_4\n"
        "0.001,test,timeout,360.0,a,image_4\n",
    )
    imported = read(path)
    (row,) = imported.brackets
    assert (row.bracket.lower, row.bracket.upper) == (0.007, 0.013)
    assert (row.queries, row.missing, row.cancelled, row.timeouts) == (6, 3, 1, 2)
    # Between the sides an error and a time-out; the time-out at 0.001 changed nothing.
    assert imported.brackets.column("critical").tolist() == [2]
    (note,) = imported.notes
    assert "first column has no name, and is taken as epsilon_value" in note


@pytest.mark.parametrize("index", [("0", "1", "2"), ("1", "2", "3"), ("x", "y", "z")])
def test_an_index_is_no_eps(tmp_path: Path, index: tuple[str, ...]) -> None:
    rows = "".join(f"{name},test,sat,2.5,a,image_4\n" for name in index)
    path = written(tmp_path, f",split,result,runtime,network,image\n{rows}")
    with pytest.raises(InputError, match="column 'epsilon_value' is missing") as error:
        read(path)
    assert "\n" not in str(error.value)


def test_critical_terminations_are_what_the_grid_leaves_between_the_sides(tmp_path: Path) -> None:
    rows = [  # epsilon_value, smallest_sat_value, values of 0.001, 0.003, ... between them
        ("0.001", "0.003", 0),
        ("0.003", "0.009", 2),
        ("0", "0.005", 2),
        ("", "0.001", 0),
        ("0.011", "0.013", 0),
        ("0.011", "", -1),
        ("", "", -1),
    ]
    lines = [f"{i},{low},1.5,{high},a,test\n" for i, (low, high, _) in enumerate(rows)]
    found = read(written(tmp_path, INSTANCES + "".join(lines))).brackets
    assert found.column("critical").tolist() == [count for _, _, count in rows]
    assert CATALOGUE["critical"](found) == pytest.approx(2 / 5)  # of those where it is known


def test_values_that_are_no_grid_leave_critical_terminations_unknown(tmp_path: Path) -> None:
    lines = "0,0.001,1.5,0.003,a,test\n1,0.0042,1.5,0.0101,a,test\n2,0.1,1.5,0.2345,a,test\n"
    found = read(written(tmp_path, INSTANCES + lines)).brackets
    assert found.column("critical").tolist() == [-1] * 3
    assert math.isnan(CATALOGUE["critical"](found))


def test_rows_without_an_answer_are_told_and_kept(tmp_path: Path) -> None:
    lines = "0,,1.5,,a,test\n1,,1.5,0.003,a,test\n2,0.001,1.5,0.003,a,test\n3,0,1.5,0,a,test\n"
    imported = read(written(tmp_path, INSTANCES + lines))
    assert imported.brackets.is_unsolved.tolist() == [True, False, False, True]
    told = "\n".join(imported.notes)
    assert "1 of 4 rows have no answer, neither a proof nor a counterexample" in told
    assert "(rows 1)" in told
    assert "1 of 4 rows have no epsilon_value: nothing is proven about them (rows 2)" in told
    assert "1 of 4 rows are 0 on both sides, so no query has an answer" in told
    queries = "0.1,TIMEOUT,3600.0,a,image_1,test\n0.1,SAT,1.5,a,image_2,test\n"
    imported = read(written(tmp_path, QUERIES + queries))
    assert imported.brackets.unsolved == 1
    assert "1 of 2 instances have no answer" in imported.notes[0]


def test_the_same_rows_under_several_networks_are_told(tmp_path: Path) -> None:
    lines = "".join(
        f"0.1,SAT,8.376539,{name},image_1,test\n0.2,TIMEOUT,3600.0,{name},image_1,test\n"
        for name in ("net_a", "net_b", "net_c")
    )
    own = "0.1,SAT,8.5,net_d,image_1,test\n0.2,TIMEOUT,3600.0,net_d,image_1,test\n"
    imported = read(written(tmp_path, QUERIES + lines + own))
    (note,) = imported.notes
    assert "3 of 8 rows repeat 1 measurement, times included, under the names of" in note
    assert "3 networks (net_a, net_b, net_c)" in note and "net_d" not in note
    assert len(imported.brackets) == 4  # nothing is dropped


def test_two_sets_of_copies_are_two_notes(tmp_path: Path) -> None:
    rows = [("a", 1.5), ("b", 1.5), ("c", 2.5), ("d", 2.5), ("b", 3.5), ("e", 3.5)]
    lines = [f"{i // 2},0.01,{time},0.03,{name},test\n" for i, (name, time) in enumerate(rows)]
    notes = read(written(tmp_path, INSTANCES + "".join(lines))).notes
    assert [note.split(" networks (")[1].split(")")[0] for note in notes] == ["a, b, e", "c, d"]


def test_equal_brackets_of_several_networks_are_no_copies(tmp_path: Path) -> None:
    """On a grid brackets agree, and the time may be the limit; only measured times tell."""
    rows = [("a", 3600.0), ("b", 3600.0), ("a", 1.25), ("b", 1.75)]
    lines = [f"{i // 2},0.01,{time},0.03,{name},test\n" for i, (name, time) in enumerate(rows)]
    assert read(written(tmp_path, INSTANCES + "".join(lines))).notes == ()


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("concat.ipynb", True),
        ("notes.TXT", True),
        (".ipynb_checkpoints", True),
        ("mnist_relu_9_100.onnx", False),
        ("ffnnRELU__PGDK_w_0.3_6_500", False),
        ("resnet.small", False),
    ],
)
def test_names_that_are_no_network(tmp_path: Path, name: str, is_told: bool) -> None:
    imported = read(written(tmp_path, f"{INSTANCES}0,0.01,1.5,0.03,{name},test\n"))
    assert len(imported.brackets) == 1
    told = f"1 of 1 rows are of '{name}', which is no network's name"
    assert any(told in note for note in imported.notes) is is_told


def test_repeated_instances_and_missing_splits_are_told(tmp_path: Path) -> None:
    lines = "0,0.01,1.5,0.03,a,test\n0,0.01,2.5,0.03,a,test\n1,0.01,3.5,0.03,a,\n"
    imported = read(written(tmp_path, INSTANCES + lines))
    assert len(imported.brackets) == 3
    told = "\n".join(imported.notes)
    assert "1 of 3 rows are of an instance that an earlier row is of: all are kept (rows 2)" in told
    assert "1 of 3 rows have no split, which others have (rows 3)" in told


def test_two_searches_under_one_name_are_not_joined(tmp_path: Path) -> None:
    """Training and testing images of one number, both called test: joined they contradict."""
    first = "0.1,UNSAT,1.5,a,image_1,test\n0.3,SAT,1.5,a,image_1,test\n"
    other = "0.1,SAT,1.25,a,image_2,test\n"
    second = "0.5,UNSAT,1.75,a,image_1,test\n0.7,SAT,1.75,a,image_1,test\n"
    imported = read(written(tmp_path, QUERIES + first + other + second))
    found = imported.brackets
    assert found.column("input").tolist() == [1, 2, 1]
    assert (found.lower.tolist(), found.upper.tolist()) == ([0.1, 0, 0.5], [0.3, 0.1, 0.7])
    (note,) = imported.notes
    assert "1 of 2 instances stand in several places, and 1 contradict themselves" in note


def test_rows_in_any_order_are_one_search_if_they_agree(tmp_path: Path) -> None:
    rows = [(0.1, "UNSAT"), (0.2, "TIMEOUT"), (0.3, "SAT")]
    lines = [
        f"{eps},{result},{eps + image},a,image_{image},test\n"
        for eps, result in rows
        for image in (1, 2)
    ]
    imported = read(written(tmp_path, QUERIES + "".join(lines)))
    assert imported.notes == ()
    assert imported.brackets.lower.tolist() == [0.1, 0.1]
    assert imported.brackets.column("critical").tolist() == [1, 1]


EXPECTED = {
    "per_epsilon_GTSRB_JAIR.csv": ("'concat.ipynb', which is no network's name", "13 networks"),
    "per_epsilon_MNIST_cnn.csv": ("taken as epsilon_value", "instances have no answer"),
    "per_epsilon_MNIST_ffnn.csv": ("taken as epsilon_value", "a search of its own"),
    "results_CIFAR_JAIR.csv": ("an earlier row",),
    "results_GTSRB_JAIR.csv": ("166 of 2088 rows are 0 on both sides",),
    "results_JAIR_fomlas.csv": ("717 of 5480 rows have no answer", "their own counterexample"),
    "results_MNIST_JAIR.csv": ("2 of 2196 rows have no epsilon_value",),
    "results_MNIST_fomlas_400.csv": ("495 of 2061 rows have no answer",),
}


@needs_shared_data
def test_every_public_file_is_read_and_its_quirks_are_told() -> None:
    files = {path.name: path for path in PUBLIC.glob("*.csv")}
    assert files.keys() >= EXPECTED.keys()
    for name, path in files.items():
        imported = read(path)
        told = "\n".join(imported.notes)
        for quirk in EXPECTED.get(name, ()):
            assert quirk in told, (name, quirk)
        solved = imported.brackets.solved()
        critical = solved.column("critical")
        assert np.all(critical >= 0), name  # known wherever there is an answer


@needs_shared_data
def test_critical_terminations_of_queries_and_of_instances_agree() -> None:
    """The same searches were published twice: every query, and the brackets they ended with."""
    instances: dict[tuple[str, int, float, float], bool] = {}
    published = read(PUBLIC / "results_MNIST_JAIR.csv").brackets
    for row, critical in zip(published, published.column("critical"), strict=True):
        sides = round(row.bracket.lower, 4), round(row.bracket.upper, 4)
        instances[row.network, row.input, *sides] = critical > 0
    queries = read(PUBLIC / "per_epsilon_MNIST_ffnn.csv").brackets
    agreeing = 0
    for row, critical in zip(queries, queries.column("critical"), strict=True):
        sides = round(row.bracket.lower, 4), round(row.bracket.upper, 4)
        key = (row.network, row.input, *sides)
        if key in instances:
            assert instances[key] == (critical > 0), key
            agreeing += 1
    assert agreeing > 600
