"""Executions of a network's file that differ in how they round: other orders of summation.

Every operator is computed in the file's own number type, one after another, so that bounds on
rounding can be held against more than the one execution that ONNX Runtime happens to be. Sums run
forward, backward, pairwise or in a random order, with rounded products, or forward with fused
multiply-add. Operators that only move, compare or clip, and functions of one number, are those of
the network's graph.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import helper, numpy_helper

from radii.networks import (
    AlongAxis,
    AveragePool,
    Convolution,
    Network,
    Operator,
    OperatorKind,
    Reshape,
    TransposedConvolution,
    constant_outputs,
    node_title,
    sorted_nodes,
)

Array = npt.NDArray[Any]

NOBODY = -1
"""The owner of values that the graph does not have."""


class SummationOrder(StrEnum):
    """How sums are formed."""

    FORWARD = "forward"
    BACKWARD = "backward"
    PAIRWISE = "pairwise"
    RANDOM = "random"
    FUSED = "fused"


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """What one execution gave for one input.

    `values` has every value of the file by its name; `nodes` those that are values of the network's
    graph, by the node's index and in its shape, and `names` what the file calls those.
    """

    order: SummationOrder
    values: dict[str, Array]
    nodes: dict[int, Array]
    names: dict[int, str]
    outputs: Array


def execute(
    network: Network, x: npt.ArrayLike, order: SummationOrder, *, seed: int = 0
) -> Execution:
    """The execution at one input (without batch axis); `seed` is for the random order."""
    model = onnx.load_from_string(network.onnx_bytes)
    point = np.asarray(x, network.input_dtype).reshape(network.graph.nodes[0].shape)
    output = model.graph.output[0].name
    run = _GraphRun(network, _Sums(order, np.random.default_rng(seed)), _opset(model))
    run.begin(model, point)
    with np.errstate(all="ignore"):
        for node in sorted_nodes(model, output, network.name):
            run.step(node)
    names = {index: name for name, index in run.index.items()}
    return Execution(order, run.values, run.nodes, names, np.ravel(run.values[output]))


def without_rounding(network: Network, known: Mapping[int, Array]) -> dict[int, Array]:
    """Every affine node's value in extended precision, given those of the nonlinear nodes.

    `known` has values by the index of their node, of the input and of nonlinear nodes at least, as
    `Execution.nodes` has. So what a nonlinear node reads comes out as the file's operators would
    give it if they did not round: to 2^-64 of what they add up, without overflow or underflow.
    Nonlinear nodes that `known` lacks, since the file has no such value, are computed in float64.
    """
    model = onnx.load_from_string(network.onnx_bytes)
    run = _WideGraphRun(
        network, _Sums(SummationOrder.FORWARD, np.random.default_rng(0)), _opset(model)
    )
    run.known = dict(known)
    run.begin(model, _wide(known[0]))
    with np.errstate(all="ignore"):
        for node in sorted_nodes(model, model.graph.output[0].name, network.name):
            run.step(node)
    return run.nodes


def _opset(model: onnx.ModelProto) -> int:
    return next(int(o.version) for o in model.opset_import if o.domain in ("", "ai.onnx"))


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums in one order, every addition rounded to the terms' own type."""

    order: SummationOrder
    rng: np.random.Generator

    def total(self, terms: Array, start: Array | None = None) -> Array:
        """Over the first axis; `start`, such as a bias, is added first or last."""
        if start is not None:
            own = np.broadcast_to(start, terms.shape[1:]).astype(terms.dtype)[None]
            is_first = self.order in (SummationOrder.BACKWARD, SummationOrder.FUSED)
            # Reversed below, so that what comes last here is added first.
            terms = np.concatenate([terms, own] if is_first or len(terms) else [own])
        if len(terms) == 0:
            return np.zeros(terms.shape[1:], terms.dtype)
        match self.order:
            case SummationOrder.BACKWARD:
                terms = terms[::-1]
            case SummationOrder.RANDOM:
                terms = terms[self.rng.permutation(len(terms))]
            case SummationOrder.PAIRWISE:
                return _pairwise(terms)
        return np.asarray(np.cumsum(terms, axis=0, dtype=terms.dtype)[-1])

    def dot(self, left: Array, right: Array, start: Array | None = None) -> Array:
        """left @ right + start for matrices (or stacks of them)."""
        lefts = np.moveaxis(left, -1, 0)[..., None]
        rights = np.moveaxis(right, -2, 0)[..., None, :]
        if self.order is SummationOrder.FUSED:
            return _fused(lefts, rights, start)
        return self.total(lefts * rights, start)


