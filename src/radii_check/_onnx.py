"""From an ONNX file to a network.

Operators that only move entries are run by onnx's reference implementation on the numbers of the
entries, those whose inputs are all constants on these, and convolutions on numbers with each weight
alone. The rest is in `READERS`, by the definitions of ONNX: an operator is given its inputs, which
are constants or numbers of nodes, and its attributes; it returns the number of its node.
"""

# ruff: noqa: ARG005, E731, SIM905
from __future__ import annotations

import functools
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.inliner import inline_local_functions
from onnx.reference import ReferenceEvaluator

from radii_check._format import Array, CertificateError, Unreadable, need, readable
from radii_check._network import Affine, Chain, Network, Numbers, Scale, Unit, Window, gathered
from radii_check._refused import DEFAULT_DOMAINS, check_constants, check_plain, check_run, known

MOVES = "Concat Expand Flatten Gather Pad Reshape Slice Split Squeeze Transpose Unsqueeze".split()
ROUNDED_ONCE = """Abs Add Cast Ceil Clip Constant ConstantOfShape Div EyeLike Floor GatherElements
    GatherND Identity Max Min Mul Neg OneHot Reciprocal Relu Round Shape Sign Size Sqrt Sub Tile
    Trunc Where""".split()
"""Operators, and all of MOVES, of which IEEE 754 leaves one result only."""
OTHER_CONSTANTS = """And CumSum Equal Erf Exp Gemm Greater GreaterOrEqual Less LessOrEqual Log
    MatMul Mean Mod Not Or Pow ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare Sigmoid Sum Tanh Trilu Xor""".split()
"""Further operators by which constants may be computed. Of others, such as QuantizeLinear, Unique
and LRN, onnx's implementation does not give what runtimes give."""
REFUSED = ("Random", "Bernoulli", "Multinomial", "Range", "If", "Loop", "Scan")
ANY_INPUT = ("Add", "Gemm", "MatMul", "Max", "Min", "Mul", "Sub", "Sum")
"""Operators of which any input may be a value; of others it is the first one."""
OLDEST_OPSET = 8

Attributes = dict[str, Any]


