"""What a translator sees of the ONNX node it translates, and the graph it adds to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import Tensor

from radii.errors import NetworkError, UnsupportedOperator
from radii.networks._graph import Node
from radii.networks.operators._base import Input, Operator

Array = npt.NDArray[np.generic]

MAX_VALUES = 2**28
"""How many numbers one value of a network may hold for one input; more is taken for an error."""


@dataclass(slots=True)
class Translation:
    """A graph under construction.

    `values` maps ONNX names to node indices or constants; `unavailable` those of outputs that are
    not computed to the operator and node that would have to. `has_doubles` says that some value
    may be in float64; `rounded_constants` names the first node whose constants runtimes may round
    differently.
    """

    network: str
    opset: int
    has_doubles: bool = False
    rounded_constants: str | None = None
    nodes: list[Node] = field(default_factory=list)
    values: dict[str, int | Array] = field(default_factory=dict)
    unavailable: dict[str, tuple[str, str]] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)

    def add_input(self, name: str, shape: tuple[int, ...]) -> None:
        self.values[name] = len(self.nodes)
        self.nodes.append(Node(self._unique(name), Input(), (), shape))

    def add(self, name: str, operator: Operator, inputs: Sequence[int]) -> int:
        """Append a node; its shape is what the operator gives for the inputs' shapes."""
        shapes = [self.nodes[i].shape for i in inputs]
        try:
            shape = operator.result_shape(*shapes)
        except ValueError as error:
            raise NetworkError(
                f"{self.network}: node '{name}' does not fit its inputs: {error}"
            ) from None
        if np.prod(shape, dtype=float) > MAX_VALUES:
            raise NetworkError(
                f"{self.network}: node '{name}' gives values of shape {shape}, which is too large"
            )
        self.nodes.append(Node(self._unique(name), operator, tuple(inputs), shape))
        return len(self.nodes) - 1

    def _unique(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self._names:
            count += 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate


class OnnxNode:
    """One ONNX node, as its translator sees it: attributes, inputs, and a place for new nodes."""

    def __init__(self, translation: Translation, proto: onnx.NodeProto, name: str) -> None:
        self.translation = translation
        self.proto = proto
        self.name = name
        self.opset = translation.opset
        self._attributes = {a.name: a for a in proto.attribute}

    def has(self, position: int) -> bool:
        """The input at this position is given (an empty name stands for an omitted one)."""
        return position < len(self.proto.input) and self.proto.input[position] != ""

    def is_constant(self, position: int) -> bool:
        return self.has(position) and not isinstance(self._value(position), int)

    def node(self, position: int) -> int:
        """The node that gives this input, which must depend on the network's input."""
        value = self._value(position)
        if not isinstance(value, int):
            raise self.unsupported(f"with a constant input {position}")
        return value

    def shape(self, position: int) -> tuple[int, ...]:
        """The shape of an input, constant or not."""
        value = self._value(position)
        return self.translation.nodes[value].shape if isinstance(value, int) else value.shape

    def rank(self, position: int) -> int:
        return len(self.shape(position))

    def constant(self, position: int) -> Array:
        """A constant input as it is in the file."""
        value = self._value(position)
        if isinstance(value, int):
            raise self.unsupported(f"whose input {position} depends on the network's input")
        return value

    def weight(self, position: int) -> Tensor:
        """A constant input that takes part in arithmetic: finite, in float64."""
        value = self.constant(position)
        if not np.isfinite(value).all():
            raise NetworkError(
                f"{self.translation.network}: '{self.proto.input[position]}', an input of node "
                f"'{self.name}', holds NaN or infinite values"
            )
        return torch.from_numpy(np.array(value, dtype=np.float64))

    def optional_weight(self, position: int) -> Tensor | None:
        return self.weight(position) if self.has(position) else None

    def integers(self, position: int) -> list[int]:
        """A constant input of integers, such as axes or a shape, as a flat list."""
        return [int(v) for v in np.ravel(self.constant(position))]

    def int_attribute(self, name: str, default: int) -> int:
        return int(self._attributes[name].i) if name in self._attributes else default

    def float_attribute(self, name: str, default: float) -> float:
        """Attributes are float32, in files of float64 too, and so are their defaults."""
        given = self._attributes[name].f if name in self._attributes else default
        return float(np.float32(given))

    def text_attribute(self, name: str, default: str) -> str:
        return self._attributes[name].s.decode() if name in self._attributes else default

    def ints_attribute(self, name: str) -> list[int] | None:
        return list(self._attributes[name].ints) if name in self._attributes else None

    def axes(self, position: int, *, rank: int) -> list[int] | None:
        """Non-negative axes from this input or, in older opsets, from the attribute `axes`."""
        given = self.integers(position) if self.has(position) else self.ints_attribute("axes")
        return None if given is None else [self.axis(value, rank) for value in given]

    def axis(self, value: int, rank: int) -> int:
        """An axis that may count from the end, made non-negative."""
        if not -rank <= value < rank:
            raise NetworkError(
                f"{self.translation.network}: node '{self.name}' names axis {value} "
                f"of a value with {rank} axes"
            )
        return value % rank

    def emit(self, operator: Operator, *inputs: int) -> int:
        """Add a node that applies the operator, and return its index."""
        return self.translation.add(self.name, operator, inputs)

    def unsupported(self, detail: str = "") -> UnsupportedOperator:
        operator = f"{self.proto.op_type} {detail}".strip()
        return UnsupportedOperator(operator, self.name, self.translation.network)

    def _value(self, position: int) -> int | Array:
        if not self.has(position):
            raise NetworkError(
                f"{self.translation.network}: node '{self.name}' ({self.proto.op_type}) "
                f"lacks its input {position}"
            )
        return self.translation.values[self.proto.input[position]]


Translator = Callable[[OnnxNode], int | Sequence[int]]
"""Adds the nodes of one ONNX node and returns the index of its output, or of each output."""
