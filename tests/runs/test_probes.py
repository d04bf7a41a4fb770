"""Probes: a quick attack, and a short try to prove the largest value below what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from radii import datasets
from radii.attacks import MinimumNorm, Pgd
from radii.attacks._minimum_norm import Pursuit
from radii.networks import Network, load_network
from radii.problem import Grid, Instance, Norm, Query, Result, Specification, Verdict, check_witness
from radii.runs import Inline, LocalWorkers, Toolbox, select
from radii.strategy import QuestionKind, Task
from radii.verifiers import Answer, BranchAndBound, GridVerifier, Limits, RadiusAnswer

GRID = Grid(0.01, 0.3, 0.02)
RADIUS = 0.1
"""Of the first point on the linear network."""


@pytest.fixture
def network(linear_file: Path) -> Network:
    return load_network(linear_file, domain=(0, 1))


@pytest.fixture
def instance(network: Network, points_file: Path) -> Instance:
    data = datasets.load_spec(str(points_file))
    return select(network, data, property="one-to-any", norm=Norm.LINF)[0]


class _Climber(GridVerifier):
    """Answers nothing; a subclass says what its climb does."""

    name: ClassVar[str] = "climber"
    norms = frozenset(Norm)

    @property
    def version(self) -> str:
        return "1"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        return Answer(Verdict.UNKNOWN)


class _Failing(_Climber):
    def climb(self, *_: object) -> RadiusAnswer:
        raise RuntimeError("a bug")


class _Waiting(_Climber):
    """Proves nothing until its time is over."""

    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        while limits.expired is None:
            np.linalg.svd(np.ones((40, 40)))
        return RadiusAnswer(0.0, stopped=limits.expired)


class _Finding(_Climber):
    """Proves nothing, and comes across a witness at twice the radius."""

    def climb(
        self,
        network: Network,
        instance: Instance,
        values: Sequence[float],
        limits: Limits,
        report: Callable[[RadiusAnswer], None],
    ) -> RadiusAnswer:
        specification = Query(instance, 2.5 * RADIUS).specification
        offsets = np.array(np.meshgrid([-1, 1], [-1, 1])).reshape(2, -1).T * 2 * RADIUS
        points = (instance.input + offset.astype(np.float32) for offset in offsets)
        found = (check_witness(network, specification, point) for point in points)
        return RadiusAnswer(0.0, next(one for one in found if one is not None))


def probed(
    network: Network, instance: Instance, verifier: GridVerifier, attack: MinimumNorm | None = None
) -> Result:
    tools = Toolbox({network.fingerprint: network}, attack or MinimumNorm(), verifier, grid=GRID)
    executor = Inline(tools)
    executor.submit(task_of(instance))
    _, (result,) = executor.wait()
    return result


def task_of(*instances: Instance) -> Task:
    queries = tuple(Query(instance, GRID[len(GRID) - 1]) for instance in instances)
    return Task(0, instances[0].network, QuestionKind.PROBE, queries)


def test_a_probe_closes_an_easy_bracket(network: Network, instance: Instance) -> None:
    result = probed(network, instance, BranchAndBound())
    assert result.verdict is Verdict.ROBUST
    assert result.proof is not None
    assert result.witness is not None
    assert (result.eps, result.proof.eps) == (0.09, 0.09)
    assert result.witness.distance == pytest.approx(RADIUS, rel=1e-3)
    assert result.cpu_seconds is not None


@pytest.mark.parametrize("verifier", [_Failing(), _Waiting()])
def test_proofs_that_fail_leave_what_the_attack_found(
    network: Network, instance: Instance, verifier: GridVerifier
) -> None:
    """Neither an error nor a time-out: nothing was promised, and the long proof comes later."""
    result = probed(network, instance, verifier)
    assert (result.verdict, result.proof, result.message) == (Verdict.NOT_ROBUST, None, "")
    assert result.witness is not None
    assert result.seconds < 10


def test_a_witness_that_proofs_come_across_counts(network: Network, instance: Instance) -> None:
    blind = MinimumNorm(seconds=0.0)
    result = probed(network, instance, _Finding(), blind)
    assert result.verdict is Verdict.NOT_ROBUST
    assert result.witness is not None
    assert result.witness.distance == pytest.approx(2 * RADIUS)
    nothing = probed(network, instance, _Failing(), blind)
    assert (nothing.verdict, nothing.witness, nothing.proof) == (Verdict.UNKNOWN, None, None)


class _Glancing(_Waiting):
    """Proves the least value at once, and nothing in its climbs."""

    def glance(
        self, network: Network, instance: Instance, eps: float, limits: Limits
    ) -> RadiusAnswer:
        return RadiusAnswer(eps)


def test_the_least_value_is_proven_before_what_may_take_long(
    network: Network, instance: Instance
) -> None:
    result = probed(network, instance, _Glancing())
    assert result.verdict is Verdict.ROBUST
    assert result.proof is not None
    assert result.witness is not None
    assert (result.eps, result.proof.eps) == (0.01, 0.01)
    assert result.witness.distance == pytest.approx(RADIUS, rel=1e-3)
    blind = probed(network, instance, _Glancing(), MinimumNorm(seconds=0.0))
    assert (blind.verdict, blind.eps, blind.witness) == (Verdict.ROBUST, 0.01, None)


def test_several_instances_are_probed_together(network: Network, points_file: Path) -> None:
    data = datasets.load_spec(str(points_file))
    chosen = [i for i in select(network, data, property="one-to-any", norm=Norm.LINF) if i.holds]
    tools = Toolbox({network.fingerprint: network}, MinimumNorm(), BranchAndBound(), grid=GRID)
    with LocalWorkers(tools, jobs=1) as workers:
        workers.submit(task_of(*chosen))
        _, results = workers.wait()
    alone = [probed(network, instance, BranchAndBound()) for instance in chosen]
    assert [result.eps for result in results] == [result.eps for result in alone]
    assert len(results) > 1


def test_an_attack_without_a_quick_form_has_no_probes() -> None:
    assert Pgd().quick() is None
    assert MinimumNorm().quick() is not None
    assert MinimumNorm(stages=()).quick() is None


def test_attacks_of_a_task_end_after_their_share(network: Network, instance: Instance) -> None:
    tools = Toolbox({network.fingerprint: network}, MinimumNorm(), _Waiting(), grid=GRID)
    executor = Inline(tools)
    executor.submit(replace(task_of(instance), attack_seconds=0.0))
    _, (result,) = executor.wait()
    assert (result.verdict, result.witness) == (Verdict.UNKNOWN, None)
    assert result.seconds < 10


def test_what_can_end_early_is_limited() -> None:
    limited = MinimumNorm(seconds=3.0).within(2.0)
    assert isinstance(limited, MinimumNorm) and limited.seconds == 2.0
    assert limited.within(9.0).seconds == 2.0  # type: ignore[attr-defined]


def test_attacks_that_are_too_slow_follow_few_rows_to_their_end(
    network: Network, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    follow = Pursuit._follow

    def counted(self: Pursuit, stage: Any, rows: Any, step: Any) -> None:
        counts.append(len(rows.tasks))
        follow(self, stage, rows, step)

    monkeypatch.setattr(Pursuit, "_follow", counted)
    query = Query(instance, 0.3)
    (all_rows,) = MinimumNorm(seconds=60.0).attack(network, [query])
    monkeypatch.setattr(Pursuit, "_timed", lambda *_: 1e6)
    (few_rows,) = MinimumNorm(seconds=60.0).attack(network, [query])
    half = len(counts) // 2
    assert all(few == 1 for few in counts[half:])
    assert all(many > 1 for many in counts[:half])
    for result in (all_rows, few_rows):
        assert result.witness is not None
        assert result.witness.distance == pytest.approx(RADIUS, rel=1e-2)
