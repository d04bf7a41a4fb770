"""g-bar against closed forms, corners and random points; witnessed below, proven above."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
import pytest

from radii.errors import SoundnessError
from radii.problem import Norm, probabilities
from radii.runs import Change, ChangeAttack, narrow_change, proven_changes, witnessed_changes
from radii.testing import LinearClassifier, NetworkFamily, Sketch, instance_at, random_network
from radii.verifiers import Limits, get

LINEAR = LinearClassifier.random(1, inputs=3, outputs=3)


def largest(norm: Norm, eps: float) -> float:
    """Of a linear network: eps times the largest dual norm of a row."""
    order = {Norm.LINF: 1, Norm.L2: 2, Norm.L1: np.inf}[norm]
    return float(eps * max(np.linalg.norm(row, order) for row in LINEAR.weights))


@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("attack", [ChangeAttack(), ChangeAttack(steps=1, restarts=1)])
def test_linear_networks_have_a_closed_form(norm: Norm, attack: ChangeAttack) -> None:
    network = LINEAR.network
    instance = instance_at(network, [0.1, 0.2, 0.3], norm=norm)
    (lower,) = witnessed_changes(network, [instance], 0.25, attack=attack)
    (upper,) = proven_changes(network, [instance], 0.25)
    exact = largest(norm, 0.25)
    assert lower <= exact * (1 + 1e-6)
    assert lower == pytest.approx(exact, rel=1e-3)
    assert exact <= upper <= exact + 2e-4


def test_softmax_of_two_outputs_has_a_closed_form() -> None:
    linear = LinearClassifier.random(5, inputs=2, outputs=2)
    instance = instance_at(linear.network, [0.3, 0.1])
    row = linear.weights[0] - linear.weights[1]
    difference = float(row @ [0.3, 0.1] + linear.bias[0] - linear.bias[1])
    reach = 0.2 * float(np.abs(row).sum())
    middle, *ends = (1 / (1 + math.exp(-(difference + d))) for d in (0.0, -reach, reach))
    exact = max(abs(end - middle) for end in ends)
    (lower,) = witnessed_changes(linear.network, [instance], 0.2, "probabilities")
    (upper,) = proven_changes(linear.network, [instance], 0.2, "probabilities")
    assert lower == pytest.approx(exact, abs=1e-5)
    assert exact <= upper <= exact + 2e-4


@pytest.mark.parametrize("on", ["outputs", "probabilities"])
@pytest.mark.parametrize("seed", range(3))
def test_no_point_of_the_ball_is_outside(
    on: Literal["outputs", "probabilities"], seed: int
) -> None:
    """Corners and random points never move more than is proven, and a verifier closes the gap."""
    network = random_network(NetworkFamily.DENSE, seed, units=12, inputs=3)
    low, high = network.domain.box(network.input_shape)
    instance = instance_at(network, (low + high) / 2)
    eps = 0.1
    (lower,) = witnessed_changes(network, [instance], eps, on)
    (upper,) = proven_changes(network, [instance], eps, on)
    ball = instance.ball(eps)
    corners = np.array(list(itertools.product((-eps, eps), repeat=3))).reshape(-1, *ball.shape)
    points = np.concatenate([ball.center + corners, ball.sample(np.random.default_rng(0), 200)])
    inside = np.stack([ball.project(point, network.input_dtype) for point in points])
    moved, before = network.replay(inside), np.asarray(instance.outputs, np.float64)
    if on == "probabilities":
        moved, before = probabilities(moved), probabilities(before)
    seen = float(np.abs(moved - before).max())
    assert seen <= upper
    assert lower >= 0.95 * seen
    if on == "outputs":
        change = narrow_change(
            network,
            instance,
            eps,
            Change(lower, upper),
            get("native"),
            Limits(seconds=20),
            within=0.01 * upper,
        )
        assert change.upper - change.lower <= 0.01 * upper
        assert lower <= change.lower
        assert seen <= change.upper <= upper


def test_nothing_is_narrowed_without_time() -> None:
    network = LINEAR.network
    instance = instance_at(network, [0.1, 0.2, 0.3])
    change = Change(0.1, 5.0)
    limits = Limits(seconds=0.0)
    assert (
        narrow_change(network, instance, 0.1, change, get("native"), limits, within=0.01) == change
    )


def test_a_contradiction_is_never_ignored() -> None:
    with pytest.raises(SoundnessError):
        Change(0.5, 0.4)


@pytest.mark.parametrize("seed", range(3))
def test_rounding_of_large_outputs_is_a_change_too(seed: int) -> None:
    """Outputs around 1e6 differ by multiples of 1/16 in float32: so does what the softmax reads."""
    linear = LinearClassifier.random(seed, inputs=4, outputs=3)
    sketch = Sketch([1, 4])
    weight, bias = (sketch.constant(0.3 * linear.weights.T), sketch.constant(np.full(3, 1e6)))
    large = sketch.network(sketch.apply("Gemm", "x", weight, bias))
    instance = instance_at(large, [0.4, 0.5, 0.6, 0.5])
    ball = instance.ball(0.02)
    points = ball.sample(np.random.default_rng(seed), 2000).astype(np.float32)
    inside = np.array([point for point in points if ball.contains(point)])
    moved = probabilities(large.replay(inside).astype(np.float64))
    seen = np.abs(moved - probabilities(instance.outputs[None].astype(np.float64))).max()
    (upper,) = proven_changes(large, [instance], 0.02, "probabilities")
    assert seen <= upper
