"""How much each class counts in the loss: weights that are given, or adjusted while training.

Given weights make training cost-sensitive: mistakes about a class with weight 2 cost twice as much.
`balanced-robustness` finds weights by itself, as the Hedge algorithm plays a game for the worst
class (Li and Liu, 2023): after every epoch a class counts more, the more of its images PGD breaks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from radii.errors import TrainingError

BALANCED = "balanced-robustness"

BALANCING_RATE = 2.0
"""How fast weights follow errors: a class whose robust error is 0.1 larger gains 22 % an epoch."""

LARGEST_RATIO = 20.0
"""The largest ratio of two adjusted weights: beyond it, the light class is forgotten."""


@dataclass(frozen=True, slots=True)
class ClassWeights:
    """`factors` by class, all others 1; or, if `is_balancing`, all 1 at first and then adjusted."""

    factors: tuple[tuple[int, float], ...] = ()
    is_balancing: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """`balanced-robustness`, or classes with their weights, as in `3=2,8=1.5`."""
        if text.strip() == BALANCED:
            return cls(is_balancing=True)
        factors: dict[int, float] = {}
        for part in text.split(","):
            name, _, value = part.partition("=")
            try:
                label, factor = int(name), float(value)
            except ValueError:
                raise TrainingError(
                    f"class weights '{text}': '{part}' is not a class and its weight, as in 3=2; "
                    f"write those, or {BALANCED}"
                ) from None
            if label < 0 or label in factors or not 0 < factor < math.inf:
                raise TrainingError(
                    f"class weights '{text}': '{part}' needs a class from 0 on, named once, and a "
                    "weight above 0"
                )
            factors[label] = factor
        return cls(tuple(sorted(factors.items())))

    def first(self, classes: int) -> list[float]:
        """The weights of the first epoch."""
        unknown = [label for label, _ in self.factors if label >= classes]
        if unknown:
            raise TrainingError(
                f"class weights: class {unknown[0]} is not one of the network's {classes} classes"
            )
        return [dict(self.factors).get(label, 1.0) for label in range(classes)]

    def after(self, weights: Sequence[float], errors: Sequence[float]) -> list[float]:
        """The next epoch's, from the share of each class that an attack breaks; NaN: not seen.

        Their mean is 1, so that the learning rate keeps its meaning.
        """
        if not self.is_balancing:
            return list(weights)
        known = [error for error in errors if not math.isnan(error)]
        middle = sum(known) / len(known) if known else 0.0
        grown = [
            weight * math.exp(BALANCING_RATE * (0.0 if math.isnan(error) else error - middle))
            for weight, error in zip(weights, errors, strict=True)
        ]
        least = max(grown) / LARGEST_RATIO
        kept = [max(weight, least) for weight in grown]
        return [weight * len(kept) / sum(kept) for weight in kept]
