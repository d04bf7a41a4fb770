"""Making networks. Whatever is wrong with a file leaves here as a NetworkError of one sentence."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import AttributeProto, helper, numpy_helper

from radii.errors import InputError, NetworkError, SpecificationError, UnsupportedOperator
from radii.networks._building import build_graph, random_operator
from radii.networks._models import (
    Signature,
    array,
    class_names_of,
    constant_value,
    defined_since,
    keep_scores,
    parse_model,
    read_model,
    signature,
    sorted_nodes,
)
from radii.networks._network import DomainLike, Graph, Network, Node, Replay
from radii.networks.operators._arrangement import Reshape
from radii.networks.operators._base import Array, Input, OperatorLike
from radii.networks.operators._opaque import Opaque
from radii.networks.operators._tanh import Sigmoid
from radii.problem import Domain

Float64 = npt.NDArray[np.float64]

REPLAY_TOLERANCE = 1e-3
"""Relative to the largest output: far above rounding, far below what a wrong operator causes."""


def network_from_file(
    path: Path,
    *,
    domain: DomainLike,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str | None,
    operators: Mapping[str, OperatorLike] | None,
    opaque: bool,
) -> Network:
    """See `radii.networks.load_network`."""
    with _one_sentence(path.name):
        model = read_model(path)
        network = _network(
            model,
            domain=domain,
            mean=mean,
            std=std,
            name=name or path.name,
            operators=operators,
            opaque=opaque,
        )
        compare_with_replay(network)
    return network


def network_from_bytes(
    content: bytes,
    *,
    domain: DomainLike,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str,
    operators: Mapping[str, OperatorLike] | None,
    opaque: bool,
    module: torch.nn.Module | None,
) -> Network:
    """See `radii.networks.Network.from_bytes`."""
    with _one_sentence(name):
        return _network(
            parse_model(content, name),
            domain=domain,
            mean=mean,
            std=std,
            name=name,
            operators=operators,
            opaque=opaque,
            module=module,
        )


def structural_fingerprint(network: Network) -> str:
    """The fingerprint of the network where all its operators are known, also where some are not."""
    model = parse_model(network.onnx_bytes, network.name)
    return fingerprint(model, signature(model, network.name), network.name)


def without_last(network: Network, *operators: str) -> Network | None:
    """The network up to what its last node reads; None if that node is not one of these."""
    model = onnx.load_model_from_string(network.onnx_bytes)
    output = model.graph.output[0]
    last = next((node for node in model.graph.node if output.name in node.output), None)
    if last is None or last.op_type not in operators:
        return None
    kind = output.type.tensor_type.elem_type
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info(last.input[0], kind, None))
    content = model.SerializeToString(deterministic=True)
    return Network.from_bytes(
        content, domain=network.domain, name=network.name, operators=network.operators
    )


def as_classifier(network: Network, threshold: float | None = None) -> Network:
    """A network of one output as one of two classes: 1 where the output is above the threshold.

    The outputs are then the threshold and what the file computes, unchanged: whoever compares them
    decides as the file's user does, and a tie belongs to neither class. Without a threshold it is
    0.5 after a sigmoid and else 0. Other networks are returned as they are.
    """
    if network.output_size != 1:
        if threshold is not None:
            raise NetworkError(
                f"{network.name}: has {network.output_size} outputs; a threshold is for one"
            )
        return network
    model = onnx.load_model_from_string(network.onnx_bytes)
    graph, output = model.graph, model.graph.output[0]
    if threshold is None:
        threshold = 0.5 if _ends_in_sigmoid(network) else 0.0
    taken = _names(graph)
    column, chosen, classes, shape, unit, offset = (
        _fresh(name, taken)
        for name in ("column", "chosen", "classes", "column_shape", "unit", "threshold")
    )
    kind = output.type.tensor_type.elem_type
    dtype = helper.tensor_dtype_to_np_dtype(kind) if kind else network.input_dtype
    values = {
        shape: np.array([-1, 1], np.int64),
        unit: np.array([[0, 1]], dtype),
        offset: np.array([threshold, 0], dtype),
    }
    graph.initializer.extend(numpy_helper.from_array(v, name) for name, v in values.items())
    graph.node.append(helper.make_node("Reshape", [output.name, shape], [column], column))
    graph.node.append(helper.make_node("MatMul", [column, unit], [chosen], chosen))
    graph.node.append(helper.make_node("Add", [chosen, offset], [classes], classes))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(classes, kind, None))
    content = model.SerializeToString(deterministic=True)
    opaque = network.graph.opaque is not None
    return Network.from_bytes(
        content,
        domain=network.domain,
        name=network.name,
        operators=network.operators,
        opaque=opaque,
    )


def _ends_in_sigmoid(network: Network) -> bool:
    """Whatever reshapes its output; what nothing but its values tells counts as a score."""
    node = network.graph.nodes[network.graph.output]
    while isinstance(node.operator, Reshape):
        node = network.graph.nodes[node.inputs[0]]
    return isinstance(node.operator, Sigmoid)


def compare_with_replay(network: Network, count: int = 2) -> None:
    """Refuse a network whose graph does not give what ONNX Runtime gives, on random inputs.

    Proofs speak about the graph and witnesses about the replay: they must be one function.
    """
    low, high = (
        np.nan_to_num(side, posinf=1.0, neginf=-1.0)
        for side in network.domain.box(network.input_shape)
    )
    places = np.random.default_rng(0).uniform(size=(count, *network.input_shape))
    inputs = (low * (1 - places) + high * places).astype(network.input_dtype)
    replayed = network.replay(inputs)
    if not np.isfinite(replayed).all():
        raise NetworkError(f"{network.name}: gives NaN or infinite outputs inside its domain")
    with torch.no_grad():
        outputs = network(torch.from_numpy(inputs)).numpy()
    if outputs.shape != replayed.shape:
        raise NetworkError(
            f"{network.name}: gives {outputs.shape[1]} outputs, but {replayed.shape[1]} on "
            f"{network.replayed_on}; please report this network"
        )
    if not outputs.size:
        raise NetworkError(f"{network.name}: gives no outputs")
    error = float(np.abs(outputs - replayed).max())
    if not error <= REPLAY_TOLERANCE * max(1.0, float(np.abs(replayed).max())):
        raise NetworkError(
            f"{network.name}: gives outputs that differ by {error:.2g} from those on "
            f"{network.replayed_on}; please report this network"
        )


def _network(
    model: onnx.ModelProto,
    *,
    domain: DomainLike,
    mean: npt.ArrayLike | None,
    std: npt.ArrayLike | None,
    name: str,
    operators: Mapping[str, OperatorLike] | None,
    opaque: bool,
    module: torch.nn.Module | None = None,
) -> Network:
    if opaque:
        keep_scores(model)
    given = signature(model, name)
    shape = given.input_shape
    normalization = Normalization(mean, std, input_shape=shape, network=name)
    model = normalization.ahead_of(model, given)
    content = model.SerializeToString(deterministic=True)
    try:
        graph = build_graph(model, given, name, operators)
        digest = fingerprint(model, given, name)
    except UnsupportedOperator as error:
        if not opaque:
            raise
        if module is not None and not normalization.is_identity:
            module = _Normalized(normalization, module)
        if (drawing := random_operator(model)) is not None:
            raise NetworkError(
                f"{name}: operator '{drawing}' draws random numbers, so that no answer of it counts"
            ) from None
        graph = _opaque_graph(content, given, name, str(error.operator), module)
        # Subgraphs read values that no node names, so that all of the file counts.
        digest = _hash("opaque", hashlib.sha256(content).hexdigest())
    return Network(
        name=name,
        domain=_domain(domain, shape, name),
        graph=graph.in_dtype(torch.float64 if given.dtype == np.float64 else torch.float32),
        fingerprint=digest,
        input_shape=shape,
        input_dtype=given.dtype,
        onnx_bytes=content,
        operators=operators,
        named=class_names_of(model),
    )


def _opaque_graph(
    content: bytes, given: Signature, name: str, operator: str, module: torch.nn.Module | None
) -> Graph:
    """The whole model as one operator."""
    reason = f"operator '{operator}' has no bounds"
    session = Replay(content, name).session
    whole = Opaque(session, given.dtype, given.shape, reason, module)
    nodes = [
        Node(given.input, Input(), (), given.shape),
        Node(given.output, whole, (0,), whole.result_shape(given.shape)),
    ]
    return Graph(nodes, 1)


class _Normalized(torch.nn.Module):
    """A module behind the normalisation that the model was given."""

    def __init__(self, normalization: Normalization, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        self.mean, self.std = (
            torch.from_numpy(np.array(side)) for side in (normalization.mean, normalization.std)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.module((x - self.mean.to(x)) / self.std.to(x))
        return result


def _domain(bounds: DomainLike, shape: tuple[int, ...], network: str) -> Domain:
    low, high = (bounds.low, bounds.high) if isinstance(bounds, Domain) else bounds
    try:
        return Domain(per_channel(low, shape), per_channel(high, shape))
    except (TypeError, ValueError):
        spelled = f"{np.asarray(low).tolist()}:{np.asarray(high).tolist()}"
        raise SpecificationError(
            f"{network}: domain {spelled} does not fit inputs of shape {shape}; "
            "give one number for each side, or one for each channel"
        ) from None


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    """Turn what the libraries below say of a broken model into one sentence that names it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError as error:
        error.args = (_printable(str(error)),)  # names in the file may hold anything
        raise
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        reason = _printable(first)
        raise NetworkError(f"{name}: cannot be loaded as a network: {reason}") from error


