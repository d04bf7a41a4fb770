"""Constraint losses: what they are by hand, and that training lowers what they measure."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from radii.attacks import violation
from radii.errors import SpecificationError
from radii.problem import LipschitzRobustness, StandardRobustness, StrongClassification
from radii.training import Regime, Step, architecture, parse_regime
from radii.training._regime import uniform
from radii.training._regimes import ConstraintTraining, _worst_points

SHAPE = (1, 4, 4)
EPS = 0.1


def linear(weight: float, inputs: int = 4) -> nn.Sequential:
    """Two outputs, +-weight times the sum of the inputs."""
    layer = nn.Linear(inputs, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[weight], [-weight]]).expand(2, inputs))
    return nn.Sequential(nn.Flatten(), layer)


def step_of(module: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Step:
    shape = images.shape[1:]
    return Step(module, images, labels, torch.zeros(shape), torch.ones(shape), 0.5)


def middle(count: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.full((count, 4), 0.5), torch.zeros(count, dtype=torch.long)


def test_sr_of_a_linear_network_by_hand() -> None:
    """Within eps the outputs move by 4 * weight * eps, which exceeds delta by 0.3."""
    module, (images, labels) = linear(2.0), middle()
    plain = cross_entropy(module(images), labels)
    loss = parse_regime("sr:delta=0.5,eps=0.1,beta=0.2").loss(step_of(module, images, labels))
    assert loss.item() == pytest.approx(plain.item() + 0.2 * 0.3, abs=1e-5)


def test_lr_of_a_linear_network_by_hand() -> None:
    """The slope is 4 * weight = 8: at distance 0.1 the change exceeds 5 * 0.1 by 0.3."""
    module, (images, labels) = linear(2.0), middle()
    plain = cross_entropy(module(images), labels)
    loss = parse_regime("lr:L=5,eps=0.1,alpha=2,beta=1").loss(step_of(module, images, labels))
    resolution = 1e-4 * 4  # of outputs up to 4
    assert loss.item() == pytest.approx(2 * plain.item() + 0.3 - resolution, abs=1e-5)


def test_scr_of_a_linear_network_by_hand() -> None:
    """The label's probability falls to 1 / (1 + exp(-2 * 2 * 4 * 0.4))."""
    module, (images, labels) = linear(0.2), middle()
    least = 1 / (1 + torch.exp(torch.tensor(-2 * 0.2 * 4 * 0.4)))
    plain = cross_entropy(module(images), labels)
    loss = parse_regime("scr:eta=0.9,eps=0.1,beta=0.5").loss(step_of(module, images, labels))
    assert loss.item() == pytest.approx(plain.item() + 0.5 * (0.9 - least.item()), abs=1e-5)


@pytest.mark.parametrize(
    ("norm", "metric", "most"),
    [
        ("linf", "l2", 2 * 4 * 0.1 * 2**0.5),
        ("linf", "l1", 2 * 4 * 0.1 * 2),
        ("l2", "linf", 2 * 2 * 0.1),
        ("l2", "l2", 2 * 2 * 0.1 * 2**0.5),
        ("l1", "linf", 2 * 0.1),
        ("l1", "l1", 2 * 0.1 * 2),
    ],
)
def test_norms_of_balls_and_of_changes_by_hand(norm: str, metric: str, most: float) -> None:
    """Each output moves by 2 times the sum of four changes, which is 4, 2 or 1 times the radius."""
    module, (images, labels) = linear(2.0), middle()
    step, plain = step_of(module, images, labels), cross_entropy(module(images), labels)
    close = 0.05 * most if norm == "l2" else 1e-4  # a few steps on a sphere
    loss = parse_regime(f"sr:delta=0.05,eps=0.1,beta=1,norm={norm},in={metric}").loss(step)
    assert loss.item() == pytest.approx(plain.item() + most - 0.05, abs=close)
    assert loss.item() <= plain.item() + most - 0.05 + 1e-4
    loss = parse_regime(f"lr:L=0.5,eps=0.1,beta=1,norm={norm},in={metric}").loss(step)
    assert loss.item() == pytest.approx(plain.item() + most - 0.05 - 1e-4 * 4, abs=close)


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_points_stay_in_balls_of_other_norms_and_in_the_domain(norm: str) -> None:
    torch.manual_seed(0)
    module, images = architecture("dense:16", SHAPE, 2), 0.9 + 0.1 * torch.rand(20, *SHAPE)
    regime = parse_regime(f"scr:eta=0.9,eps=0.5,norm={norm}")
    assert isinstance(regime, ConstraintTraining)
    points = _worst_points(step_of(module, images, torch.zeros(20, dtype=torch.long)), regime)
    order = 2 if norm == "l2" else 1
    lengths = torch.linalg.vector_norm((points - images).flatten(1), order, dim=1)
    assert 0.4 < lengths.max() <= 0.5 * (1 + 1e-5)
    assert points.min() >= 0 and points.max() <= 1


