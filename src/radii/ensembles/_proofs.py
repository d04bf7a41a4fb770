"""Several classifiers on one input as one network, so that every verifier decides joint queries.

The product's outputs are what each classifier's rivals have above the label. "All of them are
fooled" is then a union of polyhedra, one for each choice of a rival a classifier, as long as there
are few. Where there would be many, a classifier's output is the largest of its rivals' instead, and
one polyhedron says it all.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from itertools import product as choices

import numpy as np
import numpy.typing as npt
import torch

from radii import __version__
from radii.bounds import crown_bounds
from radii.ensembles._ensemble import Classifier, Ensemble, Fooling, Point, is_within, members
from radii.networks import (
    Concat,
    Dense,
    Graph,
    Input,
    MaxPool,
    Memo,
    Network,
    Node,
    Reshape,
    Window,
)
from radii.problem import (
    FLOAT,
    Arithmetic,
    Ball,
    Halfspaces,
    LinearRequirement,
    Specification,
    Verdict,
)
from radii.verifiers import Limits, Verifier

Float64 = npt.NDArray[np.float64]

MOST_POLYHEDRA = 24
"""Choices of rivals that are decided one by one; beyond, their maximum is part of the network."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductPart:
    """One classifier of a product, and the rivals (rows over its scores) that are in question.

    `slack` is how far a rival may stay below the label and yet tie with it, beyond what the scores
    themselves round.
    """

    classifier: Classifier
    rivals: Float64
    slack: float = 0.0


PRODUCTS_KEPT = 8
"""With one first classifier: points and balls that leave the same rivals share what is derived."""


