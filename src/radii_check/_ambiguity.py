"""Files that are refused: runtimes, or onnx's own implementation, read them in another way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from radii_check._format import readable

DEFAULT_DOMAINS = ("", "ai.onnx")
RUNTIME_DOMAINS = ("ai.onnx", "com.", "org.pytorch.aten")
"""Of operators that ONNX Runtime has itself, and takes instead of a model's function."""
MAKERS, MOST_ENTRIES = ("ConstantOfShape", "Expand", "Tile"), 2**24
"""Operators that make large values of small ones, and how large they may be."""


def known(condition: Any, what: str) -> None:
    readable(condition, f"operator {what} is not known to this checker")


def check_plain(model: onnx.ModelProto) -> None:
    """Files that are read in more than one way, or from elsewhere, are not read at all."""
    opsets = [each for each in model.opset_import if each.domain in DEFAULT_DOMAINS]
    readable(len(opsets) == 1, "the network names no opset, or several")
    is_own = [
        not function.domain.startswith(RUNTIME_DOMAINS) and function.domain != ""
        for function in model.functions
    ]
    readable(is_own, "the network has functions named as operators of ONNX or of a runtime")
    has_defaults = [len(function.attribute_proto) for function in model.functions]
    readable(not any(has_defaults), "a function of the network has attributes that may be left out")
    graph = model.graph
    readable(not graph.sparse_initializer, "the network has sparse weights")
    bodies = [graph.node, *(function.node for function in model.functions)]
    attributes = [each for nodes in bodies for node in nodes for each in node.attribute]
    constants = [node for nodes in bodies for node in nodes if node.op_type == "Constant"]
    readable([len(node.attribute) == 1 for node in constants], "a constant has several values")
    tensors = [*graph.initializer, *(each.t for each in attributes)]
    is_here = [each.data_location != TensorProto.EXTERNAL for each in tensors]
    readable(is_here, "the network keeps weights in another file")
    made = [name for node in graph.node for name in node.output if name]
    names = Counter([*made, *(tensor.name for tensor in graph.initializer)])
    names.update({value.name for value in graph.input} - {t.name for t in graph.initializer})
    readable(max(names.values()) == 1, "the network has two values of one name")


def check_run(node: onnx.NodeProto, given: Mapping[str, Any]) -> None:
    """What onnx's implementation is known not to do as its specification says, or makes too large;
    `given` are the inputs."""
    kind = node.op_type
    if kind in MAKERS:
        largest = given[node.input[0]].size * np.prod(np.float64(given[node.input[-1]]) + 1)
        known(largest < MOST_ENTRIES, f"{kind} of values that large")
    if kind == "Slice" and len(node.input) > 4:
        known(given[node.input[4]] > 0, "Slice with a negative step")
    if kind == "Pad":
        stated = [each.ints for each in node.attribute if each.name == "pads"]
        pads = given[node.input[1]] if len(node.input) > 1 else stated[0]
        known(min(pads, default=0) >= 0, "Pad that cuts off")
    if kind == "Unsqueeze":
        axes = given[node.input[1]] if len(node.input) > 1 else node.attribute[0].ints
        is_plain = len(axes) == 1 or (min(axes) >= 0 and all(np.diff(axes) > 0))
        known(is_plain, "Unsqueeze with axes in such an order")


def check_constants(node: onnx.NodeProto, results: Sequence[Any], first: Any, rank: int) -> None:
    """Constants that runtimes compute in another way than onnx does; `first` is the first input,
    with `rank` axes."""
    kind, types = node.op_type, [np.asarray(each).dtype for each in results]
    if kind == "Cast":  # from float64 they round twice
        is_plain = [each in (np.float32, np.float64) or each.kind in "iub" for each in types]
        known(is_plain, "Cast of constants to floats of few bits")
    if kind.startswith("Reduce") and types[0].kind in "iu":  # some of them wrap, others do not
        sizes = np.abs(np.asarray(first, np.float64))
        largest = sizes.prod() if kind == "ReduceProd" else (sizes**2).sum()
        known(largest < 2**31, f"{kind} of numbers that large")
    if kind == "Shape":
        ends = [each.i for each in node.attribute]
        known([abs(end) <= rank for end in ends], "Shape of axes that do not exist")
