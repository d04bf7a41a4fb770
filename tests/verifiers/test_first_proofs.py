"""Proofs that come early, and goals that rounding keeps out of reach."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from radii.attacks import get
from radii.bounds import CrownPasses, fuse
from radii.networks import Network
from radii.problem import (
    FLOAT,
    REAL,
    Anchor,
    Ball,
    Box,
    Grid,
    Halfspaces,
    Instance,
    LinearRequirement,
    Property,
    Query,
    Specification,
    Verdict,
    check_witness,
)
from radii.runs import Inline, Toolbox, drive
from radii.strategy import BudgetAgenda, Case, Native, Schedule, ScheduleLimits
from radii.testing import NetworkFamily, random_instance, random_network
from radii.verifiers import BranchAndBound, Limits, Milp
from radii.verifiers._base import Answer
from radii.verifiers.native import _attempts as proving
from radii.verifiers.native import _verifier as verifier
from radii.verifiers.native._climb import Climb
from radii.verifiers.native._crown_proofs import crown_margin
from radii.verifiers.native._nodes import Frontier, Nodes
from radii.verifiers.native._patience import Patience
from radii.verifiers.native._session import PassDuration, ProofSession
from radii.verifiers.native._settings import ProofSettings

SEEDS = range(6)
BROKEN = (0, 1, 2, 4)
"""Seeds of inputs that hold, with a violation in reach."""


LARGE = ProofSettings(splittable_inputs=0, crown_first_units=0)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small networks pass for large ones, and none for one of few inputs."""
    monkeypatch.setattr(BranchAndBound, "settings", LARGE)


def convolutional(seed: int) -> tuple[Network, Instance, float]:
    """A network, an input that it classifies, and the exact radius of that, from above."""
    network = random_network(NetworkFamily.CONVOLUTIONAL, seed, units=30)
    instance = random_instance(network, seed)
    return network, instance, Milp().radius(network, instance, Limits(60.0)).upper


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_glance_proves_what_crown_does_and_nothing_beyond_the_radius(seed: int) -> None:
    network, instance, radius = convolutional(seed)
    native, session = BranchAndBound(), ProofSession(network, settings=LARGE)
    for factor in (0.01, 0.3, 0.7, 1.001, 1.5):
        eps = factor * radius
        margin = crown_margin(session, Query(instance, eps).specification)
        result = native.certify_least(network, instance, eps, Limits(20.0))
        assert (result.proof is not None) == (margin > 0)
        assert not (margin > 0 and factor > 1)
        if result.proof is not None:
            assert (result.verdict, result.proof.eps) == (Verdict.ROBUST, eps)
            assert result.proof.arithmetic == FLOAT
    assert crown_margin(session, Query(instance, 0.01 * radius).specification) > 0


def test_small_networks_are_not_glanced_at() -> None:
    network, instance, radius = convolutional(0)
    result = BranchAndBound().certify_least(network, instance, radius / 100, Limits(20.0))
    assert (result.verdict, result.proof) == (Verdict.UNKNOWN, None)