def read_network(content: bytes, num: Numbers, named: str = "") -> tuple[str, Network]:
    """The SHA-256 of the model, as certificates name it, and the network; a CertificateError if it
    is not the one that is `named`."""
    try:
        model = onnx.load_model_from_string(content)
        digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
        need(named in ("", digest), f"it is about another network: {digest} is this one")
        check_plain(model)
        return digest, _Reader(inline_local_functions(model), num).network()
    except (CertificateError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file makes onnx or numpy raise
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise Unreadable(f"the network cannot be read: {first}") from None


class _Reader:
    """Reads the nodes that the output depends on; `values` are constants or numbers of nodes."""

    def __init__(self, model: onnx.ModelProto, num: Numbers) -> None:
        self.num, self.graph = num, model.graph
        self.opset = next(o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS)
        known = OLDEST_OPSET <= self.opset <= onnx.defs.onnx_opset_version()
        readable(known, f"the network uses opset {self.opset}, which this checker does not know")
        stored = model.graph.initializer
        self.values: dict[str, Any] = {t.name: numpy_helper.to_array(t) for t in stored}
        (given,) = (value for value in model.graph.input if value.name not in self.values)
        kind, self.values[given.name] = given.type.tensor_type, 0
        first, *sizes = (d.dim_value for d in kind.shape.dim)
        shape = (max(1, first) if sizes else first, *sizes)  # a symbolic batch is one of 1
        is_float = kind.elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE)
        readable(
            is_float and min(shape) > 0, "the network's input is no float, or has no fixed shape"
        )
        self.has_doubles = kind.elem_type == TensorProto.DOUBLE
        self.is_single, self.rounded, self.units = not self.has_doubles, "", 0
        self.nodes: list[Affine | Unit] = [Unit("Input", (), shape)]

    def network(self) -> Network:
        (output,) = self.graph.output
        for proto in self.sorted_nodes(output.name):
            self.read(proto)
        last = self.values[output.name]
        readable(isinstance(last, int), "the network's output does not depend on its input")
        readers = Counter([last, *(source for node in self.nodes for source in node.inputs)])
        for number, node in enumerate(self.nodes):  # a row that is added to a product is its bias
            before = self.nodes[node.inputs[0]] if node.inputs else node
            if not isinstance(node, Affine) or not isinstance(before, Affine):
                continue
            is_bias = node.joins == "row" and before.joins == "product"
            if is_bias and readers[node.inputs[0]] == 1:
                self.nodes[node.inputs[0]] = replace(before, offset=node.offset)
                self.nodes[number] = replace(node, offset=0 * node.offset, terms=0)
        return Network(tuple(self.nodes), last, self.units, self.is_single, self.rounded)

    def sorted_nodes(self, output: str) -> list[onnx.NodeProto]:
        """Depth first from the output, each node after those it reads, its last input first: units
        are numbered in this order."""
        makers = {name: i for i, node in enumerate(self.graph.node) for name in node.output if name}
        done: dict[int, None] = {}
        begun, stack = set(), [makers[output]]
        while stack:
            sources = [makers[n] for n in self.graph.node[stack[-1]].input if n in makers]
            waiting = [source for source in sources if source not in done]
            if stack[-1] in done or not waiting:
                done[stack.pop()] = None
                continue
            begun.add(stack[-1])
            readable(not begun & set(waiting), "the network's graph runs in a circle")
            stack.extend(waiting)
        return [self.graph.node[number] for number in done]

    def read(self, node: onnx.NodeProto) -> None:
        """The values of one ONNX node."""
        kind, results, named = node.op_type, list[Any](), [name for name in node.output if name]
        names = [n for n in dict.fromkeys(node.input) if isinstance(self.values.get(n), int)]
        known(node.domain in DEFAULT_DOMAINS and not kind.startswith(REFUSED), kind)
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        readable(len(attributes) == len(node.attribute), f"{kind} has one attribute twice")
        if not names or kind in ("Shape", "Size"):
            known(kind in MOVES + ROUNDED_ONCE + OTHER_CONSTANTS, f"{kind} of constants")
            results = self.run(node, {n: np.zeros(self.shape(self.values[n])) for n in names})
            known([isinstance(each, np.ndarray | np.generic) for each in results], kind)
            first = self.values[node.input[0]] if node.input else None
            check_constants(node, results, first, len(self.shape(first)))
            is_float = any(np.asarray(result).dtype.kind == "f" for result in results)
            if is_float and kind not in MOVES + ROUNDED_ONCE:
                self.rounded = self.rounded or f"{node.name or node.output[0]} ({kind})"
        elif kind in MOVES:
            results = self.moved(node, names)
        else:
            args = [self.values[name] if name else None for name in node.input]
            places = {place for place, arg in enumerate(args) if isinstance(arg, int)}
            is_plain = kind in ANY_INPUT or places == {0}
            known(kind in READERS and is_plain, kind if is_plain else f"{kind} of such values")
            is_trained = kind == "BatchNormalization" and any(node.output[1:])
            known(not is_trained, "BatchNormalization in training")
            results = [READERS[kind](self, args, attributes)]
        outputs = node.output if isinstance(results[0], int) and kind not in MOVES else named
        self.values.update(zip(outputs, results, strict=False))
        self.values.pop("", None)

    def shape(self, value: Any) -> tuple[int, ...]:
        return self.nodes[value].shape if isinstance(value, int) else np.shape(value)

    def run(self, node: onnx.NodeProto, feeds: dict[str, Array]) -> list[Any]:
        """The node's outputs, by onnx's reference implementation."""
        known = {name: self.values[name] for name in node.input if name not in ("", *feeds)} | feeds
        check_run(node, known)
        outputs = [name for name in node.output if name]
        opsets = [helper.make_opsetid("", self.opset)]
        one = helper.make_function("one", "one", list(known), outputs, [node], opsets)
        return list(ReferenceEvaluator(one).run(None, known, {}))

    def moved(self, node: onnx.NodeProto, names: Sequence[str]) -> list[int]:
        """Of an operator that moves entries and inserts constants, run on the entries' numbers."""
        zeros = {name: np.zeros(self.shape(self.values[name])) for name in names}
        numbers = {name: 1.0 + np.arange(z.size).reshape(z.shape) for name, z in zeros.items()}
        found = [self.run(node, zeros | {name: held}) for name, held in numbers.items()]
        results = []
        for place, base in enumerate(self.run(node, zeros)):
            known(np.isfinite(base), f"{node.op_type} of constants that are NaN or infinite")
            index = [np.where(f[place] == base, 0, f[place]).astype(int) - 1 for f in found]
            maps = [gathered(at, z.size) for at, z in zip(index, zeros.values(), strict=True)]
            results.append(self.affine([self.values[n] for n in names], maps, base.shape, base))
        return results

    def affine(self, inputs: Any, maps: Any, shape: Any, offset: Any = 0.0, **own: Any) -> int:
        known(np.greater(shape, 0), "that gives nothing")
        flat = np.broadcast_to(np.asarray(offset), shape).ravel()
        self.nodes.append(Affine(tuple(inputs), tuple(maps), tuple(shape), flat, **own))
        return len(self.nodes) - 1

    def spread(self, x: int, shape: Any) -> Chain:
        """A value that is broadcast."""
        numbers = np.arange(math.prod(self.shape(x))).reshape(self.shape(x))
        return gathered(np.broadcast_to(numbers, shape), numbers.size)

    # Sums, and products with constants.

    def plus(self, x: Any, other: Any, sign: float = 1.0) -> int:
        if not isinstance(x, int):  # x - other
            return self.plus(other if sign > 0 else self.times(other, -1.0), x)
        shape = np.broadcast_shapes(self.shape(x), given := self.shape(other))
        if isinstance(other, int):
            negated = () if sign > 0 else (Scale(np.full(math.prod(shape), sign)),)
            maps = self.spread(x, shape), self.spread(other, shape) + negated
            return self.affine([x, other], maps, shape, terms=3)
        joins = "row" if math.prod(given) in (1, *given[-1:]) and shape == self.shape(x) else ""
        constant = sign * _weight(other)
        return self.affine([x], [self.spread(x, shape)], shape, constant, terms=2, joins=joins)

    def times(self, x: Any, other: Any, divides: bool = False) -> int:
        x, other = (x, other) if isinstance(x, int) or divides else (other, x)
        is_known = isinstance(x, int) and _is_constant(other)
        known(is_known and (np.all(other) or not divides), "Mul or Div of such values")
        factor = _weight(other)
        shape = np.broadcast_shapes(self.shape(x), factor.shape)
        largest = (1 / abs(factor) if divides else abs(factor)).max(initial=1.0)
        single = float(abs(factor).item()) if factor.size == 1 else 0.0
        maps = (*self.spread(x, shape), Scale(np.broadcast_to(factor, shape).ravel(), divides))
        return self.affine([x], [maps], shape, terms=2, factor=largest, single=single)

    def batch_norm(self, args: list[Any], a: Attributes) -> int:
        """(x - mean) / root * factor + offset, with one number of each for each channel."""
        known(not a.get("training_mode", 0) and a.get("spatial", 1), "BatchNormalization so set")
        shape, num = self.shape(args[0]), self.num
        along = (-1, *(1,) * (len(shape) - 2))
        constants = (np.broadcast_to(_weight(arg).reshape(along), shape) for arg in args[1:5])
        factor, offset, mean, variance = (num.array(each.ravel()) for each in constants)
        root = np.sqrt(variance + float(np.float32(a.get("epsilon", 1e-5))))
        scale = factor / root
        known(np.isfinite(num.below(scale)), "BatchNormalization of no variance")
        reach = (num.maximum(abs(factor), 1.0) * num.maximum(1 / root, 1.0)).max(initial=1.0)
        own = {"gain": reach + (abs(offset) + abs(mean) * reach).max(initial=0.0)}
        own["added"] = abs(offset) + abs(mean * scale)
        shift = (offset - mean * scale).reshape(shape)
        return self.affine([args[0]], [(Scale(scale),)], shape, shift, terms=4, **own)

    # Sums of products.

    def product(self, x: Any, weight: Any, gain: float = 1.0, scale: float = 1.0) -> int:
        """x @ weight, or the other way round, times a number."""
        if not isinstance(x, int) and np.ndim(x) == 2:  # (weight.T @ x.T).T
            known(isinstance(weight, int) and len(self.shape(weight)) == 2, "MatMul of such values")
            result = self.product(self.flipped(weight), np.transpose(x), gain, scale)
            return int(self.flipped(result))
        is_known = isinstance(x, int) and np.ndim(weight) == 2
        known(is_known, "MatMul or Gemm but of a value and a constant matrix")
        weight, (*rows, _) = _weight(weight), self.shape(x)
        window = Window(weight.T[:, :, None], np.zeros((1, 1), int), 1, math.prod(rows))
        shape = (*rows, weight.shape[1])
        maps = (window, Scale(np.full(math.prod(shape), scale))) if scale != 1 else (window,)
        own = _weighted(weight * scale, 0) | {"gain": gain, "joins": "product"}
        return self.affine([x], [maps], shape, **own)

    def flipped(self, x: Any) -> Any:
        """The transposed matrix."""
        if not isinstance(x, int):
            return np.transpose(x)
        (rows, columns), size = self.shape(x), math.prod(self.shape(x))
        places = np.arange(size).reshape(rows, columns).T
        return self.affine([x], [gathered(places, size)], (columns, rows))

    def gemm(self, args: list[Any], a: Attributes) -> int:
        alpha, beta = (float(np.float32(a.get(name, 1.0))) for name in ("alpha", "beta"))
        gain = max(max(abs(f), 1 / abs(f) if f else math.inf) for f in (alpha, beta))
        first, second = (
            self.flipped(args[place]) if a.get(name) else args[place]
            for place, name in enumerate(("transA", "transB"))
        )
        result = self.product(first, second, gain, alpha)
        if len(args) < 3 or args[2] is None:
            return result
        if isinstance(args[2], int):
            return self.plus(result, self.times(args[2], beta) if beta != 1 else args[2])
        node, row = self.nodes[result], self.num.array(_weight(args[2])) * beta
        assert isinstance(node, Affine)
        if row.shape[:-1] not in ((), (1,)) or not isinstance(args[0], int):
            shape = np.broadcast_shapes(node.shape, row.shape)
            return self.affine([result], [()], shape, row, terms=2)
        offset = np.broadcast_to(row, node.shape).ravel()
        self.nodes[result] = replace(node, offset=offset, joins="")
        return result

    def windows(
        self, x: int, kernel: Sequence[int], a: Attributes, operator: str = "Conv"
    ) -> tuple[Array, Any]:
        """The entries (places, taps) of one channel in each window, -1 in the padding; and the
        places along each axis. By a convolution of numbers with each weight alone."""
        sizes, taps = self.shape(x)[2:], math.prod(kernel)
        is_same = a.get("auto_pad", b"").startswith(b"SAME")
        is_agreed = not is_same or max(a.get("dilations", [1])) == 1
        known(is_agreed, "with dilations and auto_pad, on which runtimes do not agree,")
        rows = zip(sizes, kernel, a.get("strides", [1] * len(sizes)), strict=True)
        is_near = [not is_same or (-(-n // s) - 1) * s + k - n >= -1 for n, k, s in rows]
        known(is_near, "with auto_pad and strides far above its kernel, on which they do not,")
        names = ("auto_pad", "dilations", "pads", "strides", "output_padding")
        given = {name: a[name] for name in names if name in a}
        node = helper.make_node(operator, ["x", "w"], ["y"], kernel_shape=kernel, **given)
        image = 1.0 + np.arange(math.prod(sizes)).reshape(1, 1, *sizes)
        channels = (taps, 1) if operator == "Conv" else (1, taps)
        alone = np.eye(taps).reshape(*channels, *kernel)
        (found,) = self.run(node, {"x": image, "w": alone})
        return found.reshape(taps, -1).T.astype(int) - 1, found.shape[2:]

    def rounded_up(self, x: int, a: Attributes) -> tuple[Attributes, bool]:
        """What a pool is set to without `ceil_mode`: with the padding behind its input that makes
        room for the last windows; and whether there is more of that than it states."""
        if not a.get("ceil_mode", 0):
            return a, False
        known(a.get("auto_pad", b"NOTSET") == b"NOTSET", "of a pool with ceil_mode and auto_pad")
        sizes, kernel = self.shape(x)[2:], a["kernel_shape"]
        ones, stated = [1] * len(sizes), a.get("pads", [0] * (2 * len(sizes)))
        strides, dilations = a.get("strides", ones), a.get("dilations", ones)
        before, behind = np.reshape(stated, (2, -1))
        reach = (np.array(kernel) - 1) * dilations + 1
        missing = -(np.array(sizes) + before + behind - reach) % strides
        starts = sizes + before + behind + missing - reach  # of the last windows
        told = "of a pool with ceil_mode and a window behind its input, on which runtimes differ,"
        known(starts < sizes + before, told)
        return a | {"pads": [*before, *(behind + missing)]}, bool(missing.any())

    def convolution(self, args: list[Any], a: Attributes, is_transposed: bool = False) -> int:
        batch, channels, *sizes = self.shape(args[0])
        weight, groups = _weight(args[1]), a.get("group", 1)
        operator = "ConvTranspose" if is_transposed else "Conv"
        index, spots = self.windows(args[0], weight.shape[2:], a, operator)
        if is_transposed:  # its weights are (inputs, results of a group, ...)
            known("output_shape" not in a and "auto_pad" not in a, "ConvTranspose so padded")
            parts = weight.reshape(groups, channels // groups, weight.shape[1], -1).swapaxes(1, 2)
        else:
            parts = weight.reshape(groups, len(weight) // groups, weight.shape[1], -1)
        whole = np.zeros((groups, parts.shape[1], groups, *parts.shape[2:]))
        whole[range(groups), :, range(groups)] = parts  # zeros between groups
        matrix = whole.reshape(groups * parts.shape[1], channels, -1)
        bias = np.zeros(len(matrix)) if len(args) < 3 or args[2] is None else _weight(args[2])
        maps = [(Window(matrix, index, math.prod(sizes), batch),)]
        shape, offset = (batch, len(matrix), *spots), bias.reshape(-1, *(1,) * len(sizes))
        return self.affine([args[0]], maps, shape, offset, **_weighted(matrix, (1, 2)))

    def mean(self, x: int, a: Attributes) -> int:
        """AveragePool; without a kernel the mean of all."""
        batch, channels, *sizes = self.shape(x)
        a, is_more = self.rounded_up(x, a)
        index, spots = self.windows(x, a.get("kernel_shape", sizes), a)
        taps, inside = index.shape[1], (index >= 0).sum(1)
        known(inside, "AveragePool with a window in the padding")
        counts_padding = a.get("count_include_pad", 0)
        told = "AveragePool with ceil_mode and count_include_pad, on which runtimes differ,"
        known(not (counts_padding and is_more), told)
        counts = np.full(len(index), taps) if counts_padding else inside
        sums = Window(np.ones((1, 1, taps)), index, math.prod(sizes), batch * channels)
        maps = [(sums, Scale(np.tile(counts, sums.outer).astype(float), divides=True))]
        own = {"terms": taps, "starts_sum": True, "gain": float(taps)}
        return self.affine([x], maps, (batch, channels, *spots), **own)

    def reduced(self, args: list[Any], a: Attributes, is_mean: bool) -> int:
        """The sum or the mean over axes."""
        x, shape = args[0], self.shape(args[0])
        given = args[1] if len(args) > 1 and args[1] is not None else a.get("axes", [])
        if not len(given) and a.get("noop_with_empty_axes", 0):
            return int(x)
        axes = [int(axis) % len(shape) for axis in given] or list(range(len(shape)))
        others = [axis for axis in range(len(shape)) if axis not in axes]
        size, count = math.prod(shape), math.prod(shape[axis] for axis in axes)
        numbers = np.arange(size).reshape(shape).transpose(*others, *axes)
        sums = Window(np.ones((1, count, 1)), np.zeros((1, 1), int), 1, size // count)
        mean = Scale(np.full(size // count, float(count if is_mean else 1)), divides=True)
        kept = [shape[n] if n in others else 1 for n in range(len(shape))]
        result = kept if a.get("keepdims", 1) else [shape[n] for n in others]
        own = {"terms": count, "starts_sum": True, "gain": float(count if is_mean else 1)}
        return self.affine([x], [(*gathered(numbers, size), sums, mean)], result, **own)

    def dropout(self, args: list[Any]) -> int:
        known(len(args) < 3 or args[2] is None or not np.any(args[2]), "Dropout in training mode")
        return int(args[0])

    def cast(self, x: int, to: int) -> int:
        known(to in (TensorProto.FLOAT, TensorProto.DOUBLE), "Cast to other types than floats")
        if to == TensorProto.FLOAT and self.has_doubles:
            self.is_single = True
            return self.affine([x], [()], self.shape(x), terms=1)
        self.has_doubles |= to == TensorProto.DOUBLE
        return x

    # What is not affine.

    def unit(self, kind: str, x: int, **own: Any) -> int:
        """A node of units, or another one that reads floats."""
        node = Unit(kind, (x,), self.shape(x), self.units, **own)
        self.units = node.units.stop
        self.nodes.append(node)
        return len(self.nodes) - 1

    def hinged(
        self, kind: str, x: int, slope: Any, offset: float, bends: Any, function: Any
    ) -> int:
        """slope z + offset + the sum of change max(0, z - knee) over `bends` (knee, change), which
        is `function` of z."""
        shape, held = np.broadcast_shapes(self.shape(x), np.shape(slope)), self.unit("Held", x)
        size, told, inputs = math.prod(self.shape(x)), [], [held]
        source = np.broadcast_to(np.arange(size).reshape(self.shape(x)), shape).ravel()
        maps = [(*gathered(source, size), Scale(np.broadcast_to(slope, shape).ravel()))]
        for knee, change in bends:
            each = np.broadcast_to(change, shape).ravel()
            bent = np.flatnonzero(each)
            told.append((self.units, source[bent], knee))
            chosen = [gathered(source[bent], size)]
            inputs.append(self.unit("Relu", self.affine([held], chosen, bent.shape, -knee)))
            maps.append((*_placed(bent, each.size), Scale(each)))
        own = {"read": held, "told": tuple(told), "function": lambda z: function(z[source])}
        return self.unit(kind, self.affine(inputs, maps, shape, offset), **own)

    def leaky(self, x: int, given: Any) -> int:
        slope, num = _weight(given), self.num
        known([math.fsum((1.0, -s, s - 1.0)) == 0 for s in slope.ravel()], "PRelu so precise")
        shape = np.broadcast_shapes(self.shape(x), slope.shape)
        each = np.broadcast_to(slope, shape).reshape(-1, 1)
        function = lambda z: num.maximum(z, 0.0) + each * num.minimum(z, 0.0)
        return self.hinged("Leaky", x, slope, 0.0, [(0.0, 1.0 - slope)], function)

    def clip(self, x: int, given: Sequence[Any]) -> int:
        ends = [math.nan if end is None else float(np.asarray(end).item()) for end in given]
        # Exporters write the largest float of the type where they mean that a side is open.
        types = (np.float32 if isinstance(end, float | None) else end.dtype for end in given)
        largest = [float(np.finfo(each).max) for each in types]
        low = -math.inf if given[0] is None or ends[0] <= -largest[0] else ends[0]
        high = math.inf if given[1] is None or ends[1] >= largest[1] else ends[1]
        known(low < math.inf and high > -math.inf, "Clip with such bounds")
        return self.between(x, low, high)

    def limited(self, args: list[Any], is_least: bool) -> int:
        """Max or Min of a value and single numbers: a clip at each of them."""
        (x, *others), limits = ([a for a in args if isinstance(a, int) == w] for w in (True, False))
        is_known = not others and all(np.size(limit) == 1 for limit in limits)
        known(is_known, "Max or Min of such values")
        for limit in limits:
            end = float(_weight(limit).item())
            x = self.between(x, *((end, math.inf) if is_least else (-math.inf, end)))
        shape = np.broadcast_shapes(self.shape(x), *(np.shape(limit) for limit in limits))
        return self.affine([x], [()], shape) if shape != self.shape(x) else int(x)

    def between(self, x: int, low: float, high: float) -> int:
        """min(max(x, low), high)."""
        low, slope, num = min(low, high), float(low == -math.inf < high), self.num  # high wins
        bends = [(k, c) for k, c in ((low, 1.0), (high, -1.0)) if math.isfinite(k) and low < high]
        function = lambda z: num.minimum(num.maximum(z, low), high)
        return self.hinged("Held", x, slope, 0.0 if slope else low, bends, function)

    def max_pool(self, x: int, a: Attributes) -> int:
        """A chain m += max(0, z - m) over the entries of each window."""
        batch, channels, *sizes = self.shape(x)
        a, _ = self.rounded_up(x, a)
        index, spots = self.windows(x, a.get("kernel_shape", sizes), a)
        known((index >= 0).any(1), "MaxPool with a window in the padding")
        image, none = np.arange(batch * channels)[:, None, None], math.prod(self.shape(x))
        places = np.where(index >= 0, image * math.prod(sizes) + index, none)
        columns = np.sort(places.reshape(-1, index.shape[1]), axis=1).T
        held, shape, num = self.unit("Held", x), (batch, channels, *spots), self.num
        value = self.affine([held], [gathered(columns[0], none)], shape)
        for column in columns[1:]:
            entries = np.flatnonzero(column < none)
            own = (*gathered(entries, len(column)), Scale(np.full(len(entries), -1.0)))
            maps = [gathered(column[entries], none), own]
            units = self.unit("Relu", self.affine([held, value], maps, entries.shape))
            value = self.affine([value, units], [(), _placed(entries, len(column))], shape)
        inside = np.where(columns < none, columns, columns[0])
        function = lambda z: functools.reduce(num.maximum, (z[each] for each in inside))
        return self.unit("Held", value, read=held, function=function)

    def softmax(self, kind: str, x: int, a: Attributes) -> int:
        shape, is_old = self.shape(x), self.opset < 13
        axis = a.get("axis", 1 if is_old else -1) % len(shape)
        # Before opset 13 a softmax normalises all axes from the given one on.
        others = math.prod(shape[:axis]) * (1 if is_old else math.prod(shape[axis + 1 :]))
        return self.unit(kind, x, is_whole=others == 1)


READERS: dict[str, Callable[[_Reader, list[Any], Attributes], int]] = {
    "Add": lambda r, x, a: r.plus(x[0], x[1]),
    "AveragePool": lambda r, x, a: r.mean(x[0], a),
    "BatchNormalization": lambda r, x, a: r.batch_norm(x, a),
    "Cast": lambda r, x, a: r.cast(x[0], a["to"]),
    "Clip": lambda r, x, a: r.clip(x[0], [*x[1:], a.get("min"), a.get("max")][:2]),
    "Conv": lambda r, x, a: r.convolution(x, a),
    "ConvTranspose": lambda r, x, a: r.convolution(x, a, is_transposed=True),
    "Div": lambda r, x, a: r.times(x[0], x[1], divides=True),
    "Dropout": lambda r, x, a: r.dropout(x),
    "Gemm": lambda r, x, a: r.gemm(x, a),
    "GlobalAveragePool": lambda r, x, a: r.mean(x[0], a),
    "GlobalMaxPool": lambda r, x, a: r.max_pool(x[0], a),
    "Identity": lambda r, x, a: int(x[0]),
    "LeakyRelu": lambda r, x, a: r.leaky(x[0], np.float32(a.get("alpha", 0.01))),
    "LogSoftmax": lambda r, x, a: r.softmax("LogSoftmax", x[0], a),
    "MatMul": lambda r, x, a: r.product(x[0], x[1]),
    "Max": lambda r, x, a: r.limited(x, is_least=True),
    "MaxPool": lambda r, x, a: r.max_pool(x[0], a),
    "Min": lambda r, x, a: r.limited(x, is_least=False),
    "Mul": lambda r, x, a: r.times(x[0], x[1]),
    "Neg": lambda r, x, a: r.times(x[0], -1.0),
    "PRelu": lambda r, x, a: r.leaky(x[0], x[1]),
    "ReduceMean": lambda r, x, a: r.reduced(x, a, True),
    "ReduceSum": lambda r, x, a: r.reduced(x, a, False),
    "Relu": lambda r, x, a: r.unit("Relu", x[0]),
    "Sigmoid": lambda r, x, a: r.unit("Sigmoid", x[0]),
    "Softmax": lambda r, x, a: r.softmax("Softmax", x[0], a),
    "Sub": lambda r, x, a: r.plus(x[0], x[1], -1.0),
    "Sum": lambda r, x, a: functools.reduce(r.plus, sorted(x, key=_is_constant)),
    "Tanh": lambda r, x, a: r.unit("Tanh", x[0]),
}


def _is_constant(value: Any) -> bool:
    return not isinstance(value, int)


def _weight(value: Any) -> Array:
    """A constant that takes part in arithmetic."""
    held = np.asarray(value, np.float64)
    readable(np.isfinite(held), "a weight of the network is not a finite number")
    return held


def _weighted(weight: Array, axes: Any) -> Attributes:
    """Of sums of products with weights along these axes; those that are 0 do not count."""
    terms = int((weight != 0).sum(axes).max(initial=1))
    return {"terms": terms, "starts_sum": True, "factor": abs(weight).max(initial=1.0)}


def _placed(places: Array, size: int) -> Chain:
    """Entries at these places of a value, and 0 elsewhere."""
    index = np.full(size, -1)
    index[places] = np.arange(len(places))
    return gathered(index, len(places))
