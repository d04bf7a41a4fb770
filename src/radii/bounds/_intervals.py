"""Interval propagation (Gowal et al. 2018): a box around the value of every node of a graph."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from radii.networks import Graph, Interval


def interval_bounds(
    graph: Graph, inputs: Interval, known: Mapping[int, Interval] | None = None
) -> list[Interval]:
    """For every node an interval that holds its value for every input between the given bounds.

    `inputs` is a batch of boxes (B, *input shape), float32 or float64, on any device; results have
    its type, rounded outward from float64. The enclosure is of the network in real arithmetic.
    `known` holds intervals that are already proven for some nodes; they are intersected with the
    propagated ones.
    """
    known, dtype = known or {}, inputs.low.dtype
    inputs, exact = inputs.outward(torch.float64), graph.in_dtype(torch.float64)
    shape = (inputs.low.shape[0], *graph.nodes[0].shape)
    bounds: list[Interval] = []
    with torch.no_grad():
        for index, node in enumerate(exact.nodes):
            if index == 0:
                held = Interval(inputs.low.reshape(shape), inputs.high.reshape(shape))
            else:
                held = node.operator.enclosure(*(bounds[i] for i in node.inputs))
            if index in known:
                held = held.intersected(known[index].outward(torch.float64))
            bounds.append(held)
    return [held.outward(dtype) for held in bounds]
