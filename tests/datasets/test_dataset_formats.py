from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import official_files as made
import pytest
from PIL import Image

from radii.datasets import _archives as archives
from radii.datasets import _archives as gzipped
from radii.datasets import _dataset as images
from radii.datasets import _files as npz
from radii.datasets import load_spec, read
from radii.errors import DataError

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"


def refused(path: Path | str, said: str, split: str | None = None) -> None:
    with pytest.raises(DataError, match=said) as caught:
        _ = read(path, split).images
    assert "\n" not in str(caught.value)


def check_split(path: Path, split: str, held: made.Held) -> None:
    data = read(path, split)
    pixels, labels = held[split]
    pixels = pixels if pixels.ndim == 4 else pixels[:, None]
    assert np.array_equal(data.images, pixels / np.float32(255))
    assert np.array_equal(data.labels, labels)
    assert data.split == split


class TestIdx:
    @pytest.mark.parametrize("packed", [False, True])
    def test_both_splits(self, tmp_path: Path, packed: Any) -> None:
        held = made.write_mnist(tmp_path / "raw", packed=packed)
        check_split(tmp_path, "train", held)
        check_split(tmp_path, "test", held)
        assert read(tmp_path).split == "test"

    def test_only_what_is_selected_becomes_floats(self, tmp_path: Path) -> None:
        made.write_mnist(tmp_path)
        data = read(tmp_path, "train")
        assert data.take(slice(0, 3)).images.base is None
        assert data._images is None

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b"", "not an IDX file"),
            (b"\0\0", "not an IDX file"),
            (b"<html>not found</html>", "not an IDX file"),
            (b"\0\0\x08\0", "not an IDX file"),
            (b"\0\0\x0d\x03" + bytes(12), "type 0x0d"),
            (b"\0\0\x08\x03\0\0", "truncated within its IDX header"),
            (
                struct.pack(">HBB3I", 0, 8, 3, 10, 28, 28) + bytes(99),
                "announces 7840 values, but 99",
            ),
            (struct.pack(">HBB3I", 0, 8, 3, 2**31, 2**31, 4), "announces"),
            (made.idx(made.pixels(10, 28, 28)) + b"x", "announces 7840 values, but 7841"),
            (made.idx(made.pixels(9, 28, 28)), "9 test images but 10 labels"),
            (made.idx(made.pixels(10)), "images have 1 axes"),
        ],
    )
    def test_damaged_files(self, tmp_path: Path, data: Any, said: str) -> None:
        made.write_mnist(tmp_path)
        (tmp_path / "t10k-images-idx3-ubyte").write_bytes(data)
        refused(tmp_path, said)

    @pytest.mark.parametrize("cut", [5, 200, -4])
    def test_truncated_gzip(self, tmp_path: Path, cut: int) -> None:
        made.write_mnist(tmp_path, packed=True)
        path = tmp_path / "t10k-images-idx3-ubyte.gz"
        path.write_bytes(path.read_bytes()[:cut])
        refused(tmp_path, "damaged gzip")

    def test_a_gzip_bomb(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gzipped, "MAX_UNPACKED_BYTES", 1 << 20)
        made.write_mnist(tmp_path, packed=True)
        path = tmp_path / "t10k-images-idx3-ubyte.gz"
        path.write_bytes(gzip.compress(bytes(3 << 20)))
        refused(tmp_path, "unpacks to more than 1 MiB")

    def test_two_sets_in_one_place(self, tmp_path: Path) -> None:
        made.write_mnist(tmp_path / "MNIST" / "raw")
        made.write_mnist(tmp_path / "FashionMNIST" / "raw")
        refused(tmp_path, "both fit; name one")

    def test_a_missing_split(self, tmp_path: Path) -> None:
        made.write_mnist(tmp_path)
        (tmp_path / "train-images-idx3-ubyte").unlink()
        refused(tmp_path, "has test, not 'train'", "train")


