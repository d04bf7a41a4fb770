"""Which opset a model uses, and the oldest one in which it means the same."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import TensorProto, numpy_helper

from radii.datasets import gunzip, parsed_names
from radii.errors import NetworkError

OLDEST_OPSET = 8

REPLAYABLE_OPSET = 21
REPLAYABLE_IR = 10
"""What the oldest ONNX Runtime that radii accepts (1.20) reads."""

DEFAULT_DOMAINS = ("", "ai.onnx")


def opset_of(model: onnx.ModelProto, name: str) -> int:
    """The version of the default domain, checked to be one that radii knows."""
    versions = [o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS]
    if not versions:
        raise NetworkError(f"{name}: is not an ONNX model, or is truncated: it names no opset")
    if len(set(versions)) > 1:  # runtimes do not agree on which of them counts
        raise NetworkError(f"{name}: names the default opset more than once: {versions}")
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= versions[0] <= newest:
        raise NetworkError(
            f"{name}: uses opset {versions[0]}; opsets {OLDEST_OPSET} to {newest} are supported"
        )
    return int(versions[0])


def defined_since(node: onnx.NodeProto, opset: int) -> int:
    """The opset that gave the node's operator the meaning it has at `opset`."""
    try:
        return int(onnx.defs.get_schema(node.op_type, opset, node.domain).since_version)
    except onnx.defs.SchemaError:
        return opset


