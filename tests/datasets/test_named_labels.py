"""Which word stands for which output: lists of names, words in files, and folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from radii.datasets import class_names, convert, from_arrays, parsed_names, read, save
from radii.errors import DataError

NAMES = ("cat", "dog", "fox")


@pytest.mark.parametrize(
    "text",
    [
        "cat, dog,fox",
        "cat\ndog\nfox\n",
        '["cat", "dog", "fox"]',
        '{"0": "cat", "2": "fox", "1": "dog"}',
        "{0: 'cat', 1: 'dog', 2: 'fox'}",
        "['cat', 'dog', 'fox']",
    ],
)
def test_lists_of_names(text: str, tmp_path: Path) -> None:
    (tmp_path / "names").write_text(text)
    assert parsed_names(text) == class_names(text) == NAMES
    assert class_names(tmp_path / "names") == class_names(str(tmp_path / "names")) == NAMES
    assert class_names(list(NAMES)) == NAMES


def test_names_may_hold_commas_where_each_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("king snake, kingsnake\ngoose\n")
    assert class_names(tmp_path / "names.txt") == ("king snake, kingsnake", "goose")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("cat", "neither a file nor a list of at least two names"),
        ("cat,dog,cat", "'cat' is named twice"),
        ("cat,,dog", "name 1 is empty"),
        ("{0: 'cat', 2: 'dog'}", "at least two"),
        ("{'cat': 0}", "at least two"),
        ("[" * 5000, "at least two"),
        (Path("nowhere.txt"), "cannot be read"),
        ("," * 5000, "is empty"),
    ],
)
def test_what_is_no_list_of_names(given: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        class_names(given)


def labels_of(labels: Any, names: Any = None, classes: Any = None) -> list[int]:
    data = from_arrays(np.zeros((len(labels), 2), np.float32), labels, classes=classes)
    return list(map(int, (data if names is None else data.with_classes(names)).labels))


@pytest.mark.parametrize(
    ("labels", "names", "numbers"),
    [
        (["fox", "cat"], NAMES, [2, 0]),
        ([2, 0], NAMES, [2, 0]),
        ([10, 1], [str(number) for number in range(1, 11)], [9, 0]),
        ([10, 2], sorted(map(str, range(11))), [2, 3]),
        (["10", "2"], sorted(map(str, range(11))), [2, 3]),
        ([2.0, 0.0], ["00000", "00001", "00002"], [2, 0]),
        ([True, False], ["no", "yes"], [1, 0]),
    ],
)
def test_labels_are_numbered_by_the_names(labels: Any, names: Any, numbers: list[int]) -> None:
    assert labels_of(labels, names) == labels_of(labels, classes=names) == numbers


@pytest.mark.parametrize(
    ("own", "names", "numbers"),
    [
        (NAMES, ("fox", "dog", "cat"), [2, 0]),  # by name
        (NAMES, ("ant", *NAMES), [1, 3]),
        (("0", "1", "2"), NAMES, [0, 2]),  # other words for the same
        (("plane", "car", "fox"), ("airplane", "automobile", "fox"), [0, 2]),
    ],
)
def test_names_of_the_data_are_kept(own: Any, names: Any, numbers: list[int]) -> None:
    assert labels_of([0, 2], names, classes=own) == numbers


@pytest.mark.parametrize(
    ("labels", "own", "names", "said"),
    [
        (["fox", "cta"], None, NAMES, r"label 'cta' of input 1 is not .*; did you mean 'cat'\?"),
        ([0, 2], ("plane", "fox", "car"), ("airplane", "automobile", "fox"), "'fox' has another"),
        ([11, 1], None, list("0123456789"), "label '11' of input 0 is not one of the classes 0"),
    ],
)
def test_labels_that_names_do_not_cover(labels: Any, own: Any, names: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        labels_of(labels, names, classes=own)


def test_words_of_a_table_that_look_like_missing_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,x\nNA,1\nNone,2\nnull,3\nnan?,4\n")
    data = read(tmp_path / "a.csv")
    assert data.classes == ("NA", "None", "nan?", "null")
    (tmp_path / "a.csv").write_text("label,x\nNA,1\n,2\n")
    with pytest.raises(DataError, match="row 2, column 1: the value 'NA' is not"):
        read(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("label,x\n1,NA\n")
    with pytest.raises(DataError, match="row 2, column 2: the value 'NA' is not a finite number"):
        read(tmp_path / "a.csv")


def test_which_column_holds_the_label_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("married,income,approved\n0,1,1\n1,2,0\n")
    (note,) = read(tmp_path / "a.csv").notes
    assert note.endswith("the first, 'married', is taken for the label; --label names another")
    assert not read(tmp_path / "a.csv", label="approved").notes
    (tmp_path / "a.csv").write_text("0,1,1\n1,2,0\n")
    assert not read(tmp_path / "a.csv").notes
    (tmp_path / "a.csv").write_text("label,x,Label\n0,1,1\n")
    with pytest.raises(DataError, match="has 2 columns 'label'"):
        read(tmp_path / "a.csv")


def folder_of(root: Path, names: Any, empty: Any = ()) -> Path:
    for name in (*names, *empty):
        (root / name).mkdir(parents=True)
    for name in names:
        Image.new("L", (3, 3), 7).save(root / name / "a.png")
    return root


def test_an_empty_folder_is_a_class(tmp_path: Path) -> None:
    data = read(folder_of(tmp_path, ["cat", "fox"], ["dog"]))
    assert (data.labels.tolist(), data.classes, data.assumes_order) == ([0, 2], NAMES, True)
    assert data.with_classes(("fox", "cat", "ant", "dog")).labels.tolist() == [1, 0]


def test_folders_of_numbers_as_other_tools_order_them(tmp_path: Path) -> None:
    names = sorted(map(str, range(12)))
    data = read(folder_of(tmp_path, names))
    assert data.labels.tolist() == list(range(12)) and data.classes is None
    (note,) = data.notes
    assert note.endswith("--classes 0,1,10,11,2,3,4,5,6,7,8,9")
    assert data.with_classes(names).labels.tolist() == [names.index(str(n)) for n in range(12)]
    assert not read(folder_of(tmp_path / "few", ["0", "1"])).notes
    padded = read(folder_of(tmp_path / "padded", ["01", "02", "10"]))
    assert padded.labels.tolist() == [1, 2, 10] and not padded.notes


@pytest.mark.parametrize("file", ["a.npz", "a.csv", "a"])
def test_words_stay_words_in_files_made_from_others(tmp_path: Path, file: str) -> None:
    images = np.zeros((3, 1, 2, 2), np.float32)
    data = from_arrays(images, ["fox", "cat", "fox"])
    save(tmp_path / file, [convert(data)])
    again = read(tmp_path / file)
    assert again.assumes_order and again.classes == ("cat", "fox")
    assert sorted(again.with_classes(NAMES).labels.tolist()) == [0, 2, 2]
