"""A name for what a model computes, which does not change with what the file calls things."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import onnx
from onnx import AttributeProto

from radii.networks._models import Signature, array, constant_value, defined_since, sorted_nodes


def fingerprint(model: onnx.ModelProto, signature: Signature, network: str) -> str:
    """64 hexadecimal digits over operators, attributes, weights and topology.

    Each value's digest covers the digests of what it is computed from, so that names, the order of
    nodes, unused nodes and the place where a weight is stored have no influence.
    """
    nodes = sorted_nodes(model, signature.output, network)
    used = {name for node in nodes for name in node.input}
    stored = [tensor for tensor in model.graph.initializer if tensor.name in used]
    digests = {tensor.name: _tensor(array(tensor, network)) for tensor in stored}
    digests[signature.input] = _hash("input", str(signature.dtype), str(signature.shape))
    for node in nodes:
        constant = constant_value(node, network)
        if constant is not None:
            digests[node.output[0]] = _tensor(constant)
            continue
        inputs = [digests.get(name, "") for name in node.input]
        digest = _node(node, inputs, signature.opset, network)
        for position, name in enumerate(node.output):
            digests[name] = _hash("output", digest, str(position))
    return _hash("network", digests[signature.output])


def _node(node: onnx.NodeProto, inputs: list[str], opset: int, network: str) -> str:
    attributes = sorted(node.attribute, key=lambda attribute: attribute.name)
    described = [f"{a.name}={_attribute(a, network)}" for a in attributes]
    return _hash(
        "node", node.domain, node.op_type, str(defined_since(node, opset)), *described, *inputs
    )


def _attribute(attribute: AttributeProto, network: str) -> str:
    if attribute.type == AttributeProto.TENSOR:
        return _tensor(array(attribute.t, network))
    if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return hashlib.sha256(attribute.SerializeToString(deterministic=True)).hexdigest()
    value = onnx.helper.get_attribute_value(attribute)
    return repr(list(value) if attribute.type in _LISTS else value)


_LISTS = {AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS}


def _tensor(value: npt.NDArray[np.generic]) -> str:
    little_endian = value.astype(value.dtype.newbyteorder("<"), copy=False)
    digest = hashlib.sha256(f"tensor\n{value.dtype.name}\n{value.shape}\n".encode())
    digest.update(np.ascontiguousarray(little_endian).tobytes())
    return digest.hexdigest()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
