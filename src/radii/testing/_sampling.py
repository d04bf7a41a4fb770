"""Whether an attack does better than uniform sampling, whatever the scales of the features are.

An attack asks a network some number of times; as many points drawn uniformly from the same ball are
the least that it has to compete with. Which of the two comes closer to the input is compared over
several inputs by a sign test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest
from torch import Tensor

from radii.attacks import Attack
from radii.networks import Network
from radii.problem import Domain, Features, Norm, Query
from radii.testing._graphs import Sketch
from radii.testing._networks import instance_at

HIDDEN, SPLITS, CLASSES = 12, 36, 3
INPUTS = 8
"""Inputs of a comparison; at this level sampling has to win 7 of 8 for an attack to fail."""
LEVEL = 0.05
"""Chance that the sign test fails an attack that is exactly as good as sampling."""
MOST_POINTS = 5_000
"""Points that are drawn for an input at most, however often an attack asks."""
CLOSER = 1e-3
"""Distances that differ by less than this part count as equal."""
REACH = 0.4
"""The radius of the balls, as a part of the features' ranges."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Features from 0 to their `ranges`; with `whole` and `categories`, some are discrete."""

    ranges: npt.NDArray[np.float64]
    whole: tuple[int, ...] = ()
    categories: tuple[tuple[int, ...], ...] = ()

    def network(self, seed: int, *, has_steps: bool = False) -> Network:
        """A random network on features divided by their ranges; with `has_steps` it reads whether
        they are above random limits, as a forest does, and its gradient is 0."""
        rng, size = np.random.default_rng([seed, 3]), len(self.ranges)
        sketch = Sketch(["n", size])
        value = sketch.apply("Mul", "x", sketch.constant(1 / self.ranges))
        if has_steps:
            places = sketch.constant(rng.integers(size, size=SPLITS))
            value = sketch.apply("Gather", value, places, axis=1)
            limits = sketch.constant(rng.uniform(size=SPLITS))
            value = sketch.apply("Cast", sketch.apply("Greater", value, limits), to=1)
            size = SPLITS
        weights = rng.normal(size=(size, HIDDEN))
        bias = sketch.constant(-weights.sum(axis=0) / 2)
        value = sketch.apply("Relu", sketch.apply("Gemm", value, sketch.constant(weights), bias))
        last = sketch.constant(rng.normal(size=(HIDDEN, CLASSES)))
        return Network.from_bytes(
            sketch.model(sketch.apply("Gemm", value, last)).SerializeToString(),
            domain=Domain(np.zeros(len(self.ranges)), self.ranges),
            name="table",
            opaque=True,
        )

    def queries(self, network: Network, norm: Norm, seed: int) -> list[Query]:
        """Random inputs. In Linf a feature moves by eps times its range, else all of them by eps of
        the middle range."""
        rng, is_linf = np.random.default_rng([seed, 4]), norm is Norm.LINF
        features = self._features(norm)
        eps = REACH if is_linf else REACH * float(np.median(self.ranges))
        if norm is Norm.L1:
            eps *= len(self.ranges)
        asked = []
        for index in range(INPUTS):
            point = rng.uniform(size=len(self.ranges)) * self.ranges
            point = features.rounded(point, np.zeros_like(point), self.ranges)
            instance = instance_at(network, point, norm=norm, index=index)
            if is_linf or features.is_discrete:
                instance = replace(instance, features=features)
            asked.append(Query(instance, eps))
        return asked

    def _features(self, norm: Norm) -> Features:
        scale = self.ranges.copy() if norm is Norm.LINF else np.ones(len(self.ranges))
        for places in self.categories:
            scale[list(places)] /= REACH if norm is Norm.LINF else 1.0  # so that it may change
        return replace(
            Features.of([f"f{place}" for place in range(len(scale))], scale),
            is_whole=np.isin(np.arange(len(scale)), self.whole),
            groups={f"c{index}": places for index, places in enumerate(self.categories)},
        )


TABLES = {
    "1e-6": Table(np.full(5, 1e-6)),
    "1": Table(np.ones(5)),
    "1e6": Table(np.full(5, 1e6)),
    "mixed": Table(np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])),
    "discrete": Table(np.array([10.0, 10.0, 20.0, 10.0, 1.0, 1.0, 1.0]), (1, 2), ((4, 5, 6),)),
}
"""By the scale of their features."""


def sampling_wins(attack: Attack, network: Network, queries: Sequence[Query]) -> tuple[int, int]:
    """At how many inputs sampling comes closer, and at how many one of the two does."""
    asked = 0

    def count(_: object, arguments: tuple[Tensor, ...], __: object) -> None:
        nonlocal asked
        asked += len(arguments[0])

    first = network.graph.in_dtype(network.torch_dtype).nodes[1].operator
    handle = first.register_forward_hook(count)
    try:
        results = attack.attack(network, queries)
    finally:
        handle.remove()
    points = min(MOST_POINTS, -(-asked // len(queries)))
    wins = decided = 0
    for place, (query, result) in enumerate(zip(queries, results, strict=True)):
        mine = np.inf if result.witness is None else result.witness.distance
        theirs = sampled_distance(network, query, points, place)
        nearest, farthest = sorted((mine, theirs))
        if farthest > (1 + CLOSER) * nearest:
            wins, decided = wins + (theirs < mine), decided + 1
    return wins, decided


def sampled_distance(network: Network, query: Query, count: int, seed: int) -> float:
    """The distance of the closest counterexample among points of the ball; inf without any."""
    instance, ball = query.instance, query.instance.ball(query.eps)
    points = ball.sample(np.random.default_rng([seed, 5]), count).astype(network.input_dtype)
    is_broken = ~instance.requirement.holds(network.replay(points), 0.0)
    distances = [ball.distance(point) for point in points[is_broken]]
    return min((d for d in distances if d <= query.eps), default=np.inf)


def loses_to_sampling(wins: int, decided: int) -> bool:
    """Sampling wins more often than chance would let it against an attack that is as good."""
    return decided > 0 and binomtest(wins, decided, alternative="greater").pvalue < LEVEL
