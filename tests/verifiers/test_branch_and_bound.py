"""The native verifier: the suite of all verifiers, exact radii, and its own parts."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from radii.bounds import Multipliers, Rows, evaluate, fuse, improve, relu_form
from radii.errors import SpecificationError
from radii.networks import Network
from radii.problem import (
    FLOAT,
    REAL,
    UNLIMITED,
    Arithmetic,
    Box,
    Grid,
    Halfspaces,
    LinearRequirement,
    Norm,
    OneToOne,
    Query,
    Result,
    Specification,
    Verdict,
)
from radii.processes import Ending
from radii.testing import (
    NetworkFamily,
    Sketch,
    VerifierConformance,
    instance_at,
    random_instance,
    random_network,
)
from radii.verifiers import BranchAndBound, Enumeration, Limits, Milp, RadiusVerifier, Verifier
from radii.verifiers._base import Answer
from radii.verifiers.native import _attempts as proving
from radii.verifiers.native._climb import Climb
from radii.verifiers.native._crown_proofs import crown_margin
from radii.verifiers.native._nodes import Frontier, Nodes, StoredMultipliers
from radii.verifiers.native._patience import Patience, TrialTime
from radii.verifiers.native._reduction import PossibleOverflow, Reduction, reduce
from radii.verifiers.native._session import ProofSession
from radii.verifiers.native._settings import ProofSettings, SplitSettings, TreeSettings
from radii.verifiers.native._splits import best_splits
from radii.verifiers.native._tree import Idleness, Tree


class Blind:
    """Sees no counterexample, so that a tree goes on."""

    def try_points(self, points: Tensor) -> bool:
        return False

    def margins(self, points: Tensor) -> Tensor:
        return torch.full((len(points),), math.inf)


SEEDED = range(40)
LONG = range(2000)
NEAR = ((0.9, 0.999), (1.001, 1.1))
"""Factors of the exact radius, below and above it."""
FAR_TOO = ((0.5, *NEAR[0]), (*NEAR[1], 2.0))


class TestBranchAndBound(VerifierConformance):
    def make(self) -> Verifier:
        return BranchAndBound()


def oracle(norm: Norm) -> RadiusVerifier:
    return Enumeration(max_units=40) if norm is Norm.L2 else Milp()


def agrees_with_the_exact_radius(
    seed: int,
    factors: tuple[tuple[float, ...], tuple[float, ...]] = FAR_TOO,
    *,
    units: int = 30,
) -> None:
    """Never ROBUST above the exact radius, never NOT_ROBUST below it; decided away from it."""
    family = list(NetworkFamily)[seed % len(NetworkFamily)]
    norm = list(Norm)[seed // len(NetworkFamily) % 3]
    network = random_network(family, seed, units=10 if norm is Norm.L2 else units)
    instance = random_instance(network, seed, norm=norm)
    if seed % 5 == 0:
        rival = (instance.label + 1) % network.output_size
        instance = instance_at(network, instance.input, norm=norm, property=OneToOne(rival))
    if not instance.holds:
        return
    exact = oracle(norm).radius(network, instance, Limits(60.0))
    native = BranchAndBound()
    below, above = factors
    for factor in below:
        result = native.verify(network, Query(instance, factor * exact.lower), Limits(60.0))
        assert result.verdict is not Verdict.NOT_ROBUST
        if factor <= 0.9 and norm is not Norm.L2 and exact.lower > 0:
            assert result.verdict is Verdict.ROBUST
    if exact.witness is None:
        return
    for factor in above:
        result = native.verify(network, Query(instance, factor * exact.upper), Limits(60.0))
        assert result.verdict is not Verdict.ROBUST
        if factor >= 1.1:
            assert result.verdict is Verdict.NOT_ROBUST


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", SEEDED)
def test_agrees_with_the_exact_radius(seed: int) -> None:
    agrees_with_the_exact_radius(seed, NEAR, units=20)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(0, 105, 7))
def test_agrees_where_crown_is_tried_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BranchAndBound, "settings", ProofSettings(crown_first_units=0))
    agrees_with_the_exact_radius(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(LONG), 100))
def test_agrees_with_the_exact_radius_at_length(start: int) -> None:
    for seed in LONG[start : start + 100]:
        agrees_with_the_exact_radius(seed)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("family", list(NetworkFamily))
@pytest.mark.parametrize("norm", list(Norm))
def test_certified_brackets_hold_the_exact_radius(family: NetworkFamily, norm: Norm) -> None:
    network = random_network(family, 7, units=10)
    instance = random_instance(network, 7, norm=norm)
    exact = oracle(norm).radius(network, instance, Limits(60.0))
    values = list(Grid("0.02", "2", "0.02"))
    result = BranchAndBound().certify(network, instance, values, Limits(300.0, cpu_seconds=5.0))
    lower = result.proof.eps if result.proof else 0.0
    assert lower <= exact.upper
    if result.witness is not None:
        assert result.witness.distance >= exact.lower
        assert lower < result.witness.distance
    if result.verdict is Verdict.ROBUST and norm is not Norm.L2 and exact.upper < 1.9:
        assert lower >= exact.lower / 2


@pytest.mark.parametrize("family", list(NetworkFamily))
def test_the_relu_form_computes_the_network(family: NetworkFamily) -> None:
    network = random_network(family, 3, units=20)
    form = relu_form(fuse(network))
    inputs = np.random.default_rng(0).uniform(0, 1, (50, *network.input_shape))
    columns = np.hstack([inputs.reshape(50, -1), np.ones((50, 1))])
    for layer in form.layers:
        columns = np.hstack([columns, np.maximum(0, (layer @ columns.T).T)])
    expected = network(torch.from_numpy(inputs)).numpy()
    assert np.allclose((form.output @ columns.T).T, expected, atol=1e-9)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("family", list(NetworkFamily))
def test_bounds_enclose_samples_and_improve(family: NetworkFamily, norm: Norm) -> None:
    """CROWN's values, then better ones; samples of the ball never lie below either."""
    network = random_network(family, 5, units=20)
    instance = random_instance(network, 5, norm=norm)
    ball = instance.ball(0.3)
    violations = instance.requirement.violations
    assert violations is not None
    reduction = reduce(relu_form(fuse(network)), ball, violations)
    count = reduction.layers.spec_rows
    rows = Rows(
        reduction.lower.expand(count, -1), reduction.upper.expand(count, -1), torch.arange(count)
    )
    first = Multipliers.start(rows, parts=1)
    crown = evaluate(reduction.layers, rows, first).values
    better, _ = improve(reduction.layers, rows, first, 20)
    alpha = evaluate(reduction.layers, rows, better).values
    assert bool((alpha >= crown - 1e-9).all())
    points = ball.sample(np.random.default_rng(1), 10_000)
    inside = np.array([ball.distance(point) <= ball.eps for point in points])
    outputs = network(torch.from_numpy(points[inside])).numpy()
    for polyhedron, bound in zip(violations, alpha.tolist(), strict=True):
        assert polyhedron.depth(outputs).min() >= bound


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_a_frontier_proves_what_a_fresh_tree_proves(seed: int) -> None:
    """Open nodes of a larger ball, taken to a smaller one: proven there exactly if it is robust."""
    network = random_network(NetworkFamily.DENSE, seed, units=30)
    instance = random_instance(network, seed)
    exact = Milp().radius(network, instance, Limits(60.0))
    if exact.witness is None or exact.lower == 0:
        pytest.skip("this instance cannot be broken")
    above = Query(instance, 1.2 * exact.upper).specification
    form = relu_form(fuse(network))
    violations = instance.requirement.violations
    assert violations is not None
    larger = reduce(form, above.region, violations)
    tree = Tree(larger, Blind(), Limits(cancelled=lambda: tree.visited >= 40))
    tree.start()
    tree.grow()
    assert not tree.is_proven
    left = Frontier(tree.left, larger.names, larger.region)
    for factor, is_robust in ((0.98, True), (1.02, False)):
        eps = factor * (exact.lower if is_robust else exact.upper)
        smaller = reduce(form, Query(instance, eps).specification.region, violations)
        again = Tree(smaller, Blind(), UNLIMITED, begun=left.within(smaller))
        again.start()
        again.grow()
        assert again.is_proven is is_robust
    beyond = reduce(form, Query(instance, 1.3 * exact.upper).specification.region, violations)
    with pytest.raises(ValueError, match="not within"):
        left.within(beyond)