@pytest.mark.usefixtures("large")
def test_a_climb_does_not_repeat_a_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    network, instance, radius = convolutional(1)
    values = [radius / 100, radius / 2]
    native = BranchAndBound()
    assert native.certify_least(network, instance, values[0], Limits(20.0)).proof is not None
    asked: list[float] = []

    def counted(session: object, specification: object, *rest: object, **more: object) -> float:
        asked.append(specification.region.eps)  # type: ignore[attr-defined]
        return crown_margin(session, specification, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(verifier, "crown_margin", counted)
    result = native.certify(network, instance, values, Limits(20.0))
    assert result.proof is not None
    assert result.proof.eps >= values[0]
    assert values[0] not in asked
    other = BranchAndBound(arithmetic=REAL)
    assert other.certify_least(network, instance, values[0], Limits(20.0)).proof is not None
    assert values[0] in asked


@pytest.mark.usefixtures("large")
def test_where_crown_would_be_cut_off_intervals_and_earlier_proofs_still_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, instance, radius = convolutional(2)
    native, values = BranchAndBound(), [radius / 8, radius / 4]

    def margin(*asked: object, on_intervals: bool = False, **_: object) -> float:
        """Intervals prove the first value, CROWN the second."""
        assert isinstance(asked[1], Specification)
        assert isinstance(asked[1].region, Ball)
        return radius / (7 if on_intervals else 3) - asked[1].region.eps

    monkeypatch.setattr(verifier, "crown_margin", margin)
    PassDuration.of(network).seconds = 30.0
    short = native.certify(network, instance, values, Limits(20.0))
    assert short.proof is not None
    assert short.proof.eps == values[0]
    assert short.ran_out_of_time
    PassDuration.of(network).seconds = 0.0
    assert native.certify_least(network, instance, values[1], Limits(20.0)).proof is not None
    PassDuration.of(network).seconds = 30.0
    again = native.certify(network, instance, values, Limits(20.0))
    assert again.proof is not None
    assert again.proof.eps == values[1]


@pytest.mark.usefixtures("large")
def test_a_budget_asks_again_where_a_climb_had_no_time_to_begin() -> None:
    network = random_network(NetworkFamily.CONVOLUTIONAL, 2, units=30)
    instance, grid = random_instance(network, 2), Grid("0.001", "0.2", "0.004")
    PassDuration.of(network).seconds = 2.0  # as of a larger eps, or of a busy moment
    toolbox = Toolbox({network.fingerprint: network}, get("pgd:steps=5"), BranchAndBound(), 0, grid)
    case = Case(instance, Native(grid), 0)
    with Inline(toolbox) as executor:
        drive(
            Schedule(
                [case], ScheduleLimits(timeout=60.0), BudgetAgenda(20.0), now=time.monotonic()
            ),
            executor,
            on_results=lambda _: None,
            on_finished=lambda _: None,
        )
    assert case.search.bracket.lower > 0.1


def test_the_latest_bounds_are_those_of_what_is_asked_for() -> None:
    network, instance, radius = convolutional(3)
    fusion, ball = fuse(network), instance.ball(radius / 4)
    passes = CrownPasses()
    state = passes.state(fusion, [ball])
    assert passes.state(fusion, [instance.ball(radius / 4)]) is state
    assert passes.state(fusion, [ball], REAL) is not state
    state = passes.state(fusion, [ball])
    cut_off = passes.state(fusion, [instance.ball(radius / 2)], limits=Limits(0.0))
    assert passes.state(fusion, [ball]) is state
    wider = passes.state(fusion, [instance.ball(radius / 2)])
    assert wider is not cut_off
    assert passes.state(fusion, [Box(*ball.box())]) is not wider
    points = np.random.default_rng(0).uniform(*ball.box(), (100, *ball.shape))
    network64 = network.graph.in_dtype(torch.float64)
    outputs = network64(torch.from_numpy(points).reshape(-1, *network.input_shape))
    held, _ = wider.network.output.arguments(wider.values, wider.errors)
    assert bool(((outputs >= held.low) & (outputs <= held.high)).all())


@pytest.mark.usefixtures("large")
def test_a_region_whose_arrays_have_changed_is_another_one() -> None:
    network, instance, radius = convolutional(0)
    low, high = (np.array(side) for side in instance.ball(radius / 100).box())
    asked = Specification(Box(low, high), instance.requirement)
    native = BranchAndBound()
    assert native.decide(network, asked, Limits(20.0))[0].verdict is Verdict.ROBUST
    low[:], high[:] = instance.ball(1.1 * radius).box()
    assert native.decide(network, asked, Limits(20.0))[0].verdict is not Verdict.ROBUST


def test_threads_do_not_get_the_latest_bounds_of_one_another() -> None:
    network, instance, radius = convolutional(3)
    fusion, passes = fuse(network), CrownPasses()
    balls = [instance.ball(part * radius) for part in (0.1, 0.5)]

    def highest(ball: Ball) -> list[float]:
        return [float(passes.state(fusion, [ball]).arguments[0].high[0, 0]) for _ in range(300)]

    alone = [highest(ball)[0] for ball in balls]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(highest, balls * 2))
    assert [set(each) for each in found] == [{alone[0]}, {alone[1]}] * 2


@pytest.mark.parametrize("zero", [0.0015, 0.02, 0.133])
@pytest.mark.parametrize("power", [1, 2, 6])
def test_a_margin_at_zero_saves_values_that_cannot_be_proven(zero: float, power: int) -> None:
    values, asked = list(Grid("0.001", "0.4", "0.002")), []

    def margin(eps: float) -> float:
        asked.append(eps)
        return 3.0 * (1 - (eps / zero) ** power)

    climb = Climb(values, no_proof, lambda: 60.0)
    climb.rise(margin, at_zero=3.0)
    assert climb.lower == max(value for value in values if value < zero)
    saving = len(asked)
    asked.clear()
    Climb(values, no_proof, lambda: 60.0).rise(margin)
    assert saving <= len(asked)
    if zero < values[1] and power == 1:
        assert saving == 1


def no_proof(*_: object) -> proving.ProofAttempt:
    return proving.ProofAttempt(Answer(Verdict.UNKNOWN))


@pytest.mark.parametrize("reach", [0, 1, 30, 198])
@pytest.mark.parametrize("goal", [199, 60])
def test_a_climb_goes_on_right_below_what_is_unprovable(reach: int, goal: int) -> None:
    """All values up to `reach` can be proven, and the next ones up to the goal by no means."""
    values, tried = list(Grid("0.001", "0.4", "0.002"))[: goal + 1], []
    reach = min(reach, goal)

    def prove(
        eps: float, frontier: Frontier | None, patience: Patience, branches: bool
    ) -> proving.ProofAttempt:
        tried.append(eps)
        is_proven = eps <= values[reach]
        answer = Answer(
            Verdict.ROBUST if is_proven else Verdict.UNKNOWN, message="" if is_proven else "why"
        )
        return proving.ProofAttempt(answer, is_unprovable=not is_proven)

    climb = Climb(values, prove, lambda: 60.0)
    climb.run()
    assert climb.lower == values[reach]
    assert climb.is_closed == (reach == len(values) - 1)
    assert climb.message == ("" if climb.is_closed else "why")
    assert tried == values[reach:][::-1]


