"""Gzipped files: whole ones, damaged ones, and bombs."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from conftest import write_linear
from radii.cli import main
from radii.datasets import _archives as gzipped
from radii.datasets import gunzip
from radii.errors import DataError


@pytest.mark.parametrize("size", [0, 1, 1 << 20])
def test_what_fits_is_unpacked(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzipped, "MAX_UNPACKED_BYTES", 1 << 20)
    assert gunzip(gzip.compress(bytes(size)), "a.gz", DataError) == bytes(size)


@pytest.mark.parametrize("data", [b"no", gzip.compress(b"radii")[:-3]], ids=["other", "cut"])
def test_damaged(data: bytes) -> None:
    with pytest.raises(DataError, match=r"a\.gz is a damaged gzip file"):
        gunzip(data, "a.gz", DataError)


@pytest.fixture
def bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    monkeypatch.setattr(gzipped, "MAX_UNPACKED_BYTES", 1 << 20)
    monkeypatch.chdir(tmp_path)
    write_linear(tmp_path)
    return gzip.compress(bytes(3 << 20))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("net.onnx.gz", "convert network net.onnx.gz --out other.onnx"),
        ("property.vnnlib.gz", "verify linear.onnx property.vnnlib.gz"),
        ("list.csv.gz", "verify --instances list.csv.gz --out results.csv"),
    ],
)
def test_bombs_are_refused_in_one_sentence(
    name: str, command: str, bomb: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(bomb)
    assert main(shlex.split(command)) == 2
    told = capsys.readouterr().err
    assert f"{name} unpacks to more than 1 MiB" in told
    assert len(told.splitlines()) == 1
