"""From an ONNX file to a network: the graph, constants, and which reader reads what.

Constants are computed by onnx's reference implementation, if runtimes compute them alike; operators
that only move entries are run on the entries' numbers; all others are read by their definitions, in
the folder `operators`.
"""

# ruff: noqa: SIM905
from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.inliner import inline_local_functions

from radii_check._ambiguity import DEFAULT_DOMAINS, check_computed_constants, check_model
from radii_check._builder import Builder, Call, Value, is_node, run_reference
from radii_check._errors import (
    CertificateError,
    Unreadable,
    require_format,
    require_known,
    require_readable,
)
from radii_check._network import Affine, Network, Unit
from radii_check._numbers import Numbers
from radii_check.operators import MOVES, move
from radii_check.operators import READERS as READERS

ROUNDED_ONCE = frozenset(
    """Abs Add Cast Ceil Clip Constant ConstantOfShape Div EyeLike Floor GatherElements GatherND
    Identity Max Min Mul Neg OneHot Reciprocal Relu Round Shape Sign Size Sqrt Sub Tile Trunc
    Where""".split()
)
"""Operators, and all of MOVES, of which IEEE 754 leaves one result only."""
OTHER_CONSTANTS = frozenset(
    """And CumSum Equal Erf Exp Gemm Greater GreaterOrEqual Less LessOrEqual Log MatMul Mean Mod Not
    Or Pow ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    Sigmoid Sum Tanh Trilu Xor""".split()
)
"""Further operators by which constants may be computed, which runtimes may round differently. Of
others, such as QuantizeLinear, Unique and LRN, onnx's implementation does not give what runtimes
give."""
NEVER_READ = ("Random", "Bernoulli", "Multinomial", "Range", "If", "Loop", "Scan")
"""How the names of operators begin that are not deterministic, or hold graphs of their own."""
ANY_INPUT = ("Add", "Gemm", "MatMul", "Max", "Min", "Mul", "Sub", "Sum")
"""Operators of which any input may depend on the network's; of others only the first one may."""
OF_SHAPES = ("Shape", "Size")
"""Operators whose result is a constant, whatever they read."""
OLDEST_OPSET = 8


