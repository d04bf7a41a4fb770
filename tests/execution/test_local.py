"""Worker processes: hard limits, crashes and bugs are missing answers, never a lost experiment."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from radii import datasets
from radii.attacks import Attack
from radii.balls import Norm
from radii.execution import Executor, Inline, LocalWorkers, Task, Toolbox
from radii.networks import Network, load_network
from radii.queries import Instance, Query
from radii.search import Kind
from radii.selection import select
from radii.testing.simulated import Crashing, Hanging, Hopeless, Lying, Raising
from radii.verdicts import Verdict
from radii.verifiers import Milp, Verifier


@pytest.fixture
def network(linear_file: Path) -> Network:
    return load_network(linear_file, domain=(0, 1))


@pytest.fixture
def instance(network: Network, points_file: Path) -> Instance:
    data = datasets.load_spec(str(points_file))
    return select(network, data, property="one-to-any", norm=Norm.LINF)[0]


def toolbox(
    network: Network, verifier: Verifier | None = None, attack: Attack | None = None
) -> Toolbox:
    return Toolbox({network.fingerprint: network}, attack, verifier)


def proof_task(instance: Instance, eps: float = 0.05, seconds: float = 60.0) -> Task:
    return Task(0, instance.network, Kind.PROVE, (Query(instance, eps),), seconds)


def executors(tools: Toolbox) -> list[Executor]:
    return [Inline(tools), LocalWorkers(tools, jobs=1)]


def test_the_same_answers_everywhere(network: Network, instance: Instance) -> None:
    for executor in executors(toolbox(network, Milp())):
        with executor:
            for eps, verdict in ((0.09, Verdict.ROBUST), (0.11, Verdict.NOT_ROBUST)):
                executor.submit(proof_task(instance, eps))
                task, (result,) = executor.wait()
                assert result.verdict is verdict
                assert task.queries[0].eps == eps == result.eps


def test_a_bug_is_an_error(network: Network, instance: Instance) -> None:
    for executor in executors(toolbox(network, Raising())):
        with executor:
            executor.submit(proof_task(instance))
            _, (result,) = executor.wait()
            assert result.verdict is Verdict.ERROR
            assert "a bug in a verifier" in result.message
            assert (result.proof, result.witness) == (None, None)


def test_a_crash_is_an_error_and_a_new_worker(network: Network, instance: Instance) -> None:
    with LocalWorkers(toolbox(network, Crashing()), jobs=1) as executor:
        for _ in range(2):
            executor.submit(proof_task(instance))
            _, (result,) = executor.wait()
            assert result.verdict is Verdict.ERROR
            assert "signal 9" in result.message


def test_a_worker_killed_from_outside(network: Network, instance: Instance) -> None:
    with LocalWorkers(toolbox(network, Hanging()), jobs=1) as executor:
        executor.submit(proof_task(instance))
        while not executor._busy[0].connection.poll(0.1):
            time.sleep(0.1)
        os.kill(executor._busy[0].process.pid, signal.SIGKILL)
        _, (result,) = executor.wait()
        assert result.verdict is Verdict.ERROR


def test_a_hang_is_killed_at_its_limit(network: Network, instance: Instance) -> None:
    with LocalWorkers(toolbox(network, Hanging()), jobs=1) as executor:
        executor.submit(proof_task(instance, seconds=0.5))
        _, (result,) = executor.wait()
        assert result.verdict is Verdict.TIMEOUT
        assert 0.5 <= result.seconds < 10


def test_workers_run_side_by_side(network: Network, instance: Instance) -> None:
    with LocalWorkers(toolbox(network, Hanging()), jobs=2) as executor:
        executor.submit(proof_task(instance, seconds=1.0))
        assert executor.has_room
        executor.submit(proof_task(instance, seconds=1.0))
        assert not executor.has_room
        started = time.monotonic()
        executor.wait()
        executor.wait()
        assert time.monotonic() - started < 60


def test_closing_ends_the_processes(network: Network, instance: Instance) -> None:
    executor = LocalWorkers(toolbox(network, Hanging()), jobs=2)
    executor.submit(proof_task(instance))
    process = executor._busy[0].process
    executor.close()
    assert process.poll() is not None


def test_a_lie_is_a_claim_like_any_other_here(network: Network, instance: Instance) -> None:
    """Only a witness can show it; `radii.brackets.weigh` then drops the claim."""
    with Inline(toolbox(network, Lying())) as executor:
        executor.submit(proof_task(instance, eps=0.3))
        assert executor.wait()[1][0].verdict is Verdict.ROBUST


def test_a_failed_attack_is_unknown(network: Network, instance: Instance) -> None:
    with Inline(toolbox(network, attack=Hopeless())) as executor:
        executor.submit(Task(0, instance.network, Kind.ATTACK, (Query(instance, 0.3),)))
        (result,) = executor.wait()[1]
    assert result.verdict is Verdict.UNKNOWN
    assert (result.proof, result.witness) == (None, None)


def test_networks_survive_the_trip(network: Network) -> None:
    from radii.execution._base import Equipment

    (copy,) = Equipment.pack(toolbox(network)).unpack().networks.values()
    x = np.array([[0.1, 0.7]], np.float32)
    assert copy.fingerprint == network.fingerprint
    assert np.array_equal(copy.replay(x), network.replay(x))
