"""From an ONNX model to a graph."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from radii.errors import NetworkError, UnsupportedOperator
from radii.networks.folding import constant_outputs
from radii.networks.graph import Graph
from radii.networks.models import Signature, sorted_nodes, title
from radii.networks.translation import TRANSLATORS, Call, Translation
from radii.networks.translation._base import MAX_VALUES

__all__ = ["build_graph"]

_UNCHANGED = {"Identity", "Dropout", "Cast", "CastLike"}


def build_graph(model: onnx.ModelProto, signature: Signature, network: str) -> Graph:
    """The graph, with everything folded that does not depend on the network's input."""
    if np.prod(signature.shape, dtype=float) > MAX_VALUES:
        raise NetworkError(f"{network}: an input of shape {signature.shape} is too large")
    translation = Translation(network, signature.opset)
    for tensor in model.graph.initializer:
        translation.values[tensor.name] = numpy_helper.to_array(tensor)
    translation.add_input(signature.input, signature.shape)
    for node in sorted_nodes(model, signature.output, network):
        _translate(translation, node)
    output = translation.values.get(signature.output)
    if not isinstance(output, int):
        raise NetworkError(f"{network}: the output does not depend on the input")
    return Graph(translation.nodes, output)


def _translate(translation: Translation, node: onnx.NodeProto) -> None:
    values = translation.values
    name = title(node)
    for source in node.input:
        if source and source not in values:
            raise NetworkError(
                f"{translation.network}: node '{name}' reads '{source}', which nothing defines"
            )
    if node.domain not in ("", "ai.onnx"):
        operator = f"{node.domain}.{node.op_type}"
        raise UnsupportedOperator(operator, name, translation.network)
    known = {s: v for s in node.input if s and not isinstance(v := values[s], int)}
    call = Call(translation, node, name)
    if node.op_type in ("Shape", "Size"):
        values[node.output[0]] = _size(call)
    elif len(known) == len(set(filter(None, node.input))):
        outputs = constant_outputs(node, known, translation.opset, translation.network)
        values.update(zip(filter(None, node.output), outputs, strict=True))
    elif node.op_type in _UNCHANGED:
        values[node.output[0]] = _unchanged(call)
    else:
        _apply(call)


def _apply(call: Call) -> None:
    translator = TRANSLATORS.get(call.proto.op_type)
    if translator is None:
        raise call.unsupported()
    results = translator(call)
    outputs = [results] if isinstance(results, int) else results
    call.translation.values.update(zip(call.proto.output, outputs, strict=False))


def _size(call: Call) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    shape = call.shape(0)
    if call.proto.op_type == "Size":
        return np.array(np.prod(shape), dtype=np.int64)
    return np.array(
        shape[call.int_attribute("start", 0) : call.int_attribute("end", len(shape))],
        dtype=np.int64,
    )


def _unchanged(call: Call) -> int:
    """The node itself, after checking that what the operator changes does not matter here."""
    kind = call.proto.op_type
    if kind == "Cast" and call.int_attribute("to", 0) not in (
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
    ):
        raise call.unsupported(
            f"to {TensorProto.DataType.Name(call.int_attribute('to', 0)).lower()}"
        )
    if kind == "CastLike":
        raise call.unsupported()
    if kind == "Dropout" and call.has(2) and bool(call.constant(2)):
        raise call.unsupported("in training mode")
    return call.node(0)