def with_older_versions(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model, declared in versions that more ONNX Runtimes read wherever that changes nothing.

    Files are written in the newest opset long before a runtime reads it, yet few operators change
    between two opsets; each keeps exactly the definition that the file chose.
    """
    opset = opset_of(model, name)
    needed = max((defined_since(n, opset) for n in model.graph.node if not n.domain), default=opset)
    target = min(opset, max(REPLAYABLE_OPSET, needed))
    if target == opset and model.ir_version <= REPLAYABLE_IR:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    result.ir_version = min(model.ir_version, REPLAYABLE_IR)
    for entry in result.opset_import:
        if entry.domain in DEFAULT_DOMAINS:
            entry.version = target
    return result


# Weights that a model keeps in files beside itself.


def embed_external_weights(model: onnx.ModelProto, directory: Path | None, network: str) -> None:
    """Replace references to files by their content. Files must lie below the directory."""
    for tensor in _tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            _embed(tensor, directory, network)


def _tensors(model: onnx.ModelProto) -> Iterator[TensorProto]:
    graphs = [model.graph]
    nodes = [node for function in model.functions for node in function.node]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            nodes.extend(graph.node)
        for node in nodes:
            for attribute in node.attribute:
                yield from (attribute.t, *attribute.tensors)
                graphs.extend([attribute.g] if attribute.HasField("g") else [])
                graphs.extend(attribute.graphs)
        nodes.clear()


def _embed(tensor: TensorProto, directory: Path | None, network: str) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if directory is None:
        raise NetworkError(
            f"{network}: '{tensor.name}' is stored in the file '{location}', "
            "which a model given as bytes cannot refer to"
        )
    path = _inside(directory, location)
    if path is None:
        raise NetworkError(
            f"{network}: '{tensor.name}' is stored in '{location}', outside the model's "
            "directory; move that file beside the model"
        )
    try:
        size = math.prod(tensor.dims) * _item_bytes(tensor)
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
        # Checked before anything is read: a file may claim any size.
        if min(size, offset) < 0 or length < size or offset + size > path.stat().st_size:
            raise NetworkError(
                f"{network}: weights file '{location}' is too short for '{tensor.name}'"
            )
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read(size)
    except (OSError, ValueError, KeyError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its reference is damaged"
        raise NetworkError(
            f"{network}: weights file '{location}' cannot be read: {reason}"
        ) from None
    tensor.raw_data = content
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _inside(directory: Path, location: str) -> Path | None:
    """The file that a location names, or None if it is not one below the directory."""
    if not location or "\0" in location or Path(location).is_absolute():
        return None
    home = directory.resolve()
    path = (home / location).resolve()
    return path if path.is_relative_to(home) else None


def _item_bytes(tensor: TensorProto) -> int:
    return int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


# Reading ONNX models: what goes in, what comes out, and the nodes between in order.


Array = npt.NDArray[np.generic]

_FLOATS: dict[int, np.dtype[np.floating]] = {
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.DOUBLE: np.dtype(np.float64),
}


def read_model(path: Path) -> onnx.ModelProto:
    """The model in a file, which may be gzipped, with its external weights inside."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gunzip(content, str(path), NetworkError)
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
    opset_of(model, name)
    _refuse_damaged_names(model, name)
    embed_external_weights(model, directory, name)
    if model.functions:
        from onnx.inliner import inline_local_functions

        _give_defaults(model, name)
        model = inline_local_functions(model)
    return with_older_versions(model, name)


RUNTIME_DOMAINS = ("ai.onnx", "com.", "org.pytorch.aten")
"""Of operators that ONNX Runtime has itself, and takes instead of a model's function."""


def _give_defaults(model: onnx.ModelProto, name: str) -> None:
    """Attributes that calls of functions leave out, which onnx's inliner forgets."""
    functions = {(each.domain, each.name, each.overload): each for each in model.functions}
    for domain, kind, _ in functions:
        if not domain or domain.startswith(RUNTIME_DOMAINS):
            raise NetworkError(
                f"{name}: has a function '{kind}' in the domain '{domain}', of which runtimes have "
                "operators of their own; export it without functions"
            )
    bodies = [model.graph.node, *(each.node for each in model.functions)]
    for node in (node for nodes in bodies for node in nodes):
        called = functions.get((node.domain, node.op_type, node.overload))
        if called is None:
            continue
        given = {each.name for each in node.attribute}
        if not set(called.attribute) <= given:
            raise NetworkError(
                f"{name}: calls its function '{called.name}' without all of its attributes; "
                "export it without functions"
            )
        node.attribute.extend(each for each in called.attribute_proto if each.name not in given)


CLASS_KEYS = ("class_names", "classes", "names", "labels", "id2label")
"""Under which tools keep the names of classes in a model's metadata. The first is radii's own."""


def class_names_of(model: onnx.ModelProto) -> tuple[str, ...]:
    """The names of the outputs in a model's metadata, in order; nothing where there are none."""
    kept = {each.key: each.value for each in model.metadata_props}
    return next((parsed_names(kept[key]) for key in CLASS_KEYS if key in kept), ())


def with_class_names(content: bytes, names: Sequence[str]) -> bytes:
    """The model with these names in its metadata."""
    model = onnx.load_model_from_string(content)
    others = [each for each in model.metadata_props if each.key not in CLASS_KEYS]
    del model.metadata_props[:]
    model.metadata_props.extend(others)
    model.metadata_props.add(key=CLASS_KEYS[0], value=json.dumps(list(names)))
    return bytes(model.SerializeToString(deterministic=True))


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


def keep_scores(model: onnx.ModelProto) -> None:
    """Of several outputs the one with floats, if it is the only one: classifiers of other tools
    also give the label."""
    floats = [o for o in model.graph.output if o.type.tensor_type.elem_type in _FLOATS]
    if len(floats) == 1 < len(model.graph.output):
        kept = onnx.ValueInfoProto()
        kept.CopyFrom(floats[0])
        del model.graph.output[:]
        model.graph.output.append(kept)


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
    value, output = inputs[0], graph.output[0]
    kind = value.type.tensor_type
    if kind.elem_type not in _FLOATS:
        spelled = type_name(kind.elem_type)
        raise NetworkError(
            f"{name}: input '{value.name}' is of type {spelled}; float and double are supported"
        )
    sizes = [d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim]
    has_batch = len(sizes) > 1 and sizes[0] in (None, 1)
    shape = tuple(sizes[1:] if has_batch else sizes)
    static = tuple(size for size in shape if size is not None)
    if not shape or static != shape:
        spelled = "x".join(str(d.dim_param or d.dim_value or "?") for d in kind.shape.dim)
        raise NetworkError(
            f"{name}: input '{value.name}' has {f'the shape {spelled}' if sizes else 'no shape'}; "
            "export it with fixed numbers for all axes but the batch"
        )
    _refuse_fixed_batch(static, output, name)
    shape_with_batch = (1, *static) if has_batch else static
    dtype = _FLOATS[kind.elem_type]
    opset = opset_of(model, name)
    return Signature(value.name, shape_with_batch, has_batch, dtype, output.name, opset)


def _refuse_fixed_batch(shape: tuple[int, ...], output: onnx.ValueInfoProto, name: str) -> None:
    """An output that is as long as the input, and has a further axis, is one of a whole batch."""
    sizes = [d.dim_value for d in output.type.tensor_type.shape.dim]
    if len(shape) > 1 and len(sizes) > 1 and sizes[0] == shape[0] > 1:
        raise NetworkError(
            f"{name}: works on batches of exactly {shape[0]}; export it with a batch of 1 "
            "or a symbolic one"
        )


def sorted_nodes(model: onnx.ModelProto, output: str, name: str) -> list[onnx.NodeProto]:
    """The nodes that the output depends on, each after those it reads from."""
    makers: dict[str, onnx.NodeProto] = {}
    for node in model.graph.node:
        for value in filter(None, node.output):
            if value in makers:
                raise NetworkError(f"{name}: '{value}' is the output of two nodes")
            makers[value] = node
    ordered: list[onnx.NodeProto] = []
    is_done: dict[int, bool] = {}  # by id: False from the first visit on, True once in order
    stack = [makers[output]] if output in makers else []
    while stack:
        node = stack[-1]
        if is_done.get(id(node)):
            stack.pop()
            continue
        sources = [makers[value] for value in node.input if value in makers]
        waiting = [source for source in sources if not is_done.get(id(source))]
        if any(is_done.get(id(source)) is False for source in waiting):
            raise NetworkError(f"{name}: the graph runs in a circle at node '{node_title(node)}'")
        is_done[id(node)] = not waiting
        if waiting:
            stack.extend(waiting)
        else:
            ordered.append(stack.pop())
    return ordered


def node_title(node: onnx.NodeProto) -> str:
    """What to call a node: its name, or else its operator and first output."""
    return node.name or f"{node.op_type}:{next(iter(node.output), '')}"


def type_name(kind: int) -> str:
    """What ONNX calls a type of tensor entries."""
    return next((k.lower() for k, v in TensorProto.DataType.items() if v == kind), f"{kind}")


def array(tensor: TensorProto, network: str) -> Array:
    """The values of a stored tensor."""
    shape = tuple(tensor.dims)
    try:
        value = numpy_helper.to_array(tensor)
    except Exception:
        value = None
    if value is None or value.shape != shape:
        raise NetworkError(
            f"{network}: weights '{tensor.name}' are damaged: "
            f"what is stored does not fill the shape {shape}"
        )
    return value


def constant_value(node: onnx.NodeProto, network: str) -> Array | None:
    """The value of a Constant node; None for any other node, or for a kind that is not numbers."""
    if node.op_type != "Constant" or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    match attribute.name:
        case "value":
            return array(attribute.t, network)
        case "value_float":
            return np.array(attribute.f, dtype=np.float32)
        case "value_floats":
            return np.array(attribute.floats, dtype=np.float32)
        case "value_int":
            return np.array(attribute.i, dtype=np.int64)
        case "value_ints":
            return np.array(attribute.ints, dtype=np.int64)
    return None


def _refuse_damaged_names(model: onnx.ModelProto, name: str) -> None:
    """What is not text in a damaged file comes as bytes, which nothing downstream expects."""
    for node in model.graph.node:
        fields = (node.op_type, node.domain, node.name, *node.input, *node.output)
        if not all(isinstance(field, str) for field in fields):
            raise NetworkError(f"{name}: is damaged: the name of a node or value is not text")


def _listed(values: Iterable[onnx.ValueInfoProto]) -> str:
    return ", ".join(f"'{value.name}'" for value in values) or "nothing"
