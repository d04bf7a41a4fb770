"""Weights that a model keeps in files beside itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import TensorProto

from radii.errors import NetworkError

__all__ = ["embed_external_weights"]


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
