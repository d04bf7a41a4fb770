"""Clusters as they are described: what is refused before any work, and what fits on a node."""

from __future__ import annotations

import importlib.util
import socket
import sys
import time
from pathlib import Path

import pytest

from radii.cli import main
from radii.errors import ExperimentError
from radii.runs import Cluster
from radii.runs.executors import _cluster as nodes
from radii.runs.executors._cluster import ClusterNode

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="the extra 'ray' is not installed"
)


def refused(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """The sentence with which the command line refuses these flags."""
    assert main(["run", *flags]) == 2
    said = capsys.readouterr().err
    assert said.startswith("radii: ")
    assert said.count("\n") == 1
    return said


@pytest.fixture
def flags(linear_file: Path, points_file: Path, tmp_path: Path) -> list[str]:
    what = {"network": linear_file, "data": points_file, "domain": "0:1", "out": tmp_path / "out"}
    return [f"--{name}={value}" for name, value in what.items()]


@pytest.mark.parametrize("address", ["", "somewhere", "ray://host:10001", "host:port", "a b:1"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(ExperimentError, match="HOST:PORT"):
        Cluster(address=address)


@pytest.mark.parametrize("amount", [1.5, -1.0, float("nan"), float("inf")])
def test_units_are_whole_or_parts_of_one(amount: float) -> None:
    for name in ("cpus", "gpus"):
        with pytest.raises(ExperimentError, match=f"--ray-{name} .* whole number"):
            Cluster(**{name: amount})  # type: ignore[arg-type]
    with pytest.raises(ExperimentError, match="--ray-cpus 0"):
        Cluster(cpus=0)


def test_a_gpu_for_each_query_that_computes_on_one() -> None:
    assert Cluster().for_device(None).needs(None) == {"CPU": 1.0}
    assert Cluster().for_device("cuda:0").needs(None) == {"CPU": 1.0, "GPU": 1.0}
    shared = Cluster(cpus=2, gpus=0.25).for_device("cuda")
    assert shared.needs(2**30) == {"CPU": 2, "GPU": 0.25, "memory": 2**30}


@pytest.mark.parametrize(
    ("needs", "seats"),
    [
        ({"CPU": 1.0}, 8),
        ({"CPU": 0.1}, 80),
        ({"CPU": 3.0}, 2),
        ({"CPU": 1.0, "GPU": 0.5}, 4),
        ({"CPU": 1.0, "memory": 3e9}, 5),
        ({"CPU": 9.0}, 0),
        ({"CPU": 1.0, "TPU": 1.0}, 0),
    ],
)
def test_what_is_scarcest_counts(needs: dict[str, float], seats: int) -> None:
    node = ClusterNode("id", "host", {"CPU": 8.0, "GPU": 2.0, "memory": 16e9})
    assert node.seats(needs) == seats


def test_without_the_package(
    flags: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'radii[ray]'" in refused(capsys, *flags, "--ray=auto")


def test_flags_that_need_a_cluster(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "without --ray" in refused(capsys, *flags, "--ray-gpus=1")


@needs_ray
def test_nobody_answers(
    flags: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        said = refused(capsys, *flags, f"--ray={address}")
    assert f"--ray {address}: nobody answers there" in said
    assert not (tmp_path / "out").exists(), "an experiment that never began left something"


@needs_ray
def test_somebody_else_answers(
    flags: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "CONNECT_SECONDS", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        started = time.monotonic()
        said = refused(capsys, *flags, f"--ray={address}")
    assert f"--ray {address}: no Ray cluster answers there" in said
    assert time.monotonic() - started < 30


@needs_ray
def test_no_cluster_to_be_found(
    flags: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr(nodes, "CONNECT_SECONDS", 3.0)
    assert "--ray auto: " in refused(capsys, *flags, "--ray=auto")
