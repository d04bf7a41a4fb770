"""From an ONNX model to a graph."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor

from radii.errors import NetworkError, UnsupportedOperator
from radii.networks._composites import with_composites
from radii.networks._models import (
    Signature,
    array,
    constant_value,
    node_title,
    sorted_nodes,
    type_name,
)
from radii.networks._network import Graph, Node
from radii.networks.operators._arithmetic import AddConstant, Cast
from radii.networks.operators._base import (
    MAX_VALUES,
    TRANSLATORS,
    Array,
    Input,
    OnnxNode,
    Operator,
    OperatorKind,
    OperatorLike,
    Translator,
    translator_of,
)
from radii.networks.operators._products import Dense, constant_as_node
from radii.networks.operators._steps import cast
from radii.plugins import PluginGroup, load_plugin

STANDARD_DOMAINS = ("", "ai.onnx")
"""The domains of ONNX itself."""

WHOLE_TYPES = (TensorProto.INT64, TensorProto.INT32)
EXACT_TYPES = (*WHOLE_TYPES, TensorProto.BOOL)
"""What floats may be cast to: others wrap around, or saturate, in ways of their own."""

PASSED_THROUGH = ("Identity", "Dropout", "Cast")
"""Operators that change nothing in inference between real numbers, and so leave no node, unless
they round: a cast from float64 to float32."""


AFFINE_TOLERANCE = 1e-6
"""How far an operator that says it is affine may be from it, relative to its values: float64 with
constants that may have been float32."""


@dataclass(slots=True)
class Translation:
    """A graph under construction.

    `operators` are translated as they say, before those that radii knows: see `load_network`.
    `values` maps ONNX names to node indices or constants; `unavailable` those of outputs that are
    not computed to the operator and node that would have to. `has_doubles` says that some value
    may be in float64; `types` are those of the file's values, as far as they follow;
    `rounded_constants` names the first node whose constants runtimes may round differently. With
    `keeps_sums` such constants are not folded: what they are computed of, `kept_entries` so far,
    become nodes.
    """

    network: str
    opset: int
    operators: Mapping[str, OperatorLike] = field(default_factory=dict)
    has_doubles: bool = False
    types: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    rounded_constants: str | None = None
    keeps_sums: bool = False
    kept_entries: int = 0
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
        if not _is_as_linear_as_it_says(operator, shapes):
            raise NetworkError(
                f"{self.network}: node '{name}': operator '{type(operator).__name__}' says that it "
                "is affine, but is not; state its kind"
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


def _is_as_linear_as_it_says(operator: Operator, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether f(x + y) + f(0) is f(x) + f(y) at random x and y, for operators of other packages.

    AFFINE is the default, and what is nonlinear must not pass for it because nobody said so.
    """
    is_own = type(operator).__module__.partition(".")[0] == __name__.partition(".")[0]
    if is_own or operator.kind is not OperatorKind.AFFINE:
        return True
    generator = torch.Generator().manual_seed(0)
    points = [
        torch.randn((2, *shape), dtype=torch.float64, generator=generator) for shape in shapes
    ]
    exact = copy.deepcopy(operator).double()
    with torch.no_grad():
        each = exact(*points)
        both = exact(*(x.sum(0, keepdim=True) for x in points))
        none = exact(*(torch.zeros_like(x[:1]) for x in points))
    size = float(torch.cat([each, both, none]).abs().max()) if both.numel() else 0.0
    error = (both[0] + none[0] - each[0] - each[1]).abs()
    return bool((error <= AFFINE_TOLERANCE * (1 + size)).all())


def build_graph(
    model: onnx.ModelProto,
    signature: Signature,
    network: str,
    operators: Mapping[str, OperatorLike] | None = None,
) -> Graph:
    """The graph, with everything folded that does not depend on the network's input.

    Constants that the file computes by sums are numbers that runtimes may round differently. Where
    they are few, they are nodes of the graph as well: values with an error, like all others.
    """
    graph = _built(model, signature, network, operators, keeps_sums=False)
    if graph.rounded_constants is None:
        return graph
    try:
        return _built(model, signature, network, operators, keeps_sums=True)
    except NetworkError:
        return graph


