"""Evaluating, once and at load time, the nodes that do not depend on the network's input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from radii.errors import NetworkError, UnsupportedOperator
from radii.networks.models import constant_value, title
from radii.networks.translation import MAX_VALUES

__all__ = ["constant_outputs", "rounds_freely"]

Array = npt.NDArray[np.generic]

_RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}

_MOVED = (
    "Cast Concat Constant ConstantOfShape Expand EyeLike Flatten Gather GatherElements GatherND "
    "Identity OneHot Pad Reshape Shape Size Slice Split Squeeze Tile Transpose Unsqueeze Where"
)
_ROUNDED_ONCE = (
    "Abs Add Ceil Clip Div Floor Max Min Mul Neg Reciprocal Relu Round Sign Sqrt Sub Trunc"
)
_DETERMINED = frozenset([*_MOVED.split(), *_ROUNDED_ONCE.split()])
"""Operators of which IEEE 754 leaves one result only: each entry is rounded once, or not at all."""

# Operators whose result may be far larger than their inputs: its size from the inputs.
_SIZES: dict[str, Callable[..., float]] = {
    "ConstantOfShape": lambda shape: _product(shape),
    "Expand": lambda x, shape: max(1.0, float(x.size)) * _product(shape),
    "Tile": lambda x, repeats: float(x.size) * _product(repeats),
    "Range": lambda start, limit, delta: abs((float(limit) - float(start)) / float(delta)),
}


def constant_outputs(
    node: onnx.NodeProto, inputs: Mapping[str, Array], opset: int, network: str
) -> list[Array]:
    """The outputs of a node whose inputs are all known, by the ONNX reference implementation."""
    holds_graphs = any(a.HasField("g") or a.graphs for a in node.attribute)
    if node.op_type in _RANDOM or holds_graphs or not onnx.defs.has(node.op_type):
        raise UnsupportedOperator(node.op_type, title(node), network)
    stored = constant_value(node, network)
    if stored is not None:
        return [stored]
    _refuse_huge(node, [inputs[name] for name in node.input if name], network)
    feeds = {name: inputs[name] for name in node.input if name}
    outputs = [name for name in node.output if name]
    try:
        found = _evaluated(node, feeds, outputs, opset)
    except Exception as error:
        raise NetworkError(
            f"{network}: node '{title(node)}' ({node.op_type}) cannot be evaluated: "
            f"{str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"
        ) from None
    return [np.asarray(value) for value in found]


def rounds_freely(node: onnx.NodeProto, outputs: Sequence[Array]) -> bool:
    """Whether runtimes may differ in the constants that a node computes: in sums, exponentials."""
    has_floats = any(np.issubdtype(value.dtype, np.floating) for value in outputs)
    return has_floats and node.op_type not in _DETERMINED


def _evaluated(
    node: onnx.NodeProto, feeds: dict[str, Array], outputs: list[str], opset: int
) -> list[Array]:
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(
        [node], "constant", [_untyped(name) for name in feeds], [_untyped(name) for name in outputs]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return list(ReferenceEvaluator(model).run(outputs, feeds))


def _untyped(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)


def _product(sizes: Array) -> float:
    return float(np.prod(np.asarray(sizes, dtype=np.float64)))


def _refuse_huge(node: onnx.NodeProto, values: list[Array], network: str) -> None:
    if node.op_type not in _SIZES:
        return
    try:
        size = _SIZES[node.op_type](*values)
    except (TypeError, ValueError, ZeroDivisionError):
        size = math.nan
    if not 0 <= size <= MAX_VALUES:
        raise NetworkError(
            f"{network}: node '{title(node)}' ({node.op_type}) makes a constant of "
            f"{size:g} entries, which is not possible"
        )
