"""Searches with several queries at once on real worker processes, and verifiers that misbehave."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import pytest

import misbehaving
from conftest import BUSY_SECONDS
from misbehaving import Deaf, Hoarding, Segfaulting, Slow
from radii import datasets
from radii.errors import RadiiError
from radii.networks import Network, load_network
from radii.problem import Grid, Instance, Norm, Query, Result, Verdict
from radii.processes import cpu_seconds, descendant_pids, is_alive
from radii.runs import LocalWorkers, Toolbox, drive, select
from radii.strategy import Case, KBinary, Question, QuestionKind, Schedule, ScheduleLimits, Task
from radii.testing._simulated import Hanging, Scripted
from radii.verifiers import Milp, Verifier, VnnComp

GRID = Grid("0.01", "0.5", "0.02")
MEMORY = 900 * 2**20
SOON = BUSY_SECONDS
"""A second, and what a busy machine adds to it."""


@pytest.fixture
def network(linear_file: Path) -> Network:
    return load_network(linear_file, domain=(0, 1))


@pytest.fixture
def instances(network: Network, points_file: Path) -> list[Instance]:
    """Radii 0.1 and 0.25."""
    data = datasets.load_spec(str(points_file))
    return select(network, data, property="one-to-any", norm=Norm.LINF)[:2]


class Driven:
    """Cases driven to their end on worker processes, and what was told when."""

    def __init__(
        self,
        network: Network,
        instances: list[Instance],
        verifier: Verifier,
        *,
        k: int,
        jobs: int,
        timeout: float = 60.0,
        memory: int | None = None,
    ) -> None:
        tools = Toolbox({network.fingerprint: network}, None, verifier, memory_bytes=memory)
        self.cases = [Case(instance, KBinary(GRID, k=k), batch=0) for instance in instances]
        self.told: list[tuple[float, Question, Result]] = []
        with LocalWorkers(tools, jobs) as executor:
            drive(
                Schedule(self.cases, ScheduleLimits(timeout=timeout)),
                executor,
                on_results=lambda told: self.told.extend(
                    (time.monotonic(), question, result) for _, question, result in told
                ),
                on_finished=lambda _: None,
            )

    def verdicts(self, eps: float) -> set[Verdict]:
        return {result.verdict for _, question, result in self.told if question.eps == eps}


@pytest.mark.slow
def test_each_misbehaviour_is_its_missing_answer_and_harms_nobody_else(
    network: Network, instances: list[Instance]
) -> None:
    script: dict[float, Verifier] = {eps: Milp() for eps in GRID}
    script |= {GRID[5]: Deaf(), GRID[10]: Segfaulting(), GRID[15]: Hoarding()}
    run = Driven(network, instances, Scripted(script), k=4, jobs=4, timeout=6.0, memory=MEMORY)
    expected = {5: Verdict.TIMEOUT, 10: Verdict.ERROR, 15: Verdict.MEMOUT}
    for index, verdict in expected.items():
        assert run.verdicts(GRID[index])  # all four first cuts are asked
        assert run.verdicts(GRID[index]) <= {verdict, Verdict.CANCELLED}
    assert Verdict.ERROR in run.verdicts(GRID[10])
    others = [result for _, q, result in run.told if type(script[q.eps]) is Milp]
    assert all(not r.verdict.is_missing or r.verdict is Verdict.CANCELLED for r in others)
    for case, (lower, upper) in zip(run.cases, ((0.09, 0.13), (0.23, 0.29)), strict=True):
        assert case.search.done
        assert case.search.bracket.lower >= lower
        assert case.search.bracket.upper <= upper + 1e-6


@pytest.mark.slow
def test_cancelled_work_stops_within_a_second(network: Network, instances: list[Instance]) -> None:
    script: dict[float, Verifier] = {eps: Milp() for eps in GRID}
    script |= {eps: Hanging() for eps in GRID.values[13:]}  # the radius is 0.1: all are implied
    run = Driven(network, instances[:1], Scripted(script), k=3, jobs=3)
    cancelled = [(at, r) for at, _, r in run.told if r.verdict is Verdict.CANCELLED]
    assert cancelled
    for at, _ in cancelled:
        before = [t for t, _, r in run.told if r.verdict is Verdict.NOT_ROBUST and t <= at]
        assert at - min(before) < SOON
    assert run.cases[0].search.bracket.upper <= 0.11 + 1e-6


@pytest.mark.slow
def test_wall_time_falls_and_work_grows_with_k(network: Network, instances: list[Instance]) -> None:
    walls, works = [], []
    for k in (1, 4):
        run = Driven(network, instances[:1], Slow(Milp(), seconds=1.5), k=k, jobs=k)
        walls.append(run.cases[0].spent)
        works.append(sum(result.seconds for _, _, result in run.told))
    assert walls[1] < walls[0]
    assert works[1] > works[0]


def proof_task(instance: Instance, cpu: float) -> Task:
    return Task(0, instance.network, QuestionKind.PROVE, (Query(instance, 0.05),), 60.0, cpu)


def test_a_cpu_limit_counts_processes_of_processes_and_ends_them(
    network: Network, instances: list[Instance]
) -> None:
    tools = Toolbox({network.fingerprint: network}, None, Deaf(processes=1))
    with LocalWorkers(tools, 1) as executor:
        executor.submit(proof_task(instances[0], cpu=0.5))
        child = executor._busy[0].child
        _, (result,) = executor.wait()
        assert descendant_pids(child.process.pid) == []
    assert result.verdict is Verdict.TIMEOUT
    assert "CPU limit" in result.message
    assert result.cpu_seconds is not None
    assert 0.5 <= result.cpu_seconds < 10


def test_a_cpu_limit_does_not_count_sleep(network: Network, instances: list[Instance]) -> None:
    tools = Toolbox({network.fingerprint: network}, None, Slow(Milp(), seconds=2.0, seed=1))
    with LocalWorkers(tools, 1) as executor:
        executor.submit(proof_task(instances[0], cpu=1.5))
        _, (result,) = executor.wait()
    assert result.verdict is Verdict.ROBUST
    assert result.cpu_seconds is not None
    assert result.cpu_seconds < result.seconds


def test_a_worker_that_is_killed_leaves_no_tool_and_no_files(
    network: Network, instances: list[Instance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at Ctrl-C: the supervisor of a foreign program gets the time to clean up."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("radii.runs.executors._local.CLOSE_SECONDS", 60.0)
    tool = VnnComp(tool="sh -c 'sleep 3600' {onnx} {vnnlib} {out}")
    with LocalWorkers(Toolbox({network.fingerprint: network}, None, tool), 1) as executor:
        executor.submit(proof_task(instances[0], cpu=math.inf))
        worker = executor._busy[0]
        assert worker.child.connection.poll(120)
        assert worker.child.receive() is None, "it is ready, and begins"
        end = time.monotonic() + 120
        while (
            len(family := descendant_pids(worker.child.process.pid)) < 2 and time.monotonic() < end
        ):
            time.sleep(0.05)
        assert len(family) >= 2, "supervisor and tool"
        assert list(tmp_path.glob("radii-*"))
    assert not any(map(is_alive, family))
    assert not list(tmp_path.glob("radii-*"))


@pytest.mark.slow
def test_a_tool_at_the_memory_limit_ends_before_its_worker_does(
    network: Network, instances: list[Instance]
) -> None:
    hoard = f'import runpy; runpy.run_path("{misbehaving.__file__}")["hoard"]()'
    tool = VnnComp(tool=f"{sys.executable} -c '{hoard}' {{onnx}} {{vnnlib}} {{out}}")
    tools = Toolbox({network.fingerprint: network}, None, tool, memory_bytes=MEMORY)
    with LocalWorkers(tools, 1) as executor:
        executor.submit(proof_task(instances[0], cpu=math.inf))
        _, (result,) = executor.wait()
        assert len(executor._idle) == 1, "the worker was killed, too"
    assert result.verdict is Verdict.MEMOUT
    assert "it overran its memory limit" in result.message


def test_workers_that_never_start_end_a_run_with_a_sentence(
    network: Network, instances: list[Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a job that is larger than what a socket holds makes it a traceback."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    tools = Toolbox({network.fingerprint: network}, None, Hopeful())
    with LocalWorkers(tools, 1) as executor:
        executor.submit(proof_task(instances[0], cpu=math.inf))
        with pytest.raises(RadiiError, match="a worker process could not start"):
            executor.wait()


class Hopeful(Milp):
    """Large on its way to a worker."""

    def __init__(self) -> None:
        super().__init__()
        self.ballast = bytes(10**7)


@pytest.mark.slow
def test_an_idle_worker_that_somebody_ended_is_replaced(
    network: Network, instances: list[Instance]
) -> None:
    with LocalWorkers(Toolbox({network.fingerprint: network}, None, Milp()), 1) as executor:
        executor.submit(proof_task(instances[0], cpu=math.inf))
        executor.wait()
        process = executor._idle[0].child.process
        process.kill()
        process.wait()
        assert cpu_seconds(process.pid) is None
        executor.submit(proof_task(instances[0], cpu=math.inf))
        _, (result,) = executor.wait()
    assert result.verdict is Verdict.ROBUST
