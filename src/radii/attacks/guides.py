"""How to reach a polyhedron of outputs where the network's last step flattens the way.

- ReLU and clip: outputs that should shrink are read as if there were no upper limit, outputs that
  should grow as if there were no lower one, so that there is a slope even where they are cut. In
  addition, where all outputs that should shrink are the least possible every other ties with them,
  which is a violation: a task of its own.
- Sigmoid, tanh, softmax: rows that compare two outputs compare their scores; rows about a single
  output ask its score, with softmax its log-odds, for the value that reaches the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from radii.attacks.features import Feature, Rows
from radii.networks import Graph
from radii.networks.operators import Clip, Relu, Reshape, Sigmoid, Softmax, Tanh
from radii.properties import Halfspaces

__all__ = ["Head", "find_head", "guide_rows", "tied_tasks"]


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """A network's last nonlinear step, cut off: `function` maps scores to outputs.

    `limits` are those of a ReLU or clip. For the others `inverse` gives what a threshold of a
    single output is in `single`, a feature.
    """

    body: Graph
    function: Callable[[Tensor], Tensor]
    limits: tuple[float, float] | None = None
    inverse: Callable[[float], float] | None = None
    single: Feature = Feature.SCORES


def find_head(graph: Graph) -> Head | None:
    """The head of a network that ends in an operator which saturates, else None."""
    index = graph.output
    while isinstance(graph.nodes[index].operator, Reshape):
        index = graph.nodes[index].inputs[0]
    node = graph.nodes[index]
    if not isinstance(node.operator, Clip | Relu | Sigmoid | Tanh | Softmax):
        return None
    source = node.inputs[0]
    body = Graph(graph.nodes[: source + 1], source)
    match node.operator:
        case Relu():
            return Head(body, torch.relu, limits=(0.0, math.inf))
        case Clip(low=low, high=high):
            return Head(body, node.operator.forward, limits=(low, high))
        case Sigmoid():
            return Head(body, torch.sigmoid, inverse=_logit)
        case Tanh():
            return Head(body, torch.tanh, inverse=_artanh)
        case Softmax(axis=axis) if node.shape[axis] == node.size:
            return Head(body, _softmax, inverse=_logit, single=Feature.SCORE_ODDS)
    return None


def guide_rows(polyhedron: Halfspaces, head: Head) -> Rows:
    """What to follow into `polyhedron`, a polyhedron of outputs."""
    matrix, offset = polyhedron.matrix, polyhedron.offset.copy()
    if head.limits is not None:
        parts = {Feature.FLOORED: np.maximum(matrix, 0), Feature.CEILED: np.minimum(matrix, 0)}
        return _without_empty_parts(Rows(parts, offset))
    parts = {f: np.zeros_like(matrix) for f in (Feature.OUTPUTS, Feature.SCORES, head.single)}
    for index, row in enumerate(matrix):
        about = np.flatnonzero(row)
        if len(about) == 2 and row.sum() == 0 and offset[index] == 0:
            parts[Feature.SCORES][index] = row
            continue
        if len(about) == 1 and head.inverse is not None:
            weight = float(row[about[0]])
            threshold = head.inverse(-float(offset[index]) / weight)
            if np.isfinite(threshold):
                parts[head.single][index] = np.sign(row)
                offset[index] = -np.sign(weight) * threshold
                continue
        parts[Feature.OUTPUTS][index] = row
    return _without_empty_parts(Rows(parts, offset))


def _without_empty_parts(rows: Rows) -> Rows:
    """Features that no row reads left out, so that nobody computes them."""
    read = {feature: part for feature, part in rows.parts.items() if part.any()}
    return Rows(read, rows.offset) if read else rows


def tied_tasks(polyhedra: Sequence[Halfspaces], head: Head) -> list[tuple[Rows, Rows]]:
    """One task for each set of outputs that break the requirement by all being least possible."""
    if head.limits is None or not math.isfinite(head.limits[0]):
        return []
    low = head.limits[0]
    found: dict[tuple[int, ...], tuple[Rows, Rows]] = {}
    for polyhedron in polyhedra:
        rising = np.flatnonzero((polyhedron.matrix > 0).any(axis=0))
        at_low = low * polyhedron.matrix.sum(axis=1) + polyhedron.offset
        if len(rising) and np.all(at_low <= 0):
            scores = np.eye(polyhedron.matrix.shape[1])[rising]
            guide = Rows({Feature.SCORES: scores}, np.full(len(rising), -low))
            found.setdefault(tuple(rising.tolist()), (Rows.of(polyhedron), guide))
    return list(found.values())


def _softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=1)


def _logit(probability: float) -> float:
    return float(np.log(probability / (1 - probability))) if 0 < probability < 1 else math.nan


def _artanh(value: float) -> float:
    return float(np.arctanh(value)) if -1 < value < 1 else math.nan
