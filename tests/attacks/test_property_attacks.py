"""Attacks driven by a property: what a dense grid of a small ball finds, they find too."""

from __future__ import annotations

import numpy as np
import pytest

from radii.attacks import Apgd, Attack, Fgsm, FoolboxAttack, MinimumNorm, Pgd, attack_specification
from radii.errors import UnsupportedQuery
from radii.networks import Network
from radii.problem import (
    Ball,
    Instance,
    Norm,
    Property,
    Query,
    SoftmaxRequirement,
    Verdict,
    resolution,
)
from radii.problem import parse_property as parse
from radii.testing import LinearClassifier, NetworkFamily, Sketch, instance_at, random_network

EPS = 0.2
SIDE = 41
"""Points of the grid along each axis; both axes of the ball are on it, and its corners."""

ASKED = (
    "scr:eta=0.3",
    "scr:eta=0.52",
    "sr:delta=0.3",
    "sr:delta=0.05,on=probabilities",
    "lr:L=0.5",
    "lr:L=2",
    "cr:of=prediction",
)
OTHERS = ("scr:eta=0.52", "sr:delta=0.05,on=probabilities", "lr:L=0.5")
"""Asked in the other norms, too."""


def grid_of(ball: Ball) -> np.ndarray:
    """Points of a flat ball and the domain, the centre aside, exact in float32."""
    axis = np.linspace(-ball.eps, ball.eps, SIDE)
    offsets = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    points = (ball.center + offsets).astype(np.float32)
    low, high = ball.domain.box(ball.shape)
    inside = ((points >= low) & (points <= high)).all(axis=1)
    return points[inside & (distances_of(ball, points) <= ball.eps)]


def distances_of(ball: Ball, points: np.ndarray) -> np.ndarray:
    order = {Norm.LINF: np.inf, Norm.L2: 2, Norm.L1: 1}[ball.norm]
    distances: np.ndarray = np.linalg.norm(points.astype(np.float64) - ball.center, order, axis=1)
    return distances


def closest_on_grid(network: Network, instance: Instance, eps: float) -> tuple[float, float]:
    """The distance of the closest point of the grid that breaks the property; how many do."""
    ball = instance.ball(eps)
    points = grid_of(ball)
    distances = distances_of(ball, points)
    holds = instance.requirement.holds(network.replay(points), distances)
    if holds.all():
        return np.inf, 0.0
    return float(distances[~holds].min()), float(1 - holds.mean())


def cases(spec: str, norm: Norm, count: int = 2) -> list[tuple[Network, Instance]]:
    """Tiny networks with an input at which the property holds."""
    found: list[tuple[Network, Instance]] = []
    seed = 0
    while len(found) < count:
        network = random_network(NetworkFamily.DENSE, seed, units=16, inputs=2)
        point = np.random.default_rng(seed).uniform(0, 1, 2)
        instance = instance_at(network, point, norm=norm, property=parse(spec))
        if instance.holds:
            found.append((network, instance))
        seed += 1
    return found


@pytest.mark.parametrize(
    ("spec", "norm"),
    [*((spec, Norm.LINF) for spec in ASKED), *((s, n) for s in OTHERS for n in (Norm.L2, Norm.L1))],
)
@pytest.mark.slow
def test_minimum_norm_is_as_close_as_a_grid(spec: str, norm: Norm) -> None:
    for network, instance in cases(spec, norm):
        closest, _ = closest_on_grid(network, instance, EPS)
        (result,) = MinimumNorm().attack(network, [Query(instance, EPS)])
        if np.isfinite(closest):
            assert result.witness is not None
            assert result.witness.distance <= closest * (1 + 1e-4)


@pytest.mark.parametrize("attack", [Pgd(), Apgd()], ids=lambda attack: attack.name)
@pytest.mark.parametrize("spec", ASKED)
def test_fixed_radius_attacks_find_what_a_grid_finds_easily(attack: Attack, spec: str) -> None:
    asked = cases(spec, Norm.LINF, count=6)
    for network, instance in asked:
        _, share = closest_on_grid(network, instance, EPS)
        (result,) = attack.attack(network, [Query(instance, EPS)])
        if share > 0.02:
            assert result.verdict is Verdict.NOT_ROBUST
    assert any(closest_on_grid(*case, EPS)[1] > 0.02 for case in asked)


@pytest.mark.parametrize("spec", ASKED)
def test_a_specification_is_attacked_alike(spec: str) -> None:
    for network, instance in cases(spec, Norm.LINF):
        _, share = closest_on_grid(network, instance, EPS)
        witness = attack_specification(network, Query(instance, EPS).specification)
        assert (witness is not None) or share < 0.02


