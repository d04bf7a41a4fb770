"""The network: one graph that runs in torch, and the same model replayed on ONNX Runtime.

The graph has its nodes in topological order and runs on batches of inputs. ONNX Runtime is the
reference that every witness is checked against.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.errors import DataError, NetworkError
from radii.networks.operators._arithmetic import Cast
from radii.networks.operators._arrangement import Reshape
from radii.networks.operators._base import Operator, OperatorKind, OperatorLike
from radii.networks.operators._memo import Memo
from radii.networks.operators._opaque import Opaque
from radii.networks.operators._softmax import Softmax
from radii.problem import Domain


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One value of a network and the operator that computes it.

    `inputs` are indices of earlier nodes, in the operator's order. `shape` is the value's shape in
    the ONNX graph with a batch of 1, so a batch of B inputs gives values (B, *shape).
    """

    name: str
    operator: Operator
    inputs: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def kind(self) -> OperatorKind:
        """What a verifier may assume of the operator."""
        return self.operator.kind

    @property
    def size(self) -> int:
        """How many numbers the value holds for one input."""
        return math.prod(self.shape)


class Graph:
    """Nodes in topological order, each with one value; node 0 is the input. Immutable.

    Batching is an axis in front of every value, so that graphs which reshape or transpose their own
    batch axis run in batches all the same.

    `rounded_constants` names a node of the file that computes constants which every runtime may
    round in its own way; None if there is none. `joined` names nodes of the file whose values the
    graph does not have, since they are parts of another node's function.
    """

    def __init__(self, nodes: Sequence[Node], output: int, exact: Graph | None = None) -> None:
        """`nodes` hold float64 constants on the CPU, unless this is a copy of the graph `exact`."""
        self.nodes = tuple(nodes)
        self.output = output
        self.rounded_constants: str | None = exact.rounded_constants if exact else None
        self.joined: frozenset[str] = exact.joined if exact else frozenset()
        self._exact = exact or self
        self._copies: dict[tuple[torch.dtype, torch.device], Graph] = (
            exact._copies if exact else {(torch.float64, torch.device("cpu")): self}
        )
        self._last_use = self._find_last_uses()

    @property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each node the nodes that read its value, in order."""
        readers: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for source in dict.fromkeys(node.inputs):
                readers[source].append(index)
        return tuple(tuple(r) for r in readers)

    @property
    def is_affine(self) -> tuple[bool, ...]:
        """For each node whether its operator is affine, jointly in all its inputs."""
        return tuple(node.kind is OperatorKind.AFFINE for node in self.nodes)

    @property
    def is_piecewise_linear(self) -> bool:
        """No operator is smoothly nonlinear, or unknown."""
        known = (OperatorKind.AFFINE, OperatorKind.PIECEWISE_LINEAR)
        return all(node.kind in known for node in self.nodes)

    @property
    def opaque(self) -> Opaque | None:
        """The model as a whole, where nothing is known of it but what it computes."""
        last = self.nodes[self.output].operator
        return last if isinstance(last, Opaque) else None

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.nodes[self.output].shape

    def values(self, x: Tensor) -> list[Tensor]:
        """All node values for a batch (B, ...) of inputs, in the dtype and on the device of x."""
        graph = self._matching(x)
        values = [x.reshape(x.shape[0], *self.nodes[0].shape)]
        for node in graph.nodes[1:]:
            values.append(node.operator(*(values[i] for i in node.inputs)))
        return values

    def __call__(self, x: Tensor) -> Tensor:
        """The output (B, *output_shape) alone; values are dropped as soon as nothing needs them."""
        graph = self._matching(x)
        values: list[Tensor | None] = [None] * len(graph.nodes)
        values[0] = x.reshape(x.shape[0], *self.nodes[0].shape)
        for index, node in enumerate(graph.nodes[1:], start=1):
            values[index] = node.operator(*(values[i] for i in node.inputs))
            for source in node.inputs:
                if self._last_use[source] == index:
                    values[source] = None
        result = values[self.output]
        assert result is not None
        return result

    def in_dtype(self, dtype: torch.dtype) -> Graph:
        """The same graph with constants in `dtype`; made once, then remembered."""
        return self._copy(dtype, torch.device("cpu"))

    def _matching(self, x: Tensor) -> Graph:
        return self._copy(x.dtype, x.device)

    def _copy(self, dtype: torch.dtype, device: torch.device) -> Graph:
        key = (dtype, device)
        if key not in self._copies:
            nodes = [
                Node(n.name, copy.deepcopy(n.operator).to(device, dtype), n.inputs, n.shape)
                for n in self._exact.nodes
            ]
            self._copies[key] = Graph(nodes, self.output, exact=self._exact)
        return self._copies[key]

    def _find_last_uses(self) -> list[int]:
        last = list(range(len(self.nodes)))
        for index, node in enumerate(self.nodes):
            for source in node.inputs:
                last[source] = index
        last[self.output] = len(self.nodes)
        return last


DomainLike = Domain | tuple[npt.ArrayLike, npt.ArrayLike]
"""A domain, or its lowest and highest values: one number each, or one for each channel."""


class Network:
    """A classifier or any other function of one tensor; made by `load_network` or `from_torch`.

    `onnx_bytes` is self-contained and includes the normalisation, so that eps is in the data's own
    units everywhere. Pickling keeps these bytes and `operators`, those of ONNX that were handed in
    with the model, and rebuilds the rest. `memo` is for what others derive from the network alone,
    such as its fusion for bounds: it lives as long as the network, in one process.
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
        operators: Mapping[str, OperatorLike] | None = None,
        named: tuple[str, ...] = (),
    ) -> None:
        domain.box(input_shape)
        self.name = name
        self.domain = domain
        self.graph = graph
        self.fingerprint = fingerprint
        self.input_shape = input_shape
        self.input_dtype = input_dtype
        self.onnx_bytes = onnx_bytes
        self.operators = dict(operators or {})
        self.output_size = graph.nodes[graph.output].size
        self.memo = Memo()
        self._named = named

    @classmethod
    def from_bytes(
        cls,
        model: bytes,
        *,
        domain: DomainLike,
        name: str,
        mean: npt.ArrayLike | None = None,
        std: npt.ArrayLike | None = None,
        operators: Mapping[str, OperatorLike] | None = None,
        opaque: bool = False,
        module: torch.nn.Module | None = None,
    ) -> Network:
        """The network of a serialised ONNX model without external weights.

        `opaque` as in `load_network`; `module` is then asked for gradients, if it is at hand.
        """
        from radii.networks._loading import network_from_bytes

        return network_from_bytes(
            model,
            domain=domain,
            name=name,
            mean=mean,
            std=std,
            operators=operators,
            opaque=opaque,
            module=module,
        )

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
    def class_names(self) -> tuple[str, ...]:
        """What the model's metadata call the outputs, in order; empty where they do not."""
        return self._named if len(self._named) == self.output_size else ()

    def with_class_names(self, names: Sequence[str]) -> Network:
        """The same network, whose model says what its outputs are called."""
        from radii.networks._models import with_class_names

        named = copy.copy(self)
        named._named = tuple(names)
        named.onnx_bytes = with_class_names(self.onnx_bytes, names)
        return named

    @property
    def cache_key(self) -> tuple[object, ...]:
        """For what is remembered of networks in one process: operators that were handed in may give
        the same file another graph."""
        return self.fingerprint, frozenset(self.operators.items())

    @property
    def replayed_on(self) -> str:
        """What `replay` runs on, such as `onnxruntime 1.31.1`."""
        return replay_version()

    @property
    def is_piecewise_linear(self) -> bool:
        """Linear on each of finitely many polyhedra: no Sigmoid, Softmax, products of values."""
        return self.graph.is_piecewise_linear

    @property
    def has_gradient(self) -> bool:
        """Whether outputs can be differentiated: not those of a model that only runs."""
        return self.graph.opaque is None or self.graph.opaque.has_gradient

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
        domain = (self.domain.low, self.domain.high)
        opaque = self.graph.opaque
        held = None if opaque is None else opaque.module
        return _rebuild, (self.onnx_bytes, domain, self.name, self.operators, bool(opaque), held)

    @cached_property
    def _replay(self) -> Replay:
        return Replay(self.onnx_bytes, self.name)

    def _misshapen(self, shape: tuple[int, ...]) -> DataError:
        return DataError(
            f"{self.name}: takes batches of inputs of shape {self.input_shape}, "
            f"but was given an array of shape {shape}"
        )


