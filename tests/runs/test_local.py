"""Worker processes: hard limits, crashes and bugs are missing answers, never a lost experiment.

What holds for every executor is in test_executor_conformance.py: here is what they say of it.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import BUSY_SECONDS
from misbehaving import Hoarding, Hopeless, Stumbling
from radii import datasets
from radii.attacks import Attack
from radii.networks import Network, load_network
from radii.problem import Grid, Instance, Norm, Proof, Query, Result, Verdict, Witness
from radii.processes import Ending
from radii.runs import Inline, LocalWorkers, Toolbox, select
from radii.runs.executors._local import _with_partial_result
from radii.strategy import QuestionKind, Task
from radii.testing._simulated import Cooperating, Crashing, Hanging, Lying, Raising
from radii.verifiers import BranchAndBound, Milp, Verifier

SOON = BUSY_SECONDS
"""A second after a limit, and what a busy machine adds to it."""
MEMORY = 900 * 2**20
"""Some hundred megabytes more than a worker holds at first."""


@pytest.fixture
def network(linear_file: Path) -> Network:
    return load_network(linear_file, domain=(0, 1))


@pytest.fixture
def instance(network: Network, points_file: Path) -> Instance:
    data = datasets.load_spec(str(points_file))
    return select(network, data, property="one-to-any", norm=Norm.LINF)[0]


def toolbox(
    network: Network,
    verifier: Verifier | None = None,
    attack: Attack | None = None,
    memory: int | None = None,
) -> Toolbox:
    return Toolbox({network.fingerprint: network}, attack, verifier, memory_bytes=memory)


def proof_task(instance: Instance, eps: float = 0.05, seconds: float = 60.0) -> Task:
    return Task(0, instance.network, QuestionKind.PROVE, (Query(instance, eps),), seconds)


def executors(tools: Toolbox) -> list[Inline | LocalWorkers]:
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


def test_a_crash_is_an_error_and_its_signal_is_named(network: Network, instance: Instance) -> None:
    with LocalWorkers(toolbox(network, Crashing()), jobs=1) as executor:
        executor.submit(proof_task(instance))
        _, (result,) = executor.wait()
    assert result.verdict is Verdict.ERROR
    assert "signal 9" in result.message


@pytest.mark.slow  # test_killed.py sees it too
def test_a_worker_killed_from_outside(network: Network, instance: Instance) -> None:
    with LocalWorkers(toolbox(network, Hanging()), jobs=1) as executor:
        executor.submit(proof_task(instance))
        child = executor._busy[0].child
        while not child.connection.poll(0.1):
            time.sleep(0.1)
        os.kill(child.process.pid, signal.SIGKILL)
        _, (result,) = executor.wait()
        assert result.verdict is Verdict.ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dies", "verdict", "message"),
    [
        (
            False,
            Verdict.ROBUST,
            "the proof at eps 0.04 is kept; after that it overran its time limit",
        ),
        (
            True,
            Verdict.ERROR,
            "the proof at eps 0.04 is kept; after that the worker process died (signal 9)",
        ),
    ],
)
def test_what_was_proven_before_a_kill_counts(
    network: Network, instance: Instance, dies: bool, verdict: Verdict, message: str
) -> None:
    grid = Grid(0.02, 0.2, 0.02)
    verifier = Stumbling(Milp(), dies=dies)
    tools = Toolbox({network.fingerprint: network}, None, verifier, grid=grid)
    with LocalWorkers(tools, jobs=1) as executor:
        executor.submit(
            Task(0, instance.network, QuestionKind.RADIUS, (Query(instance, 0.2),), 1.0)
        )
        _, (result,) = executor.wait()
    assert result.verdict is verdict
    assert result.proof is not None
    assert (result.eps, result.proof.eps) == (0.04, 0.04)
    assert result.message == message


def test_a_message_of_a_kill_says_what_is_kept() -> None:
    """Beside a ROBUST it would otherwise read as if the proof was in doubt."""
    killed = Result(Verdict.TIMEOUT, 0.2, "v", "1", 3.0, message="it overran")
    witness = Witness(np.zeros(2), 0.11, 1, np.zeros(2), "onnxruntime")
    proven = Result(Verdict.ROBUST, 0.04, "v", "1", 1.0, proof=Proof(0.04, 0.0), message="so far")
    cases = [
        (
            proven,
            Verdict.ROBUST,
            "the proof at eps 0.04 is kept; after that it overran",
        ),
        (
            replace(proven, witness=witness),
            Verdict.ROBUST,
            "the proof at eps 0.04 and the witness at distance 0.11 are kept; "
            "after that it overran",
        ),
        (
            Result(Verdict.UNKNOWN, 0.2, "v", "1", 1.0, witness=witness),
            Verdict.TIMEOUT,
            "it overran; the witness at distance 0.11 is kept",
        ),
        (Result(Verdict.UNKNOWN, 0.2, "v", "1", 1.0), Verdict.TIMEOUT, "it overran"),
    ]
    for found, verdict, message in cases:
        result = _with_partial_result(found, killed)
        assert (result.verdict, result.seconds) == (verdict, 3.0)
        assert result.message == message
        assert result.ending is Ending.TIME_LIMIT


def test_what_was_proven_before_torch_ran_out_of_memory_counts(
    network: Network, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch says so with a RuntimeError, which is a MEMOUT like any other."""

    def allocate() -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr("misbehaving.hang", allocate)
    values = list(Grid(0.02, 0.2, 0.02))
    result = Stumbling(Milp()).certify(network, instance, values)
    assert result.proof is not None
    assert (result.verdict, result.proof.eps) == (Verdict.ROBUST, 0.04)
    assert (result.message, result.ending) == ("out of memory", Ending.MEMORY_LIMIT)


