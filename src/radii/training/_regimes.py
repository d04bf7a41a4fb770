"""Training on the images as they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from radii.errors import SpecificationError
from radii.training._regime import Regime, Step, ascend, check_eps, check_steps, uniform


@dataclass(frozen=True, slots=True)
class Standard(Regime):
    """Cross-entropy on the images."""

    name: ClassVar[str] = "standard"

    def loss(self, step: Step) -> Tensor:
        return cross_entropy(step.module(step.images), step.labels)


# Training on adversarial examples made anew for each batch.


@dataclass(frozen=True, slots=True)
class FgsmTraining(Regime):
    """One signed step from a random start (Wong, Rice and Kolter 2020).

    `step` is its length in multiples of eps.
    """

    eps: float = 0.1
    step: float = 1.25
    name: ClassVar[str] = "fgsm"

    def __post_init__(self) -> None:
        check_eps(self.eps, self.name)
        _check_step(self.step, self.name)

    def loss(self, step: Step) -> Tensor:
        return adversarial_loss(step, self.eps, steps=1, size=self.step * self.eps)


@dataclass(frozen=True, slots=True)
class PgdTraining(Regime):
    """Several signed steps from a random start, each projected to the ball (Madry et al. 2017).

    `step` is the length of one in multiples of eps; 0 stands for 2.5 / steps.
    """

    eps: float = 0.1
    steps: int = 7
    step: float = 0.0
    name: ClassVar[str] = "pgd"

    def __post_init__(self) -> None:
        check_eps(self.eps, self.name)
        check_steps(self.steps, self.name)
        if self.step != 0:
            _check_step(self.step, self.name)

    def loss(self, step: Step) -> Tensor:
        size = self.eps * (self.step or 2.5 / self.steps)
        return adversarial_loss(step, self.eps, steps=self.steps, size=size)


def adversarial_loss(step: Step, eps: float, *, steps: int, size: float) -> Tensor:
    """Cross-entropy at points of the balls that ascend it from a random start."""
    low, high = step.box(eps)
    start = uniform(low, high)
    points = ascend(
        step.module,
        start,
        low,
        high,
        lambda outputs, _: cross_entropy(outputs, step.labels, reduction="sum"),
        steps=steps,
        size=size,
    )
    return cross_entropy(step.module(points), step.labels)


def _check_step(step: float, regime: str) -> None:
    if not (math.isfinite(step) and step > 0):
        raise SpecificationError(f"training regime '{regime}': step {step:g} must be above 0")


# Data augmentation: every image comes with further points of the ball around it.


@dataclass(frozen=True, slots=True)
class UniformAugmentation(Regime):
    """`points` uniform points of the ball around each image, drawn anew for each batch."""

    eps: float = 0.1
    points: int = 2
    name: ClassVar[str] = "augmentation-uniform"

    def __post_init__(self) -> None:
        _check_points(self.eps, self.points, self.name)

    def loss(self, step: Step) -> Tensor:
        low, high = step.box(self.eps)
        return _augmented_loss(step, [uniform(low, high) for _ in range(self.points)])


@dataclass(frozen=True, slots=True)
class FgsmAugmentation(Regime):
    """`points` points a ball, each one signed step of eps from a random start."""

    eps: float = 0.1
    points: int = 2
    name: ClassVar[str] = "augmentation-fgsm"

    def __post_init__(self) -> None:
        _check_points(self.eps, self.points, self.name)

    def loss(self, step: Step) -> Tensor:
        low, high = (side.repeat(self.points, *_ones(side)) for side in step.box(self.eps))
        labels = step.labels.repeat(self.points)
        added = ascend(
            step.module,
            uniform(low, high),
            low,
            high,
            lambda outputs, _: cross_entropy(outputs, labels, reduction="sum"),
            steps=1,
            size=self.eps,
        )
        return _augmented_loss(step, [added])


def _augmented_loss(step: Step, added: list[Tensor]) -> Tensor:
    """Cross-entropy over the images and the points added to them."""
    seen = torch.cat([step.images, *added])
    labels = step.labels.repeat(len(seen) // len(step.labels))
    return cross_entropy(step.module(seen), labels)


def _ones(rows: Tensor) -> tuple[int, ...]:
    return (1,) * (rows.dim() - 1)


def _check_points(eps: float, points: int, regime: str) -> None:
    check_eps(eps, regime)
    if points < 1:
        raise SpecificationError(f"training regime '{regime}': points {points} must be at least 1")