def test_trials_of_cheap_nodes_get_time_by_what_they_close() -> None:
    """Beside rich nodes that close a tenth of the tree a second."""
    helpful, useless = TrialTime(), TrialTime()
    for trials, closed in ((helpful, 0.5), (useless, 0.0)):
        for _ in range(10):
            trials.earn(1.0, 0.1)
            trials.spend(1.0, closed)
    assert helpful.share == 16.0
    assert useless.share == 1 / 32


@pytest.mark.parametrize("seed", range(4))
def test_a_trial_loses_no_part_of_its_nodes(seed: int) -> None:
    """What it neither closed nor kept in parts is there as it was."""
    network = random_network(NetworkFamily.DENSE, seed, units=30)
    instance = random_instance(network, seed)
    violations = instance.requirement.violations
    assert violations is not None
    reduction = reduce(relu_form(fuse(network)), instance.ball(0.4), violations)
    tree = Tree(reduction, Blind(), Limits(cancelled=lambda: tree.visited >= 30))
    nodes = tree.bounded(tree.open)
    tree.trial_time.seconds = 60.0
    failed, parts = tree.tried(nodes)
    assert tree.visited >= 30 or not len(failed)
    for spec, share in zip(nodes.spec.tolist(), nodes.share.tolist(), strict=True):
        has_failed = bool((failed.spec == spec).any())
        left = float(parts.share[parts.spec == spec].sum())
        assert (left == 0) if has_failed else (left <= 0.25 * share)
    assert bool((parts.signs != 0).any(1).all())


