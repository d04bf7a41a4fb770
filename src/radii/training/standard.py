"""Training on the images as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from radii.training.regime import Regime, Step

__all__ = ["Standard"]


@dataclass(frozen=True, slots=True)
class Standard(Regime):
    """Cross-entropy on the images."""

    name: ClassVar[str] = "standard"

    def loss(self, step: Step) -> Tensor:
        return cross_entropy(step.module(step.images), step.labels)
