"""One of each: what a package may add to radii, in as few lines as it takes.

pyproject.toml beside this folder declares them; then `radii run --verifier bounds-alone` and so on
work wherever the package is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

import numpy as np

from radii.attacks import Attack
from radii.bounds import crown_bounds
from radii.datasets import Dataset, from_arrays
from radii.errors import DataError, SpecificationError
from radii.networks import Network
from radii.problem import (
    FLOAT,
    Anchor,
    Arithmetic,
    Array,
    Halfspaces,
    LinearRequirement,
    Norm,
    Property,
    Query,
    Specification,
    Verdict,
)
from radii.strategy import Question, QuestionKind, Search
from radii.verifiers import Answer, Limits, Verifier


class BoundsAlone(Verifier):
    """Proves by CROWN bounds, without branching. Incomplete, and quick.

    A polyhedron of violations is out of reach as soon as one of its rows is.
    """

    name = "bounds-alone"
    norms = frozenset(Norm)

    def __init__(self, *, margin: float = 1e-6, arithmetic: Arithmetic = FLOAT) -> None:
        self.margin = margin
        self.arithmetic = arithmetic

    @property
    def version(self) -> str:
        return "0.1"

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        for polyhedron in specification.requirement.violations or ():
            if limits.expired is not None:
                return Answer(limits.expired)
            bounds = crown_bounds(
                network, [specification.region], polyhedron.matrix, arithmetic=self.arithmetic
            )
            if (bounds.low[0].numpy() + polyhedron.offset).max() <= self.margin:
                return Answer(Verdict.UNKNOWN)
        return Answer(Verdict.ROBUST, margin=self.margin)


class RandomCorners(Attack):
    """Tries random corners of the Linf ball; radii itself draws them closer and replays them."""

    name = "random-corners"
    norms = frozenset({Norm.LINF})

    def __init__(self, *, tries: int = 256) -> None:
        self.tries = tries

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        return [self._candidates(network, query, seed) for query in queries]

    def _candidates(self, network: Network, query: Query, seed: int) -> Sequence[Array]:
        instance, rng = query.instance, np.random.default_rng(seed)
        signs = rng.choice([-1.0, 1.0], (self.tries, *instance.input.shape))
        ball = instance.ball(query.eps)
        points = [ball.project(instance.input + query.eps * corner) for corner in signs]
        batch = np.stack(points).astype(network.input_dtype)
        margins = instance.requirement.margin(
            network.replay(batch), [ball.distance(point) for point in points]
        )
        return [batch[place] for place in np.argsort(margins)[:4]]


class Thirds(Search):
    """One proof at a time, a third of the way up what is open, for verifiers that rarely succeed.

    What gave no answer is taken to be too hard, and all above it as well.
    """

    name: ClassVar[str] = "thirds"
    needs_attack: ClassVar[bool] = True

    def next_question(self) -> Question | None:
        if self.outstanding:
            return None
        attack = Question(QuestionKind.ATTACK, self.values[-1])
        first, last = self.open_range()
        last = min([last, *self.missing_indices()])
        if first >= last:
            return None
        if attack not in self.answers:
            return attack
        return Question(QuestionKind.PROVE, self.values[first + (last - first) // 3])


class AmongTop(Property):
    """The label stays among the k largest outputs: never are k others at least as large."""

    def __init__(self, k: int = 2) -> None:
        if not isinstance(k, int) or k < 1:
            raise SpecificationError(f"property 'among-top': k must be a whole number, but is {k}")
        self.k = k

    @property
    def spec(self) -> str:
        return f"among-top:k={self.k}"

    def at(self, anchor: Anchor) -> LinearRequirement:
        outputs, label = anchor.outputs.size, anchor.label
        if not 0 <= label < outputs:
            raise SpecificationError(f"label {label} is not one of the network's {outputs} outputs")
        above = np.eye(outputs)[label] - np.eye(outputs)
        others = [index for index in range(outputs) if index != label]
        return LinearRequirement(
            tuple(
                Halfspaces(above[list(chosen)], np.zeros(self.k))
                for chosen in combinations(others, self.k)
            )
        )


def blobs(split: str) -> Dataset:
    """Points around three corners of the square; the label is the corner."""
    if split not in ("train", "test"):
        raise DataError(f"data set 'blobs' has splits train and test, not '{split}'")
    rng = np.random.default_rng(split == "test")
    corners = np.array([[0.8, 0.1], [-0.1, 0.9], [-0.7, -0.8]])
    labels = np.arange(30) % 3
    points = corners[labels] + rng.uniform(-0.1, 0.1, (30, 2))
    return from_arrays(points.astype(np.float32), labels, name="blobs", split=split)
