"""From an ONNX model to a graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from radii.errors import NetworkError, UnsupportedOperator
from radii.networks.folding import constant_outputs, rounds_freely
from radii.networks.fusing import with_biases
from radii.networks.graph import Graph
from radii.networks.models import Signature, array, sorted_nodes, title, type_name
from radii.networks.operators import Cast
from radii.networks.translation import MAX_VALUES, TRANSLATORS, Call, Translation

__all__ = ["PASSED_THROUGH", "build_graph"]

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
                f"{network}: node '{title(node)}' reads '{source}', which nothing defines"
            )
    if node.domain not in ("", "ai.onnx"):
        raise UnsupportedOperator(f"{node.domain}.{node.op_type}", title(node), network)
    known = {s: v for s in filter(None, node.input) if not isinstance(v := values[s], int)}
    call = Call(translation, node, title(node))
    if node.op_type in ("Shape", "Size") and node.input:
        values[node.output[0]] = _extent(call)
    elif len(known) == len(set(filter(None, node.input))):
        outputs = constant_outputs(node, known, translation.opset, network)
        if translation.rounded_constants is None and rounds_freely(node, outputs):
            translation.rounded_constants = f"{title(node)} ({node.op_type})"
        values.update(zip(filter(None, node.output), outputs, strict=True))
    elif node.op_type in PASSED_THROUGH:
        _bind(call, [_passed_through(call)])
    elif node.op_type in TRANSLATORS:
        _bind(call, _nodes_for(call))
    else:
        raise call.unsupported()


def _nodes_for(call: Call) -> list[int]:
    try:
        results = TRANSLATORS[call.proto.op_type](call)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' ({call.proto.op_type}) "
            f"does not follow the ONNX definition of its operator: {error}"
        ) from error
    return [results] if isinstance(results, int) else list(results)


def _bind(call: Call, results: list[int]) -> None:
    """Name the results; an output that radii does not compute matters only once it is read."""
    outputs = call.proto.output
    call.translation.values.update(zip(outputs, results, strict=False))
    for position, name in enumerate(outputs[len(results) :], start=len(results)):
        operator = f"{call.proto.op_type} with its output {position}"
        call.translation.unavailable[name] = (operator, call.name)


def _extent(call: Call) -> npt.NDArray[np.int64]:
    shape = call.shape(0)
    if call.proto.op_type == "Size":
        return np.array(np.prod(shape), dtype=np.int64)
    end = call.int_attribute("end", len(shape))
    return np.array(shape[call.int_attribute("start", 0) : end], dtype=np.int64)


def _passed_through(call: Call) -> int:
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