def _printable(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


# Normalisation as the first nodes of the model, so that every reader of the graph sees it.


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
    if array.ndim == 1 and array.size == math.prod(shape):
        return array.reshape(shape)
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


# A name for what a model computes, which does not change with what the file calls things.


def fingerprint(model: onnx.ModelProto, signature: Signature, network: str) -> str:
    """64 hexadecimal digits over operators, attributes, weights and topology.

    Each value's digest covers the digests of what it is computed from, so that names, the order of
    nodes, unused nodes and the place where a weight is stored have no influence.
    """
    nodes = sorted_nodes(model, signature.output, network)
    used = {name for node in nodes for name in node.input}
    stored = [tensor for tensor in model.graph.initializer if tensor.name in used]
    digests = {tensor.name: _tensor(array(tensor, network)) for tensor in stored}
    digests[signature.input] = _hash("input", str(signature.dtype), str(signature.shape))
    for node in nodes:
        constant = constant_value(node, network)
        if constant is not None:
            digests[node.output[0]] = _tensor(constant)
            continue
        inputs = [digests.get(name, "") for name in node.input]
        digest = _node(node, inputs, signature.opset, network)
        for position, name in enumerate(node.output):
            digests[name] = _hash("output", digest, str(position))
    return _hash("network", digests[signature.output])


def _node(node: onnx.NodeProto, inputs: list[str], opset: int, network: str) -> str:
    attributes = sorted(node.attribute, key=lambda attribute: attribute.name)
    described = [f"{a.name}={_attribute(a, network)}" for a in attributes]
    return _hash(
        "node", node.domain, node.op_type, str(defined_since(node, opset)), *described, *inputs
    )


def _attribute(attribute: AttributeProto, network: str) -> str:
    if attribute.type == AttributeProto.TENSOR:
        return _tensor(array(attribute.t, network))
    if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return hashlib.sha256(attribute.SerializeToString(deterministic=True)).hexdigest()
    value = onnx.helper.get_attribute_value(attribute)
    return repr(list(value) if attribute.type in _LISTS else value)


_LISTS = {AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS}


def _tensor(value: Array) -> str:
    little_endian = value.astype(value.dtype.newbyteorder("<"), copy=False)
    digest = hashlib.sha256(f"tensor\n{value.dtype.name}\n{value.shape}\n".encode())
    digest.update(np.ascontiguousarray(little_endian).tobytes())
    return digest.hexdigest()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
