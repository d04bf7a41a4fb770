"""The network under construction: what the readers of operators add nodes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from radii_check._ambiguity import check_before_running
from radii_check._errors import require_known, require_readable
from radii_check._format import Array
from radii_check._linear_maps import Chain, gather
from radii_check._network import Affine, Unit
from radii_check._numbers import Numbers

Value = Any
"""What an ONNX name stands for: a constant as an array, or the number (int) of a node."""
Attributes = dict[str, Any]


def is_node(value: Value) -> bool:
    return isinstance(value, int)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One use of an operator: its inputs in order (None for one that is left out), and its
    attributes by name."""

    inputs: Sequence[Value]
    attributes: Attributes

    @property
    def first(self) -> Value:
        return self.inputs[0]

    def optional(self, place: int) -> Value:
        """An optional input; None if it is not there."""
        return self.inputs[place] if len(self.inputs) > place else None


class Builder:
    """Nodes so far; `units` are numbered through, and `origins` are the operators that nodes were
    read from. `is_single` says that something is computed in
    float32, `has_doubles` that something is in float64."""

    def __init__(self, num: Numbers, opset: int, shape: tuple[int, ...], has_doubles: bool) -> None:
        self.num, self.opset = num, opset
        self.has_doubles, self.is_single = has_doubles, not has_doubles
        self.units = 0
        self.origins = dict[int, tuple[str, Call]]()
        self.nodes: list[Affine | Unit] = [Unit("Input", (), shape)]

    def shape(self, value: Value) -> tuple[int, ...]:
        return self.nodes[value].shape if isinstance(value, int) else np.shape(value)

    def size(self, value: Value) -> int:
        return math.prod(self.shape(value))

    def affine(
        self,
        inputs: Sequence[int],
        maps: Sequence[Chain],
        shape: Sequence[int],
        offset: Any = 0.0,
        **rounding: Any,
    ) -> int:
        """Add an affine node; `rounding` are the fields of `Affine` that say how it rounds."""
        require_known(np.greater(shape, 0), "that gives nothing")
        flat = np.broadcast_to(np.asarray(offset), shape).ravel()
        self.nodes.append(Affine(tuple(inputs), tuple(maps), tuple(shape), flat, **rounding))
        return len(self.nodes) - 1

    def unit(self, kind: str, source: int, **fields: Any) -> int:
        """Add a node of units, or another one that reads floats."""
        node = Unit(kind, (source,), self.shape(source), self.units, **fields)
        self.units = node.units.stop
        self.nodes.append(node)
        return len(self.nodes) - 1

    def broadcast(self, value: int, shape: Sequence[int]) -> Chain:
        """The map of a value to one of a larger shape, as numpy broadcasts."""
        entries = np.arange(self.size(value)).reshape(self.shape(value))
        return gather(np.broadcast_to(entries, shape), entries.size)


Reader = Callable[[Builder, Call], int]
"""Reads one operator by its definition in ONNX, and returns the number of its node."""


def weight_of(value: Value) -> Array:
    """A constant that takes part in arithmetic."""
    weight = np.asarray(value, np.float64)
    require_readable(np.isfinite(weight), "a weight of the network is not a finite number")
    return weight


def rounding_of_products(weight: Array, axes: int | tuple[int, ...]) -> Attributes:
    """Of sums of products with weights along these axes; weights that are 0 do not count."""
    terms = int((weight != 0).sum(axes).max(initial=1))
    return {"terms": terms, "starts_sum": True, "factor": abs(weight).max(initial=1.0)}


def run_reference(node: onnx.NodeProto, inputs: Mapping[str, Any], opset: int) -> list[Any]:
    """The outputs of one ONNX node, by onnx's reference implementation."""
    check_before_running(node, inputs)
    outputs = [name for name in node.output if name]
    opsets = [helper.make_opsetid("", opset)]
    function = helper.make_function("one", "one", list(inputs), outputs, [node], opsets)
    return list(ReferenceEvaluator(function).run(None, dict(inputs), {}))