class Product(Network):
    """What the rivals of several classifiers have above the label, as one network.

    It runs, differentiates and is bounded like any other; `replay` asks ONNX Runtime for the scores
    of each classifier.
    """

    def __init__(self, parts: Sequence[ProductPart]) -> None:
        self.parts = tuple(parts)
        count = math.prod(len(part.rivals) for part in parts)
        self.takes_maxima = len(parts) > 1 and count > MOST_POLYHEDRA
        first = parts[0].classifier.scores
        graph = _joined(self.parts, self.takes_maxima)
        rounded = (part.classifier.scores.graph.rounded_constants for part in parts)
        graph.rounded_constants = next(filter(None, rounded), None)
        super().__init__(
            name=" and ".join(part.classifier.network.name for part in parts),
            domain=first.domain,
            graph=graph.in_dtype(first.torch_dtype),
            fingerprint=_fingerprint(self.parts),
            input_shape=first.input_shape,
            input_dtype=first.input_dtype,
            onnx_bytes=b"",
        )
        products = first.memo.get(Product, lambda: Memo(PRODUCTS_KEPT))
        keys = tuple(part.classifier.scores.cache_key for part in parts)
        self.memo = products.get((self.fingerprint, keys), Memo)  # of all products of these parts

    @property
    def all_fooled(self) -> LinearRequirement:
        """Broken exactly where every classifier is fooled."""
        slacks = [part.slack for part in self.parts]
        if self.takes_maxima:
            return LinearRequirement((Halfspaces(-np.eye(len(self.parts)), -np.array(slacks)),))
        firsts = np.cumsum([0, *(len(part.rivals) for part in self.parts)])
        ranges = [range(a, b) for a, b in pairwise(firsts)]
        rows = -np.eye(firsts[-1])
        return LinearRequirement(
            tuple(Halfspaces(rows[list(chosen)], -np.array(slacks)) for chosen in choices(*ranges))
        )

    @property
    def computed_in(self) -> np.dtype[np.floating]:
        types = [part.classifier.scores.computed_in for part in self.parts]
        return max(types, key=lambda each: float(np.finfo(each).eps))

    def replay(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        found = []
        for part in self.parts:
            scores = part.classifier.scores
            outputs = scores.replay(x.reshape(len(x), *scores.input_shape))
            above = outputs.astype(np.float64) @ part.rivals.T
            found.append(above.max(axis=1, keepdims=True) if self.takes_maxima else above)
        return np.concatenate(found, axis=1)

    def __reduce__(self) -> tuple[object, ...]:
        return Product, (self.parts,)


def _fingerprint(parts: Sequence[ProductPart]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.classifier.scores.fingerprint.encode())
        digest.update(np.ascontiguousarray(part.rivals).tobytes())
    return digest.hexdigest()


def _joined(parts: Sequence[ProductPart], takes_maxima: bool) -> Graph:
    """One graph: the classifiers side by side, then what their rivals have above the label."""
    shape = parts[0].classifier.scores.graph.nodes[0].shape
    nodes = [Node("input", Input(), (), shape)]
    ends = []
    for number, part in enumerate(parts):
        end = _append(nodes, part.classifier.scores, number)
        weight = torch.from_numpy(part.rivals.T.copy())
        count = len(part.rivals)
        end = _add(nodes, f"scores{number}", Reshape((1, len(weight))), end, (1, len(weight)))
        end = _add(nodes, f"above{number}", Dense(weight), end, (1, count))
        if takes_maxima:
            window = Window((count,), (1,), (1,), ((0, 0),))
            end = _add(nodes, f"row{number}", Reshape((1, 1, count)), end, (1, 1, count))
            end = _add(nodes, f"largest{number}", MaxPool(window), end, (1, 1, 1))
            end = _add(nodes, f"best{number}", Reshape((1, 1)), end, (1, 1))
        ends.append(end)
    total = sum(nodes[end].shape[1] for end in ends)
    nodes.append(Node("all", Concat(1, [None] * len(ends)), tuple(ends), (1, total)))
    return Graph(nodes, len(nodes) - 1)


def _append(nodes: list[Node], network: Network, number: int) -> int:
    """The network's nodes behind those there are, reading the same input; its output's index."""
    graph = network.graph.in_dtype(torch.float64)
    own = graph.nodes[0].shape
    start = 0
    if own != nodes[0].shape:
        start = _add(nodes, f"input{number}", Reshape(own), 0, own)
    places = {0: start}
    for index, node in enumerate(graph.nodes[1:], start=1):
        inputs = tuple(places[i] for i in node.inputs)
        nodes.append(Node(f"{number}/{node.name}", node.operator, inputs, node.shape))
        places[index] = len(nodes) - 1
    return places[graph.output]


def _add(
    nodes: list[Node],
    name: str,
    operator: Dense | MaxPool | Reshape,
    source: int,
    shape: tuple[int, ...],
) -> int:
    nodes.append(Node(name, operator, (source,), shape))
    return len(nodes) - 1


# Joint queries: can one perturbation of a point fool all of these classifiers?


CROWN = "crown"
"""The name of who proves that one classifier alone is right in the whole ball, by its bounds."""

RIVALS_KEPT = 1024
"""Rivals that are remembered of a network, at some hundred points."""


@dataclass(frozen=True, slots=True)
class JointQuestion:
    """Can one perturbation of this point, by its place, fool all these classifiers?"""

    place: int
    classifiers: int
    eps: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class JointResult:
    """What is known of a set of classifiers at a point: NOT_ROBUST means that it can be fooled.

    ROBUST: no perturbation within `eps` fools all of `classifiers`; `margin` and `arithmetic` are
    those of the proof; a point that was replayed itself has neither.
    """

    classifiers: int
    eps: float
    verdict: Verdict
    verifier: str
    version: str
    seconds: float
    margin: float = 0.0
    message: str = ""
    fooling: Fooling | None = None
    arithmetic: Arithmetic | None = None


def decide_jointly(
    ensemble: Ensemble,
    point: Point,
    ball: Ball,
    classifiers: int,
    verifier: Verifier,
    limits: Limits | None = None,
    *,
    arithmetic: Arithmetic = FLOAT,
) -> JointResult:
    """Can one input of the ball fool all these classifiers?

    Bounds exclude what rivals they can, in `arithmetic`; if none is left of a classifier, the
    finding is about that one alone. The verifier decides the rest on the product network.
    NOT_ROBUST brings a perturbed input that was replayed on every network.
    """
    started = time.perf_counter()
    limits = limits or Limits()
    parts = []
    for place in members(classifiers):
        classifier = ensemble.classifiers[place]
        rivals, slack = possible_rivals(classifier, point.label, ball, arithmetic)
        if not len(rivals):
            return _alone(place, ball, started, arithmetic)
        parts.append(ProductPart(classifier, rivals, slack))
    product = Product(parts)
    region = Ball(ball.center.reshape(product.input_shape), ball.eps, ball.norm, product.domain)
    specification = Specification(region, product.all_fooled)
    answer, witness = verifier.decide(product, specification, limits)
    verdict, message, fooling = answer.verdict, answer.message, None
    if witness is not None:
        fooling = ensemble.replay(point, ball, witness.input)
        if fooling is None or not is_within(classifiers, fooling.fooled):
            verdict = Verdict.UNKNOWN
            message = "its counterexample does not replay on every network"
    name, version = answer.answered_by or (verifier.name, verifier.version)
    return JointResult(
        classifiers=classifiers,
        eps=ball.eps,
        verdict=verdict,
        verifier=name,
        version=version,
        seconds=time.perf_counter() - started,
        margin=answer.margin,
        message=message,
        fooling=fooling,
        arithmetic=_weaker(arithmetic, answer.arithmetic or verifier.arithmetic)
        if verdict is Verdict.ROBUST
        else None,
    )


def _weaker(one: Arithmetic, other: Arithmetic) -> Arithmetic:
    """The weakest arithmetic among the parts of a proof."""
    return min(one, other, key=lambda each: each.strength)


def prove_alone(
    ensemble: Ensemble,
    point: Point,
    ball: Ball,
    classifier: int,
    *,
    arithmetic: Arithmetic = FLOAT,
) -> JointResult | None:
    """That one classifier is right in the whole ball, if bounds prove it by themselves."""
    started = time.perf_counter()
    chosen = ensemble.classifiers[classifier]
    rivals, _ = possible_rivals(chosen, point.label, ball, arithmetic)
    return None if len(rivals) else _alone(classifier, ball, started, arithmetic)


def _alone(classifier: int, ball: Ball, started: float, arithmetic: Arithmetic) -> JointResult:
    return JointResult(
        classifiers=1 << classifier,
        eps=ball.eps,
        verdict=Verdict.ROBUST,
        verifier=CROWN,
        version=__version__,
        seconds=time.perf_counter() - started,
        arithmetic=arithmetic,
    )


def possible_rivals(
    classifier: Classifier, label: int, ball: Ball, arithmetic: Arithmetic
) -> tuple[Float64, float]:
    """The rivals that bounds do not exclude, and the classifier's slack in the ball.

    The classifier's network remembers the last few: sets of classifiers share their members.
    """
    of_classifier = classifier.has_floor, type(classifier.behind), label
    of_ball = ball.center.tobytes(), ball.eps, ball.norm, ball.domain.key()
    key = *of_classifier, *of_ball, arithmetic
    rivals = classifier.scores.memo.get(possible_rivals, lambda: Memo(RIVALS_KEPT))
    return rivals.get(key, lambda: _possible_rivals(classifier, label, ball, arithmetic))


def _possible_rivals(
    classifier: Classifier, label: int, ball: Ball, arithmetic: Arithmetic
) -> tuple[Float64, float]:
    scores = classifier.scores
    rows = classifier.rivals(label)
    own = Ball(ball.center.reshape(scores.input_shape), ball.eps, ball.norm, scores.domain)
    slack = classifier.slack(own, arithmetic)
    highest = crown_bounds(scores, [own], rows, arithmetic=arithmetic).high[0].numpy()
    return rows[~(highest < -slack)], slack  # what is NaN stays possible
