"""Trees on units of any kind: every bound holds where its splits hold, and answers agree with
dense samples and with splitting inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radii.bounds import (
    Between,
    FreeChoices,
    LinearFunctions,
    Supports,
    backward,
    fuse,
    layered,
    optimised,
    propagate,
)
from radii.networks import Interval, Network
from radii.problem import (
    Ball,
    Box,
    Domain,
    Halfspaces,
    Limits,
    LinearRequirement,
    Norm,
    Specification,
    Verdict,
)
from radii.testing import Sketch
from radii.verifiers.native._attempts import prove_by_splits
from radii.verifiers.native._candidates import Candidates
from radii.verifiers.native._session import ProofSession
from radii.verifiers.native._settings import ProofSettings, SmoothTreeSettings
from radii.verifiers.native._smooth_tree import SmoothTree

ACTIVATIONS = ("Tanh", "Sigmoid", "Relu", "Elu")


def dense_network(seed: int, activations: tuple[str, ...], inputs: int, width: int = 8) -> Network:
    """Layers of these activations behind inputs in [0, 1], and two outputs."""
    rng = np.random.default_rng(seed)
    sketch = Sketch([1, inputs])
    value, size = sketch.apply("Sub", "x", sketch.constant(np.float32(0.5))), inputs
    for activation in activations:
        weight = sketch.constant(rng.normal(0, 2.5 / np.sqrt(size), (size, width)))
        bias = sketch.constant(rng.normal(0, 0.3, width))
        value, size = sketch.apply(activation, sketch.apply("Gemm", value, weight, bias)), width
    weight = sketch.constant(rng.normal(0, 1, (size, 2)))
    return sketch.network(sketch.apply("MatMul", value, weight))


def ball(network: Network, eps: float, norm: Norm = Norm.LINF) -> Ball:
    centre = np.full(network.input_shape, 0.5)
    return Ball(centre, eps, norm, Domain(0.0, 1.0))


def points_of(network: Network, region: Ball, count: int, seed: int) -> torch.Tensor:
    """Points of a ball in Linf, half of them corners."""
    rng = np.random.default_rng(seed)
    steps = rng.uniform(-1, 1, (count, int(np.prod(network.input_shape))))
    steps[::2] = np.sign(steps[::2])
    return torch.from_numpy(region.center.ravel() + region.eps * steps).clamp(0, 1)


def question(network: Network, region: Ball, threshold: float) -> Specification:
    """That y_0 - y_1 stays above a threshold."""
    violation = Halfspaces(np.array([[1.0, -1.0]]), np.array([-threshold]))
    return Specification(region, LinearRequirement((violation,)))


def least_difference(network: Network, region: Ball) -> float:
    """What descents from many points find of y_0 - y_1: an upper bound of its least value."""
    points = points_of(network, region, 512, 7)
    low, high = region.box()
    sides = [torch.from_numpy(side.ravel().copy()) for side in (low, high)]
    step, least = 0.2 * region.eps, torch.full((len(points),), torch.inf, dtype=torch.float64)
    for _ in range(60):
        leaf = points.clone().requires_grad_()
        outputs = network(leaf.reshape(-1, *network.input_shape)).reshape(len(leaf), -1)
        values = outputs[:, 0] - outputs[:, 1]
        (gradient,) = torch.autograd.grad(values.sum(), leaf)
        least = torch.minimum(least, values.detach())
        points = torch.minimum(torch.maximum(points - step * gradient.sign(), sides[0]), sides[1])
        step *= 0.93
    return float(least.min())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(24))
def test_bounds_hold_wherever_the_split_intervals_hold(seed: int) -> None:
    """With any lines and any multipliers, for all points whose arguments lie in the intervals."""
    rng = np.random.default_rng(seed)
    names = tuple(rng.choice(ACTIVATIONS, 3).tolist())
    network = dense_network(seed, names, 6)
    region = ball(network, 0.3)
    ready = layered(fuse(network))
    generator = torch.Generator().manual_seed(seed)
    plain = propagate(ready, Supports.of([region]))
    points = points_of(network, region, 20_000, seed)
    known, inside = [], torch.ones(len(points), dtype=torch.bool)
    values = {0: points}
    for number, layer in enumerate(ready.layers):
        given = layer.offset + sum(held.pushed(values[s]) for s, held in layer.maps.items())
        values[layer.node] = layer.operator(given)
        low, high = plain.arguments[number].low.clone(), plain.arguments[number].high.clone()
        unit = int(torch.randint(layer.size, (1,), generator=generator))
        cut = float(given[inside, unit].median())
        (low if number % 2 else high)[0, unit] = cut
        inside &= (given >= low[0]).all(1) & (given <= high[0]).all(1)
        known.append(Interval(low, high))
    assert inside.sum() > 100
    state = propagate(ready, Supports.of([region]), backward, known)
    _, loss = ready.output.arguments(state.values, state.errors)
    matrix = torch.tensor([[[1.0, -1.0], [-1.0, 2.0]]], dtype=torch.float64)
    rows = LinearFunctions.of_functions(ready.output, loss, torch.tensor([0]), matrix)
    start = FreeChoices.start(state, rows)
    for held in start.lines.values():
        held.uniform_(generator=generator)
    between = {}
    for number, layer in enumerate(ready.layers):
        sides = [torch.rand(1, 2, layer.size, generator=generator).double() for _ in range(2)]
        between[number] = Between(torch.arange(layer.size), *sides)
    random = FreeChoices(start.lines, between)
    outputs = network(points[inside].reshape(-1, *network.input_shape)).reshape(-1, 2)
    least = (outputs @ matrix[0].T).amin(0)
    best, kept = optimised(state, rows, random, 5)
    for bounds in (
        backward(state, rows, random.lines, random.between),
        best,
        backward(state, rows, kept.lines, kept.between),
    ):
        assert (bounds.values[0] <= least).all()
    assert (best.values >= backward(state, rows, random.lines, random.between).values).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L2, Norm.L1])
@pytest.mark.parametrize("seed", range(8))
def test_answers_agree_with_descents(seed: int, norm: Norm) -> None:
    """What holds with room to spare is proven; what descents break never is."""
    network = dense_network(seed, ("Tanh", "Sigmoid"), 4, width=6)
    region = ball(network, 0.2, norm)
    around = ball(network, 0.2)
    least = least_difference(network, around)
    session = ProofSession(network)
    false = prove_by_splits(session, question(network, around, least + 1e-4), Limits(60))
    assert false.answer.verdict is not Verdict.ROBUST
    true = prove_by_splits(session, question(network, region, least - 0.05), Limits(60))
    assert true.answer.verdict is Verdict.ROBUST


def test_splits_prove_what_the_root_does_not() -> None:
    """Close below the least value, the tree has to be cut, and ends."""
    network = dense_network(3, ("Tanh", "Tanh"), 14, width=6)
    region = ball(network, 0.1)
    least = least_difference(network, region)
    session = ProofSession(network)
    spec = question(network, region, least - 0.02)
    root = prove_by_splits(session, spec, Limits(60), branches=False)
    assert root.answer.verdict is Verdict.UNKNOWN
    tree = prove_by_splits(session, spec, Limits(120))
    assert tree.answer.verdict is Verdict.ROBUST


def test_a_counterexample_of_the_tree_is_replayed() -> None:
    network = dense_network(5, ("Sigmoid", "Tanh"), 14)
    region = ball(network, 0.3)
    spec = question(network, region, least_difference(network, region) + 1e-3)
    found = prove_by_splits(ProofSession(network), spec, Limits(60))
    assert found.answer.verdict is Verdict.NOT_ROBUST
    assert found.witness is not None


def test_open_nodes_that_do_not_fit_into_memory_are_taken_depth_first() -> None:
    """The answer is the same with room for a handful of nodes."""
    network = dense_network(3, ("Tanh", "Tanh"), 14, width=6)
    region = ball(network, 0.1)
    spec = question(network, region, least_difference(network, region) - 0.05)
    smooth = SmoothTreeSettings(memory_bytes=1, nodes_at_once=4)
    session = ProofSession(network, settings=ProofSettings(smooth=smooth))
    assert prove_by_splits(session, spec, Limits(120)).answer.verdict is Verdict.ROBUST


def test_a_box_and_several_rows_at_once() -> None:
    """A violation of two rows is excluded where either row is, and by different ones at different
    nodes."""
    network = dense_network(9, ("Tanh",), 13)
    box = Box(np.full(network.input_shape, 0.45), np.full(network.input_shape, 0.55))
    low = ball(network, 0.05)
    least = least_difference(network, low)
    rows = np.array([[1.0, -1.0], [-1.0, 1.0]])
    never = Halfspaces(rows, np.array([-least + 0.1, least + 0.1]))
    spec = Specification(box, LinearRequirement((never,)))
    assert prove_by_splits(ProofSession(network), spec, Limits(60)).answer.verdict is Verdict.ROBUST


def test_a_tree_that_has_not_begun_or_may_not_branch_proves_nothing() -> None:
    network = dense_network(3, ("Tanh", "Tanh"), 14, width=6)
    region = ball(network, 0.1)
    spec = question(network, region, least_difference(network, region) + 1.0)
    session = ProofSession(network)
    for limits, branches in ((Limits(0.0), True), (Limits(0.0), False), (Limits(60.0), False)):
        answer = prove_by_splits(session, spec, limits, branches=branches).answer
        assert answer.verdict is not Verdict.ROBUST
    tree = SmoothTree(
        fuse(network),
        region,
        spec.requirement.violations or (),
        Candidates(network, spec),
        Limits(60.0),
    )
    assert not tree.is_proven


def clause_network(clauses: np.ndarray, variables: int) -> Network:
    """y_0 = 1 - the sum of what clauses miss, y_1 = how far the inputs are from 0 and 1.

    Clauses are rows of literals: k for variable k - 1, -k for its negation.
    """
    weight = np.zeros((variables, variables + len(clauses)))
    bias = np.concatenate([-np.ones(variables), np.ones(len(clauses))])
    weight[:, :variables] = 2 * np.eye(variables)
    for place, clause in enumerate(clauses, start=variables):
        for literal in clause:
            weight[abs(literal) - 1, place] -= np.sign(literal)
            bias[place] -= literal < 0
    sketch = Sketch([1, variables])
    hidden = sketch.apply("Gemm", "x", sketch.constant(weight), sketch.constant(bias))
    out = np.zeros((variables + len(clauses), 2))
    out[variables:, 0], out[:variables, 1] = -1, -1
    missed = sketch.apply("MatMul", sketch.apply("Relu", hidden), sketch.constant(out))
    sums = sketch.apply("MatMul", "x", sketch.constant(np.tile([[0.0, 1.0]], (variables, 1))))
    both = sketch.apply("Add", missed, sums)
    return sketch.network(sketch.apply("Add", both, sketch.constant(np.array([[1.0, 0.0]]))))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(24))
def test_clauses_are_decided_as_by_exhaustion(seed: int) -> None:
    """A violation of both rows is an assignment that satisfies all clauses."""
    rng = np.random.default_rng(seed)
    variables, count = 8, 34
    names = np.stack([rng.choice(variables, 3, replace=False) + 1 for _ in range(count)])
    clauses = names * rng.choice([-1, 1], names.shape)
    every = (np.arange(2**variables)[:, None] >> np.arange(variables)) & 1 == 1
    literals = every[:, np.abs(clauses) - 1] == (clauses > 0)
    is_satisfiable = bool(literals.any(2).all(1).any())
    network = clause_network(clauses, variables)
    rows = Halfspaces(np.array([[-1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0]))
    box = Box(np.zeros(variables), np.ones(variables))
    spec = Specification(box, LinearRequirement((rows,)))
    answer = prove_by_splits(ProofSession(network), spec, Limits(60)).answer
    assert answer.verdict is (Verdict.NOT_ROBUST if is_satisfiable else Verdict.ROBUST)