def _pairwise(terms: Array) -> Array:
    while len(terms) > 1:
        half = len(terms) // 2
        paired = terms[:half] + terms[half : 2 * half]
        terms = np.concatenate([paired, terms[2 * half :]])
    return np.asarray(terms[0])


def _fused(lefts: Array, rights: Array, start: Array | None) -> Array:
    """The product is exact in the wider type; the sum is rounded there, then to the own type."""
    own = lefts.dtype
    wide = np.float64 if own == np.float32 else np.longdouble
    shape = np.broadcast_shapes(lefts.shape[1:], rights.shape[1:])
    total = np.zeros(shape, own) if start is None else np.broadcast_to(start, shape).astype(own)
    for left, right in zip(lefts, rights, strict=True):
        total = (left.astype(wide) * right.astype(wide) + total.astype(wide)).astype(own)
    return total


@dataclass(slots=True)
class _GraphRun:
    """Values by name while the nodes are executed.

    `owners` says of which node of the graph a value is the result, or a part of it; `index` has the
    last one for each node, which is the result. `named` finds the graph's nodes by their names.
    """

    network: Network
    sums: _Sums
    opset: int
    values: dict[str, Array] = field(default_factory=dict)
    index: dict[str, int] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)

    def begin(self, model: onnx.ModelProto, point: Array) -> None:
        for tensor in model.graph.initializer:
            self.values[tensor.name] = numpy_helper.to_array(tensor)
        given = next(i.name for i in model.graph.input if i.name not in self.values)
        self.values[given] = point
        self.named = {node.name: i for i, node in enumerate(self.network.graph.nodes)}
        self._claim(given, 0)

    def step(self, node: onnx.NodeProto) -> None:
        varies = any(name in self.owners for name in node.input)
        if node_title(node) in self.network.graph.joined and node.op_type not in OPERATORS:
            results = self._joined(node)
        elif node.op_type in ("Shape", "Size") or not varies:
            results = self._constants(node)
        elif node.op_type in OPERATORS:
            call = _Call(self, node)
            results = [np.asarray(OPERATORS[node.op_type](call, *self._given(node)))]
        else:
            results = self._as_in_graph(node)
        self.values.update(zip(filter(None, node.output), results, strict=False))
        if varies and node.op_type not in ("Shape", "Size"):
            self._place(node)

    def _given(self, node: onnx.NodeProto) -> list[Array | None]:
        return [self.values[name] if name else None for name in node.input]

    @property
    def nodes(self) -> dict[int, Array]:
        """The values of the graph's nodes, in their shapes."""
        return self._in_file()

    def _in_file(self) -> dict[int, Array]:
        shapes = self.network.graph.nodes
        return {i: self.values[name].reshape(shapes[i].shape) for name, i in self.index.items()}

    def _constants(self, node: onnx.NodeProto) -> list[Array]:
        known = {name: self.values[name] for name in node.input if name}
        return constant_outputs(node, known, self.opset, self.network.name)

    def _joined(self, node: onnx.NodeProto) -> list[Array]:
        """A part of a function that is one node of the graph."""
        return self._constants(node)

    def _as_in_graph(self, node: onnx.NodeProto) -> list[Array]:
        """By the operators that the node became; there are several where it has many results."""
        graph = self.network.graph.in_dtype(self.network.torch_dtype)
        known = {index: self.values[name] for name, index in self.owners.items()}
        results = []
        for index in self._emitted(node_title(node)):
            inputs = (torch.from_numpy(known[i])[None] for i in graph.nodes[index].inputs)
            known[index] = graph.nodes[index].operator(*inputs)[0].numpy()
            results.append(known[index])
        if not results:  # the least of one value, say
            results = [self.values[name] for name in node.input if name in self.owners]
        return results if len(node.output) > 1 else results[-1:]

    def operator_of(self, node: onnx.NodeProto) -> Any:
        """What the network's graph has in the place of this node."""
        graph = self.network.graph.in_dtype(torch.float64)
        return graph.nodes[self.named[node_title(node)]].operator

    def _place(self, node: onnx.NodeProto) -> None:
        """Which nodes of the graph hold the results: the last of those that it became."""
        emitted = self._emitted(node_title(node))
        outputs = [name for name in node.output if name]
        if node_title(node) in self.network.graph.joined:
            self.owners.update(dict.fromkeys(outputs, NOBODY))
            return
        if len(outputs) > 1 and len(emitted) >= len(outputs):
            for name, index in zip(outputs, emitted, strict=False):
                self._claim(name, index)
        elif emitted:
            self._claim(outputs[0], emitted[-1])
        else:  # it changes nothing, or became the bias of the product in front of it
            source = next(name for name in node.input if name in self.owners)
            self._claim(outputs[0], self.owners[source])

    def _emitted(self, name: str) -> list[int]:
        found = [self.named[name]] if name in self.named else []
        for number in count(2):
            if f"{name}_{number}" not in self.named:
                return found
            found.append(self.named[f"{name}_{number}"])
        raise AssertionError("count() ends")

    def _claim(self, name: str, index: int) -> None:
        """The value is that of a node; what was it before is only a part of it."""
        self.owners[name] = index
        self.index = {other: i for other, i in self.index.items() if i != index}
        self.index[name] = index


