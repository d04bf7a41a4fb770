"""A graph reduced to its nonlinear nodes and the affine maps between them.

Between two nonlinear nodes a network is affine, whatever operators do it: normalisation, residual
sums, convolutions, reshapes. One sparse matrix for each pair replaces them. Its rows are
gradients, so no operator needs a rule of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor

from radii.errors import UnsupportedQuery
from radii.networks import Graph, Network, NumberType, Operator, OperatorKind

Float64 = npt.NDArray[np.float64]

GRADIENTS_AT_ONCE = 1 << 22
"""How many numbers a batch of gradients may hold at one node: 32 MB in float64."""

FUSIONS_KEPT = 16
"""How many networks' fusions are kept: a worker rarely alternates between more, ensembles do."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What one node reads: `sum of maps[i] @ value of node i, flattened, + offset`.

    The i are the input (node 0) and earlier nonlinear nodes. `node` is the nonlinear node that
    reads it, or the graph's output; `source` is the node whose value it is. `leaves` are all nodes
    that it is affine in, those whose map is 0 too, and `between` the affine nodes that compute it.
    """

    node: int
    source: int
    operator: Operator
    shape: tuple[int, ...]
    maps: dict[int, csr_array]
    offset: Float64
    leaves: tuple[int, ...]
    between: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fusion:
    """The stages of all nonlinear nodes that the output depends on, in order, and the output.

    `number` is the type that the file computes in: the narrowest, where it has several. `behind` is
    a final (log-)softmax that was left out: what it rounds counts with the output.
    """

    graph: Graph
    stages: tuple[Stage, ...]
    output: Stage
    number: NumberType
    behind: Operator | None = None

    @property
    def units(self) -> int:
        """How many nonlinear units there are."""
        return sum(self.graph.nodes[stage.node].size for stage in self.stages)


_fusions: dict[tuple[object, ...], Fusion] = {}


def fuse(network: Network) -> Fusion:
    """The fusion of a network; the last few are remembered."""
    known = _fusions.pop(network.cache_key, None)
    fusion = known or _fuse(
        network.graph.in_dtype(torch.float64), NumberType.of(network.computed_in)
    )
    _fusions[network.cache_key] = fusion
    while len(_fusions) > FUSIONS_KEPT:
        _fusions.pop(next(iter(_fusions)))
    return fusion


def _fuse(graph: Graph, number: NumberType) -> Fusion:
    needed = _ancestors(graph, graph.output)
    nonlinear = [i for i in needed if graph.nodes[i].kind is not OperatorKind.AFFINE]
    stages = []
    for index in nonlinear:
        if len(graph.nodes[index].inputs) != 1:
            raise UnsupportedQuery(
                f"node '{graph.nodes[index].name}' is nonlinear in several values: not decided"
            )
        stages.append(_stage(graph, index, graph.nodes[index].inputs[0]))
    return Fusion(graph, tuple(stages), _stage(graph, graph.output, graph.output), number)


def _ancestors(graph: Graph, target: int) -> list[int]:
    """The nodes that the target's value depends on, itself included, in order."""
    needed = {target}
    for index in range(target, -1, -1):
        if index in needed:
            needed.update(graph.nodes[index].inputs)
    return sorted(needed)


def _stage(graph: Graph, node: int, source: int) -> Stage:
    leaves, between = _affine_part(graph, source)
    size = graph.nodes[source].size
    largest = max(graph.nodes[i].size for i in (*leaves, *between))
    step = max(1, min(size, GRADIENTS_AT_ONCE // largest))
    parts: dict[int, list[csr_array]] = {leaf: [] for leaf in leaves}
    offset = np.zeros(size)
    for first in range(0, size, step):
        rows = range(first, min(first + step, size))
        values, gradients = _gradients(graph, leaves, between, source, rows)
        offset[rows.start : rows.stop] = values
        for leaf in leaves:
            parts[leaf].append(csr_array(gradients[leaf]))
    maps = {leaf: csr_array(vstack(parts[leaf])) for leaf in leaves}
    return Stage(
        node=node,
        source=source,
        operator=graph.nodes[node].operator,
        shape=graph.nodes[source].shape,
        maps={leaf: matrix for leaf, matrix in maps.items() if matrix.nnz},
        offset=offset,
        leaves=tuple(leaves),
        between=tuple(between),
    )


def _affine_part(graph: Graph, source: int) -> tuple[list[int], list[int]]:
    """The input and nonlinear nodes the source is affine in, and the affine nodes in between."""
    leaves, between, waiting = set(), set(), [source]
    while waiting:
        index = waiting.pop()
        if index == 0 or graph.nodes[index].kind is not OperatorKind.AFFINE:
            leaves.add(index)
        elif index not in between:
            between.add(index)
            waiting.extend(graph.nodes[index].inputs)
    return sorted(leaves), sorted(between)


def _gradients(
    graph: Graph, leaves: Sequence[int], between: Sequence[int], source: int, rows: range
) -> tuple[Float64, dict[int, Float64]]:
    """The rows' constant parts and their gradients with respect to each leaf, one row each."""
    count = len(rows)
    values: dict[int, Tensor] = {
        leaf: torch.zeros((count, *graph.nodes[leaf].shape), dtype=torch.float64).requires_grad_()
        for leaf in leaves
    }
    inputs = [values[leaf] for leaf in leaves]
    with torch.enable_grad():
        for index in between:
            node = graph.nodes[index]
            values[index] = node.operator(*(values[i] for i in node.inputs))
        flat = values[source].reshape(count, -1)
        chosen = flat[torch.arange(count), torch.arange(rows.start, rows.stop)]
        slopes = torch.autograd.grad(chosen.sum(), inputs, allow_unused=True)
    gradients = {}
    for leaf, tensor, gradient in zip(leaves, inputs, slopes, strict=True):
        filled = torch.zeros_like(tensor) if gradient is None else gradient
        gradients[leaf] = filled.detach().reshape(count, -1).numpy()
    return chosen.detach().numpy(), gradients