class TestCifar:
    def test_binary_version(self, tmp_path: Path) -> None:
        held = made.write_cifar_batches(tmp_path / "cifar-10-batches-bin")
        check_split(tmp_path, "train", held)
        check_split(tmp_path, "test", held)

    def test_strips(self, tmp_path: Path) -> None:
        held = made.write_cifar_strips(tmp_path)
        check_split(tmp_path, "train", held)
        check_split(tmp_path, "test", held)

    def test_the_pickled_version_is_refused_and_not_loaded(self, tmp_path: Path) -> Any:
        class Bomb:
            def __reduce__(self) -> Any:
                return Path.touch, (tmp_path / "exploded",)

        for name in ("data_batch_1", "batches.meta"):
            (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        refused(tmp_path, "a pickle.*cifar-10-binary.tar.gz")
        assert not (tmp_path / "exploded").exists()

    def test_damaged_batches(self, tmp_path: Path) -> None:
        made.write_cifar_batches(tmp_path)
        path = tmp_path / "test_batch.bin"
        whole = path.read_bytes()
        for data, said in (
            (whole[:-1], "not a multiple of 3073"),
            (b"", "not a multiple of 3073"),
            (b"\x0a" + whole[1:], "label 10 of image 0 is not below 10"),
        ):
            path.write_bytes(data)
            refused(tmp_path, said, "test")
        (tmp_path / "data_batch_3.bin").unlink()
        refused(tmp_path, "'data_batch_3.bin' is missing", "train")

    @pytest.mark.parametrize(
        "labels", ["[1, 2", "{}", "3", "[1, 2, 10]", "[1, 2, 3.5]", '["1", "2", "3"]', "[[1]]"]
    )
    def test_damaged_labels_of_strips(self, tmp_path: Path, labels: Any) -> None:
        made.write_cifar_strips(tmp_path)
        (tmp_path / "test_lables.json").write_text(labels)
        refused(tmp_path, "JSON list of labels|3 test images but", "test")

    def test_strips_of_another_width(self, tmp_path: Path) -> None:
        made.write_cifar_strips(tmp_path)
        Image.new("RGB", (1000, 3)).save(tmp_path / "test_batch.png")
        refused(tmp_path, "1000 pixels wide", "test")


class TestGtsrb:
    def check(self, path: Path) -> None:
        train, test = read(path, "train"), read(path, "test")
        assert train.shape == (3, 32, 32)
        assert train.labels.tolist() == [0, 0, 1, 1, 42, 42]
        assert test.labels.tolist() == [42, 0, 1]
        for data in (train, test):
            red = np.round(data.images[:, 0] * 255)
            assert np.array_equal(red, np.broadcast_to(data.labels[:, None, None] * 5, red.shape))

    def test_folders(self, tmp_path: Path) -> None:
        made.write_gtsrb(tmp_path)
        self.check(tmp_path)

    def test_zip(self, tmp_path: Path) -> None:
        made.write_gtsrb(tmp_path / "set")
        with zipfile.ZipFile(tmp_path / "gtsrb.zip", "w") as archive:
            for path in sorted((tmp_path / "set").rglob("*")):
                archive.write(path, path.relative_to(tmp_path / "set"))
        self.check(tmp_path / "gtsrb.zip")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("Filename;ClassId\n00000.ppm;43\n", "from 0 to 42"),
            ("Filename;ClassId\n00000.ppm;x\n", "from 0 to 42"),
            ("Filename;ClassId\n00000.ppm\n", "from 0 to 42"),
            ("Name;ClassId\n00000.ppm;1\n", "from 0 to 42"),
            ("Filename;ClassId\n00099.ppm;1\n", "'00099.ppm', which .* names, is missing"),
            ("Filename;ClassId\n", "name no picture"),
        ],
    )
    def test_damaged_tables(self, tmp_path: Path, text: str, said: str) -> None:
        made.write_gtsrb(tmp_path)
        (tmp_path / "GT-final_test.csv").write_text(text)
        refused(tmp_path, said, "test")

    def test_a_truncated_picture(self, tmp_path: Path) -> None:
        made.write_gtsrb(tmp_path)
        path = tmp_path / "GTSRB/Final_Test/Images/00001.ppm"
        path.write_bytes(path.read_bytes()[:100])
        refused(tmp_path, "00001.ppm: cannot be decoded", "test")

    def test_the_shared_sample(self) -> None:
        path = SHARED / "gtsrb_small.npz"
        if not path.exists():
            pytest.skip("../shared/data is not there")
        data = load_spec(f"{path}:train[per-class 2]")
        assert len(data) == 86
        assert data.shape == (3, 32, 32)
        with np.load(path) as arrays:
            first = arrays["x_train"][data.indices[0]]
        assert np.array_equal(np.round(data.images[0].transpose(1, 2, 0) * 255), first)


