"""Counterexamples without gradients: Square Attack's idea, driven to the smallest distance."""

from __future__ import annotations

import math
from typing import ClassVar

from torch import Tensor

from radii.attacks._base import BatchAttack
from radii.attacks._batches import Batch, Clock
from radii.attacks._random_walks import TOGETHER, RandomWalk

EVALUATIONS = 6000
"""Evaluations of the network for each query; about the number of gradients of `minimum-norm`."""


class RandomSearch(BatchAttack):
    """Needs outputs only, so it attacks every model that runs; `evaluations` for each query.

    `seconds` stops early and keeps what was found.
    """

    name: ClassVar[str] = "random-search"

    def __init__(self, *, evaluations: int = EVALUATIONS, seconds: float = math.inf) -> None:
        self.evaluations = evaluations
        self.seconds = seconds

    @property
    def rows(self) -> int:
        return TOGETHER

    def search(self, batch: Batch, seed: int, clock: Clock) -> dict[int, Tensor]:
        walk = RandomWalk(batch, seed)
        for _ in range(max(1, self.evaluations // TOGETHER)):
            if clock.is_over:
                break
            walk.step()
        return {place: walk.best[place] for place in walk.is_found.nonzero()[:, 0].tolist()}