def test_units_that_never_move_are_not_asked_for_until_that_is_long_ago() -> None:
    idleness = Idleness.of(3)
    asked = torch.tensor([[True, True, False]] * 16)
    moves = torch.tensor([[True, False, False]] * 16)
    for _ in range(4):
        idleness.note(asked, moves)
    assert idleness.is_idle.tolist() == [False, True, False]
    for _ in range(40):
        idleness.note(asked & moves, moves)
    assert not bool(idleness.is_idle.any())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arithmetic", [FLOAT, REAL])
@pytest.mark.parametrize("seed", range(3))
def test_splits_chosen_by_probes_decide_as_the_exact_radius_does(
    seed: int, arithmetic: Arithmetic
) -> None:
    """Probes at every batch, and always followed: they choose where to split, and prove nothing."""
    eager = SplitSettings(probed_from=0, probe_share=math.inf, least_rule_share=math.inf)
    network = random_network(NetworkFamily.DENSE, seed, units=30)
    instance = random_instance(network, seed)
    exact = Milp().radius(network, instance, Limits(60.0))
    if exact.witness is None or exact.lower == 0:
        pytest.skip("this instance cannot be broken")
    form, violations = relu_form(fuse(network)), instance.requirement.violations
    assert violations is not None
    for eps, is_robust in ((0.98 * exact.lower, True), (1.02 * exact.upper, False)):
        region = Query(instance, eps).specification.region
        reduction = reduce(form, region, violations, arithmetic=arithmetic)
        limit = math.inf if is_robust else 200
        limits = Limits(cancelled=lambda: tree.visited >= limit)  # noqa: B023
        tree = Tree(reduction, Blind(), limits, settings=TreeSettings(splits=eager))
        tree.start_cheaply()
        tree.grow()
        assert tree.is_proven is is_robust


def test_a_node_without_splits_outlives_those_beside_it() -> None:
    """Nodes that were bounded together with split ones, which are then closed."""
    network = random_network(NetworkFamily.DENSE, 3, units=30)
    instance = random_instance(network, 3)
    violations = instance.requirement.violations
    assert violations is not None
    reduction = reduce(relu_form(fuse(network)), instance.ball(0.4), violations)
    tree = Tree(reduction, Blind(), UNLIMITED)
    root = tree.open.pick(torch.tensor([0]))
    nodes = Nodes.join(root.split(best_splits(tree.layers32, root, 1000)), root)
    memory = StoredMultipliers(nodes, nodes.is_open_unit)
    last = torch.tensor([2])
    memory.pick(last)
    tightened, _ = tree.tightened(root, memory, root.is_open_unit)
    assert bool((tightened.lower >= root.lower).all())
    assert bool((tightened.upper <= root.upper).all())
    assert bool((tightened.lower > root.lower).any())


