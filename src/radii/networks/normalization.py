"""Normalisation as the first nodes of the model, so that every reader of the graph sees it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from radii.errors import NetworkError
from radii.networks.models import Signature

__all__ = ["normalized"]


def normalized(
    model: onnx.ModelProto,
    signature: Signature,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    network: str,
) -> onnx.ModelProto:
    """The model of x -> model((x - mean) / std). One number each, or one for each channel."""
    if mean is None and std is None:
        return model
    shift = _per_channel(0.0 if mean is None else mean, signature, "mean", network)
    scale = _per_channel(1.0 if std is None else std, signature, "std", network)
    if not np.all(scale > 0):
        raise NetworkError(f"{network}: std {scale.ravel().tolist()} must be positive")
    result = onnx.ModelProto()
    result.CopyFrom(model)
    taken = _names(result)
    centered, scaled, mean_name, std_name = (
        _fresh(base, taken) for base in ("centered", "normalized", "mean", "std")
    )
    for node in result.graph.node:
        for position, source in enumerate(node.input):
            if source == signature.input:
                node.input[position] = scaled
    result.graph.initializer.append(numpy_helper.from_array(shift, mean_name))
    result.graph.initializer.append(numpy_helper.from_array(scale, std_name))
    first = [
        helper.make_node("Sub", [signature.input, mean_name], [centered], name=centered),
        helper.make_node("Div", [centered, std_name], [scaled], name=scaled),
    ]
    rest = list(result.graph.node)
    del result.graph.node[:]
    result.graph.node.extend(first + rest)
    return result


def _per_channel(
    value: npt.ArrayLike, signature: Signature, what: str, network: str
) -> npt.NDArray[np.floating]:
    """The constant in a shape that broadcasts to the input; channels are the first axis."""
    array = np.asarray(value, dtype=np.float64)
    shape = signature.input_shape
    if array.ndim == 1 and array.size > 1:
        array = array.reshape(-1, *(1,) * (len(shape) - 1))
    elif array.size == 1:
        array = array.reshape(())
    fits = len(array.shape) <= len(shape) and all(
        a in (1, s) for a, s in zip(reversed(array.shape), reversed(shape), strict=False)
    )
    if not fits or not np.isfinite(array).all():
        raise NetworkError(
            f"{network}: {what} {np.asarray(value).tolist()} does not fit inputs of shape {shape}; "
            "give one finite number, or one for each channel"
        )
    return array.astype(signature.dtype)


def _names(model: onnx.ModelProto) -> set[str]:
    graph = model.graph
    names = {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}
    for node in graph.node:
        names.update(node.output, node.input, [node.name])
    return names


def _fresh(base: str, taken: set[str]) -> str:
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name)
    return name