def _built(
    model: onnx.ModelProto,
    signature: Signature,
    network: str,
    operators: Mapping[str, OperatorLike] | None,
    *,
    keeps_sums: bool,
) -> Graph:
    if np.prod(signature.shape, dtype=float) > MAX_VALUES:
        raise NetworkError(f"{network}: inputs of shape {signature.input_shape} are too large")
    nodes = sorted_nodes(model, signature.output, network)
    used = {name for node in nodes for name in node.input}
    has_doubles = signature.dtype == np.float64
    types = _types(model, nodes)
    translation = Translation(network, signature.opset, operators or {}, has_doubles, types)
    translation.keeps_sums = keeps_sums
    for tensor in model.graph.initializer:
        if tensor.name in used:
            translation.values[tensor.name] = array(tensor, network)
    translation.add_input(signature.input, signature.shape)
    for node in nodes:
        _translate(translation, node)
    if signature.output not in translation.values:
        raise NetworkError(f"{network}: no node computes output '{signature.output}'")
    output = translation.values[signature.output]
    if not isinstance(output, int):
        raise NetworkError(
            f"{network}: output '{signature.output}' does not depend on the input, "
            "so there is nothing to measure"
        )
    joined = with_composites(translation.nodes, output)
    graph = with_biases(joined.nodes, joined.output)
    graph.joined = joined.joined
    graph.rounded_constants = translation.rounded_constants
    return graph


WHOLE_RESULTS = ("ArgMax", "ArgMin", "Cast", "Equal", "Greater", "Less", "NonZero", "TopK")
"""Operators from which on values may be whole numbers or truth values, as the names begin."""


