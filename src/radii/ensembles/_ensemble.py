"""A classifier of an ensemble: the network itself, and the scores that decide its class.

A final softmax changes no comparison between outputs, and behind a final ReLU the label ties with
the others wherever its score is 0 or below. So proofs are about the scores in front of them, which
are piecewise linear where the network is; witnesses are replayed on the network itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from radii.bounds import crown_bounds
from radii.datasets import Dataset
from radii.errors import NetworkError, SpecificationError
from radii.networks import (
    LogSoftmax,
    Network,
    NumberType,
    Relu,
    Softmax,
    log_softmax_error,
    softmax_ratio,
    without_last,
)
from radii.problem import (
    Anchor,
    Arithmetic,
    Array,
    Ball,
    Domain,
    Norm,
    OneToAny,
    Specification,
    check_witness,
)
from radii.runs import select

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Classifier:
    """A network and its scores.

    `has_floor`: the label is also beaten where its score is 0 or below. `behind` is a final
    (log-)softmax that the scores leave out.
    """

    network: Network
    scores: Network
    has_floor: bool = False
    behind: Softmax | LogSoftmax | None = None

    @classmethod
    def of(cls, network: Network) -> Classifier:
        """The classifier of a network, with the scores in front of its last step."""
        graph = network.graph
        node = graph.nodes[graph.output]
        match node.operator:
            case Relu():
                body = without_last(network, "Relu")
                return cls(network, body or network, has_floor=body is not None)
            case Softmax() | LogSoftmax() if node.shape[node.operator.axis] == node.size:
                body = without_last(network, "Softmax", "LogSoftmax")
                return cls(network, body or network, behind=node.operator if body else None)
        return cls(network, network)

    def slack(self, ball: Ball, arithmetic: Arithmetic) -> float:
        """How far a rival's score may stay below the label's and yet tie with it in the ball.

        Softmax gives equal floats for scores that differ by little, and log-softmax rounds numbers
        as large as the scores.
        """
        if self.behind is None or not arithmetic.is_float:
            return 0.0
        number = NumberType.of(self.network.computed_in)
        if isinstance(self.behind, Softmax):
            return softmax_ratio(number.unit) * arithmetic.widening
        bounds = crown_bounds(self.scores, [ball], arithmetic=arithmetic)
        largest = float(bounds.magnitude.max())
        if not 2 * largest < number.largest:
            return math.inf  # differences of scores overflow: two that do are equal
        error = log_softmax_error(largest, self.scores.output_size, number.unit)
        return 2 * error * arithmetic.widening

    def rivals(self, label: int) -> Float64:
        """A row for each way to beat the label: it does so where `row @ scores` is 0 or above."""
        rows = np.eye(self.scores.output_size)
        rows[:, label] -= 1.0
        rows = np.delete(rows, label, axis=0)
        if not self.has_floor:
            return rows
        floor = np.zeros((1, self.scores.output_size))
        floor[0, label] = -1.0
        return np.concatenate([rows, floor])


# Sets of classifiers as whole numbers: bit c is set where classifier c is a member.


Weights = Sequence[Fraction] | Sequence[float]


def set_of(classifiers: Iterable[int]) -> int:
    """The set that holds these classifiers."""
    mask = 0
    for classifier in classifiers:
        mask |= 1 << classifier
    return mask


def full_set(count: int) -> int:
    """The set of the first `count` classifiers."""
    return (1 << count) - 1


def members(mask: int) -> tuple[int, ...]:
    """The classifiers in a set, in order."""
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


def is_within(inner: int, outer: int) -> bool:
    """Every member of `inner` is one of `outer`."""
    return inner & ~outer == 0


def maximal(masks: Iterable[int]) -> tuple[int, ...]:
    """The sets that lie in no other one, largest first."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (-m.bit_count(), m)):
        if not any(is_within(mask, larger) for larger in kept):
            kept.append(mask)
    return tuple(kept)


def minimal(masks: Iterable[int]) -> tuple[int, ...]:
    """The sets that hold no other one, smallest first."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (m.bit_count(), m)):
        if not any(is_within(smaller, mask) for smaller in kept):
            kept.append(mask)
    return tuple(kept)


def subsets_by_size(mask: int) -> Iterator[int]:
    """The non-empty subsets, smallest first."""
    inside = members(mask)
    for size in range(1, len(inside) + 1):
        for chosen in combinations(inside, size):
            yield set_of(chosen)


def weight_of(mask: int, weights: Weights) -> Fraction | float:
    """The weights of the members, added up."""
    return sum((weights[c] for c in members(mask)), Fraction(0))


def heaviest(weights: Weights, forbidden: Sequence[int], universe: int) -> int:
    """The subset of `universe` of largest weight that holds no forbidden set; maximal as well.

    Exact: it branches on which member of a forbidden set to leave out. Weights are not negative.
    """
    best = 0
    best_weight: Fraction | float = -1.0
    stack: list[tuple[int, int]] = [(universe, 0)]  # a candidate, and what it must keep
    while stack:
        candidate, kept = stack.pop()
        weight = weight_of(candidate, weights)
        if weight <= best_weight:
            continue
        violated = next((mask for mask in forbidden if is_within(mask, candidate)), None)
        if violated is None:
            best, best_weight = candidate, weight
            continue
        branches = []
        for classifier in sorted(members(violated & ~kept), key=lambda c: weights[c]):
            branches.append((candidate & ~(1 << classifier), kept))
            kept |= 1 << classifier
        stack.extend(reversed(branches))
    for classifier in members(universe & ~best):
        grown = best | 1 << classifier
        if not any(is_within(mask, grown) for mask in forbidden):
            best = grown
    return best


# An ensemble: classifiers of the same inputs and classes, and whom a perturbed input fools.


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A labelled input, in the shape and type that the ensemble's first network takes."""

    index: int
    label: int
    input: Array


