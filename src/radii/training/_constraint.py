"""Training with a property as a constraint: alpha * cross-entropy + beta * its violation.

The property is translated as in DL2 (Fischer et al. 2019): a <= b becomes max(a - b, 0), taken at
the point of the ball where the property is broken most, as far as projected gradient ascent
finds it. The reference of SR and LR is the network's own output at the image, not the label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from radii.attacks import violation
from radii.errors import SpecificationError
from radii.properties import LipschitzRobustness, Property, StandardRobustness, StrongClassification
from radii.training._regime import Regime, Step, ascend, check_eps, check_steps, evaluating, uniform


@dataclass(frozen=True, slots=True)
class StandardRobustnessTraining(Regime):
    """SR: no output changes by more than delta within eps."""

    delta: float = 10.0
    eps: float = 0.1
    alpha: float = 1.0
    beta: float = 0.2
    steps: int = 10
    name: ClassVar[str] = "sr"

    def __post_init__(self) -> None:
        _check_constraint(self)

    @property
    def property(self) -> Property:
        return StandardRobustness(self.delta)

    def loss(self, step: Step) -> Tensor:
        return _constrained_loss(step, self)


@dataclass(frozen=True, slots=True)
class StrongClassificationTraining(Regime):
    """SCR: the label's probability stays at least eta within eps."""

    eta: float = 0.52
    eps: float = 0.1
    alpha: float = 1.0
    beta: float = 0.2
    steps: int = 10
    name: ClassVar[str] = "scr"

    def __post_init__(self) -> None:
        _check_constraint(self)

    @property
    def property(self) -> Property:
        return StrongClassification(self.eta)

    def loss(self, step: Step) -> Tensor:
        return _constrained_loss(step, self)


@dataclass(frozen=True, slots=True)
class LipschitzTraining(Regime):
    """LR: no output changes by more than L times the distance, within eps."""

    L: float = 10.0
    eps: float = 0.1
    alpha: float = 1.0
    beta: float = 0.2
    steps: int = 10
    name: ClassVar[str] = "lr"

    def __post_init__(self) -> None:
        _check_constraint(self)

    @property
    def property(self) -> Property:
        return LipschitzRobustness(self.L)

    def loss(self, step: Step) -> Tensor:
        return _constrained_loss(step, self)


_Constrained = StandardRobustnessTraining | StrongClassificationTraining | LipschitzTraining


def _constrained_loss(step: Step, regime: _Constrained) -> Tensor:
    """The images and their worst points go through the module together."""
    points = _worst_points(step, regime)
    outputs = step.module(torch.cat([step.images, points]))
    own, moved = outputs.chunk(2)
    broken = violation(
        regime.property, moved, own, step.labels, _distances(points, step.images), literal=True
    )
    plain = cross_entropy(own, step.labels)
    return regime.alpha * plain + regime.beta * broken.clamp(min=0).mean()


def _worst_points(step: Step, regime: _Constrained) -> Tensor:
    """Signed steps up the violation from a random start, kept in the ball and the domain.

    The distance counts, but not its gradient: that is of the furthest inputs alone, and signed
    steps would waver there.
    """
    with evaluating(step.module), torch.no_grad():
        references = step.module(step.images)

    def total(outputs: Tensor, points: Tensor) -> Tensor:
        distances = _distances(points.detach(), step.images)
        return violation(regime.property, outputs, references, step.labels, distances).sum()

    low, high = step.box(regime.eps)
    size = regime.eps * 2.5 / regime.steps
    start = uniform(low, high)
    return ascend(step.module, start, low, high, total, steps=regime.steps, size=size)


def _distances(points: Tensor, images: Tensor) -> Tensor:
    """In Linf."""
    return (points - images).abs().flatten(1).amax(1)


def _check_constraint(regime: _Constrained) -> None:
    _ = regime.property  # says which of its parameters is out of range
    check_eps(regime.eps, regime.name)
    check_steps(regime.steps, regime.name)
    for name in ("alpha", "beta"):
        weight = getattr(regime, name)
        if not (math.isfinite(weight) and weight >= 0):
            raise SpecificationError(
                f"training regime '{regime.name}': {name} {weight:g} must be 0 or above"
            )
    if regime.alpha == regime.beta == 0:
        raise SpecificationError(
            f"training regime '{regime.name}': alpha and beta must not both be 0"
        )
