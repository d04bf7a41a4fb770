"""Reading ONNX models: bytes or files in, one self-contained and orderly model out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from radii.errors import NetworkError

__all__ = ["Signature", "parse_model", "read_model", "signature", "sorted_nodes"]

OLDEST_OPSET = 8

_FLOATS = {TensorProto.FLOAT: np.dtype(np.float32), TensorProto.DOUBLE: np.dtype(np.float64)}


def read_model(path: Path) -> onnx.ModelProto:
    """The model in a file, with its external weights inside."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NetworkError(f"{path}: cannot be read: {error.strerror or error}") from None
    return parse_model(content, path.name, directory=path.parent)


def parse_model(content: bytes, name: str, directory: Path | None = None) -> onnx.ModelProto:
    """The model in `content`; external weights are read from `directory`, if one is given."""
    if not content:
        raise NetworkError(f"{name}: is empty, not an ONNX model")
    try:
        model = onnx.load_model_from_string(content)
    except (DecodeError, ValueError):
        raise NetworkError(f"{name}: is not an ONNX model, or is truncated") from None
    if not model.graph.node or not model.graph.output:
        raise NetworkError(f"{name}: is not an ONNX model, or holds no network")
    _opset(model, name)
    for tensor in _tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            _embed(tensor, directory, name)
    return model


@dataclass(frozen=True, slots=True)
class Signature:
    """The one input and one output of a model. `shape` is the input's, with a batch of 1."""

    input: str
    shape: tuple[int, ...]
    has_batch: bool
    dtype: np.dtype[np.floating]
    output: str
    opset: int

    @property
    def input_shape(self) -> tuple[int, ...]:
        """One input without the batch axis."""
        return self.shape[1:] if self.has_batch else self.shape


def signature(model: onnx.ModelProto, name: str) -> Signature:
    """What goes in and comes out; a NetworkError if it is not one tensor each of known shape."""
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise NetworkError(
            f"{name}: has {_listed(inputs)} as inputs and {_listed(graph.output)} as outputs, "
            "but a network needs exactly one of each"
        )
    value = inputs[0]
    kind = value.type.tensor_type
    if kind.elem_type not in _FLOATS:
        known = TensorProto.DataType.Name(kind.elem_type).lower()
        raise NetworkError(
            f"{name}: input '{value.name}' is of type {known}; float and double are supported"
        )
    if not kind.HasField("shape"):
        raise NetworkError(f"{name}: input '{value.name}' has no shape; export it with one")
    sizes = [d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim]
    has_batch = len(sizes) > 1 and sizes[0] in (None, 1)
    shape = (1, *sizes[1:]) if has_batch else tuple(sizes)
    if not shape or None in shape:
        spelled = "x".join(str(d.dim_value or d.dim_param or "?") for d in kind.shape.dim)
        raise NetworkError(
            f"{name}: input '{value.name}' has the shape {spelled or '()'}; "
            "all axes but the batch must be fixed numbers"
        )
    static = tuple(size for size in shape if size is not None)
    output = graph.output[0].name
    return Signature(
        value.name, static, has_batch, _FLOATS[kind.elem_type], output, _opset(model, name)
    )


def sorted_nodes(model: onnx.ModelProto, output: str, name: str) -> list[onnx.NodeProto]:
    """The nodes that the output depends on, each after those it reads from."""
    makers = {}
    for node in model.graph.node:
        for value in filter(None, node.output):
            if value in makers:
                raise NetworkError(f"{name}: '{value}' is the output of two nodes")
            makers[value] = node
    ordered: list[onnx.NodeProto] = []
    state: dict[int, bool] = {}  # by id(node): False while its inputs are visited, then True
    stack = [makers[output]] if output in makers else []
    while stack:
        node = stack[-1]
        if state.get(id(node)):
            stack.pop()
            continue
        waiting = [makers[v] for v in node.input if v in makers and not state.get(id(makers[v]))]
        if any(state.get(id(w)) is False for w in waiting):
            raise NetworkError(f"{name}: the graph runs in a circle at node '{title(node)}'")
        state[id(node)] = not waiting
        if waiting:
            stack.extend(waiting)
        else:
            ordered.append(stack.pop())
    return ordered


def title(node: onnx.NodeProto) -> str:
    """What to call a node: its name, or else its operator and first output."""
    return node.name or f"{node.op_type}:{next(iter(node.output), '')}"


def _opset(model: onnx.ModelProto, name: str) -> int:
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if not versions:
        raise NetworkError(f"{name}: is not an ONNX model, or is truncated: it names no opset")
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= versions[0] <= newest:
        raise NetworkError(
            f"{name}: uses opset {versions[0]}; opsets {OLDEST_OPSET} to {newest} are supported"
        )
    return int(versions[0])


def _listed(values: object) -> str:
    names = [f"'{value.name}'" for value in values]  # type: ignore[attr-defined]
    return ", ".join(names) or "nothing"


def _tensors(model: onnx.ModelProto) -> Iterator[TensorProto]:
    graphs = [model.graph]
    nodes = [node for function in model.functions for node in function.node]
    while graphs:
        graph = graphs.pop()
        yield from graph.initializer
        nodes.extend(graph.node)
        while nodes:
            for attribute in nodes.pop().attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                graphs.extend([attribute.g] if attribute.HasField("g") else [])
                graphs.extend(attribute.graphs)


def _embed(tensor: TensorProto, directory: Path | None, name: str) -> None:
    """Replace a reference to a file beside the model by the file's bytes."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if directory is None:
        raise NetworkError(
            f"{name}: '{tensor.name}' is stored in the file '{location}', "
            "which a model given as bytes cannot refer to"
        )
    home = directory.resolve()
    path = (home / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(home):
        raise NetworkError(
            f"{name}: '{tensor.name}' is stored in '{location}', outside the model's directory; "
            "move it beside the model"
        )
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        size = math.prod(tensor.dims) * _item_bytes(tensor)
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read(min(length, size) if length >= 0 else size)
    except (OSError, ValueError, OverflowError):
        raise NetworkError(f"{name}: weights file '{location}' cannot be read") from None
    if len(content) != size:
        raise NetworkError(f"{name}: weights file '{location}' is too short for '{tensor.name}'")
    tensor.raw_data = content
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _item_bytes(tensor: TensorProto) -> int:
    return int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
