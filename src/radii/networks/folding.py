"""Evaluating, once and at load time, the nodes that do not depend on the network's input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from radii.errors import NetworkError, UnsupportedOperator
from radii.networks.models import title
from radii.networks.translation._base import MAX_VALUES

__all__ = ["constant_outputs"]

Array = npt.NDArray[np.generic]

_RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}

# Operators whose result may be far larger than their inputs: its size from the inputs.
_SIZES: dict[str, Callable[..., float]] = {
    "ConstantOfShape": lambda shape: np.prod(shape, dtype=float),
    "Expand": lambda x, shape: max(1.0, float(x.size)) * np.prod(shape, dtype=float),
    "Tile": lambda x, repeats: float(x.size) * np.prod(repeats, dtype=float),
    "Range": lambda start, limit, delta: abs((float(limit) - float(start)) / float(delta)),
}


def constant_outputs(
    node: onnx.NodeProto, inputs: Mapping[str, Array], opset: int, network: str
) -> list[Array]:
    """The outputs of a node whose inputs are all known, by the ONNX reference implementation."""
    if node.op_type in _RANDOM:
        raise UnsupportedOperator(node.op_type, title(node), network)
    if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
        return [numpy_helper.to_array(node.attribute[0].t)]
    values = [inputs[name] for name in node.input if name]
    if node.op_type in _SIZES:
        size = _SIZES[node.op_type](*values)
        if not (math.isfinite(size) and size <= MAX_VALUES):
            raise NetworkError(
                f"{network}: node '{title(node)}' ({node.op_type}) makes a constant of "
                f"{size:g} entries, which is too large"
            )
    from onnx.reference import ReferenceEvaluator

    feeds = {name: inputs[name] for name in node.input if name}
    untyped = [_untyped(name) for name in feeds]
    outputs = [name for name in node.output if name]
    graph = helper.make_graph([node], "constant", untyped, [_untyped(name) for name in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        found = ReferenceEvaluator(model).run(outputs, dict(feeds))
    except Exception as error:
        raise NetworkError(
            f"{network}: node '{title(node)}' ({node.op_type}) cannot be evaluated: {error}"
        ) from None
    return [np.asarray(value) for value in found]


def _untyped(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)
