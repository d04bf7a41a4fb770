"""Tables: the label by its name, names of columns, and the file that says what they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from radii import datasets
from radii.errors import DataError, SpecificationError
from radii.problem import Domain

TABLE = """\
feature,kind,low,high,scale,group
income,number,0,1000,10,
age,fixed,18,100,,
children,integer,0,9,2,
home_own,one-hot,,,4,home
home_rent,one-hot,,,4,home
"""


def written(folder: Path, text: str, name: str = "features.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_says_all_about_the_columns(tmp_path: Path) -> None:
    features = datasets.read_features(written(tmp_path, TABLE))
    assert features.names == ("income", "age", "children", "home_own", "home_rent")
    assert features.scale.tolist() == [10, 0, 2, 4, 4]
    assert features.is_whole.tolist() == [False, False, True, False, False]
    assert features.groups == {"home": (3, 4)}
    assert features.domain(None).high.tolist() == [1000, 100, 9, 1, 1]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    features = datasets.read_features(written(tmp_path, TABLE))
    again = datasets.read_features(written(tmp_path, datasets.features_text(features), "b.csv"))
    assert again == features
    assert type(features).from_json(features.to_json()) == features


def test_bounds_that_are_missing_are_the_domains(tmp_path: Path) -> None:
    features = datasets.read_features(written(tmp_path, "feature,low,high\na,0,5\nb,,\n"))
    assert features.domain(Domain(-1.0, 1.0)).low.tolist() == [0, -1]
    with pytest.raises(SpecificationError, match="feature 'b' has no low"):
        features.domain(None)
    with pytest.raises(SpecificationError, match="3 numbers"):
        features.domain(Domain.parse("0,0,0:1,1,1"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs a column 'feature'"),
        ("feature\n", "names no feature"),
        ("feature,colour\na,red\n", "column 'colour' is not one of"),
        ("feature,kind\na,sort\n", "feature 'a': kind 'sort' is not one of"),
        ("feature,kind\na,one-hot\n", "names no group"),
        ("feature,kind,group\na,one-hot,g\n", "category 'g' needs at least two"),
        ("feature,scale\na,x\n", "feature 'a': scale 'x' is not a number"),
        ("feature,scale\na,-1\n", "scale -1.0 must be a finite number"),
        ("feature\na\na\n", "named twice"),
    ],
)
def test_bad_files_are_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        datasets.read_features(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file of features"):
        datasets.read_features(tmp_path / "none.csv")


def test_the_label_is_a_column_by_its_name(tmp_path: Path) -> None:
    table = written(tmp_path, "a,approved,b\n1,yes,2\n3,no,4\n", "t.csv")
    data = datasets.load_spec(f"{table}[0:2]", label="approved")
    assert data.features == ("a", "b")
    assert data.classes == ("no", "yes")
    assert data.labels.tolist() == [1, 0]
    assert data.images.tolist() == [[1, 2], [3, 4]]
    assert data.take([1]).features == ("a", "b")
    with pytest.raises(DataError, match="has no column 'aproved'; its columns are a, approved, b"):
        datasets.load_spec(str(table), label="aproved")


def test_a_label_needs_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros((2, 3)), labels=np.zeros(2, int))
    with pytest.raises(DataError, match="cannot be chosen"):
        datasets.load_spec(str(path), label="y")


def test_columns_are_guessed_by_what_they_hold() -> None:
    rng = np.random.default_rng(0)
    home = np.eye(2)[rng.integers(2, size=50)]
    amounts = np.round(1e4 * rng.random(50))
    values = np.column_stack([rng.random(50), rng.integers(5, size=50), amounts, home])
    names = ("share", "children", "income", "home_own", "home_rent")
    guessed = datasets.guessed_features(names, values.astype(np.float32))
    assert guessed.groups == {"home": (3, 4)}
    assert guessed.is_whole.tolist() == [False, True, False, False, False]
    assert guessed.scale[3] == 0
    assert guessed.scale[0] == pytest.approx(values[:, 0].std(), rel=1e-2)