def _rebuild(
    model: bytes,
    domain: DomainLike,
    name: str,
    operators: Mapping[str, OperatorLike],
    opaque: bool,
    module: torch.nn.Module | None,
) -> Network:
    return Network.from_bytes(
        model, domain=domain, name=name, operators=operators, opaque=opaque, module=module
    )


def load_network(
    path: str | Path,
    *,
    domain: DomainLike,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    name: str | None = None,
    operators: Mapping[str, OperatorLike] | None = None,
    opaque: bool = False,
) -> Network:
    """The network in an ONNX file, called like the file unless `name` is given.

    `domain` is the box of valid inputs, in the data's own units. With `mean` and `std` the network
    is fed (x - mean) / std; both are one number or one for each channel.

    `operators` says what ONNX operators become that radii does not know, by type, or by domain and
    type (`com.microsoft.Gelu`): a subclass of `Operator`, or a function of an `OnnxNode`. They
    travel with the network to other processes by pickle, so that they must be importable there.

    With `opaque`, a model whose operators radii does not know is taken as it is, if ONNX Runtime
    runs it: it can be attacked, and nothing of it can be proven.
    """
    from radii.networks._loading import network_from_file

    return network_from_file(
        Path(path),
        domain=domain,
        mean=mean,
        std=std,
        name=name,
        operators=operators,
        opaque=opaque,
    )


@cache
def replay_version() -> str:
    """The engine that replays, with its version."""
    from importlib.metadata import version

    return f"onnxruntime {version('onnxruntime')}"


class Replay:
    """A session on one thread of the CPU, fed one input at a time: the same answer every time."""

    def __init__(self, model: bytes, name: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._name = name
        try:
            self._session: Any = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
        except Exception as error:
            raise NetworkError(
                f"{name}: {replay_version()} cannot load it: {_reason(error)}"
            ) from None
        self._input = self._session.get_inputs()[0].name

    @property
    def session(self) -> Any:
        return self._session

    def run(self, inputs: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """The outputs, flattened, of inputs stacked along the first axis."""
        outputs = []
        for x in inputs:
            try:
                (y,) = self._session.run(None, {self._input: x})
            except Exception as error:
                raise NetworkError(
                    f"{self._name}: {replay_version()} cannot run it: {_reason(error)}"
                ) from None
            outputs.append(np.ravel(y))
        return np.stack(outputs)


def _reason(error: Exception) -> str:
    """What the runtime says, without its error codes, source paths and signatures."""
    text = " ".join(str(error).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    return re.sub(r"/onnxruntime_src/\S+ .*\) (?:const )?", "", text)