def _types(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> dict[str, np.dtype[Any]]:
    """The number types of values that are no floats; where there can be any."""
    if not any(node.op_type.startswith(WHOLE_RESULTS) for node in nodes):
        return {}
    inferred = onnx.shape_inference.infer_shapes(model).graph
    stated = (*inferred.value_info, *inferred.output)
    kinds = {value.name: value.type.tensor_type.elem_type for value in stated}
    return {name: helper.tensor_dtype_to_np_dtype(kind) for name, kind in kinds.items() if kind}


def _translate(translation: Translation, node: onnx.NodeProto) -> None:
    network, values = translation.network, translation.values
    for source in filter(None, node.input):
        if source in translation.unavailable:
            raise UnsupportedOperator(*translation.unavailable[source], network)
        if source not in values:
            raise NetworkError(
                f"{network}: node '{node_title(node)}' reads '{source}', which nothing defines"
            )
    inputs = set(filter(None, node.input))
    known = {name: value for name in inputs if not isinstance(value := values[name], int)}
    call = OnnxNode(translation, node, node_title(node))
    is_standard = node.domain in STANDARD_DOMAINS
    if is_standard and node.op_type in ("Shape", "Size") and node.input:
        values[node.output[0]] = _extent(call)
    elif is_standard and len(known) == len(inputs):
        outputs = constant_outputs(node, known, translation.opset, network)
        if translation.keeps_sums and rounds_freely(node, outputs):
            _keep_as_node(call)
            _bind(call, _nodes_for(call, _translator(call)))
            return
        if translation.rounded_constants is None and rounds_freely(node, outputs):
            translation.rounded_constants = f"{node_title(node)} ({node.op_type})"
        values.update(zip(filter(None, node.output), outputs, strict=True))
    elif is_standard and node.op_type in PASSED_THROUGH:
        _bind(call, [_passed_through(call)])
    else:
        _bind(call, _nodes_for(call, _translator(call)))


KEPT_ENTRIES = 4096
"""Of constants that become nodes: more are weights, which are better folded."""


def _keep_as_node(call: OnnxNode) -> None:
    """The smallest of the constants that a node reads becomes a node: nothing times an entry of the
    input, plus the constant. So what is computed of it has the errors of other values."""
    translation, floats = call.translation, []
    for name in call.proto.input:
        value = translation.values[name] if name else 0
        if not isinstance(value, int) and value.dtype.kind == "f" and np.isfinite(value).all():
            floats.append((value.size, name, value))
    if not floats:
        raise call.unsupported("of constants that are no floats")
    size, name, value = min(floats, key=lambda each: each[0])
    translation.kept_entries += size
    if translation.kept_entries > KEPT_ENTRIES or not size:
        raise call.unsupported("of too many constants")
    constant = torch.from_numpy(np.array(value, np.float64))
    translation.values[name] = constant_as_node(call, constant)


def _translator(call: OnnxNode) -> Translator:
    """What is handed in comes first, then what radii knows, then what is installed."""
    name = call.operator
    for known in (call.translation.operators, TRANSLATORS):
        if name in known:
            return translator_of(known[name])
    operator: OperatorLike | None = load_plugin(PluginGroup.OPERATORS, name)
    if operator is None:
        raise call.unsupported()
    return translator_of(operator)


def _nodes_for(call: OnnxNode, translator: Translator) -> list[int]:
    try:
        results = translator(call)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise NetworkError(
            f"{call.translation.network}: node '{call.name}' ({call.proto.op_type}) "
            f"does not follow the ONNX definition of its operator: {error}"
        ) from error
    return [results] if isinstance(results, int) else list(results)


def _bind(call: OnnxNode, results: list[int]) -> None:
    """Name the results; an output that radii does not compute matters only once it is read."""
    outputs = call.proto.output
    call.translation.values.update(zip(outputs, results, strict=False))
    for position, name in enumerate(outputs[len(results) :], start=len(results)):
        operator = f"{call.proto.op_type} with its output {position}"
        call.translation.unavailable[name] = (operator, call.name)


def _extent(call: OnnxNode) -> npt.NDArray[np.int64]:
    shape = call.shape(0)
    if call.proto.op_type == "Size":
        return np.array(np.prod(shape), dtype=np.int64)
    end = call.int_attribute("end", len(shape))
    return np.array(shape[call.int_attribute("start", 0) : end], dtype=np.int64)


def _passed_through(call: OnnxNode) -> int:
    """The input's own node, provided that the operator really changes nothing."""
    kind, target = call.proto.op_type, call.int_attribute("to", TensorProto.FLOAT)
    if kind == "Cast" and (target in EXACT_TYPES or call.is_whole(0) or call.is_bool(0)):
        to_bool = target == TensorProto.BOOL
        return cast(call, to_bool=to_bool, to_whole=target in WHOLE_TYPES)
    if kind == "Cast" and target not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        raise call.unsupported(f"to {type_name(target)}")
    if kind == "Dropout" and call.has(2) and call.constant(2).any():
        raise call.unsupported("in training mode")
    if kind == "Cast" and target == TensorProto.DOUBLE:
        call.translation.has_doubles = True
    elif kind == "Cast" and call.translation.has_doubles:
        return call.emit(Cast(), call.node(0))
    return call.node(0)


# Joining a matrix product with the addition behind it, which many exporters write apart.


def with_biases(nodes: Sequence[Node], output: int) -> Graph:
    """The graph in which a constant added to a product that nothing else reads is its bias."""
    readers = Counter(source for node in nodes for source in node.inputs)
    readers[output] += 1
    kept: list[Node] = []
    position: list[int] = []
    for node in nodes:
        source = nodes[node.inputs[0]] if node.inputs else node
        bias = _bias(source, node)
        if bias is not None and readers[node.inputs[0]] == 1:
            index = position[node.inputs[0]]
            assert isinstance(source.operator, Dense)
            dense = Dense(source.operator.weight, bias)
            dense.gain = source.operator.gain
            kept[index] = Node(source.name, dense, kept[index].inputs, source.shape)
            position.append(index)
        else:
            position.append(len(kept))
            inputs = tuple(position[i] for i in node.inputs)
            kept.append(Node(node.name, node.operator, inputs, node.shape))
    return Graph(kept, position[output])


def _bias(product: Node, addition: Node) -> Tensor | None:
    """What the addition adds to every row of the product, if that is what it does."""
    dense, added = product.operator, addition.operator
    if not (isinstance(dense, Dense) and dense.bias is None and isinstance(added, AddConstant)):
        return None
    constant, columns = added.constant, dense.weight.shape[1]
    is_row = constant.numel() == 1 or tuple(constant.shape[-1:]) == (constant.numel(),)
    if not is_row or addition.shape != product.shape:
        return None
    return constant.reshape(-1).expand(columns).clone()


# Evaluating, once and at load time, the nodes that do not depend on the network's input.


CONSTANT_ROUNDING = 1e-5
"""By how much runtimes may differ in a constant that a node computes, relative to it or to 1."""

READABLE_IR = 10
"""A version of the file format that every ONNX Runtime in use reads."""

_RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}

_MOVED = (
    "Cast Concat Constant ConstantOfShape Expand EyeLike Flatten Gather GatherElements GatherND "
    "Identity OneHot Pad Reshape Shape Size Slice Split Squeeze Tile Transpose Unsqueeze Where"
)
_ROUNDED_ONCE = (
    "Abs Add Ceil Clip Div Floor Max Min Mul Neg Reciprocal Relu Round Sign Sqrt Sub Trunc"
)
_DETERMINED = frozenset([*_MOVED.split(), *_ROUNDED_ONCE.split()])
"""Operators of which IEEE 754 leaves one result only: each entry is rounded once, or not at all."""

# Operators whose result may be far larger than their inputs: its size from the inputs.
_SIZES: dict[str, Callable[..., float]] = {
    "ConstantOfShape": lambda shape: _product(shape),
    "Expand": lambda x, shape: max(1.0, float(x.size)) * _product(shape),
    "Tile": lambda x, repeats: float(x.size) * _product(repeats),
    "Range": lambda start, limit, delta: abs((float(limit) - float(start)) / float(delta)),
}


