"""`radii cycle` on bad terms: hopeless networks, damaged files, two processes, useless flags."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import in_this_process
from radii.cli import main
from radii.training._checkpoints import claimed

pytestmark = pytest.mark.usefixtures("without_workers")

BASE = [
    "cycle", "--data", "digits:train[0:100]", "--test", "digits:test[0:3]", "--arch", "dense:8",
    "--epochs", "1", "--attacked", "6", "--verified", "1", "--timeout", "5", "--jobs", "1",
    "--require", "robust_accuracy(0.5) >= 0.99", "--rounds", "2",
]  # fmt: skip


@pytest.fixture(scope="module")
def hopeless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds, after which the network still classifies no test image correctly."""
    out = tmp_path_factory.mktemp("hopeless") / "cycle"
    with in_this_process():
        assert main([*BASE, "--out", str(out)]) == 1
    return out


def test_hopeless_rounds_end_with_1_and_a_report(
    hopeless: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = hopeless / "report.html"
    report.unlink()
    assert main([*BASE, "--out", str(hopeless)]) == 1
    assert "not compared" in " ".join(capsys.readouterr().out.split())
    report.unlink()
    assert main([*BASE, "--out", str(hopeless), "--json"]) == 1
    rounds = json.loads(capsys.readouterr().out)["rounds"]
    assert [one["accuracy"] for one in rounds] == [0.0, 0.0]
    assert report.is_file()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cycle.json", b"[]"),
        ("cycle.json", b"null"),
        ("round-0/counterexamples.npz", b""),
        ("round-0/counterexamples.npz", b"PK\x03\x04damaged"),
        ("round-0/round.json", b"null"),
    ],
)
def test_damaged_files(
    name: str,
    content: bytes,
    hopeless: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(hopeless, tmp_path / "cycle")
    (tmp_path / "cycle" / "round-1" / "round.json").unlink()
    (tmp_path / "cycle" / name).write_bytes(content)
    assert main([*BASE, "--out", str(tmp_path / "cycle")]) == 2
    told = capsys.readouterr().err
    assert f"{name}: cannot be read" in told and told.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--eps", "0"], "--eps 0 must be above 0"),
        (["--later-epochs", "0"], "--later-epochs 0 must be at least 1"),
        (["--grid", "0.1:0.3:0.1"], "eps 0.5, but grid 0.1:0.3:0.1 ends at 0.2"),
        (["--seed", "99999999999999"], "seed 99999999999999 must be at most"),
    ],
)
def test_useless_flags(
    flags: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*BASE, "--out", str(tmp_path / "cycle"), *flags]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "cycle").exists()


def test_one_cycle_in_a_directory_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with claimed(tmp_path):
        assert main([*BASE, "--out", str(tmp_path)]) == 2
    assert "another process" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