@pytest.mark.parametrize("spec", ["sr:delta=1", "lr:L=10", "scr:eta=0.1", "sr:delta=1,in=l2"])
def test_a_property_that_holds_costs_nothing(spec: str) -> None:
    module, (images, labels) = linear(0.01), middle()
    loss = parse_regime(spec).loss(step_of(module, images, labels))
    assert torch.allclose(loss, cross_entropy(module(images), labels))


def test_points_stay_in_the_domain() -> None:
    """At a corner of the domain, from where only 0.03 of the ball is left, on one side."""
    module = linear(2.0)
    images, labels = torch.full((2, 4), 0.97), torch.zeros(2, dtype=torch.long)
    step = Step(module, images, labels, torch.full((4,), 0.97), torch.ones(4), 0.0)
    plain = cross_entropy(module(images), labels)
    loss = parse_regime("sr:delta=0.1,eps=0.1,beta=1").loss(step)
    assert loss.item() == pytest.approx(plain.item() + 4 * 2 * 0.03 - 0.1, abs=1e-5)


def trained(regime: Regime, steps: int = 150) -> nn.Module:
    torch.manual_seed(0)
    module = architecture("dense:16", SHAPE, 2)
    for _ in range(steps):
        loss = regime.loss(step_of(module, *sampled(64)))
        for parameter, gradient in zip(
            module.parameters(),
            torch.autograd.grad(loss, list(module.parameters())),
            strict=True,
        ):
            parameter.data -= 0.2 * gradient
    return module


def sampled(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = torch.rand(count, *SHAPE), torch.arange(count) % 2
    images[:, :, :, :2] = images[:, :, :, :2] * 0.4 + 0.6 * labels[:, None, None, None]
    return images, labels


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ("sr:delta=0.2,beta=2,steps=3", StandardRobustness(0.2)),
        ("scr:eta=0.9,beta=5,steps=3", StrongClassification(0.9)),
        ("lr:L=2,beta=2,steps=3", LipschitzRobustness(2.0)),
    ],
)
def test_training_lowers_the_violation(
    spec: str, asked: StandardRobustness | StrongClassification | LipschitzRobustness
) -> None:
    worst = {}
    for name in ("standard", spec):
        module = trained(parse_regime(name))
        images, labels = sampled(400)
        step = step_of(module, images, labels)
        low, high = step.box(EPS)
        own = module(images)
        broken = []
        for _ in range(20):
            points = uniform(low, high)
            points = torch.where(torch.rand(len(points), 1, 1, 1) < 0.5, points, high)
            distances = (points - images).abs().flatten(1).amax(1)
            broken.append(violation(asked, module(points), own, labels, distances))
        worst[name] = torch.stack(broken).amax(0).clamp(min=0).mean().item()
    assert worst[spec] < 0.8 * worst["standard"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("sr:delta=0", "delta"),
        ("lr:L=-1", "L must"),
        ("scr:eta=1", "eta"),
        ("sr:eps=0", "eps 0"),
        ("sr:beta=-1", "beta -1"),
        ("lr:steps=0", "steps 0"),
        ("scr:alpha=0,beta=0", "both be 0"),
        ("sr:gamma=1", "gamma"),
        ("sr:norm=l3", "linf or l2 or l1"),
        ("scr:in=l2", "'in=l2' is not a parameter"),
    ],
)
def test_parameters_out_of_range(spec: str, told: str) -> None:
    with pytest.raises(SpecificationError, match=told):
        parse_regime(spec)


def test_the_spec_names_every_parameter() -> None:
    regime = parse_regime("sr:delta=10")
    assert regime.spec == "sr:delta=10.0,eps=0.1,alpha=1.0,beta=0.2,steps=10"
    assert parse_regime(regime.spec) == regime
    regime = parse_regime("lr:L=10,norm=l1,in=l2")
    assert regime.spec == "lr:L=10.0,eps=0.1,alpha=1.0,beta=0.2,steps=10,norm=l1,in=l2"
    assert parse_regime(regime.spec) == regime