@dataclass(frozen=True, slots=True, eq=False)
class Fooling:
    """A perturbed input and the set of classifiers that it fools, replayed on ONNX Runtime.

    `distance` is measured from the point in the norm of the ball that was attacked.
    """

    fooled: int
    distance: float
    input: Array


class Ensemble:
    """Classifiers that one attacker faces. They may normalise their inputs differently.

    Raises a NetworkError unless all take the same inputs and tell the same classes apart.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        if not networks:
            raise SpecificationError("an ensemble needs at least one network, but none was given")
        first = networks[0]
        for other in networks[1:]:
            _check_alike(first, other)
        if first.output_size < 2:
            raise NetworkError(
                f"{first.name}: has one output, but a classifier needs one for each class"
            )
        self.networks = tuple(networks)
        self.classifiers = tuple(Classifier.of(network) for network in networks)
        self.domain: Domain = first.domain

    def __len__(self) -> int:
        return len(self.networks)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(network.name for network in self.networks)

    def points(self, dataset: Dataset, *, layout: str | None = None) -> tuple[Point, ...]:
        """The images of a data set as the ensemble takes them; an InputError if they do not fit."""
        found = select(
            self.networks[0], dataset, property="one-to-any", norm=Norm.LINF, layout=layout
        )
        return tuple(Point(each.index, each.label, each.input) for each in found)

    def check_outputs(self, points: Sequence[Point]) -> None:
        """Refuse points at which a network has no answer: neither right nor fooled."""
        for network in self.networks:
            inputs = np.stack([point.input.reshape(network.input_shape) for point in points])
            is_strange = ~np.isfinite(network.replay(inputs)).all(axis=1)
            if is_strange.any():
                index = points[int(is_strange.argmax())].index
                raise NetworkError(
                    f"{network.name}: gives outputs that are not finite at point {index}"
                )

    def ball(self, point: Point, norm: Norm, eps: float) -> Ball:
        return Ball(np.asarray(point.input, np.float64), eps, norm, self.domain)

    def replay(self, point: Point, ball: Ball, candidate: Array) -> Fooling | None:
        """Whom the candidate fools, once it is moved into the ball; None if it is not a number."""
        if not np.isfinite(candidate).all():
            return None
        moved = ball.project(candidate.reshape(ball.shape), self.networks[0].input_dtype)
        if not ball.contains(moved):
            return None
        fooled = set_of(
            place
            for place, network in enumerate(self.networks)
            if _is_fooled(network, point, ball, moved)
        )
        return Fooling(fooled, ball.distance(moved), moved)


def _is_fooled(network: Network, point: Point, ball: Ball, moved: Array) -> bool:
    shape = network.input_shape
    own = Ball(ball.center.reshape(shape), ball.eps, ball.norm, network.domain)
    anchor = Anchor(point.label, np.zeros(network.output_size))
    specification = Specification(own, OneToAny().at(anchor))
    witness = check_witness(network, specification, moved.reshape(shape))
    return witness is not None and np.array_equal(witness.input.ravel(), moved.ravel())


def _check_alike(first: Network, other: Network) -> None:
    shapes, types = (first.input_shape, other.input_shape), (first.input_dtype, other.input_dtype)
    classes = first.output_size, other.output_size
    domains = first.domain.key(), other.domain.key()
    for what, (one, two), is_same in (
        ("inputs of shape", shapes, _are_alike(*shapes)),
        ("inputs of type", types, types[0] == types[1]),
        ("inputs of this number of classes:", classes, classes[0] == classes[1]),
        ("inputs in", domains, _same_domain(first, other)),
    ):
        if not is_same:
            raise NetworkError(
                f"{other.name}: takes {what} {two}, but {first.name} takes {one}; "
                "an ensemble needs networks of the same inputs and classes"
            )


def _are_alike(one: tuple[int, ...], two: tuple[int, ...]) -> bool:
    """The shapes order values alike: up to axes of length 1; a grey image may also be flat."""
    long = [tuple(length for length in shape if length != 1) for shape in (one, two)]
    if long[0] == long[1]:
        return True
    ranks = sorted(map(len, long))
    return np.prod(one) == np.prod(two) and ranks[0] == 1 and ranks[1] <= 2


def _same_domain(first: Network, other: Network) -> bool:
    sides = zip(
        first.domain.box(first.input_shape), other.domain.box(other.input_shape), strict=True
    )
    return all(np.array_equal(one.ravel(), two.ravel()) for one, two in sides)
