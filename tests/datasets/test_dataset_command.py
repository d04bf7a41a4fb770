from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import official_files as made
import pytest

from radii.cli import build_parser
from radii.errors import DataError


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RADII_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "cache"


def run(*arguments: str) -> int:
    args = build_parser("data").parse_args(["data", *arguments])
    return int(args.run(args))


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run("list", "--json") == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["datasets"]}


def test_get_list_and_check(tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made.write_gtsrb(tmp_path / "set")
    assert not listed(capsys)["gtsrb"]["in_place"]
    assert run("get", "gtsrb", "--from", str(tmp_path / "set")) == 0
    assert "6 train, 3 test images of 3x32x32, checksums recorded" in capsys.readouterr().out
    row = listed(capsys)["gtsrb"]
    assert (row["in_place"], row["train"], row["test"]) == (True, 6, 3)

    assert run("get", "GTSRB") == 0
    assert "in place already" in capsys.readouterr().out
    assert run("get", "gtsrb", "--from", str(tmp_path / "set"), "--size", "16", "--force") == 0
    assert "3x16x16" in capsys.readouterr().out

    assert run("check") == 0
    assert "whole" in capsys.readouterr().out
    (root / "gtsrb" / "test-labels-idx1-ubyte").write_bytes(b"damaged")
    assert run("check", "gtsrb", "--json") == 1
    found = json.loads(capsys.readouterr().out)["datasets"]
    assert found == [{"name": "gtsrb", "changed": ["test-labels-idx1-ubyte"]}]
    assert run("check") == 1
    assert "changed: test-labels-idx1-ubyte" in capsys.readouterr().out
    assert run("get", "gtsrb", "--from", str(tmp_path / "set")) == 0, "a damaged set is replaced"
    assert run("check", "gtsrb") == 0


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    out = capsys.readouterr().out
    for name in ("digits", "mnist", "fashion-mnist", "cifar10", "gtsrb"):
        assert name in out
    assert listed(capsys)["digits"]["source"] == "embedded"


def test_nothing_in_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check") == 0
    assert "no data set is in place" in capsys.readouterr().out
    with pytest.raises(DataError, match="not in place; run: radii data get mnist"):
        run("check", "mnist")


def test_a_damaged_manifest_is_listed_and_can_be_replaced(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.write_gtsrb(tmp_path / "set")
    run("get", "gtsrb", "--from", str(tmp_path / "set"))
    (root / "gtsrb" / "manifest.json").write_text("{")
    row = listed(capsys)["gtsrb"]
    assert not row["in_place"]
    assert "cannot be read as a manifest" in row["problem"]
    assert run("get", "gtsrb", "--from", str(tmp_path / "set")) == 0
    assert listed(capsys)["gtsrb"]["in_place"]


def test_digits_need_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("get", "digits") == 0
    assert "embedded" in capsys.readouterr().out


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="mnist, fashion-mnist, cifar10, gtsrb"):
        run("get", "svhn")


def test_other_digits_are_not_mnist(tmp_path: Path) -> None:
    made.write_mnist(tmp_path / "set")
    with pytest.raises(DataError, match="is not that of the official 'mnist'"):
        run("get", "mnist", "--from", str(tmp_path / "set"))


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    assert "radii data get mnist" in capsys.readouterr().out
