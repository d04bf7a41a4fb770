"""From an ONNX model to a graph."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper
from torch import Tensor

from radii.errors import NetworkError, UnsupportedOperator
from radii.networks._graph import Graph, Node
from radii.networks._models import (
    Signature,
    array,
    constant_value,
    node_title,
    sorted_nodes,
    type_name,
)
from radii.networks.operators._elementwise import AddConstant, Cast
from radii.networks.operators._products import Dense
from radii.networks.translation._base import MAX_VALUES, OnnxNode, Translation
from radii.networks.translation._registry import TRANSLATORS

PASSED_THROUGH = ("Identity", "Dropout", "Cast")
"""Operators that change nothing in inference between real numbers, and so leave no node, unless
they round: a cast from float64 to float32."""


def build_graph(model: onnx.ModelProto, signature: Signature, network: str) -> Graph:
    """The graph, with everything folded that does not depend on the network's input."""
    if np.prod(signature.shape, dtype=float) > MAX_VALUES:
        raise NetworkError(f"{network}: inputs of shape {signature.input_shape} are too large")
    nodes = sorted_nodes(model, signature.output, network)
    used = {name for node in nodes for name in node.input}
    translation = Translation(network, signature.opset, has_doubles=signature.dtype == np.float64)
    for tensor in model.graph.initializer:
        if tensor.name in used:
            translation.values[tensor.name] = array(tensor, network)
    translation.add_input(signature.input, signature.shape)
    for node in nodes:
        _translate(translation, node)
    if signature.output not in translation.values:
        raise NetworkError(f"{network}: no node computes output '{signature.output}'")
    output = translation.values[signature.output]
    if not isinstance(output, int):
        raise NetworkError(
            f"{network}: output '{signature.output}' does not depend on the input, "
            "so there is nothing to measure"
        )
    graph = with_biases(translation.nodes, output)
    graph.rounded_constants = translation.rounded_constants
    return graph


def _translate(translation: Translation, node: onnx.NodeProto) -> None:
    network, values = translation.network, translation.values
    for source in filter(None, node.input):
        if source in translation.unavailable:
            raise UnsupportedOperator(*translation.unavailable[source], network)
        if source not in values:
            raise NetworkError(
                f"{network}: node '{node_title(node)}' reads '{source}', which nothing defines"
            )
    if node.domain not in ("", "ai.onnx"):
        raise UnsupportedOperator(f"{node.domain}.{node.op_type}", node_title(node), network)
    known = {s: v for s in filter(None, node.input) if not isinstance(v := values[s], int)}
    call = OnnxNode(translation, node, node_title(node))
    if node.op_type in ("Shape", "Size") and node.input:
        values[node.output[0]] = _extent(call)
    elif len(known) == len(set(filter(None, node.input))):
        outputs = constant_outputs(node, known, translation.opset, network)
        if translation.rounded_constants is None and rounds_freely(node, outputs):
            translation.rounded_constants = f"{node_title(node)} ({node.op_type})"
        values.update(zip(filter(None, node.output), outputs, strict=True))
    elif node.op_type in PASSED_THROUGH:
        _bind(call, [_passed_through(call)])
    elif node.op_type in TRANSLATORS:
        _bind(call, _nodes_for(call))
    else:
        raise call.unsupported()


def _nodes_for(call: OnnxNode) -> list[int]:
    try:
        results = TRANSLATORS[call.proto.op_type](call)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' ({call.proto.op_type}) "
            f"does not follow the ONNX definition of its operator: {error}"
        ) from error
    return [results] if isinstance(results, int) else list(results)


def _bind(call: OnnxNode, results: list[int]) -> None:
    """Name the results; an output that radii does not compute matters only once it is read."""
    outputs = call.proto.output
    call.translation.values.update(zip(outputs, results, strict=False))
    for position, name in enumerate(outputs[len(results) :], start=len(results)):
        operator = f"{call.proto.op_type} with its output {position}"
        call.translation.unavailable[name] = (operator, call.name)


def _extent(call: OnnxNode) -> npt.NDArray[np.int64]:
    shape = call.shape(0)
    if call.proto.op_type == "Size":
        return np.array(np.prod(shape), dtype=np.int64)
    end = call.int_attribute("end", len(shape))
    return np.array(shape[call.int_attribute("start", 0) : end], dtype=np.int64)


def _passed_through(call: OnnxNode) -> int:
    """The input's own node, provided that the operator really changes nothing."""
    kind, target = call.proto.op_type, call.int_attribute("to", TensorProto.FLOAT)
    if kind == "Cast" and target not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        raise call.unsupported(f"to {type_name(target)}")
    if kind == "Dropout" and call.has(2) and call.constant(2).any():
        raise call.unsupported("in training mode")
    if kind == "Cast" and target == TensorProto.DOUBLE:
        call.translation.has_doubles = True
    elif kind == "Cast" and call.translation.has_doubles:
        return call.emit(Cast(), call.node(0))
    return call.node(0)


# Joining a matrix product with the addition behind it, which many exporters write apart.


def with_biases(nodes: Sequence[Node], output: int) -> Graph:
    """The graph in which a constant added to a product that nothing else reads is its bias."""
    readers = Counter(source for node in nodes for source in node.inputs)
    readers[output] += 1
    kept: list[Node] = []
    position: list[int] = []
    for node in nodes:
        source = nodes[node.inputs[0]] if node.inputs else node
        bias = _bias(source, node)
        if bias is not None and readers[node.inputs[0]] == 1:
            index = position[node.inputs[0]]
            assert isinstance(source.operator, Dense)
            dense = Dense(source.operator.weight, bias)
            dense.gain = source.operator.gain
            kept[index] = Node(source.name, dense, kept[index].inputs, source.shape)
            position.append(index)
        else:
            position.append(len(kept))
            inputs = tuple(position[i] for i in node.inputs)
            kept.append(Node(node.name, node.operator, inputs, node.shape))
    return Graph(kept, position[output])


def _bias(product: Node, addition: Node) -> Tensor | None:
    """What the addition adds to every row of the product, if that is what it does."""
    dense, added = product.operator, addition.operator
    if not (isinstance(dense, Dense) and dense.bias is None and isinstance(added, AddConstant)):
        return None
    constant, columns = added.constant, dense.weight.shape[1]
    is_row = constant.numel() == 1 or tuple(constant.shape[-1:]) == (constant.numel(),)
    if not is_row or addition.shape != product.shape:
        return None
    return constant.reshape(-1).expand(columns).clone()


# Evaluating, once and at load time, the nodes that do not depend on the network's input.


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
        raise UnsupportedOperator(node.op_type, node_title(node), network)
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
            f"{network}: node '{node_title(node)}' ({node.op_type}) cannot be evaluated: "
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
            f"{network}: node '{node_title(node)}' ({node.op_type}) makes a constant of "
            f"{size:g} entries, which is not possible"
        )
