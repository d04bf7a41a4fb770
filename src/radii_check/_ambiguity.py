"""Models that runtimes, or onnx's own implementation, read in more than one way.

A proof about such a model would be about one reading of it. They are unreadable; what they do is
left to nobody's judgement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from radii_check._errors import require_known, require_readable

DEFAULT_DOMAINS = ("", "ai.onnx")
RUNTIME_DOMAINS = ("ai.onnx", "com.", "org.pytorch.aten")
"""Of operators that ONNX Runtime has itself, and takes instead of a model's function."""
ENLARGING = ("ConstantOfShape", "Expand", "Tile")
"""Operators that make large values of small ones."""
MAX_ENTRIES = 2**24
"""Of a value that one of them makes."""
MAX_INTEGER_REDUCTION = 2**31
"""From here on, sums and products of integers wrap in some runtimes."""


def check_model(model: onnx.ModelProto) -> None:
    """Files that are read in more than one way, or in part from elsewhere, are not read at all."""
    opsets = [opset for opset in model.opset_import if opset.domain in DEFAULT_DOMAINS]
    require_readable(len(opsets) == 1, "the network names no opset, or several")
    _check_functions(model)
    _check_weights(model)
    _check_names(model.graph)


def _check_functions(model: onnx.ModelProto) -> None:
    has_own_domain = [
        function.domain != "" and not function.domain.startswith(RUNTIME_DOMAINS)
        for function in model.functions
    ]
    shadowing = "the network has functions named as operators of ONNX or of a runtime"
    require_readable(has_own_domain, shadowing)
    defaults = [len(function.attribute_proto) for function in model.functions]
    optional = "a function of the network has attributes that may be left out"
    require_readable(not any(defaults), optional)


def _check_weights(model: onnx.ModelProto) -> None:
    graph = model.graph
    require_readable(not graph.sparse_initializer, "the network has sparse weights")
    bodies = [graph.node, *(function.node for function in model.functions)]
    nodes = [node for body in bodies for node in body]
    constants = [node for node in nodes if node.op_type == "Constant"]
    has_one_value = [len(node.attribute) == 1 for node in constants]
    require_readable(has_one_value, "a constant has several values")
    of_attributes = (attribute.t for node in nodes for attribute in node.attribute)
    tensors = [*graph.initializer, *of_attributes]
    is_inside = [tensor.data_location != TensorProto.EXTERNAL for tensor in tensors]
    require_readable(is_inside, "the network keeps weights in another file")


def _check_names(graph: onnx.GraphProto) -> None:
    stored = {tensor.name for tensor in graph.initializer}
    inputs = {value.name for value in graph.input} - stored
    names = Counter(name for node in graph.node for name in node.output if name)
    names.update(tensor.name for tensor in graph.initializer)
    names.update(inputs)
    require_readable(max(names.values()) == 1, "the network has two values of one name")


def check_before_running(node: onnx.NodeProto, inputs: Mapping[str, Any]) -> None:
    """What onnx's reference implementation is known not to do as its specification says, or makes
    too large."""
    kind = node.op_type
    if kind in ENLARGING:
        sizes = np.float64(inputs[node.input[-1]]) + 1
        entries = inputs[node.input[0]].size * np.prod(sizes)
        require_known(entries < MAX_ENTRIES, f"{kind} of values that large")
    if kind == "Slice" and len(node.input) > 4:
        steps = inputs[node.input[4]]
        require_known(steps > 0, "Slice with a negative step")
    if kind == "Pad":
        by_attribute = [attribute.ints for attribute in node.attribute if attribute.name == "pads"]
        pads = inputs[node.input[1]] if len(node.input) > 1 else by_attribute[0]
        require_known(min(pads, default=0) >= 0, "Pad that cuts off")
    if kind == "Unsqueeze":
        axes = inputs[node.input[1]] if len(node.input) > 1 else node.attribute[0].ints
        is_sorted = len(axes) == 1 or (min(axes) >= 0 and all(np.diff(axes) > 0))
        require_known(is_sorted, "Unsqueeze with axes in such an order")


def check_computed_constants(
    node: onnx.NodeProto, results: Sequence[Any], first_input: Any, rank: int
) -> None:
    """Constants that runtimes compute in another way than onnx does; the first input has `rank`
    axes."""
    kind, types = node.op_type, [np.asarray(result).dtype for result in results]
    if kind == "Cast":  # from float64 to few bits runtimes round twice
        is_plain = [t in (np.float32, np.float64) or t.kind in "iub" for t in types]
        require_known(is_plain, "Cast of constants to floats of few bits")
    if kind.startswith("Reduce") and types[0].kind in "iu":
        sizes = np.abs(np.asarray(first_input, np.float64))
        largest = sizes.prod() if kind == "ReduceProd" else (sizes**2).sum()
        require_known(largest < MAX_INTEGER_REDUCTION, f"{kind} of numbers that large")
    if kind == "Shape":
        ends = [attribute.i for attribute in node.attribute]
        require_known([abs(end) <= rank for end in ends], "Shape of axes that do not exist")