class TestNpz:
    def test_images_and_labels(self, tmp_path: Path) -> None:
        pixels = made.pixels(5, 4, 4)
        np.savez_compressed(tmp_path / "a.npz", images=pixels, labels=np.arange(5))
        data = load_spec(f"{tmp_path}/a.npz[1:3]")
        assert np.array_equal(data.images, pixels[1:3, None] / np.float32(255))
        assert (data.name, data.split, data.labels.tolist()) == ("a.npz", None, [1, 2])

    def test_pairs_of_splits(self, tmp_path: Path) -> None:
        np.savez(
            tmp_path / "a.npz",
            x_train=np.zeros((3, 2)),
            y_train=[0, 1, 2],
            x_test=np.ones((2, 2)),
            y_test=[1, 1],
        )
        assert read(tmp_path / "a.npz").split == "test"
        assert len(read(tmp_path / "a.npz", "train")) == 3
        refused(tmp_path / "a.npz", "needs arrays 'x_val' and 'y_val'", "val")

    def test_pickles_are_refused_and_not_loaded(self, tmp_path: Path) -> Any:
        class Bomb:
            def __reduce__(self) -> Any:
                return Path.touch, (tmp_path / "exploded",)

        path = tmp_path / "a.npz"
        np.savez(path, images=np.array([Bomb()], dtype=object), labels=[0])
        refused(path, "'images' holds Python objects")
        np.savez(path, images=np.zeros((1, 2)), labels=np.array([Bomb()], dtype=object))
        refused(path, "'labels' holds Python objects")
        assert not (tmp_path / "exploded").exists()

    def test_missing_arrays_are_named(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", pictures=np.zeros((1, 2)), labels=[0])
        refused(
            tmp_path / "a.npz", "needs arrays 'images' and 'labels', but holds labels, pictures"
        )

    def test_damaged_files(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        np.savez(path, images=made.pixels(50, 4, 4), labels=np.zeros(50, int))
        whole = path.read_bytes()
        for data in (b"", b"hello", whole[: len(whole) // 2]):
            path.write_bytes(data)
            refused(path, "not a readable .npz file")
        damaged = bytearray(whole)
        damaged[300] ^= 0xFF
        path.write_bytes(bytes(damaged))
        refused(path, "'images' cannot be read")

    def test_a_header_that_promises_too_much(self, tmp_path: Path) -> None:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 50, 2)}
        )
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("images.npy", header.getvalue())
            archive.writestr("labels.npy", header.getvalue())
        refused(tmp_path / "a.npz", "'images' is larger than 4 GiB")

    def test_a_bomb(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(npz, "MAX_ARRAY_BYTES", 1 << 20)
        np.savez_compressed(tmp_path / "a.npz", images=np.zeros((1 << 18, 2)), labels=[0])
        refused(tmp_path / "a.npz", "'images' is larger")


class TestCsv:
    @pytest.mark.parametrize(
        "text",
        [
            "1,0.5,0.25\n0,1,0\n",
            "label,a,b\n1,0.5,0.25\n0,1,0\n",
            "a, Label ,b\n0.5,1,0.25\n1,0,0\n",
            "class,a,b\r\n1,0.5,0.25\r\n0,1,0\r\n",
            "\ufefflabel,a,b\n1.0,0.5,0.25\n0.0,1,0\n",
        ],
    )
    def test_label_column(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "a.csv").write_text(text, encoding="utf-8")
        data = read(tmp_path / "a.csv")
        assert data.labels.tolist() == [1, 0]
        assert data.images.tolist() == [[0.5, 0.25], [1.0, 0.0]]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "empty"),
            ("1\n2\n", "at least one value in each row"),
            ("label,a\n", "cannot be read as CSV|holds no images|empty"),
            ("1,2\n1,x\n", "row 2, column 2: the value 'x' is not a finite number"),
            ("label,a\n1,\n", "row 2, column 2: the value is missing"),
            ("1,2\n1,nan\n", "row 2, column 2"),
            ("1,2\n1,inf\n", "row 2, column 2"),
            ("1,2\n1,2,3\n", "cannot be read as CSV"),
            ("1,2,3\n1,2\n", "row 2, column 3: the value is missing"),
            ("1.5,2\n", "label 1.5 of image 0 is not an integer"),
            ("-1,2\n", "negative"),
            ("cat,2\ndog,3\n", "row 2, column 1: the value 'dog'"),
        ],
    )
    def test_bad_tables(self, tmp_path: Path, text: str, said: str) -> None:
        (tmp_path / "a.csv").write_text(text)
        refused(tmp_path / "a.csv", said)

    def test_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00\x01" * 50)
        refused(tmp_path / "a.csv", "cannot be read as CSV")

    def test_no_splits(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("1,2\n")
        refused(tmp_path / "a.csv", "has no splits", "train")


class TestFolder:
    @pytest.mark.parametrize("suffix", ["png", "ppm", "bmp", "jpg", "gif", "tif", "webp"])
    def test_a_subfolder_a_class(self, tmp_path: Path, suffix: str) -> None:
        for label, name in enumerate(("cat", "dog")):
            (tmp_path / name).mkdir()
            for number in range(2):
                picture = Image.new("RGB", (6, 5), (100 * label, 50, 0))
                picture.save(tmp_path / name / f"{number}.{suffix}")
        (tmp_path / "cat" / "notes.txt").write_text("not a picture")
        data = load_spec(f"{tmp_path}[1:3]")
        assert data.shape == (3, 5, 6)
        assert (data.labels.tolist(), data.classes) == ([0, 1], ("cat", "dog"))
        assert abs(data.images[1, 0].mean() - 100 / 255) < 0.05

    def test_numbers_are_labels(self, tmp_path: Path) -> None:
        for name in ("3", "12", "7"):
            (tmp_path / name).mkdir()
            Image.new("L", (2, 2), int(name)).save(tmp_path / name / "a.png")
        data = read(tmp_path)
        assert data.labels.tolist() == [3, 7, 12]
        assert np.round(data.images[:, 0, 0, 0] * 255).tolist() == [3, 7, 12]
        assert (data.shape, data.classes) == ((1, 2, 2), None)

    def test_only_what_is_selected_is_decoded(self, tmp_path: Path) -> None:
        (tmp_path / "0").mkdir()
        Image.new("L", (2, 2)).save(tmp_path / "0" / "a.png")
        (tmp_path / "0" / "b.png").write_bytes(b"damaged")
        assert load_spec(f"{tmp_path}[0]").images.shape == (1, 1, 2, 2)
        with pytest.raises(DataError, match=r"b\.png: cannot be decoded"):
            _ = read(tmp_path).images

    def test_splits_as_folders(self, tmp_path: Path) -> None:
        for split in ("train", "test"):
            (tmp_path / split / "0").mkdir(parents=True)
            Image.new("L", (2, 2)).save(tmp_path / split / "0" / "a.png")
        assert len(load_spec(f"{tmp_path}:train")) == 1
        refused(tmp_path, "has no subfolder 'val'", "val")

    @pytest.mark.parametrize(
        ("mode", "shape"),
        [("1", (1, 2, 2)), ("LA", (1, 2, 2)), ("P", (3, 2, 2)), ("RGBA", (3, 2, 2))],
    )
    def test_modes(self, tmp_path: Path, mode: str, shape: Any) -> None:
        (tmp_path / "0").mkdir()
        Image.new(mode, (2, 2)).save(tmp_path / "0" / "a.png")
        assert read(tmp_path).images.shape[1:] == shape

    def test_sixteen_bits_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "0").mkdir()
        Image.new("I;16", (2, 2)).save(tmp_path / "0" / "a.png")
        refused(tmp_path, "more than 8 bits")

    @pytest.mark.parametrize("other", [Image.new("L", (2, 3)), Image.new("RGB", (2, 2))])
    def test_different_sizes(self, tmp_path: Path, other: Any) -> None:
        (tmp_path / "0").mkdir()
        Image.new("L", (2, 2)).save(tmp_path / "0" / "a.png")
        other.save(tmp_path / "0" / "b.png")
        refused(tmp_path, r"b\.png: is .* but a\.png is 1x2x2; bring all images to one size")

    def test_a_picture_of_too_many_pixels_is_not_decoded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "0").mkdir()
        for side in (10_000, 100_000):  # below and above what pillow itself refuses
            head = struct.pack(">2I5B", side, side, 8, 0, 0, 0, 0)
            chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(99))), (b"IEND", b""))
            data = b"\x89PNG\r\n\x1a\n" + b"".join(
                struct.pack(">I", len(body))
                + kind
                + body
                + struct.pack(">I", zlib.crc32(kind + body))
                for kind, body in chunks
            )
            (tmp_path / "0" / "a.png").write_bytes(data)
            refused(tmp_path, "pixels are too many|decompression bomb")
        monkeypatch.setattr(images, "MAX_PIXELS", 3)
        Image.new("L", (2, 2)).save(tmp_path / "0" / "a.png")
        refused(tmp_path, "2x2 pixels are too many")

    def test_empty_folders(self, tmp_path: Path) -> None:
        refused(tmp_path, "no subfolder of pictures")
        (tmp_path / "0").mkdir()
        refused(tmp_path, "no subfolder of pictures")
        Image.new("L", (2, 2)).save(tmp_path / "a.png")
        refused(tmp_path, "no subfolder of pictures")

    def test_two_folders_for_one_class(self, tmp_path: Path) -> None:
        for name in ("3", "03"):
            (tmp_path / name).mkdir()
            Image.new("L", (2, 2)).save(tmp_path / name / "a.png")
        refused(tmp_path, "same class number")