def test_a_climb_tells_how_far_it_has_come(network: Network, instance: Instance) -> None:
    said: list[Result] = []
    values = list(Grid(0.02, 0.2, 0.02))
    result = BranchAndBound().certify(network, instance, values, on_progress=said.append)
    proofs = [found.proof.eps for found in said if found.proof is not None]
    assert proofs == sorted(proofs)
    assert result.proof is not None
    assert proofs[-1] == result.proof.eps


def test_a_cooperating_verifier_answers_itself(network: Network, instance: Instance) -> None:
    for executor in executors(toolbox(network, Cooperating())):
        with executor:
            executor.submit(proof_task(instance, seconds=0.5))
            _, (result,) = executor.wait()
            assert (result.verdict, result.message) == (Verdict.TIMEOUT, "it stopped by itself")
            assert 0.5 <= result.seconds < 0.5 + SOON


@pytest.mark.parametrize("verifier", [Cooperating(), Hanging()], ids=lambda v: v.name)
def test_a_task_that_is_cancelled_before_its_worker_is_ready_returns_soon(
    network: Network, instance: Instance, verifier: Verifier
) -> None:
    with LocalWorkers(toolbox(network, verifier), jobs=1) as executor:
        task = proof_task(instance)
        executor.submit(task)
        executor.cancel(Task(9, task.network, task.kind, task.queries))  # another one: no effect
        time.sleep(0.3)
        started = time.monotonic()
        executor.cancel(task)
        ended, (result,) = executor.wait()
        assert time.monotonic() - started < SOON
        assert ended is task
        assert result.verdict is Verdict.CANCELLED
        assert (result.proof, result.witness) == (None, None)


@pytest.mark.slow
def test_memory_is_limited_by_the_verifier_itself(network: Network, instance: Instance) -> None:
    tools = toolbox(network, Cooperating(is_hoarding=True), memory=MEMORY)
    with LocalWorkers(tools, jobs=1) as executor:
        for _ in range(2):
            executor.submit(proof_task(instance))
            _, (result,) = executor.wait()
            assert (result.verdict, result.message) == (Verdict.MEMOUT, "it stopped by itself")
            assert result.seconds > 0.1, "the next task starts with the memory of the first"


def test_a_worker_that_ignores_its_memory_limit_is_killed(
    network: Network, instance: Instance
) -> None:
    with LocalWorkers(toolbox(network, Hoarding(), memory=MEMORY), jobs=1) as executor:
        executor.submit(proof_task(instance))
        _, (result,) = executor.wait()
        assert result.verdict is Verdict.MEMOUT
        assert "memory limit" in result.message
        assert not executor._busy


@pytest.mark.slow
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
    process = executor._busy[0].child.process
    executor.close()
    assert process.poll() is not None


def test_a_lie_is_a_claim_like_any_other_here(network: Network, instance: Instance) -> None:
    """Only a witness can show it; `radii.problem.weigh` then drops the claim."""
    with Inline(toolbox(network, Lying())) as executor:
        executor.submit(proof_task(instance, eps=0.3))
        assert executor.wait()[1][0].verdict is Verdict.ROBUST


def test_a_failed_attack_is_unknown(network: Network, instance: Instance) -> None:
    with Inline(toolbox(network, attack=Hopeless())) as executor:
        executor.submit(Task(0, instance.network, QuestionKind.ATTACK, (Query(instance, 0.3),)))
        (result,) = executor.wait()[1]
    assert result.verdict is Verdict.UNKNOWN
    assert (result.proof, result.witness) == (None, None)


def test_networks_survive_the_trip(network: Network) -> None:
    from radii.runs import SealedToolbox

    (copy,) = SealedToolbox.pack(toolbox(network)).unpack().networks.values()
    x = np.array([[0.1, 0.7]], np.float32)
    assert copy.fingerprint == network.fingerprint
    assert np.array_equal(copy.replay(x), network.replay(x))
