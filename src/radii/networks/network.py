"""The network: one graph that runs in torch, and the same graph replayed on ONNX Runtime."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.balls import Domain
from radii.errors import DataError
from radii.networks.graph import Graph
from radii.networks.operators import Cast, Reshape, Softmax
from radii.networks.replay import Replay, replay_version

__all__ = ["Network"]


class Network:
    """A classifier or any other function of one tensor; made by `load_network` or `from_torch`.

    `onnx_bytes` is self-contained and includes the normalisation, so that eps is in the data's own
    units everywhere. Pickling keeps these bytes and rebuilds the rest.
    """

    def __init__(
        self,
        *,
        name: str,
        domain: Domain,
        graph: Graph,
        fingerprint: str,
        input_shape: tuple[int, ...],
        input_dtype: np.dtype[np.floating],
        onnx_bytes: bytes,
    ) -> None:
        domain.box(input_shape)
        self.name = name
        self.domain = domain
        self.graph = graph
        self.fingerprint = fingerprint
        self.input_shape = input_shape
        self.input_dtype = input_dtype
        self.onnx_bytes = onnx_bytes
        self.output_size = graph.nodes[graph.output].size

    @classmethod
    def from_bytes(
        cls,
        model: bytes,
        *,
        domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike],
        name: str,
        mean: npt.ArrayLike | None = None,
        std: npt.ArrayLike | None = None,
    ) -> Network:
        """The network of a serialised ONNX model without external weights."""
        from radii.networks.loading import network_from_bytes

        return network_from_bytes(model, domain=domain, name=name, mean=mean, std=std)

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs (B, output_size) of inputs (B, *input_shape), in x's dtype and on its device."""
        if tuple(x.shape[1:]) != self.input_shape:
            raise self._misshapen(tuple(x.shape))
        return self.graph(x).reshape(x.shape[0], self.output_size)

    def replay(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Outputs (B, output_size) on ONNX Runtime, one input at a time on one thread."""
        if x.shape[1:] != self.input_shape:
            raise self._misshapen(x.shape)
        if len(x) == 0:
            return np.empty((0, self.output_size), self.input_dtype)
        batch = np.ascontiguousarray(x, dtype=self.input_dtype)
        return self._replay.run(batch.reshape(len(x), *self.graph.nodes[0].shape))

    @property
    def replayed_on(self) -> str:
        """What `replay` runs on, such as `onnxruntime 1.31.1`."""
        return replay_version()

    @property
    def is_piecewise_linear(self) -> bool:
        """Linear on each of finitely many polyhedra: no Sigmoid, Softmax, products of values."""
        return self.graph.is_piecewise_linear

    @property
    def outputs_are_probabilities(self) -> bool:
        """The outputs are the softmax of as many values: no affine map follows it."""
        node = self.graph.nodes[self.graph.output]
        while isinstance(node.operator, Reshape):
            node = self.graph.nodes[node.inputs[0]]
        operator = node.operator
        return isinstance(operator, Softmax) and node.shape[operator.axis] == node.size > 1

    @property
    def computed_in(self) -> np.dtype[np.floating]:
        """The number type of the file's operators; the narrowest, where it has several."""
        is_narrowed = any(isinstance(node.operator, Cast) for node in self.graph.nodes)
        return np.dtype(np.float32) if is_narrowed else self.input_dtype

    @property
    def torch_dtype(self) -> torch.dtype:
        """`input_dtype` as torch calls it."""
        return torch.float64 if self.input_dtype == np.float64 else torch.float32

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.input_shape))
        return f"Network({self.name!r}, {shape} -> {self.output_size}, {self.fingerprint[:12]})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.onnx_bytes, self.domain.low, self.domain.high, self.name)

    @cached_property
    def _replay(self) -> Replay:
        return Replay(self.onnx_bytes, self.name)

    def _misshapen(self, shape: tuple[int, ...]) -> DataError:
        return DataError(
            f"{self.name}: takes batches of inputs of shape {self.input_shape}, "
            f"but was given an array of shape {shape}"
        )


def _rebuild(model: bytes, low: npt.ArrayLike, high: npt.ArrayLike, name: str) -> Network:
    return Network.from_bytes(model, domain=(low, high), name=name)


def load_network(
    path: str | Path,
    *,
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike],
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    name: str | None = None,
) -> Network:
    """The network in an ONNX file, called like the file unless `name` is given.

    `domain` is the box of valid inputs, in the data's own units. With `mean` and `std` the network
    is fed (x - mean) / std; both are one number or one for each channel.
    """
    from radii.networks.loading import network_from_file

    return network_from_file(Path(path), domain=domain, mean=mean, std=std, name=name)