@pytest.mark.parametrize(("norm", "seed"), [(norm, place) for place, norm in enumerate(Norm)])
def test_a_linear_classifier_breaks_where_its_slope_says(norm: Norm, seed: int) -> None:
    """Its outputs move by slope * distance at most: SR and LR have closed forms."""
    classifier = LinearClassifier.random(seed, dtype=np.float32)
    point = np.random.default_rng(seed).normal(size=5)
    dual = {Norm.LINF: 1, Norm.L2: 2, Norm.L1: np.inf}[norm]
    slope = float(np.linalg.norm(classifier.weights, dual, axis=1).max())

    def witness(asked: Property, eps: float, attack: Attack) -> float | None:
        instance = instance_at(classifier.network, point, norm=norm, property=asked)
        (result,) = attack.attack(classifier.network, [Query(instance, eps)])
        return None if result.witness is None else result.witness.distance

    for attack in (MinimumNorm(), Apgd(), Pgd(), Fgsm()):
        assert witness(parse("sr:delta=0.5"), 1.01 * 0.5 / slope, attack) == pytest.approx(
            0.5 / slope, rel=5e-3
        )
        assert witness(parse("sr:delta=0.5"), 0.99 * 0.5 / slope, attack) is None
        assert witness(parse(f"lr:L={1.01 * slope}"), 0.5, attack) is None
    tau = resolution(instance_at(classifier.network, point, norm=norm).outputs)
    found = witness(parse(f"lr:L={0.5 * slope}"), 0.1, MinimumNorm())
    assert found == pytest.approx(tau / (0.5 * slope), rel=0.05)
    for attack in (Apgd(), Pgd(), Fgsm()):
        assert witness(parse(f"lr:L={0.5 * slope}"), 0.1, attack) is not None


def peak(height: float, width: float) -> Network:
    """One input; y0 rises from 0 by `height` within `width` and falls back as fast; y1 is 0."""
    sketch = Sketch([1, 1], dtype=np.float32)
    shift = sketch.constant(np.array([0.0, -width, -2 * width]))
    hidden = sketch.apply(
        "Relu", sketch.apply("Gemm", "x", sketch.constant(np.ones((1, 3))), shift)
    )
    slope = height / width
    weights = sketch.constant(np.array([[slope, 0.0], [-2 * slope, 0.0], [slope, 0.0]]))
    outputs = sketch.apply("Gemm", hidden, weights, sketch.constant(np.zeros(2)))
    return sketch.network(outputs, domain=(-5.0, 5.0))


@pytest.mark.parametrize("attack", [MinimumNorm(), Apgd(), Pgd()], ids=lambda attack: attack.name)
def test_a_slope_that_is_steep_only_close_to_the_input_is_found(attack: Attack) -> None:
    network = peak(height=0.05, width=0.01)  # slope 5, and at most 0.05 anywhere
    steep = instance_at(network, np.zeros(1), property=parse("lr:L=4"))
    (result,) = attack.attack(network, [Query(steep, 1.0)])
    assert result.witness is not None
    assert result.witness.distance <= 0.0125 + 1e-6
    flat = instance_at(network, np.zeros(1), property=parse("lr:L=6"))
    (result,) = attack.attack(network, [Query(flat, 1.0)])
    assert result.verdict is Verdict.UNKNOWN


def saturated(last: str, scale: float, *limits: float) -> Network:
    """Logits scale * (x0, x1), then an operator that is flat where they are large."""
    sketch = Sketch([1, 2], dtype=np.float32)
    scores = sketch.apply("Gemm", "x", sketch.constant(scale * np.eye(2)))
    constants = [sketch.constant(np.array(limit)) for limit in limits]
    return sketch.network(sketch.apply(last, scores, *constants), domain=(-5.0, 5.0))


@pytest.mark.parametrize("attack", [MinimumNorm(), Apgd(), Pgd()], ids=lambda attack: attack.name)
@pytest.mark.parametrize("spec", ["scr:eta=0.52", "sr:delta=0.2,on=probabilities"])
def test_probabilities_near_one_do_not_hide_the_way(attack: Attack, spec: str) -> None:
    for network, is_softmax in ((saturated("Softmax", 100.0), True), (plain(100.0), False)):
        instance = instance_at(network, np.array([1.0, -1.0]), property=parse(spec))
        assert isinstance(instance.requirement, SoftmaxRequirement) is not is_softmax
        (result,) = attack.attack(network, [Query(instance, 1.05)])
        assert result.witness is not None
        assert result.witness.distance == pytest.approx(1.0, abs=0.02)


def plain(scale: float) -> Network:
    sketch = Sketch([1, 2], dtype=np.float32)
    return sketch.network(
        sketch.apply("Gemm", "x", sketch.constant(scale * np.eye(2))), domain=(-5.0, 5.0)
    )


@pytest.mark.parametrize("attack", [MinimumNorm(), Apgd(), Pgd()], ids=lambda attack: attack.name)
@pytest.mark.parametrize("spec", ["sr:delta=50", "lr:L=25", "scr:eta=0.9", "cr"])
def test_a_clamp_does_not_hide_the_way(attack: Attack, spec: str) -> None:
    """Scores of 200 and -200, cut at 100 and -100: y0 falls below 50 beyond a distance of 1.5."""
    network = saturated("Clip", 100.0, -100.0, 100.0)
    instance = instance_at(network, np.array([2.0, -2.0]), property=parse(spec))
    (result,) = attack.attack(network, [Query(instance, 2.5)])
    assert result.witness is not None
    expected = {"sr:delta=50": 1.5, "lr:L=25": 4 / 3, "scr:eta=0.9": 2.0, "cr": 2.0}[spec]
    assert result.witness.distance >= expected - 0.02
    if attack.name == "minimum-norm":
        assert result.witness.distance <= expected + 0.02


@pytest.mark.parametrize("spec", ["scr:eta=0.3", "lr:L=2", "sr:delta=0.05,on=probabilities"])
def test_foolbox_refuses_what_is_not_linear(spec: str) -> None:
    network, instance = cases(spec, Norm.LINF, count=1)[0]
    with pytest.raises(UnsupportedQuery, match="linear in the outputs"):
        FoolboxAttack("LinfPGD").attack(network, [Query(instance, 0.1)])