def random_operator(model: onnx.ModelProto) -> str | None:
    """The first operator that draws random numbers, also within control flow; None if none does."""
    nodes = list(model.graph.node)
    while nodes:
        node = nodes.pop(0)
        if node.op_type in _RANDOM:
            return str(node.op_type)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                nodes.extend(graph.node)
    return None


def constant_outputs(
    node: onnx.NodeProto, inputs: Mapping[str, Array], opset: int, network: str
) -> list[Array]:
    """The outputs of a node whose inputs are all known, by the ONNX reference implementation."""
    holds_graphs = any(a.HasField("g") or a.graphs for a in node.attribute)
    if node.op_type in _RANDOM or holds_graphs or not onnx.defs.has(node.op_type):
        raise UnsupportedOperator(node.op_type, node_title(node), network)
    if node.op_type == "Constant" and len(node.attribute) != 1:
        raise UnsupportedOperator("Constant of several values", node_title(node), network)
    stored = constant_value(node, network)
    if stored is not None:
        return [stored]
    _refuse_huge(node, [inputs[name] for name in node.input if name], network)
    feeds = {name: inputs[name] for name in node.input if name}
    outputs = [name for name in node.output if name]
    try:
        computed = _evaluated(node, feeds, outputs, opset)
    except Exception as error:
        raise NetworkError(
            f"{network}: node '{node_title(node)}' ({node.op_type}) cannot be evaluated: "
            f"{str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"
        ) from None
    found = [np.asarray(value) for value in computed]
    if node.op_type == "Cast" and not all(_is_common(value.dtype) for value in found):
        what = "Cast of constants to floats of few bits, which runtimes round twice,"
        raise UnsupportedOperator(what, node_title(node), network)
    if node.op_type not in _DETERMINED or node.op_type == "Slice":
        _compare_with_runtime(node, feeds, found, opset, network)
    return found


def _is_common(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind in "iub" or dtype in (np.float32, np.float64)


def _compare_with_runtime(
    node: onnx.NodeProto, feeds: dict[str, Array], found: list[Array], opset: int, network: str
) -> None:
    """Refuse a node that ONNX's reference implementation evaluates in another way."""
    import onnxruntime

    names = [name for name in node.output if name]
    kinds = [helper.np_dtype_to_tensor_dtype(value.dtype) for value in (*feeds.values(), *found)]
    values = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip([*feeds, *names], kinds, strict=True)
    ]
    graph = helper.make_graph([node], "constant", values[: len(feeds)], values[len(feeds) :])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=READABLE_IR)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        expected = session.run(names, feeds)
    except Exception:  # it does not run there, so that no witness of the network will
        return
    for own, other in zip(found, expected, strict=True):
        is_same = own.shape == other.shape and (
            np.allclose(own, other, rtol=CONSTANT_ROUNDING, atol=CONSTANT_ROUNDING, equal_nan=True)
            if own.dtype.kind == "f"
            else np.array_equal(own, other)
        )
        if not is_same:
            what = f"{node.op_type} of constants, on which runtimes do not agree,"
            raise UnsupportedOperator(what, node_title(node), network)


def rounds_freely(node: onnx.NodeProto, outputs: Sequence[Array]) -> bool:
    """Whether runtimes may differ in the constants that a node computes: in sums, exponentials."""
    has_floats = any(np.issubdtype(value.dtype, np.floating) for value in outputs)
    return has_floats and node.op_type not in _DETERMINED


def _evaluated(
    node: onnx.NodeProto, feeds: dict[str, Array], outputs: list[str], opset: int
) -> list[Array]:
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(
        [node], "constant", [_untyped(name) for name in feeds], [_untyped(name) for name in outputs]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return list(ReferenceEvaluator(model).run(outputs, feeds))


def _untyped(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)


def _product(sizes: Array) -> float:
    return float(np.prod(np.asarray(sizes, dtype=np.float64)))


def _refuse_huge(node: onnx.NodeProto, values: list[Array], network: str) -> None:
    if node.op_type not in _SIZES:
        return
    try:
        size = _SIZES[node.op_type](*values)
    except (TypeError, ValueError, ZeroDivisionError):
        size = math.nan
    if not 0 <= size <= MAX_VALUES:
        raise NetworkError(
            f"{network}: node '{node_title(node)}' ({node.op_type}) makes a constant of "
            f"{size:g} entries, which is not possible"
        )
