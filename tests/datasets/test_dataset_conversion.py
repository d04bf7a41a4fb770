"""Data sets made from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radii import datasets
from radii.cli import main
from radii.datasets import Dataset, convert
from radii.datasets._conversion import save_npz
from radii.errors import DataError


@pytest.fixture
def colours() -> Dataset:
    images = np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), dtype=np.uint8)
    return datasets.from_arrays(
        images, [0, 1, 2, 0, 1, 2], name="c", split="train", classes=["a", "b", "c"]
    )


def test_grey_is_a_weighted_mean_of_the_colours(colours: Dataset) -> None:
    grey = convert(colours, grey=True)
    assert grey.shape == (1, 8, 8)
    red, green, blue = np.moveaxis(colours.images, 1, 0)
    expected = 0.299 * red + 0.587 * green + 0.114 * blue
    np.testing.assert_allclose(grey.images[:, 0], expected, atol=1e-6)
    assert convert(grey, grey=True).shape == (1, 8, 8)


def test_resizing_keeps_means_and_ranges() -> None:
    ramp = np.tile(np.linspace(0, 1, 8, dtype=np.float32), (2, 1, 8, 1))
    larger = convert(datasets.from_arrays(ramp, [0, 1]), side=12)
    assert larger.shape == (1, 12, 12)
    row = larger.images[0, 0, 5]
    assert (np.diff(row) >= 0).all()
    assert row.mean() == pytest.approx(0.5, abs=1e-6)
    assert row.min() >= 0
    assert row.max() <= 1


def test_classes_are_numbered_anew(colours: Dataset) -> None:
    some = convert(colours, classes=[2, 0])
    assert some.labels.tolist() == [1, 0, 1, 0]
    assert some.classes == ("c", "a")
    np.testing.assert_array_equal(some.images, colours.images[[0, 2, 3, 5]])


def test_what_is_saved_is_read_again(colours: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "made.npz"
    save_npz(path, [colours])
    again = datasets.read(path, "train")
    np.testing.assert_array_equal(again.images, colours.images)
    np.testing.assert_array_equal(again.labels, colours.labels)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"side": 0}, "size 0"),
        ({"classes": [1, 1]}, "each named once"),
        ({"classes": []}, "must be some"),
        ({"classes": [7]}, "no image of class 7"),
    ],
)
def test_bad_conversions(options: dict[str, Any], said: str, colours: Dataset) -> None:
    with pytest.raises(DataError, match=said):
        convert(colours, **options)


def test_rows_are_no_images() -> None:
    with pytest.raises(DataError, match="not images"):
        convert(datasets.from_arrays(np.zeros((2, 5)), [0, 1]), grey=True)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.npz"
    assert (
        main(["data", "convert", "digits", "--size", "4", "--classes", "3,5", "--out", str(path)])
        == 0
    )
    assert "of 1x4x4" in capsys.readouterr().out
    train, test = (datasets.read(path, split) for split in ("train", "test"))
    assert train.shape == test.shape == (1, 4, 4)
    assert set(train.labels.tolist()) == {0, 1}
    assert main(["data", "convert", "digits", "--out", str(tmp_path / "x.csv")]) == 2
