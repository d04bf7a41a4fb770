"""SR, SCR and LR as verifiers decide them, against enumeration, grids and samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from radii.networks import Network, from_torch
from radii.problem import (
    Instance,
    LipschitzRequirement,
    LipschitzRobustness,
    Norm,
    OneToAny,
    Property,
    Query,
    Result,
    Specification,
    StandardRobustness,
    StrongClassification,
    Verdict,
    log_odds,
    resolution,
)
from radii.testing import NetworkFamily, instance_at, random_network
from radii.verifiers import BranchAndBound, Enumeration, Limits, Milp, Verifier

SECONDS = 300.0
FAMILIES = (NetworkFamily.DENSE, NetworkFamily.CLIPPED, NetworkFamily.LEAKY, NetworkFamily.RESIDUAL)
VERIFIERS: tuple[Verifier, ...] = (BranchAndBound(), Milp())
POINTS = 161


def some(quick: int, seeds: int) -> list[object]:
    """All seeds; those after the first few are slow."""
    return [
        pytest.param(seed, marks=pytest.mark.slow if seed >= quick else ()) for seed in range(seeds)
    ]


def tiny(seed: int, *, outputs: int = 3) -> Network:
    return random_network(FAMILIES[seed % 4], seed, units=8, inputs=2, outputs=outputs)


def at_random(network: Network, seed: int, asked: Property, norm: Norm = Norm.LINF) -> Instance:
    point = np.random.default_rng([seed, 7]).uniform(0, 1, network.input_shape)
    return instance_at(network, point, property=asked, norm=norm, index=seed)


def decided(verifier: Verifier, network: Network, instance: Instance, eps: float) -> Result:
    result = verifier.verify(network, Query(instance, eps), Limits(SECONDS))
    assert not (
        result.witness
        and instance.requirement.holds(
            network.replay(result.witness.input[None]), result.witness.distance
        )[0]
    )
    return result


def grid_around(instance: Instance, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """A fine grid of the ball in two dimensions, and the distances of its points."""
    ball = instance.ball(eps)
    low, high = ball.box()
    axes = [np.linspace(a, b, POINTS) for a, b in zip(low.ravel(), high.ravel(), strict=True)]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    order = {Norm.LINF: np.inf, Norm.L2: 2, Norm.L1: 1}[instance.norm]
    distances = np.linalg.norm(points - ball.center.ravel(), order, axis=1)
    inside = distances <= eps
    return points[inside], distances[inside]


@pytest.mark.parametrize("verifier", VERIFIERS, ids=lambda v: v.name)
def test_a_slope_from_another_reference_is_broken_at_the_input(verifier: Verifier) -> None:
    network = tiny(0)
    instance = at_random(network, 0, LipschitzRobustness(1.0))
    elsewhere = LipschitzRequirement(1.0, np.asarray(instance.outputs, np.float64) + 1, 1e-4)
    for eps in (0.0, 0.1):
        answer, witness = verifier.decide(
            network, Specification(instance.ball(eps), elsewhere), Limits(SECONDS)
        )
        assert answer.verdict is Verdict.NOT_ROBUST
        assert witness is not None
    assert decided(verifier, network, instance, 0.0).verdict is Verdict.ROBUST


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("verifier", VERIFIERS, ids=lambda v: v.name)
def test_standard_robustness_equals_enumeration(verifier: Verifier, seed: int) -> None:
    network = tiny(seed)
    delta = float(np.random.default_rng(seed).uniform(0.05, 0.6))
    instance = at_random(network, seed, StandardRobustness(delta))
    exact = Enumeration(max_units=40).radius(network, instance, Limits(SECONDS))
    radius = exact.optimum
    if radius is None:
        assert decided(verifier, network, instance, 1.0).verdict is Verdict.ROBUST
        return
    assert decided(verifier, network, instance, 0.97 * radius).verdict is Verdict.ROBUST
    assert decided(verifier, network, instance, 1.03 * radius).verdict is Verdict.NOT_ROBUST


IN_EACH_NORM = ((0, Norm.LINF), (1, Norm.L1), (2, Norm.L2))


@pytest.mark.parametrize(
    ("seed", "norm"),
    [
        pytest.param(seed, norm, marks=() if (seed, norm) in IN_EACH_NORM else pytest.mark.slow)
        for seed in range(8)
        for norm in Norm
    ],
)
def test_lipschitz_robustness_equals_a_fine_grid(seed: int, norm: Norm) -> None:
    network, eps = tiny(seed), 0.3
    bare = at_random(network, seed, OneToAny(), norm)
    points, distances = grid_around(bare, eps)
    outputs = network.replay(points.reshape(-1, *network.input_shape).astype(np.float32))
    moved = np.abs(outputs.astype(np.float64) - bare.outputs).max(axis=1)
    far = distances > 1e-3
    steepest = float(((moved - resolution(bare.outputs))[far] / distances[far]).max())
    if steepest <= 0:
        pytest.skip("the network is constant here")
    for verifier in VERIFIERS:
        if verifier.unsupported(network, norm) is not None:
            continue
        for factor, expected in ((0.9, Verdict.NOT_ROBUST), (1.1, Verdict.ROBUST)):
            instance = at_random(network, seed, LipschitzRobustness(factor * steepest), norm)
            assert decided(verifier, network, instance, eps).verdict is expected, verifier.name


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", some(6, 12))
def test_strong_classification_agrees_with_samples(seed: int) -> None:
    network, eps = tiny(seed), 0.15
    bare = at_random(network, seed, OneToAny())
    points, _ = grid_around(bare, eps)
    outputs = network.replay(points.reshape(-1, *network.input_shape).astype(np.float32))
    least = float(log_odds(outputs, bare.label).min())
    for verifier in (*VERIFIERS, Enumeration(max_units=60)):
        for shift, expected in ((-0.05, Verdict.ROBUST), (0.02, Verdict.NOT_ROBUST)):
            eta = 1 / (1 + np.exp(-(least + shift)))
            instance = at_random(network, seed, StrongClassification(eta))
            assert decided(verifier, network, instance, eps).verdict is expected, verifier.name


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", some(4, 8))
@pytest.mark.parametrize("verifier", VERIFIERS, ids=lambda v: v.name)
def test_change_of_probabilities_agrees_with_samples(verifier: Verifier, seed: int) -> None:
    network, eps = tiny(seed), 0.15
    bare = at_random(network, seed, OneToAny())
    points, _ = grid_around(bare, eps)
    outputs = network.replay(points.reshape(-1, *network.input_shape).astype(np.float32))
    shares = softmax(outputs) - softmax(bare.outputs[None])
    largest = float(np.abs(shares).max())
    for factor, expected in ((0.97, Verdict.NOT_ROBUST), (1.05, Verdict.ROBUST)):
        asked = StandardRobustness(factor * largest, on_probabilities=True)
        instance = at_random(network, seed, asked)
        assert decided(verifier, network, instance, eps).verdict is expected


def softmax(outputs: np.ndarray) -> np.ndarray:
    powers: np.ndarray = np.exp(outputs.astype(np.float64))
    shares: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return shares


def check_implications(seed: int) -> tuple[bool, bool]:
    """Whether LR, and SCR, was proven on one random instance; what they imply must hold then."""
    rng = np.random.default_rng([seed, 11])
    network, verifier = tiny(seed, outputs=2), VERIFIERS[seed // 4 % 2]
    eps = float(rng.uniform(0.01, 0.2))
    steep = LipschitzRobustness(float(rng.uniform(0.2, 6.0)))
    instance = at_random(network, seed, steep)
    is_lipschitz = decided(verifier, network, instance, eps).verdict is Verdict.ROBUST
    delta = steep.constant * eps + resolution(instance.outputs)
    near = decided(verifier, network, at_random(network, seed, StandardRobustness(delta)), eps)
    if is_lipschitz:
        assert near.verdict in (Verdict.ROBUST, Verdict.UNKNOWN)
    if near.verdict is Verdict.NOT_ROBUST:
        assert not is_lipschitz
    strong = at_random(network, seed, StrongClassification(float(rng.uniform(0.501, 0.6))))
    is_strong = decided(verifier, network, strong, eps).verdict is Verdict.ROBUST
    stays = decided(verifier, network, at_random(network, seed, OneToAny()), eps)
    if is_strong:
        assert stays.verdict is Verdict.ROBUST
    return is_lipschitz, is_strong


def test_implications_on_some_instances() -> None:
    proven = np.array([check_implications(seed) for seed in range(24)])
    assert proven.any(axis=0).all()  # the check has something to check
    assert not proven.all(axis=0).any()


@pytest.mark.slow
def test_implications_on_500_instances() -> None:
    proven = np.array([check_implications(seed) for seed in range(500)])
    assert (proven.mean(axis=0) > 0.1).all()


# --- lengths of changes


@pytest.mark.parametrize("verifier", VERIFIERS, ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("norm", "metric", "radius"),
    [
        (Norm.LINF, Norm.L2, 0.2 / 2**0.5),
        (Norm.LINF, Norm.L1, 0.1),
        (Norm.L1, Norm.L1, 0.2),
    ],
)
def test_radii_of_lengths_by_hand(
    verifier: Verifier, norm: Norm, metric: Norm, radius: float
) -> None:
    """Two outputs that are the two inputs: both may change by the radius, or one of them."""
    network = from_torch(nn.Identity(), input_shape=(2,), domain=(0, 1))
    asked = StandardRobustness(0.2, metric=metric)
    instance = instance_at(network, np.array([0.5, 0.5]), property=asked, norm=norm, index=0)
    within = decided(verifier, network, instance, 0.99 * radius)
    assert within.verdict is Verdict.ROBUST
    beyond = decided(verifier, network, instance, 1.01 * radius)
    assert beyond.verdict is Verdict.NOT_ROBUST and beyond.witness is not None
    assert beyond.witness.distance >= radius * (1 - 1e-6)


@pytest.mark.parametrize("verifier", VERIFIERS, ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("constant", "verdict"), [(4.3, Verdict.ROBUST), (4.1, Verdict.NOT_ROBUST)]
)
def test_slopes_of_lengths_by_hand(verifier: Verifier, constant: float, verdict: Verdict) -> None:
    """Outputs that are 3 times the inputs move by 3 sqrt(2) = 4.24 times a Linf distance in L2."""
    layer = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(3 * torch.eye(2))
    network = from_torch(layer, input_shape=(2,), domain=(0, 1))
    asked = LipschitzRobustness(constant, metric=Norm.L2)
    instance = instance_at(network, np.array([0.5, 0.5]), property=asked, index=0)
    assert decided(verifier, network, instance, 0.3).verdict is verdict
