"""The same network with gradients that do not vanish where ReLUs are off.

Many a network is flat around its inputs: the units that would break it are off, and the gradient
does not know of them. Here every ReLU still computes max(0, x), but passes a part of the gradient
on where x < 0, which leads a descent towards switching units on.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from radii.networks import Graph, Node, Operator
from radii.networks.operators import Kind, Relu

__all__ = ["leaking"]

LEAK = 0.1
"""The part of the gradient that passes a unit that is off."""


class _LeakingFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.relu(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, gradients[0], LEAK * gradients[0])


class _LeakingRelu(Operator):
    kind = Kind.PIECEWISE_LINEAR

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = _LeakingFunction.apply(x)  # type: ignore[no-untyped-call]
        return result


def leaking(graph: Graph) -> Graph:
    """A graph with the same values whose ReLUs leak gradients."""
    nodes = [
        Node(node.name, _LeakingRelu(), node.inputs, node.shape)
        if isinstance(node.operator, Relu)
        else node
        for node in graph.nodes
    ]
    return Graph(nodes, graph.output)