@pytest.mark.parametrize("closed_share", [0.0, 0.5])
def test_a_goal_of_which_a_probe_closed_nothing_is_not_tried_first(closed_share: float) -> None:
    """The root alone proves up to a fifth of the values, branching up to a quarter."""
    network = random_network(NetworkFamily.DENSE, 0, units=20)
    ball = random_instance(network, 0).ball(0.1)
    roots = Nodes.roots(-torch.ones(1), torch.ones(1), 1, 1)
    left = Frontier(roots, torch.arange(1), ball, closed_share=closed_share)
    values, tried = list(Grid("0.001", "0.2", "0.002")), []

    def prove(
        eps: float, frontier: Frontier | None, patience: Patience, branches: bool
    ) -> proving.ProofAttempt:
        tried.append((eps, branches))
        is_proven = eps <= values[25 if branches else 20]
        return proving.ProofAttempt(Answer(Verdict.ROBUST if is_proven else Verdict.UNKNOWN))

    climb = Climb(values, prove, lambda: 60.0)
    climb.frontiers = {values[-1]: left}
    climb.run()
    assert climb.lower == values[25]
    assert ((values[-1], True) in tried) == (closed_share > 0)
    assert tried[0] == ((values[49], False) if closed_share == 0 else (values[-1], True))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("family", [NetworkFamily.DENSE, NetworkFamily.CONVOLUTIONAL])
@pytest.mark.parametrize("seed", BROKEN)
def test_a_goal_within_rounding_of_the_radius_costs_little(
    family: NetworkFamily, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BranchAndBound, "settings", ProofSettings(splittable_inputs=0))
    network = random_network(family, seed, units=30)
    instance = random_instance(network, seed)
    radius = Milp().radius(network, instance, Limits(60.0)).optimum
    assert radius is not None
    values = [0.5 * radius, 0.99 * radius, (1 - 1e-9) * radius]
    tried: list[float] = []
    attempt = proving.prove_by_units

    def counted(*given: object, **more: object) -> proving.ProofAttempt:
        tried.append(given[1].region.eps)  # type: ignore[attr-defined]
        return attempt(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(verifier, "prove_by_units", counted)
    result = BranchAndBound().certify(network, instance, values, Limits(60.0))
    assert result.proof is not None
    assert result.proof.eps == 0.99 * radius
    assert len(tried) <= 3
    assert result.witness is None or result.witness.distance >= 0.99 * radius


@pytest.mark.parametrize("seed", BROKEN)
def test_what_is_called_unprovable_has_an_input_that_rounding_could_break(seed: int) -> None:
    """Below the radius by far more than rounding nothing is; right below it everything is."""
    network = random_network(NetworkFamily.DENSE, seed, units=30)
    instance = random_instance(network, seed)
    radius = Milp().radius(network, instance, Limits(60.0)).optimum
    assert radius is not None
    for factor, is_unprovable in ((0.999, False), (0.9999, False), (1 - 1e-9, True)):
        query = Query(instance, factor * radius).specification
        session = ProofSession(network)
        attempt = proving.prove_by_units(session, query, Limits(60.0), stops_at_rounding=True)
        if attempt.witness is not None:  # rounding broke it
            assert check_witness(network, query, attempt.witness.input) is not None
            continue
        assert attempt.is_unprovable == is_unprovable
        assert (attempt.answer.verdict is Verdict.ROBUST) == (not is_unprovable)
        if is_unprovable:
            assert re.search("network may round", attempt.answer.message)
            assert attempt.frontier is not None and len(attempt.frontier.nodes)


class Above(Property):
    """The first output stays above a level, of which its name says nothing."""

    spec = "above"

    def __init__(self, level: float) -> None:
        self.level = level

    def at(self, anchor: Anchor) -> LinearRequirement:
        row = np.zeros(len(anchor.outputs))
        row[0] = 1.0
        return LinearRequirement((Halfspaces(row, np.array([-self.level])),))


@pytest.mark.usefixtures("large")
def test_what_is_remembered_of_a_property_is_not_taken_for_another_of_its_name() -> None:
    network = random_network(NetworkFamily.CONVOLUTIONAL, 0, units=30)
    far, near = (
        replace(random_instance(network, 0), property=Above(float(level)))
        for level in random_instance(network, 0).outputs[0] - np.array([100.0, 1e-6])
    )
    native, eps = BranchAndBound(), 0.1
    assert native.certify(network, far, [eps], Limits(20.0)).proof is not None
    broken = check_witness(network, Query(near, eps).specification, near.input + 0.05)
    other = check_witness(network, Query(near, eps).specification, near.input - 0.05)
    assert broken is not None or other is not None
    assert native.certify(network, near, [eps], Limits(5.0)).proof is None
