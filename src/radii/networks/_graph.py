"""The graph of a network: nodes in topological order, run on batches of inputs."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from radii.networks.operators._base import Operator, OperatorKind


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One value of a network and the operator that computes it.

    `inputs` are indices of earlier nodes, in the operator's order. `shape` is the value's shape in
    the ONNX graph with a batch of 1, so a batch of B inputs gives values (B, *shape).
    """

    name: str
    operator: Operator
    inputs: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def kind(self) -> OperatorKind:
        """What a verifier may assume of the operator."""
        return self.operator.kind

    @property
    def size(self) -> int:
        """How many numbers the value holds for one input."""
        return math.prod(self.shape)


class Graph:
    """Nodes in topological order, each with one value; node 0 is the input. Immutable.

    Batching is an axis in front of every value, so that graphs which reshape or transpose their own
    batch axis run in batches all the same.

    `rounded_constants` names a node of the file that computes constants which every runtime may
    round in its own way; None if there is none.
    """

    def __init__(self, nodes: Sequence[Node], output: int, exact: Graph | None = None) -> None:
        """`nodes` hold float64 constants on the CPU, unless this is a copy of the graph `exact`."""
        self.nodes = tuple(nodes)
        self.output = output
        self.rounded_constants: str | None = exact.rounded_constants if exact else None
        self._exact = exact or self
        self._copies: dict[tuple[torch.dtype, torch.device], Graph] = (
            exact._copies if exact else {(torch.float64, torch.device("cpu")): self}
        )
        self._last_use = self._find_last_uses()

    @property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each node the nodes that read its value, in order."""
        readers: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for source in dict.fromkeys(node.inputs):
                readers[source].append(index)
        return tuple(tuple(r) for r in readers)

    @property
    def is_affine(self) -> tuple[bool, ...]:
        """For each node whether its operator is affine, jointly in all its inputs."""
        return tuple(node.kind is OperatorKind.AFFINE for node in self.nodes)

    @property
    def is_piecewise_linear(self) -> bool:
        """No operator is smoothly nonlinear."""
        return all(node.kind is not OperatorKind.SMOOTH for node in self.nodes)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.nodes[self.output].shape

    def values(self, x: Tensor) -> list[Tensor]:
        """All node values for a batch (B, ...) of inputs, in the dtype and on the device of x."""
        graph = self._matching(x)
        values = [x.reshape(x.shape[0], *self.nodes[0].shape)]
        for node in graph.nodes[1:]:
            values.append(node.operator(*(values[i] for i in node.inputs)))
        return values

    def __call__(self, x: Tensor) -> Tensor:
        """The output (B, *output_shape) alone; values are dropped as soon as nothing needs them."""
        graph = self._matching(x)
        values: list[Tensor | None] = [None] * len(graph.nodes)
        values[0] = x.reshape(x.shape[0], *self.nodes[0].shape)
        for index, node in enumerate(graph.nodes[1:], start=1):
            values[index] = node.operator(*(values[i] for i in node.inputs))
            for source in node.inputs:
                if self._last_use[source] == index:
                    values[source] = None
        result = values[self.output]
        assert result is not None
        return result

    def in_dtype(self, dtype: torch.dtype) -> Graph:
        """The same graph with constants in `dtype`; made once, then remembered."""
        return self._copy(dtype, torch.device("cpu"))

    def _matching(self, x: Tensor) -> Graph:
        return self._copy(x.dtype, x.device)

    def _copy(self, dtype: torch.dtype, device: torch.device) -> Graph:
        key = (dtype, device)
        if key not in self._copies:
            nodes = [
                Node(n.name, copy.deepcopy(n.operator).to(device, dtype), n.inputs, n.shape)
                for n in self._exact.nodes
            ]
            self._copies[key] = Graph(nodes, self.output, exact=self._exact)
        return self._copies[key]

    def _find_last_uses(self) -> list[int]:
        last = list(range(len(self.nodes)))
        for index, node in enumerate(self.nodes):
            for source in node.inputs:
                last[source] = index
        last[self.output] = len(self.nodes)
        return last
