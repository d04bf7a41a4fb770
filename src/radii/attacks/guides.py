"""Where a last ReLU, sigmoid or softmax hides the gradient, and what to follow instead.

The values before that step are called scores. A guide is a polyhedron of (outputs, scores), and
being in it implies, up to rounding, that the requirement is broken:

- ReLU: outputs that should shrink are read behind it, outputs that should grow before it, so that
  there is a slope even where they are 0. In addition, where the label's output is 0 every rival
  ties with it, which is a violation: a task of its own.
- Sigmoid, tanh, softmax: rows that compare two outputs compare their scores; with the elementwise
  ones, rows about a single output ask its score for the value that reaches the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.networks import Graph
from radii.networks.operators import Relu, Reshape, Sigmoid, Softmax, Tanh
from radii.properties import Halfspaces

__all__ = ["Head", "find_head", "guide_rows", "tied_tasks"]

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """A network's last nonlinear step, cut off: `function` maps scores to outputs.

    `inverse` gives the score of a threshold of a single output, None where there is none.
    """

    body: Graph
    function: Callable[[Tensor], Tensor]
    is_relu: bool = False
    inverse: Callable[[float], float] | None = None


def find_head(graph: Graph) -> Head | None:
    """The head of a network that ends in an operator which saturates, else None."""
    index = graph.output
    while isinstance(graph.nodes[index].operator, Reshape):
        index = graph.nodes[index].inputs[0]
    node = graph.nodes[index]
    if not isinstance(node.operator, Relu | Sigmoid | Tanh | Softmax):
        return None
    source = node.inputs[0]
    body = Graph(graph.nodes[: source + 1], source)
    match node.operator:
        case Relu():
            return Head(body, torch.relu, is_relu=True)
        case Sigmoid():
            return Head(body, torch.sigmoid, inverse=_logit)
        case Tanh():
            return Head(body, torch.tanh, inverse=_artanh)
        case Softmax(axis=axis) if node.shape[axis] == node.size:
            return Head(body, _softmax)
    return None


def guide_rows(polyhedron: Halfspaces, head: Head) -> Halfspaces:
    """The polyhedron of (outputs, scores) to follow into `polyhedron`, a polyhedron of outputs."""
    matrix, offset = polyhedron.matrix, polyhedron.offset.copy()
    outputs, scores = matrix.copy(), np.zeros_like(matrix)
    if head.is_relu:
        outputs, scores = np.maximum(matrix, 0), np.minimum(matrix, 0)
    else:
        for index, row in enumerate(matrix):
            about = np.flatnonzero(row)
            if len(about) == 2 and row.sum() == 0 and offset[index] == 0:
                outputs[index], scores[index] = 0, row
            elif len(about) == 1 and head.inverse is not None:
                weight = float(row[about[0]])
                score = head.inverse(-float(offset[index]) / weight)
                if np.isfinite(score):
                    outputs[index], scores[index] = 0, np.sign(row)
                    offset[index] = -np.sign(weight) * score
    return Halfspaces(np.hstack([outputs, scores]), offset)


def tied_tasks(polyhedra: Sequence[Halfspaces], head: Head) -> list[tuple[Halfspaces, Halfspaces]]:
    """Behind a ReLU, one task for each output whose being 0 breaks the requirement by itself."""
    if not head.is_relu:
        return []
    found: dict[int, tuple[Halfspaces, Halfspaces]] = {}
    for polyhedron in polyhedra:
        rising = np.flatnonzero((polyhedron.matrix > 0).any(axis=0))
        if len(rising) == 1 and np.all(polyhedron.offset <= 0):
            output = int(rising[0])
            scores = np.zeros((1, 2 * polyhedron.matrix.shape[1]))
            scores[0, polyhedron.matrix.shape[1] + output] = 1.0
            found.setdefault(output, (polyhedron, Halfspaces(scores, np.zeros(1))))
    return list(found.values())


def _softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=1)


def _logit(probability: float) -> float:
    return float(np.log(probability / (1 - probability))) if 0 < probability < 1 else np.nan


def _artanh(value: float) -> float:
    return float(np.arctanh(value)) if -1 < value < 1 else np.nan