def test_without_memory_for_the_tree_crown_proves_what_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = random_network(NetworkFamily.CONVOLUTIONAL, 1, units=30)
    instance = random_instance(network, 1)
    violations = instance.requirement.violations
    assert violations is not None
    with pytest.raises(MemoryError, match="does not fit"):
        no_memory = Limits(memory_bytes=1)
        reduce(relu_form(fuse(network)), instance.ball(0.1), violations, limits=no_memory)

    def no_room(*_: object) -> None:
        raise MemoryError("a layer does not fit")

    settings = ProofSettings(splittable_inputs=0, crown_first_units=0)
    monkeypatch.setattr(BranchAndBound, "settings", settings)
    monkeypatch.setattr(proving, "reduce", no_room)
    values = list(Grid("0.001", "2", "0.001"))
    said: list[Result] = []
    result = BranchAndBound().certify(network, instance, values, Limits(20.0), said.append)
    exact = Milp().radius(network, instance, Limits(60.0))
    assert result.proof is not None
    assert 0 < result.proof.eps <= exact.upper
    assert [found.eps for found in said] == sorted(found.eps for found in said)
    above = Query(instance, result.proof.eps + 0.001).specification
    assert not crown_margin(ProofSession(network, settings=settings), above) > 0


def headed_network(final: str) -> Network:
    """16 inputs, two layers of 20 units and three classes; `final` behind them."""
    rng = np.random.default_rng(4)
    sketch = Sketch([1, 16])
    value, width = "x", 16
    for size in (20, 20):
        weight = sketch.constant(rng.normal(0, np.sqrt(2 / width), (width, size)))
        value, width = sketch.apply("Relu", sketch.apply("MatMul", value, weight)), size
    value = sketch.apply("MatMul", value, sketch.constant(rng.normal(0, 0.3, (width, 3))))
    return sketch.network(sketch.apply(final, value, axis=1) if final else value)


@pytest.mark.parametrize("final", ["Softmax", "LogSoftmax"])
def test_a_final_softmax_changes_no_verdict(final: str) -> None:
    bare, headed = headed_network(""), headed_network(final)
    x = np.random.default_rng(1).uniform(0.3, 0.7, bare.input_shape)
    exact = Milp().radius(bare, instance_at(bare, x), Limits(60.0))
    assert exact.witness is not None
    instance = instance_at(headed, x)
    below = BranchAndBound().verify(headed, Query(instance, 0.98 * exact.lower), Limits(30.0))
    above = BranchAndBound().verify(headed, Query(instance, 1.02 * exact.upper), Limits(30.0))
    assert (below.verdict, above.verdict) == (Verdict.ROBUST, Verdict.NOT_ROBUST)


def test_a_time_limit_still_leaves_a_proven_radius() -> None:
    """A goal that cannot be proven in time costs no more than most of it."""
    network = random_network(NetworkFamily.CONVOLUTIONAL, 3, units=200)
    instance = random_instance(network, 3)
    values = [0.001 * step for step in range(1, 400)]
    started, limits = time.process_time(), Limits(300.0, cpu_seconds=4.0)
    result = BranchAndBound().certify(network, instance, values, limits)
    assert time.process_time() - started < 8
    assert result.proof is not None
    upper = math.inf if result.witness is None else result.witness.distance
    is_open = any(result.proof.eps < value < upper for value in values)
    assert result.ran_out_of_time == is_open


@pytest.mark.parametrize("fits", [0.0, 0.01])
def test_a_climb_that_memory_stopped_says_so(monkeypatch: pytest.MonkeyPatch, fits: float) -> None:
    """Also beside a smaller value that did fit: larger ones are worth another try with more."""
    network = random_network(NetworkFamily.CONVOLUTIONAL, 3, units=200)
    instance = random_instance(network, 3)
    values = [0.005 * step for step in range(1, 60)]

    def reduced(*args: Any) -> Reduction:
        if args[2].region.eps > fits:
            raise MemoryError("a layer of 200 units does not fit")
        return _reduced(*args)

    _reduced = proving._reduced
    monkeypatch.setattr(proving, "_reduced", reduced)
    result = BranchAndBound().certify(network, instance, values, Limits(60.0))
    assert result.ending is Ending.MEMORY_LIMIT and result.ran_out_of_memory
    assert "does not fit" in result.message
    if fits:
        assert result.proof is not None and result.proof.eps <= fits
        assert (result.verdict, result.is_partial) == (Verdict.ROBUST, True)
    else:
        assert (result.verdict, result.proof) == (Verdict.MEMOUT, None)


