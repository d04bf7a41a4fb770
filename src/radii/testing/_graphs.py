"""Building small ONNX models by hand, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from radii.networks import Network
from radii.problem import Domain

Array = npt.NDArray[np.generic]

READABLE_IR = 10
"""A version of the file format that every ONNX Runtime in use reads."""


class Sketch:
    """An ONNX model under construction, with one input called `x`.

    With `inline`, constants are Constant nodes; else they are initializers.
    """

    def __init__(
        self,
        input_shape: Sequence[int | str],
        *,
        opset: int = 17,
        dtype: npt.DTypeLike = np.float32,
        inline: bool = False,
    ) -> None:
        self.opset = opset
        self.dtype = np.dtype(dtype)
        self.inline = inline
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        self._input = helper.make_tensor_value_info("x", self._kind, list(input_shape))
        self._count = 0

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> str:
        """The name of a constant; real numbers take the model's own type unless one is given."""
        array = np.asarray(value)
        if dtype is not None or array.dtype.kind == "f":
            array = array.astype(dtype or self.dtype)
        name = self._fresh("c")
        tensor = numpy_helper.from_array(np.asarray(array), name)
        if self.inline:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.weights.append(tensor)
        return name

    def apply(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of the operator's only result."""
        return self.apply_many(operator, 1, *inputs, **attributes)[0]

    def apply_many(self, operator: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        """The names of the operator's results."""
        names = [self._fresh("v") for _ in range(results)]
        title = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, names, name=title, **attributes))
        return names

    def model(self, output: str) -> onnx.ModelProto:
        """The finished model; the output's shape is left open."""
        result = helper.make_tensor_value_info(output, self._kind, None)
        graph = helper.make_graph(self.nodes, "sketch", [self._input], [result], self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=READABLE_IR)

    def network(self, output: str, *, domain: Domain | tuple[float, float] = (0.0, 1.0)) -> Network:
        """The finished model as a network."""
        content = self.model(output).SerializeToString()
        return Network.from_bytes(content, domain=domain, name="sketch")

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"