def read_network(content: bytes, num: Numbers, expected: str = "") -> tuple[str, Network]:
    """The SHA-256 of the model, as certificates name it, and the network; a CertificateError if it
    is not the one that is `expected`."""
    try:
        model = onnx.load_model_from_string(content)
        digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
        is_expected = expected in ("", digest)
        require_format(is_expected, f"it is about another network: {digest} is this one")
        check_model(model)
        return digest, _GraphReader(inline_local_functions(model), num).network()
    except (CertificateError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file makes onnx or numpy raise
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise Unreadable(f"the network cannot be read: {first}") from None


class _GraphReader:
    """Reads the nodes that the output depends on; `values` are what names stand for so far."""

    def __init__(self, model: onnx.ModelProto, num: Numbers) -> None:
        self.graph = model.graph
        opset = next(o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS)
        is_known = OLDEST_OPSET <= opset <= onnx.defs.onnx_opset_version()
        unknown = f"the network uses opset {opset}, which this checker does not know"
        require_readable(is_known, unknown)
        stored = self.graph.initializer
        self.values: dict[str, Value] = {t.name: numpy_helper.to_array(t) for t in stored}
        (graph_input,) = (value for value in self.graph.input if value.name not in self.values)
        tensor = graph_input.type.tensor_type
        first, *sizes = (dimension.dim_value for dimension in tensor.shape.dim)
        batch = max(1, first) if sizes else first  # a symbolic batch is one of 1
        shape = (batch, *sizes)
        is_float = tensor.elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE)
        has_shape = is_float and min(shape) > 0
        require_readable(has_shape, "the network's input is no float, or has no fixed shape")
        has_doubles = tensor.elem_type == TensorProto.DOUBLE
        self.builder = Builder(num, opset, shape, has_doubles)
        self.values[graph_input.name] = 0
        self.rounded_constant = ""

    def network(self) -> Network:
        (output,) = self.graph.output
        for node in self.sorted_nodes(output.name):
            self.read(node)
        last = self.values[output.name]
        depends = "the network's output does not depend on its input"
        require_readable(is_node(last), depends)
        builder = self.builder
        nodes, last = _without_unread(_with_biases(builder.nodes, last), last)
        units = max((n.units.stop for n in nodes if isinstance(n, Unit)), default=0)
        return Network(nodes, last, units, builder.is_single, self.rounded_constant)

    def sorted_nodes(self, output: str) -> list[onnx.NodeProto]:
        """Depth first from the output, each node behind those that it reads, its last input first:
        units are numbered in this order."""
        nodes = self.graph.node
        makers = {name: i for i, node in enumerate(nodes) for name in node.output if name}
        done: dict[int, None] = {}
        begun, stack = set[int](), [makers[output]]
        while stack:
            number = stack[-1]
            sources = [makers[name] for name in nodes[number].input if name in makers]
            waiting = [source for source in sources if source not in done]
            if number in done or not waiting:
                done[stack.pop()] = None
                continue
            begun.add(number)
            require_readable(not begun & set(waiting), "the network's graph runs in a circle")
            stack.extend(waiting)
        return [nodes[number] for number in done]

    def read(self, node: onnx.NodeProto) -> None:
        """Find the values of one ONNX node's outputs."""
        kind = node.op_type
        is_readable = node.domain in DEFAULT_DOMAINS and not kind.startswith(NEVER_READ)
        require_known(is_readable, kind)
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        has_no_twins = len(attributes) == len(node.attribute)
        require_readable(has_no_twins, f"{kind} has one attribute twice")
        names = [n for n in dict.fromkeys(node.input) if is_node(self.values.get(n))]
        outputs: Sequence[str] = [name for name in node.output if name]
        results: Sequence[Value]
        if not names or kind in OF_SHAPES:
            results = self.constants(node, names)
        elif kind in MOVES:
            inputs = {name: self.values[name] for name in node.input if name}
            results = move(self.builder, node, inputs)
        else:
            results = [self.operator(node, attributes)]
            outputs = node.output
        self.values.update(zip(outputs, results, strict=False))
        self.values.pop("", None)

    def constants(self, node: onnx.NodeProto, names: Sequence[str]) -> list[Any]:
        """The results of an operator of constants; or of shapes, for values called `names`."""
        kind = node.op_type
        is_move_or_exact = kind in MOVES or kind in ROUNDED_ONCE
        require_known(is_move_or_exact or kind in OTHER_CONSTANTS, f"{kind} of constants")
        inputs = {name: self.values[name] for name in node.input if name}
        inputs |= {name: np.zeros(self.builder.shape(self.values[name])) for name in names}
        results = run_reference(node, inputs, self.builder.opset)
        require_known([isinstance(r, np.ndarray | np.generic) for r in results], kind)
        first = self.values[node.input[0]] if node.input else None
        check_computed_constants(node, results, first, len(self.builder.shape(first)))
        is_float = any(np.asarray(result).dtype.kind == "f" for result in results)
        if is_float and not is_move_or_exact:
            name = f"{node.name or node.output[0]} ({kind})"
            self.rounded_constant = self.rounded_constant or name
        return results

    def operator(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> int:
        """The node of an operator that has a reader."""
        kind = node.op_type
        inputs = [self.values[name] if name else None for name in node.input]
        places = {place for place, value in enumerate(inputs) if is_node(value)}
        has_places = kind in ANY_INPUT or places == {0}
        is_known = kind in READERS and has_places
        require_known(is_known, kind if has_places else f"{kind} of such values")
        is_training = kind == "BatchNormalization" and any(node.output[1:])
        require_known(not is_training, "BatchNormalization in training")
        call = Call(inputs, attributes)
        result = READERS[kind](self.builder, call)
        if not any(is_node(value) and value == result for value in inputs):
            self.builder.origins[result] = kind, call
        return result


def _with_biases(nodes: Sequence[Affine | Unit], last: int) -> list[Affine | Unit]:
    """A row of constants that is added to a product is its bias, if nothing else reads the product:
    then both are one sum."""
    merged = list(nodes)
    readers = Counter([last, *(source for node in nodes for source in node.inputs)])
    for number, node in enumerate(nodes):
        if not isinstance(node, Affine) or node.joins != "row":
            continue
        source = node.inputs[0]
        product = nodes[source]
        is_product = isinstance(product, Affine) and product.joins == "product"
        if isinstance(product, Affine) and is_product and readers[source] == 1:
            merged[source] = replace(product, offset=node.offset)
            merged[number] = replace(node, offset=0 * node.offset, terms=0)
    return merged


def _without_unread(
    nodes: Sequence[Affine | Unit], last: int
) -> tuple[tuple[Affine | Unit, ...], int]:
    """The nodes that the last one depends on, and its number: parts of a product that was read as
    one function are not among them. Units are numbered anew."""
    needed = {0, last}
    for number in range(last, 0, -1):
        node = nodes[number]
        if number in needed:
            needed.update(node.inputs)
            needed.update({node.read} if isinstance(node, Unit) else ())
    position, firsts, kept = dict[int, int](), dict[int, int](), list[Affine | Unit]()
    units = 0
    for number in sorted(needed):
        node = nodes[number]
        position[number] = len(kept)
        inputs = tuple(position[source] for source in node.inputs)
        if isinstance(node, Unit):
            count = node.units.stop - node.units.start
            firsts[node.first] = units
            arguments = tuple(
                replace(piece, first=firsts[piece.first]) for piece in node.unit_arguments
            )
            node = replace(
                node,
                inputs=inputs,
                first=units,
                read=position[node.read],
                unit_arguments=arguments,
            )
            units += count
            kept.append(node)
        else:
            kept.append(replace(node, inputs=inputs))
    return tuple(kept), position[last]
