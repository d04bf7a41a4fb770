"""Regimes: their names, the points they train on, and the losses they give."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii.errors import SpecificationError
from radii.training import REGIMES, Ramp, Regime, Step, architecture, parse_regime
from radii.training._regime import ascend, uniform

OWN = ("standard", "augmentation-uniform", "augmentation-fgsm", "fgsm", "pgd")


class Recorder(nn.Module):
    """A linear classifier that remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(6, 3)
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.detach().clone())
        out: Tensor = self.layer(x)
        return out


@pytest.fixture
def step() -> Step:
    torch.manual_seed(1)
    images, labels = torch.rand(16, 6), torch.randint(0, 3, (16,))
    return Step(Recorder(), images, labels, torch.zeros(6), torch.ones(6), 0.5)


def seen(step: Step) -> list[Tensor]:
    assert isinstance(step.module, Recorder)
    return step.module.seen


@pytest.mark.parametrize("name", OWN)
def test_every_point_lies_in_the_ball_and_the_domain(name: str, step: Step) -> None:
    regime = parse_regime(name if name == "standard" else f"{name}:eps=0.05")
    loss = regime.loss(step)
    assert loss.dim() == 0
    assert loss.requires_grad
    for points in seen(step):
        around = step.images.repeat(len(points) // 16, 1)
        assert float((points - around).abs().max()) <= 0.05 + 1e-7
        assert float(points.min()) >= 0
        assert float(points.max()) <= 1


def test_attacks_reach_the_corner_that_is_worst_for_a_linear_network(step: Step) -> None:
    """Two classes and a linear network: the sign of the weights' difference tells the corner."""
    low, high = step.box(0.05)
    layer = nn.Linear(6, 2)
    labels = step.labels % 2
    weights = layer.weight[1 - labels] - layer.weight[labels]
    worst = torch.where(weights > 0, high, low)
    points = ascend(
        layer,
        uniform(low, high),
        low,
        high,
        lambda outputs, _: cross_entropy(outputs, labels, reduction="sum"),
        steps=7,
        size=0.05,
    )
    torch.testing.assert_close(points, worst)


def test_losses_grow_with_the_strength_of_the_points(step: Step) -> None:
    plain, fgsm, pgd = (
        parse_regime(spec).loss(step).item()
        for spec in ("standard", "fgsm:eps=0.3", "pgd:eps=0.3,steps=20")
    )
    assert plain < fgsm <= pgd + 1e-6


def test_augmentation_adds_two_points_an_image(step: Step) -> None:
    parse_regime("augmentation-uniform").loss(step)
    assert len(seen(step)[-1]) == 48
    assert torch.equal(seen(step)[-1][:16], step.images)


@pytest.mark.parametrize("kind", ["uniform", "fgsm"])
def test_augmentation_made_once_is_a_larger_set(kind: str, step: Step) -> None:
    """Of each image itself and its points, with its label; and no point is made in a step."""
    regime = parse_regime(f"augmentation-{kind}:eps=0.05,points=3,made=once")
    images, labels = regime.training_set(step)
    assert len(images) == len(labels) == 64
    assert torch.equal(images[:16], step.images)
    around = step.images.repeat(4, 1)
    assert float((images - around).abs().max()) <= 0.05 + 1e-7
    assert float((images - around)[16:].abs().amin(dim=0).max()) > 0
    assert torch.equal(labels, step.labels.repeat(4))
    assert float(images.min()) >= 0 and float(images.max()) <= 1
    seen(step).clear()
    loss = regime.loss(step)
    assert len(seen(step)) == 1 and torch.equal(seen(step)[0], step.images)
    assert loss.item() == pytest.approx(parse_regime("standard").loss(step).item())
    anew = parse_regime(f"augmentation-{kind}:eps=0.05,points=3")
    assert anew.training_set(step)[0] is step.images


def test_attacking_leaves_running_averages_alone() -> None:
    module = architecture("gtsrb_cnn_vnncomp23", (1, 28, 28), 3).train()
    before = {name: value.clone() for name, value in module.named_buffers()}
    images = torch.rand(4, 1, 28, 28)
    ascend(module, images, images, images, lambda out, _: out.sum(), steps=2, size=0.1)
    assert all(torch.equal(value, before[name]) for name, value in module.named_buffers())
    assert all(part.training for part in module.modules())


@pytest.mark.parametrize("name", OWN)
def test_specs_come_back(name: str) -> None:
    regime = parse_regime(name)
    assert parse_regime(regime.spec) == regime
    assert dataclasses.is_dataclass(regime)
    assert regime.spec.split(":")[0] == regime.name == name


def test_fractions_and_radius() -> None:
    assert parse_regime("pgd:eps=8/255,steps=10").radius == 8 / 255
    assert parse_regime("standard").radius is None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("mixup", "'mixup' is not one of standard"),
        ("pgd:epsilon=1", "'epsilon=1' is not a parameter; pgd takes eps, steps, step"),
        ("pgd:eps", "'eps' is not a parameter"),
        ("pgd:eps=1,eps=2", "eps is given twice"),
        ("pgd:eps=far", "eps is 'far', not a number"),
        ("pgd:eps=1/0", "not a number"),
        ("pgd:steps=1.5", "steps is '1.5', not a whole number"),
        ("pgd:eps=0", "eps 0 must be above 0"),
        ("pgd:eps=nan", "eps nan must be above 0"),
        ("pgd:steps=0", "steps 0 must be at least 1"),
        ("fgsm:step=-1", "step -1 must be above 0"),
        ("augmentation-uniform:points=0", "points 0 must be at least 1"),
        ("augmentation-fgsm:made=never", "made is 'never', not batch or once"),
    ],
)
def test_bad_specs(spec: str, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        parse_regime(spec)


def test_every_registered_regime_exists() -> None:
    for name in REGIMES:
        assert isinstance(parse_regime(name), Regime)


def test_ramp() -> None:
    ramp = Ramp(0.2, 0.6)
    assert [ramp(p) for p in (0.0, 0.2, 0.6, 1.0)] == [0, 0, 1, 1]
    assert ramp(0.4) == pytest.approx(0.5)
    assert Ramp(0.0, 0.0)(0.0) == 1
