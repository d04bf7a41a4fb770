"""Several classifiers on one input as one network, so that every verifier decides joint queries.

The product's outputs are what each classifier's rivals have above the label. "All of them are
fooled" is then a union of polyhedra, one for each choice of a rival a classifier, as long as there
are few. Where there would be many, a classifier's output is the largest of its rivals' instead, and
one polyhedron says it all.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from itertools import product as choices

import numpy as np
import numpy.typing as npt
import torch

from radii.ensembles.classifiers import Classifier
from radii.networks import Graph, Network, Node
from radii.networks.operators import Concat, Dense, Input, MaxPool, Reshape, Window
from radii.properties import Halfspaces, LinearRequirement

__all__ = ["MOST_POLYHEDRA", "Part", "Product"]

Float64 = npt.NDArray[np.float64]

MOST_POLYHEDRA = 24
"""Choices of rivals that are decided one by one; beyond, their maximum is part of the network."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One classifier of a product, and the rivals (rows over its scores) that are in question.

    `slack` is how far a rival may stay below the label and yet tie with it, beyond what the scores
    themselves round.
    """

    classifier: Classifier
    rivals: Float64
    slack: float = 0.0


class Product(Network):
    """What the rivals of several classifiers have above the label, as one network.

    It runs, differentiates and is bounded like any other; `replay` asks ONNX Runtime for the scores
    of each classifier.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
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


def _fingerprint(parts: Sequence[Part]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.classifier.scores.fingerprint.encode())
        digest.update(np.ascontiguousarray(part.rivals).tobytes())
    return digest.hexdigest()


def _joined(parts: Sequence[Part], takes_maxima: bool) -> Graph:
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
