"""Certified regimes: their losses along the ramp, and that they make networks easier to prove."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii.errors import NetworkError, SpecificationError
from radii.training import Regime, Step, architecture, parse_regime
from radii.training._certified import ModuleBounds

SHAPE = (1, 4, 4)
NAMES = ("ibp", "crown-ibp")


def step_of(module: nn.Module, progress: float, count: int = 64) -> Step:
    """Two classes, told apart by the brightness of the left half."""
    images = torch.rand(count, *SHAPE)
    labels = (torch.arange(count) % 2).long()
    images[:, :, :, :2] = images[:, :, :, :2] * 0.3 + 0.7 * labels[:, None, None, None]
    return Step(module, images, labels, torch.zeros(SHAPE), torch.ones(SHAPE), progress)


def worst_case(step: Step, eps: float, *, linear: bool) -> Tensor:
    found = ModuleBounds(step.module, SHAPE).enclosed(step.images, *step.box(eps))
    margins = found.crown_margins(step.labels) if linear else found.interval_margins(step.labels)
    return cross_entropy(-margins, step.labels)


@pytest.mark.parametrize("name", NAMES)
def test_plain_before_the_ramp(name: str) -> None:
    step = step_of(architecture("dense:8", SHAPE, 2), 0.1)
    plain = cross_entropy(step.module(step.images), step.labels)
    assert torch.equal(parse_regime(f"{name}:warmup=0.2").loss(step), plain)


@pytest.mark.parametrize("name", NAMES)
def test_the_mixture_along_the_ramp(name: str) -> None:
    regime = parse_regime(f"{name}:eps=0.2,kappa=0.4,warmup=0,ramp=0.8")
    module = architecture("dense:8", SHAPE, 2)
    for progress in (0.4, 0.8, 1.0):
        step = step_of(module, progress)
        grown = min(1.0, progress / 0.8)
        plain = cross_entropy(module(step.images), step.labels)
        worst = worst_case(step, grown * 0.2, linear=False)
        if name == "crown-ibp" and grown < 1:
            found = ModuleBounds(module, SHAPE).enclosed(step.images, *step.box(grown * 0.2))
            mixed = (1 - grown) * found.crown_margins(step.labels)
            mixed = mixed + grown * found.interval_margins(step.labels)
            worst = cross_entropy(-mixed, step.labels)
        share = 1 - grown * 0.6
        assert torch.allclose(regime.loss(step), share * plain + (1 - share) * worst)


def test_linear_bounds_stay_where_beta_says_so() -> None:
    step = step_of(architecture("dense:8", SHAPE, 2), 1.0)
    regime = parse_regime("crown-ibp:eps=0.2,kappa=0,beta=1")
    assert torch.allclose(regime.loss(step), worst_case(step, 0.2, linear=True))


@pytest.mark.parametrize("name", NAMES)
def test_boxes_are_clipped_to_the_domain(name: str) -> None:
    """On a corner of the domain a step outwards changes nothing."""
    module = architecture("dense:8", SHAPE, 2)
    labels = torch.tensor([0, 1])
    images = torch.stack([torch.zeros(SHAPE), torch.ones(SHAPE)])
    inside = Step(module, images, labels, torch.zeros(SHAPE), torch.zeros(SHAPE), 1.0)
    low, high = inside.box(0.5)
    assert torch.equal(low[0], high[0])
    step = Step(module, images[:1], labels[:1], torch.zeros(SHAPE), torch.zeros(SHAPE), 1.0)
    plain = cross_entropy(module(step.images), step.labels)
    assert torch.allclose(parse_regime(f"{name}:eps=0.5").loss(step), plain, atol=1e-6)


def trained(module: nn.Module, regime: Regime) -> nn.Module:
    module = copy.deepcopy(module)
    velocity = [torch.zeros_like(p) for p in module.parameters()]
    for number in range(200):
        loss = regime.loss(step_of(module, number / 200))
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        with torch.no_grad():
            for parameter, moved, gradient in zip(
                module.parameters(), velocity, gradients, strict=True
            ):
                parameter.sub_(0.1 * moved.mul_(0.9).add_(gradient))
    return module


@pytest.mark.parametrize("name", NAMES)
def test_more_margins_are_proven_than_after_plain_training(name: str) -> None:
    torch.manual_seed(0)
    start = architecture("dense:16-16", SHAPE, 2)
    shares = {}
    for spec in ("standard", f"{name}:eps=0.25"):
        step = step_of(trained(start, parse_regime(spec)), 1.0, 400)
        found = ModuleBounds(step.module, SHAPE).enclosed(step.images, *step.box(0.25))
        margins = found.interval_margins(step.labels)
        others = margins.scatter(1, step.labels[:, None], torch.inf).amin(1)
        shares[spec.partition(":")[0]] = float((others > 0).float().mean())
    assert shares[name] > 0.95 > 0.6 > shares["standard"]


def test_a_module_without_bounds_is_refused_before_training() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 2), nn.Softmax(1))
    with pytest.raises(NetworkError, match="Softmax"):
        parse_regime("ibp").check(module, torch.zeros(1, *SHAPE))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("ibp:eps=0", "eps 0"),
        ("ibp:kappa=1.5", "kappa 1.5"),
        ("crown-ibp:beta=-1", "beta -1"),
        ("ibp:warmup=0.7,ramp=0.5", "warmup 0.7"),
        ("crown-ibp:ramp=2", "ramp 2"),
    ],
)
def test_parameters_out_of_range(spec: str, told: str) -> None:
    with pytest.raises(SpecificationError, match=told):
        parse_regime(spec)