@dataclass(slots=True)
class _WideGraphRun(_GraphRun):
    """In extended precision, with the values of nonlinear nodes that are known."""

    known: dict[int, Array] = field(default_factory=dict)
    hidden: dict[int, Array] = field(default_factory=dict)

    def step(self, node: onnx.NodeProto) -> None:
        varies = any(name in self.owners for name in node.input)
        emitted = self._emitted(node_title(node)) if varies else []
        nodes = self.network.graph.in_dtype(torch.float64).nodes
        if any(nodes[i].kind is not OperatorKind.AFFINE for i in emitted):
            self._bend(node, emitted)
        else:
            _GraphRun.step(self, node)

    def _joined(self, node: onnx.NodeProto) -> list[Array]:
        """What it gives is not asked for: the function's value is known."""
        return [self.values[next(name for name in node.input if name in self.owners)]]

    def _given(self, node: onnx.NodeProto) -> list[Array | None]:
        given = _GraphRun._given(self, node)
        return [v if v is None or v.dtype.kind != "f" else _wide(v) for v in given]

    @property
    def nodes(self) -> dict[int, Array]:
        """Also those that the file has no value for."""
        return self.hidden | self._in_file()

    def _bend(self, node: onnx.NodeProto, emitted: list[int]) -> None:
        """The known value, where only moves of entries follow the nonlinear node; else float64."""
        nodes = self.network.graph.in_dtype(torch.float64).nodes
        last = max(p for p, i in enumerate(emitted) if nodes[i].kind is not OperatorKind.AFFINE)
        is_moved = all(isinstance(nodes[i].operator, Reshape) for i in emitted[last + 1 :])
        held = {i: self.values[name] for name, i in self.index.items()} | self.known
        for index in emitted:
            inputs = [
                np.asarray(held[i], np.float64).reshape(nodes[i].shape) for i in nodes[index].inputs
            ]
            held[index] = _applied(nodes[index].operator, *inputs)
            self.hidden[index] = _wide(held[index])
        is_known = is_moved and emitted[-1] in self.known
        self.values[node.output[0]] = _wide((self.known if is_known else held)[emitted[-1]])
        self._place(node)

    def _as_in_graph(self, node: onnx.NodeProto) -> list[Array]:
        """Operators that move entries, on both halves of wide numbers; constants count once."""
        nodes = self.network.graph.in_dtype(torch.float64).nodes
        known = {index: self.values[name] for name, index in self.owners.items()}
        results = []
        for index in self._emitted(node_title(node)):
            inputs = [known[i].reshape(nodes[i].shape) for i in nodes[index].inputs]
            upper = [np.asarray(value, np.float64) for value in inputs]
            lower = [np.asarray(v - u, np.float64) for v, u in zip(inputs, upper, strict=True)]
            operator, nothing = nodes[index].operator, [np.zeros_like(u) for u in upper]
            moved = _wide(_applied(operator, *upper)) + _applied(operator, *lower)
            known[index] = moved - _applied(operator, *nothing)
            results.append(known[index])
        if not results:
            results = [self.values[name] for name in node.input if name in self.owners]
        return results if len(node.output) > 1 else results[-1:]


