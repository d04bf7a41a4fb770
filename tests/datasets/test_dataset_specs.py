from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radii.datasets import Spec, load, load_spec
from radii.errors import DataError


class TestSelections:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            ("digits:test[0:3]", [0, 1, 2]),
            ("digits[0:3]", [0, 1, 2]),
            ("digits[ 0 : 6 : 2 ]", [0, 2, 4]),
            ("digits[-2:]", [498, 499]),
            ("digits[3::-1]", [3, 2, 1, 0]),
            ("digits[7]", [7]),
            ("digits[-1]", [499]),
            ("digits[3, 5]", [3, 5]),
            ("digits[first 2]", [0, 1]),
            ("digits[0:100][10:12]", [10, 11]),
            (" DIGITS:train [1296] ", [1296]),
        ],
    )
    def test_ranges_and_positions(self, spec: str, expected: Any) -> None:
        assert load_spec(spec).indices.tolist() == expected

    def test_draws_are_those_of_the_data_set(self) -> None:
        data = load("digits")
        pairs = [
            ("[random 9 seed 4]", data.random(9, 4)),
            ("[random 9]", data.random(9, 0)),
            ("[stratified 30 seed 2]", data.stratified(30, 2)),
            ("[per-class 3]", data.per_class(3)),
            ("[per-class 3 seed 5]", data.per_class(3, 5)),
            ("[class 3,5][0:4]", data.of_classes(3, 5).first(4)),
        ]
        for text, expected in pairs:
            assert load_spec("digits:test" + text).indices.tolist() == expected.indices.tolist()

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ("digits[0:501]", "range bound 501 is beyond the end; it holds 500"),
            ("digits[500]", "no image 500; it holds 500"),
            ("digits[5:5]", "the selection is empty"),
            ("digits[::0]", "step of a range must not be 0"),
            ("digits[random 501]", "501 images are asked for; it holds 500"),
            ("digits[random 0]", "empty"),
            ("digits[per-class 400]", "400 images of each class are asked for"),
            ("digits[class 10]", "no image of class 10"),
            ("digits[]", "is not one of"),
            ("digits[random]", "is not one of"),
            ("digits[first 3 seed 1]", "is not one of"),
            ("digits[random 3 seed -1]", "is not one of"),
            ("digits[1.5]", "is not one of"),
            ("digits[0:3", "neither a data set"),
            ("digits:val", "splits train and test, not 'val'"),
            ("mnist:val", "splits train and test, not 'val'"),
            ("[0:3]", "names no data set"),
            ("", "names no data set"),
            ("nowhere.npz[0:3]", "neither a data set"),
            ("imagenet", "neither a data set"),
            ("x" * 5000, "neither a data set"),
            ("~nobody-here/a.npz", "neither a data set"),
            ("digits[0:" + "9" * 5000 + "]", "is not one of"),
            ("digits[random " + "9" * 40 + "]", "is not one of"),
            ("a\0b", "neither a data set"),
        ],
    )
    def test_errors_are_one_sentence(self, spec: str, said: str) -> None:
        with pytest.raises(DataError, match=said) as caught:
            load_spec(spec)
        assert "\n" not in str(caught.value)


class TestLocations:
    def test_nothing_is_read_while_parsing(self) -> None:
        spec = Spec.parse("mnist:train[0:100][random 5 seed 2]")
        assert (spec.location, spec.split, len(spec.steps)) == ("mnist", "train", 2)

    def test_a_path_with_brackets_and_colons(self, tmp_path: Path) -> None:
        path = tmp_path / "a[1]:b.npz"
        np.savez(path, images=np.zeros((3, 2)), labels=[0, 1, 2])
        assert len(load_spec(str(path))) == 3
        assert load_spec(f"{path}[1]").indices.tolist() == [1]

    def test_a_file_called_like_a_set_needs_a_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "digits" / "0").mkdir(parents=True)
        assert len(load_spec("digits")) == 500
        with pytest.raises(DataError, match="no subfolder of pictures"):
            load_spec("./digits")

    @pytest.mark.parametrize("name", ["cifar10", "CIFAR-10", "cifar_10"])
    def test_a_set_that_is_not_in_place_says_what_to_run(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RADII_DATA", str(tmp_path))
        with pytest.raises(DataError, match="run: radii data get cifar10"):
            load_spec(name)


class TestDigits:
    def test_is_what_scikit_learn_ships(self) -> None:
        bundled = pytest.importorskip("sklearn.datasets").load_digits()
        train, test = load("digits", "train"), load("digits", "test")
        images = np.concatenate([train.images, test.images])
        assert np.array_equal(images[:, 0] * 16, bundled.images)
        labels = np.concatenate([train.labels, test.labels])
        assert np.array_equal(labels, bundled.target)

    def test_shape_range_and_size(self) -> None:
        data = load("digits")
        assert data.shape == (1, 8, 8)
        assert data.images.dtype == np.float32
        assert (data.images.min(), data.images.max()) == (0.0, 1.0)
        assert (len(data), len(load("digits", "train"))) == (500, 1297)
        assert data.classes == tuple("0123456789")
        assert repr(data) == "<Dataset digits:test: 500 images of 1x8x8>"

    def test_unknown_names_are_listed(self) -> None:
        with pytest.raises(DataError, match="digits, mnist, fashion-mnist, cifar10, gtsrb"):
            load("svhn")
