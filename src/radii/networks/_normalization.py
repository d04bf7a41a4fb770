"""Normalisation as the first nodes of the model, so that every reader of the graph sees it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from radii.errors import NetworkError
from radii.networks._models import Signature

Float64 = npt.NDArray[np.float64]


def per_channel(value: npt.ArrayLike, shape: Sequence[int]) -> Float64:
    """One number, or one for each channel, in a shape that broadcasts to inputs of `shape`.

    Channels are the first axis; in images of three axes they are the last one if that is where 3
    or 4 colours can only be. Arrays that broadcast by themselves stay as they are; what does not
    fit raises a ValueError.
    """
    array = np.asarray(value, dtype=np.float64)
    if array.size == 1:
        return array.reshape(())
    is_vector = array.ndim == 1 or max(array.shape, default=0) == array.size
    if is_vector and array.size == shape[0]:
        return array.reshape(-1, *(1,) * (len(shape) - 1))
    if is_vector and len(shape) == 3 and array.size == shape[2] and array.size in (3, 4):
        return array.reshape(-1)
    if array.ndim == 1 or np.broadcast_shapes(array.shape, tuple(shape)) != tuple(shape):
        raise ValueError(f"shape {array.shape} does not broadcast to {tuple(shape)}")
    return array


class Normalization:
    """x -> (x - mean) / std, with one number each or one for each channel."""

    def __init__(
        self,
        mean: npt.ArrayLike | None,
        std: npt.ArrayLike | None,
        *,
        input_shape: tuple[int, ...],
        network: str,
    ) -> None:
        self.is_identity = mean is None and std is None
        self.mean = _checked(0.0 if mean is None else mean, input_shape, "mean", network)
        self.std = _checked(1.0 if std is None else std, input_shape, "std", network)
        if not np.all(self.std > 0):
            raise NetworkError(f"{network}: std {self.std.ravel().tolist()} must be positive")

    def __call__(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """A batch of inputs, normalised as the model's first nodes do it."""
        return (x - self.mean.astype(x.dtype)) / self.std.astype(x.dtype)

    def ahead_of(self, model: onnx.ModelProto, signature: Signature) -> onnx.ModelProto:
        """The model of x -> model((x - mean) / std)."""
        if self.is_identity:
            return model
        result = onnx.ModelProto()
        result.CopyFrom(model)
        graph = result.graph
        taken = _names(graph)
        centered, scaled, mean, std = (
            _fresh(name, taken) for name in ("centered", "normalized", "mean", "std")
        )
        for node in graph.node:
            for position, source in enumerate(node.input):
                if source == signature.input:
                    node.input[position] = scaled
        for name, value in ((mean, self.mean), (std, self.std)):
            graph.initializer.append(numpy_helper.from_array(value.astype(signature.dtype), name))
        rest = list(graph.node)
        del graph.node[:]
        graph.node.append(helper.make_node("Sub", [signature.input, mean], [centered], centered))
        graph.node.append(helper.make_node("Div", [centered, std], [scaled], scaled))
        graph.node.extend(rest)
        return result


def _checked(
    value: npt.ArrayLike, input_shape: tuple[int, ...], what: str, network: str
) -> Float64:
    try:
        array = per_channel(value, input_shape)
    except (ValueError, TypeError):
        array = np.array(np.nan)
    if not np.isfinite(array).all():
        raise NetworkError(
            f"{network}: {what} {np.asarray(value).tolist()} does not fit inputs of shape "
            f"{input_shape}; give one finite number, or one for each channel"
        )
    return array


def _names(graph: onnx.GraphProto) -> set[str]:
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