class TestArchives:
    def test_tar_and_debian(self, tmp_path: Path) -> None:
        held = made.write_mnist(tmp_path / "set", packed=True)
        with tarfile.open(tmp_path / "data.tar.xz", "w:xz") as archive:
            archive.add(tmp_path / "set", "./usr/share/datasets")
        check_split(tmp_path / "data.tar.xz", "test", held)
        package = b"!<arch>\n"
        for name, data in (
            ("debian-binary", b"2.0\n"),
            ("control.tar.xz", b"odd"),
            ("data.tar.xz", (tmp_path / "data.tar.xz").read_bytes()),
        ):
            head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}".encode() + b"`\n"
            package += head + data + b"\n" * (len(data) % 2)
        (tmp_path / "set.deb").write_bytes(package)
        check_split(tmp_path / "set.deb", "test", held)
        (tmp_path / "set.deb").write_bytes(package[:130])
        refused(tmp_path / "set.deb", "not a readable directory, zip, tar or deb archive")

    @pytest.mark.parametrize("name", ["a.zip", "a.tgz", "a.tar", "a.deb"])
    @pytest.mark.parametrize("data", [b"", b"garbage" * 100, b"!<arch>\n", b"PK\x03\x04"])
    def test_damaged_archives(self, tmp_path: Path, name: str, data: Any) -> None:
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name, "not a readable directory, zip, tar or deb archive")

    def test_a_truncated_tar(self, tmp_path: Path) -> None:
        made.write_mnist(tmp_path / "set")
        with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
            archive.add(tmp_path / "set", "set")
        data = (tmp_path / "a.tgz").read_bytes()
        (tmp_path / "a.tgz").write_bytes(data[: len(data) // 2])
        refused(tmp_path / "a.tgz", "not a readable directory, zip, tar or deb archive")

    def test_links_and_paths_that_climb_out_stay_inert(self, tmp_path: Path) -> None:
        made.write_mnist(tmp_path / "set")
        secret = tmp_path / "secret"
        secret.write_bytes(b"secret")
        with tarfile.open(tmp_path / "a.tar", "w") as archive:
            link = tarfile.TarInfo("t10k-images-idx3-ubyte")
            link.type, link.linkname = tarfile.SYMTYPE, str(secret)
            archive.addfile(link)
            archive.add(tmp_path / "set" / "t10k-labels-idx1-ubyte", "../../t10k-labels-idx1-ubyte")
        refused(tmp_path / "a.tar", "holds no data set")
        assert not (tmp_path.parent / "t10k-labels-idx1-ubyte").exists()

    def test_bombs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 1 << 20)
        made.write_mnist(tmp_path / "set")
        (tmp_path / "set" / "t10k-images-idx3-ubyte").write_bytes(bytes(2 << 20))
        with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in (tmp_path / "set").iterdir():
                archive.write(path, path.name)
        refused(tmp_path / "a.zip", "unpacks to more than 1 MiB")
        with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
            archive.add(tmp_path / "set", "set")
        refused(tmp_path / "a.tgz", "unpacks to more than 1 MiB")
        refused(tmp_path / "set", "larger than 1 MiB")

    def test_other_files(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("hello")
        refused(tmp_path / "a.txt", "expected is a .npz or .csv file, a folder")
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("a.txt", "hello")
        refused(tmp_path / "a.zip", "holds no data set that radii knows")