@pytest.mark.parametrize("verifier", [BranchAndBound(), Milp(), Enumeration()])
@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_a_query_for_which_there_is_no_memory(
    monkeypatch: pytest.MonkeyPatch, verifier: Verifier, error: Exception
) -> None:
    """torch says so with a RuntimeError."""

    def fail(*_: object) -> Answer:
        raise error

    network = random_network(NetworkFamily.DENSE, 1, units=5)
    monkeypatch.setattr(type(verifier), "run", fail)
    result = verifier.verify(network, Query(random_instance(network, 1), 0.01))
    assert (result.verdict, result.ending) == (Verdict.MEMOUT, Ending.MEMORY_LIMIT)


@pytest.mark.parametrize("zero", [0.0005, 0.0015, 0.02, 0.133, 0.39, 1.0])
@pytest.mark.parametrize("power", [1, 2, 6])
def test_a_climb_rises_to_the_zero_of_a_falling_margin(zero: float, power: int) -> None:
    values, asked, said = list(Grid("0.001", "0.4", "0.002")), [], []

    def margin(eps: float) -> float:
        asked.append(eps)
        return 3.0 * (1 - (eps / zero) ** power) if eps < 10 * zero else -math.inf

    climb = Climb(values, no_proof, lambda: 60.0, lambda found: said.append(found.lower))
    climb.rise(margin)
    assert climb.lower == max((value for value in values if value < zero), default=0.0)
    assert asked[0] == values[0]
    assert len(asked) <= 12
    assert said == sorted(said)
    above = len(asked)
    climb.rise(lambda eps: margin(eps / 1.3))
    assert climb.lower == max((value for value in values if value < 1.3 * zero), default=0.0)
    assert len(asked) - above <= 8


def no_proof(*_: object) -> proving.ProofAttempt:
    return proving.ProofAttempt(Answer(Verdict.UNKNOWN))


def test_a_climb_stops_rising_when_most_of_the_time_is_gone() -> None:
    values, left = list(Grid("0.001", "0.4", "0.002")), [100.0]

    def slow(eps: float) -> float:
        left[0] -= 20.0
        return 0.3 - eps

    climb = Climb(values, no_proof, lambda: left[0])
    climb.rise(slow)
    assert left[0] >= 30.0
    assert 0 < climb.lower < 0.3


def test_an_attempt_is_given_up_when_it_would_take_too_long() -> None:
    now = time.monotonic()
    young = Patience(100.0, started=now - 5.0)
    slow, late = Patience(100.0, started=now - 30.0), Patience(100.0, started=now - 90.0)
    assert not young.is_hopeless(0.0)
    assert slow.is_hopeless(0.4)
    assert not slow.is_hopeless(0.7)
    assert late.is_hopeless(0.99)
    assert not Patience(math.inf, started=now - 1e6).is_hopeless(0.0)


def test_numbers_that_overflow_prove_nothing() -> None:
    """Bounds of 1e308 on every input: sums are infinite or not a number, and nothing follows."""
    network = random_network(NetworkFamily.DENSE, 0, units=20)
    shape = network.input_shape
    huge = Box(np.full(shape, -1e308), np.full(shape, 1e308))
    violation = Halfspaces(np.eye(1, network.output_size), np.array([1e9]))
    for arithmetic in (FLOAT, REAL):
        with pytest.raises(PossibleOverflow):
            reduce(relu_form(fuse(network)), huge, [violation], arithmetic=arithmetic)
    specification = Specification(huge, LinearRequirement((violation,)))
    answer = proving.prove_by_units(ProofSession(network), specification, Limits(20.0)).answer
    assert answer.verdict is Verdict.UNKNOWN
    assert "may overflow" in answer.message


def test_an_unbounded_region_is_refused_in_words() -> None:
    network = random_network(NetworkFamily.DENSE, 0, units=20)
    shape = network.input_shape
    region = Box(np.full(shape, -np.inf), np.full(shape, np.inf))
    violation = Halfspaces(np.eye(1, network.output_size), np.zeros(1))
    with pytest.raises(SpecificationError):
        specification = Specification(region, LinearRequirement((violation,)))
        BranchAndBound().decide(network, specification, Limits(5.0))