def _wide(value: Array) -> Array:
    return np.asarray(value, np.longdouble)


def _applied(operator: Operator, *values: Array) -> Array:
    """An operator of the graph, whose constants are float64."""
    with torch.no_grad():
        result = operator(*(torch.from_numpy(value.copy())[None] for value in values))
    return np.asarray(result[0].numpy())


class _Call:
    """One node under execution."""

    def __init__(self, run: _GraphRun, node: onnx.NodeProto) -> None:
        self.run, self.node, self.sums = run, node, run.sums
        self._attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def attribute(self, name: str, default: Any) -> Any:
        """Of a real number as a float32, which the default is as well."""
        given = self._attributes.get(name, default)
        return float(np.float32(given)) if isinstance(given, float) else given


def _gemm(call: _Call, a: Array, b: Array, c: Array | None = None) -> Array:
    own = a.dtype.type
    alpha, beta = own(call.attribute("alpha", 1.0)), own(call.attribute("beta", 1.0))
    a = a.T if call.attribute("transA", 0) else a
    b = b.T if call.attribute("transB", 0) else b
    start = None if c is None else beta * c
    if alpha == 1:
        return call.sums.dot(a, b, start)
    product = alpha * call.sums.dot(a, b)
    return product if start is None else np.asarray(product + start)


def _matmul(call: _Call, a: Array, b: Array) -> Array:
    left = a[None] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    rank = max(left.ndim, right.ndim)
    left, right = (m.reshape((1,) * (rank - m.ndim) + m.shape) for m in (left, right))
    stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = np.broadcast_to(left, stack + left.shape[-2:])
    right = np.broadcast_to(right, stack + right.shape[-2:])
    result = call.sums.dot(left, right)
    result = result[..., 0] if b.ndim == 1 else result
    return (
        result[..., 0, :]
        if a.ndim == 1 and b.ndim > 1
        else result[..., 0]
        if a.ndim == 1
        else result
    )


def _windowed(call: _Call, x: Array, *parts: Array | None) -> Array:
    """Conv and ConvTranspose: an input meets an output in one weight, as in a matrix product."""
    operator = call.run.operator_of(call.node)
    assert isinstance(operator, Convolution | TransposedConvolution)
    matrix, shape = _matrix(operator, x)
    bias = parts[1] if len(parts) > 1 else None
    start = None
    if bias is not None:
        along = (-1, *(1,) * (len(shape) - 2))
        start = np.broadcast_to(bias.reshape(along), shape).reshape(1, -1)
    return call.sums.dot(x.reshape(1, -1), matrix.astype(x.dtype), start).reshape(shape)


def _matrix(operator: Operator, x: Array) -> tuple[Array, tuple[int, ...]]:
    """The linear part of an operator on values of this shape, exactly; and the result's shape."""
    linear = copy.copy(operator)
    if getattr(operator, "bias", None) is not None:
        linear._buffers = {**operator._buffers, "bias": None}
    units = torch.eye(x.size, dtype=torch.float64).reshape(x.size, *x.shape)
    with torch.no_grad():
        matrix = linear(units).reshape(x.size, -1).numpy()
    return matrix, operator.result_shape(x.shape)


def _average(call: _Call, x: Array) -> Array:
    operator = call.run.operator_of(call.node)
    if not isinstance(operator, AveragePool):  # over everything
        return _mean(call, x, tuple(range(2, x.ndim)), keep=True)
    matrix, shape = _matrix(operator, x)
    counts = np.round(1 / matrix.max(axis=0)).astype(x.dtype)
    sums = call.sums.dot(x.reshape(1, -1), (matrix > 0).astype(x.dtype))
    return np.asarray((sums / counts).reshape(shape))


def _mean(call: _Call, x: Array, axes: tuple[int, ...], *, keep: bool) -> Array:
    total, number = _summed(call, x, axes, keep=keep)
    return np.asarray(total / x.dtype.type(number))


def _summed(call: _Call, x: Array, axes: tuple[int, ...], *, keep: bool) -> tuple[Array, int]:
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    terms = x.transpose(*axes, *rest).reshape(-1, *(x.shape[axis] for axis in rest))
    total = call.sums.total(terms)
    if keep:
        total = total.reshape([1 if axis in axes else x.shape[axis] for axis in range(x.ndim)])
    return total, len(terms)


