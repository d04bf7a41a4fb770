"""How each operator maps intervals to an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from radii.bounds._intervals import Interval
from radii.bounds._magnitudes import EXACT_OPERATORS, magnitude_of, term_count
from radii.bounds._rounding import ELEMENTARY_ULPS, sum_slack, widened
from radii.errors import UnsupportedQuery
from radii.networks import (
    Clip,
    Concat,
    Divide,
    Graph,
    LeakyRelu,
    LogSoftmax,
    MatMul,
    MaxPool,
    Multiply,
    Operator,
    OperatorKind,
    Pad,
    PRelu,
    Reciprocal,
    Relu,
    Sigmoid,
    Softmax,
    Tanh,
)


def enclose(operator: Operator, inputs: Sequence[Interval]) -> Interval:
    """An interval that holds the operator's value for all values of its inputs."""
    match operator:
        case _ if isinstance(operator, EXACT_OPERATORS):
            return _monotone(operator, inputs)
        case _ if operator.kind is OperatorKind.AFFINE:
            return _affine(operator, inputs)
        case Relu() | Clip() | MaxPool():
            return _monotone(operator, inputs)
        case LeakyRelu() | PRelu():
            return _leaky(operator, inputs[0])
        case Sigmoid():
            low, high = widened(*_sides(operator, inputs[0]), ELEMENTARY_ULPS)
            return Interval(low.clamp(min=0), high.clamp(max=1))
        case Tanh():
            low, high = widened(*_sides(operator, inputs[0]), ELEMENTARY_ULPS)
            return Interval(low.clamp(min=-1), high.clamp(max=1))
        case Softmax():
            low, high = _log_softmax(inputs[0], operator.axis + 1)
            low, high = widened(low.exp(), high.exp(), ELEMENTARY_ULPS)
            return Interval(low.clamp(min=0), high.clamp(max=1))
        case LogSoftmax():
            return Interval(*_log_softmax(inputs[0], operator.axis + 1))
        case Multiply():
            return _interval_product(operator, inputs[0], inputs[1])
        case Divide():
            return _interval_product(Multiply(), inputs[0], _reciprocal(inputs[1]))
        case Reciprocal():
            return _reciprocal(inputs[0])
        case MatMul():
            return _matrix_product(operator, inputs[0], inputs[1])
    raise UnsupportedQuery(f"operator '{type(operator).__name__}' cannot be bounded")


def _sides(operator: Operator, x: Interval) -> tuple[Tensor, Tensor]:
    return operator(x.low), operator(x.high)


def _monotone(operator: Operator, inputs: Sequence[Interval]) -> Interval:
    """Never decreasing in any input, and computed without rounding.

    Constants that are passed on are exact in float64 only.
    """
    low, high = operator(*(x.low for x in inputs)), operator(*(x.high for x in inputs))
    if isinstance(operator, Clip | Concat | Pad) and low.dtype != torch.float64:
        low, high = widened(low, high, 1)
    return Interval(low, high)


def _affine(operator: Operator, inputs: Sequence[Interval]) -> Interval:
    centred = [x.centred() for x in inputs]
    centre = operator(*(c for c, _ in centred))
    magnitude = magnitude_of(operator)
    bias = magnitude(*(torch.zeros_like(c) for c, _ in centred))
    radius = magnitude(*(r for _, r in centred)) - bias
    size = magnitude(*(c.abs() + r for c, r in centred))
    spread = radius + sum_slack(size, term_count(operator, [c for c, _ in centred], centre))
    return _without_nan(centre - spread, centre + spread)


def _leaky(operator: LeakyRelu | PRelu, x: Interval) -> Interval:
    """The extremes lie at the ends or, where the slope is negative, at 0."""
    left, right = _sides(operator, x)
    low, high = widened(torch.minimum(left, right), torch.maximum(left, right), 1)
    crosses = ((x.low < 0) & (x.high > 0)).expand_as(low)
    low = torch.where(crosses, low.clamp(max=0), low)
    return _without_nan(low, torch.where(crosses, high.clamp(min=0), high))


def _log_softmax(x: Interval, axis: int) -> tuple[Tensor, Tensor]:
    """x_i - log sum exp(x_j) grows with x_i and falls with every other x_j."""
    low = _own_against_others(x.low, x.high, axis)
    high = _own_against_others(x.high, x.low, axis).clamp(max=0)
    # exp and log of the sum act on differences of up to this size, each with a rounding of its own.
    slack = sum_slack(1 + x.magnitude.amax(axis, keepdim=True), x.low.shape[axis])
    return low - ELEMENTARY_ULPS * slack, (high + ELEMENTARY_ULPS * slack).clamp(max=0)


def _own_against_others(own: Tensor, others: Tensor, axis: int) -> Tensor:
    """log softmax of entry i where entry i is `own` and all the others are `others`."""
    own, others = own.movedim(axis, -1), others.movedim(axis, -1)
    diagonal = torch.eye(own.shape[-1], dtype=torch.bool, device=own.device)
    entries = torch.where(diagonal, own.unsqueeze(-2), others.unsqueeze(-2))
    return (own - torch.logsumexp(entries, -1)).movedim(-1, axis)


def _interval_product(operator: Multiply, x: Interval, y: Interval) -> Interval:
    corners = [operator(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    # 0 times an unbounded side is taken as unbounded: more than is needed, but never less.
    known = torch.stack(corners)
    low, high = widened(known.amin(0), known.amax(0), 1)
    return _without_nan(low, high)


def _reciprocal(x: Interval) -> Interval:
    left, right = x.high.reciprocal(), x.low.reciprocal()
    low, high = widened(left, right, 1)
    crosses = (x.low <= 0) & (x.high >= 0)
    infinite = torch.full_like(low, torch.inf)
    return Interval(torch.where(crosses, -infinite, low), torch.where(crosses, infinite, high))


def _matrix_product(operator: MatMul, x: Interval, y: Interval) -> Interval:
    (a, r), (b, s) = x.centred(), y.centred()
    centre = operator(a, b)
    spread = operator(a.abs(), s) + operator(r, b.abs()) + operator(r, s)
    size = operator(a.abs() + r, b.abs() + s)
    spread = spread + sum_slack(size, 4 * a.shape[-1])
    return _without_nan(centre - spread, centre + spread)


def _without_nan(low: Tensor, high: Tensor) -> Interval:
    """Infinite inputs may leave a NaN: nothing is known there."""
    low = torch.where(torch.isnan(low), -torch.inf, low)
    return Interval(low, torch.where(torch.isnan(high), torch.inf, high))


# Interval propagation: a box around the value of every node of a graph.


def interval_bounds(
    graph: Graph, inputs: Interval, known: Mapping[int, Interval] | None = None
) -> list[Interval]:
    """For every node an interval that holds its value for every input between the given bounds.

    `inputs` is a batch of boxes (B, *input shape), float32 or float64, on any device; results have
    its type. The enclosure is of the network in real arithmetic. `known` holds intervals that
    are already proven for some nodes; they are intersected with the propagated ones.
    """
    known = known or {}
    exact = graph.in_dtype(inputs.low.dtype)
    shape = (inputs.low.shape[0], *graph.nodes[0].shape)
    bounds: list[Interval] = []
    with torch.no_grad():
        for index, node in enumerate(exact.nodes):
            if index == 0:
                found = Interval(inputs.low.reshape(shape), inputs.high.reshape(shape))
            else:
                found = enclose(node.operator, [bounds[i] for i in node.inputs])
            if index in known:
                found = found.intersected(known[index])
            bounds.append(found)
    return bounds
