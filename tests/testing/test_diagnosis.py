"""The self-test notices what is wrong, and its known radii are right."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from radii import datasets, demo, verifiers
from radii.problem import Bracket, Norm
from radii.processes import _usage as machine
from radii.runs import _selection as selection
from radii.testing import PackageStatus, packages, self_test, tools
from radii.testing._diagnosis import BRACKET_ROUNDING, KNOWN_RADII, _side_problem, _witness_problem
from radii.verifiers import BranchAndBound, Limits, Milp


@pytest.mark.parametrize("name", KNOWN_RADII)
def test_the_known_radii_are_those_that_milp_measures(name: str) -> None:
    network = demo.load_network(name)
    data = datasets.load_spec("digits:test").take(list(KNOWN_RADII[name]))
    milp = verifiers.get("milp")
    assert isinstance(milp, Milp)
    for instance in selection.select(network, data, property="one-to-any", norm=Norm.LINF):
        answer = milp.radius(network, instance, Limits(60))
        radius = KNOWN_RADII[name][instance.index]
        assert answer.lower - BRACKET_ROUNDING <= radius <= answer.upper + BRACKET_ROUNDING
        assert answer.upper - answer.lower < 1e-3 * radius  # what float32 may round


def lying(verifier: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims a proof one and a half times as far as it should."""
    name = "certify" if verifier is BranchAndBound else "verify"
    true: Callable[..., Any] = getattr(verifier, name)

    def claim(self: Any, *args: Any, **more: Any) -> Any:
        result = true(self, *args, **more)
        if result.proof is None:
            return result
        further = dataclasses.replace(result.proof, eps=1.5 * result.proof.eps)
        return dataclasses.replace(result, proof=further)

    monkeypatch.setattr(verifier, name, claim)


def test_a_verifier_that_lies_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process; the worker of the last check is another one, and honest."""
    lying(BranchAndBound, monkeypatch)
    lying(Milp, monkeypatch)
    found = {check.name: check for check in self_test()}
    assert found["attack"].is_passed, found["attack"].problem
    assert found["a worker process"].is_passed, found["a worker process"].problem
    for name in ("native", "milp"):
        assert "claims a proof at eps" in found[name].problem


@pytest.mark.parametrize(
    ("judge", "bracket", "problem"),
    [
        (_side_problem, Bracket(0.0995, 0.1001), ""),
        (_side_problem, Bracket(0.1001, 0.102), "misses"),
        (_side_problem, Bracket(0.09, 0.0999), "misses"),
        (_side_problem, Bracket(0.09, 0.1001), "too wide"),
        (_side_problem, Bracket(0.0995), "too wide"),
        (_witness_problem, Bracket(0, 0.101), ""),
        (_witness_problem, Bracket(0, 0.0999), "is within the radius"),
        (_witness_problem, Bracket(0, 0.11), "not 0.1"),
        (_witness_problem, Bracket(), "not 0.1"),
    ],
)
def test_what_counts_as_wrong(judge: Any, bracket: Bracket, problem: str) -> None:
    assert (problem in judge(0.1, bracket)) if problem else not judge(0.1, bracket)


def test_what_is_found() -> None:
    found = {package.name: package for package in packages()}
    assert found["torch"].version
    assert found["torch"].extra is None
    assert found["ray"].extra == "ray"
    assert "radii" not in found
    assert PackageStatus("torch", None, None).is_lacking
    assert not PackageStatus("ray", None, "ray").is_lacking
    known = {tool.name: tool for tool in tools()}
    assert known["native"].refusal is known["milp"].refusal is known["enumeration"].refusal is None
    assert "needs a tool" in str(known["vnncomp"].refusal)


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GB and 4 cores, and files of cgroups to write."""
    memory = SimpleNamespace(total=8 << 30, available=4 << 30)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)))
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_without_containers(groups: Path) -> None:
    assert machine.usable_cores() == 4
    assert machine.memory_limit() == 8 << 30
    assert machine.available_bytes() == 4 << 30


def test_the_tightest_limit_on_the_way_up(groups: Path) -> None:
    write(groups / "own", "0::/pod/box")
    write(groups / "cgroup" / "pod" / "memory.max", str(2 << 30))
    write(groups / "cgroup" / "pod" / "box" / "memory.max", "max")
    write(groups / "cgroup" / "pod" / "box" / "memory.current", str(1 << 29))
    write(groups / "cgroup" / "pod" / "cpu.max", "150000 100000")
    write(groups / "cgroup" / "pod" / "box" / "cpu.max", "max 100000")
    assert machine.memory_limit() == 2 << 30
    assert machine.available_bytes() == 3 << 29
    assert machine.usable_cores() == 2


def test_the_older_layout(groups: Path) -> None:
    write(groups / "own", "4:memory:/box\n1:cpu,cpuacct:/\n0::/")
    write(groups / "cgroup" / "memory" / "box" / "memory.limit_in_bytes", str(1 << 30))
    write(groups / "cgroup" / "memory" / "memory.limit_in_bytes", "9223372036854771712")
    write(groups / "cgroup" / "cpu" / "cpu.cfs_quota_us", "-1")
    write(groups / "cgroup" / "cpu" / "cpu.cfs_period_us", "100000")
    assert machine.memory_limit() == 1 << 30
    assert machine.usable_cores() == 4
    write(groups / "cgroup" / "cpu" / "cpu.cfs_quota_us", "50000")
    assert machine.usable_cores() == 1