def _reduced(call: _Call, x: Array, given: Array | None = None) -> Array:
    axes = call.attribute("axes", None) if given is None else given.tolist()
    if not axes:
        if call.attribute("noop_with_empty_axes", 0):
            return x
        axes = range(x.ndim)
    places = tuple(axis % x.ndim for axis in axes)
    keep = bool(call.attribute("keepdims", 1))
    if call.node.op_type == "ReduceMean":
        return _mean(call, x, places, keep=keep)
    return _summed(call, x, places, keep=keep)[0]


def _sum(call: _Call, *values: Array) -> Array:
    return call.sums.total(np.stack(np.broadcast_arrays(*values)))


def _execute_batch_norm(call: _Call, x: Array, *parts: Array) -> Array:
    along = (-1, *(1,) * (x.ndim - 2))
    scale, shift, mean, variance = (part.reshape(along) for part in parts)
    root = np.sqrt(variance + x.dtype.type(call.attribute("epsilon", 1e-5)))
    match call.sums.order:
        case SummationOrder.FORWARD:
            return np.asarray((x - mean) / root * scale + shift)
        case SummationOrder.PAIRWISE:
            return np.asarray((x - mean) * (scale / root) + shift)
    factor = scale / root
    start = shift - mean * factor
    if call.sums.order is SummationOrder.FUSED:
        return _fused(x[None], factor[None], start)
    return np.asarray(x * factor + start)


def _softmax(call: _Call, x: Array) -> Array:
    """Before opset 13 over all axes from the given one on."""
    is_old = call.run.opset < 13
    axis = call.attribute("axis", 1 if is_old else -1) % x.ndim
    rows = x.reshape(*x.shape[:axis], -1) if is_old else np.moveaxis(x, axis, -1)
    shifted = rows - rows.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    total = call.sums.total(np.moveaxis(powers, -1, 0))[..., None]
    if call.node.op_type == "LogSoftmax":
        result = shifted - np.log(total)
    elif call.sums.order is SummationOrder.BACKWARD:
        result = powers * (1 / total)
    else:
        result = powers / total
    return result.reshape(x.shape) if is_old else np.moveaxis(result, -1, axis)


def _passed(call: _Call, x: Array, *_: Array) -> Array:
    """Identity, Dropout, and a Cast to the same or another real type."""
    if call.node.op_type != "Cast" or x.dtype == np.longdouble:
        return x
    return x.astype(helper.tensor_dtype_to_np_dtype(call.attribute("to", 1)))


def _along_axes(call: _Call, x: Array, *_: Array | None) -> Array:
    """CumSum, Resize, Upsample: products with a matrix along one axis after another, or moves."""
    run = call.run
    graph = run.network.graph.in_dtype(torch.float64)
    operators = [graph.nodes[i].operator for i in run._emitted(node_title(call.node))]
    if not any(isinstance(operator, AlongAxis) for operator in operators):
        return run._as_in_graph(call.node)[0]
    for operator in operators:
        assert isinstance(operator, AlongAxis)
        weight = operator.weight.numpy().T.astype(x.dtype)
        moved = np.moveaxis(x, operator.axis, -1)
        product = call.sums.dot(moved.reshape(-1, len(weight)), weight)
        shape = (*moved.shape[:-1], weight.shape[1])
        x = np.moveaxis(product.reshape(shape), -1, operator.axis)
    return x


OPERATORS: dict[str, Callable[..., Array]] = {
    "Add": lambda _, x, y: x + y,
    "AveragePool": _average,
    "BatchNormalization": _execute_batch_norm,
    "Cast": _passed,
    "Conv": _windowed,
    "CumSum": _along_axes,
    "ConvTranspose": _windowed,
    "Div": lambda _, x, y: x / y,
    "Dropout": _passed,
    "Gemm": _gemm,
    "GlobalAveragePool": _average,
    "Identity": _passed,
    "LogSoftmax": _softmax,
    "MatMul": _matmul,
    "Mul": lambda _, x, y: x * y,
    "Neg": lambda _, x: -x,
    "Reciprocal": lambda _, x: 1 / x,
    "ReduceMean": _reduced,
    "ReduceSum": _reduced,
    "Resize": _along_axes,
    "Softmax": _softmax,
    "Sub": lambda _, x, y: x - y,
    "Sum": _sum,
    "Upsample": _along_axes,
}
"""Operators that are computed here: sums and products, which may round in more than one way."""
