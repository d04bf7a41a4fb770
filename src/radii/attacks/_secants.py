"""The same network with gradients that look further than a point.

Many a network is flat around its inputs: the units that would break it are off, or saturated, and
the gradient does not know of them. Here every activation f still computes f(x), but passes on the
slope of its secant over [x - r, x + r] in place of its derivative. A descent that begins with wide
secants and narrows them is led towards units that can be switched, and ends on true gradients.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from radii.networks import Graph, Node, Operator, OperatorKind

LEAST_WIDTH = 1e-3
"""Narrower secants are rounding errors in float32."""

_SECANT_WIDTHS: ContextVar[Tensor] = ContextVar("widths")


@contextlib.contextmanager
def secants(widths: Tensor) -> Iterator[None]:
    """While this holds, a `secant_graph` is called with a batch as long as `widths`.

    A row's r is its width times the root mean square of the activation's own inputs.
    """
    token = _SECANT_WIDTHS.set(widths)
    try:
        yield
    finally:
        _SECANT_WIDTHS.reset(token)


def secant_graph(graph: Graph) -> Graph:
    """A graph with the same values whose activations pass on slopes of secants."""
    nodes = [
        Node(node.name, _Secant(node.operator), node.inputs, node.shape)
        if node.operator.is_activation
        else node
        for node in graph.nodes
    ]
    return Graph(nodes, graph.output)


class _Secant(Operator):
    kind = OperatorKind.SMOOTH

    def __init__(self, activation: Operator) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        axes = tuple(range(1, x.dim()))
        with torch.no_grad():
            scale = x.square().mean(dim=axes, keepdim=True).sqrt()
            widths = _SECANT_WIDTHS.get().clamp(min=LEAST_WIDTH).reshape(-1, *(1 for _ in axes))
            radii = widths * scale + torch.finfo(x.dtype).tiny
        result: Tensor = _SecantFunction.apply(x, radii, self.activation)  # type: ignore[no-untyped-call]
        return result


class _SecantFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, radii: Tensor, activation: Operator) -> Tensor:
        ctx.save_for_backward(x, radii)
        ctx.activation = activation
        result: Tensor = activation(x)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        x, radii = ctx.saved_tensors
        rise = ctx.activation(x + radii) - ctx.activation(x - radii)
        return gradients[0] * rise / (2 * radii), None, None
