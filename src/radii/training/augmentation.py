"""Data augmentation: every image comes with further points of the ball around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from radii.errors import SpecificationError
from radii.training.perturbation import ascend, check_eps, uniform
from radii.training.regime import Regime, Step

__all__ = ["FgsmAugmentation", "UniformAugmentation"]


@dataclass(frozen=True, slots=True)
class UniformAugmentation(Regime):
    """`points` uniform points of the ball around each image, drawn anew for each batch."""

    eps: float = 0.1
    points: int = 2
    name: ClassVar[str] = "augmentation-uniform"

    def __post_init__(self) -> None:
        _check(self.eps, self.points, self.name)

    def loss(self, step: Step) -> Tensor:
        low, high = step.box(self.eps)
        return _loss(step, [uniform(low, high) for _ in range(self.points)])


@dataclass(frozen=True, slots=True)
class FgsmAugmentation(Regime):
    """`points` points a ball, each one signed step of eps from a random start."""

    eps: float = 0.1
    points: int = 2
    name: ClassVar[str] = "augmentation-fgsm"

    def __post_init__(self) -> None:
        _check(self.eps, self.points, self.name)

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
        return _loss(step, [added])


def _loss(step: Step, added: list[Tensor]) -> Tensor:
    """Cross-entropy over the images and the points added to them."""
    seen = torch.cat([step.images, *added])
    labels = step.labels.repeat(len(seen) // len(step.labels))
    return cross_entropy(step.module(seen), labels)


def _ones(rows: Tensor) -> tuple[int, ...]:
    return (1,) * (rows.dim() - 1)


def _check(eps: float, points: int, regime: str) -> None:
    check_eps(eps, regime)
    if points < 1:
        raise SpecificationError(f"training regime '{regime}': points {points} must be at least 1")
