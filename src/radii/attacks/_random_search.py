"""Counterexamples without gradients: Square Attack's idea, driven to the smallest distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from radii.attacks._base import TimedAttack
from radii.attacks._batches import Clock, batches
from radii.attacks._random_walks import TOGETHER, RandomWalk
from radii.networks import Network
from radii.problem import Array, Query

EVALUATIONS = 6000
"""Evaluations of the network for each query; about the number of gradients of `minimum-norm`."""


class RandomSearch(TimedAttack):
    """Needs outputs only, so it attacks every model that runs; `evaluations` for each query.

    `seconds` stops early and keeps what was found.
    """

    name: ClassVar[str] = "random-search"

    def __init__(self, *, evaluations: int = EVALUATIONS, seconds: float = math.inf) -> None:
        self.evaluations = evaluations
        self.seconds = seconds

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        candidates: list[Sequence[Array]] = [()] * len(queries)
        clock = Clock.of(self.seconds)
        todo = batches(network, queries, rows=TOGETHER)
        for done, batch in enumerate(todo):
            walk = RandomWalk(batch, seed)
            limit = clock.share(len(todo) - done)
            for _ in range(max(1, self.evaluations // TOGETHER)):
                if limit.is_over:
                    break
                walk.step()
            points = batch.points(walk.best)
            for place, is_found in enumerate(walk.is_found.tolist()):
                if is_found:
                    candidates[batch.members[place]] = (points[place],)
        return candidates
