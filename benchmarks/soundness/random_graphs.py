"""Small random classifiers that mix all operators that radii reads, in whatever order.

Half of them chain the random models of single operators that the tests use (`operator_models`),
each of which gets the value of the one before. The other half are networks as exporters write them:
convolutions or dense layers, a normalisation, an activation in one of its spellings, a pool, a
residual sum, and a head.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from hypothesis.errors import HypothesisDeprecationWarning, UnsatisfiedAssumption

from benchmarks.soundness.operator_models import OPERATOR_MODELS, Draw
from radii.testing import Sketch

OLDEST_OPSET, NEWEST_OPSET = 8, 21
MOST_ENTRIES = 60
"""Of a value: larger ones take longer to prove than they teach."""
LARGEST_VALUE = 1e4

STYLES = ("chained", "exported")


@dataclass(frozen=True, slots=True)
class RandomGraph:
    """A model, its input's shape without the batch, and the operators it uses in order."""

    model: onnx.ModelProto
    shape: tuple[int, ...]
    classes: int
    style: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """The number type of its input."""
        kind = self.model.graph.input[0].type.tensor_type.elem_type
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))

    @property
    def operators(self) -> list[str]:
        return [node.op_type for node in self.model.graph.node if node.op_type != "Constant"]


def random_graph(seed: int) -> RandomGraph:
    rng = np.random.default_rng([31, seed])
    style = STYLES[seed % len(STYLES)]
    make = _chained if style == "chained" else _exported
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HypothesisDeprecationWarning)
            graph = make(rng)
        if _run(graph.model, graph.shape, rng) is not None:
            return graph


def _run(
    model: onnx.ModelProto, shape: Sequence[int], rng: np.random.Generator
) -> np.ndarray[Any, Any] | None:
    """The output for an input of this shape; None if the runtime refuses the model, or it gives
    numbers that are of no use."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    wide = model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    x = rng.uniform(-1, 1, (1, *shape)).astype(np.float64 if wide else np.float32)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        found = np.asarray(session.run(None, {"x": x})[0])
    except Exception:  # whatever it is named in this version of the runtime
        return None
    is_small = found.dtype == x.dtype and 0 < found.size <= MOST_ENTRIES
    return found if is_small and np.abs(found).max() < LARGEST_VALUE else None


# --- chained


class _Skip(Exception):
    """This operator cannot be the next one."""


class _Chain(Sketch):
    """A model whose part so far is the `x` of the next operator's random model."""

    def __init__(self, inputs: int, opset: int, dtype: Any, inline: bool) -> None:
        super().__init__([1, inputs], opset=opset, dtype=dtype, inline=inline)
        self.value, self.shape, self.alias = "x", (1, inputs), "x"

    def apply_many(self, operator: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        named = [self.alias if name == "x" else name for name in inputs]
        return super().apply_many(operator, results, *named, **attributes)

    def model(self, output: str) -> onnx.ModelProto:
        self.value = output
        return super().model(output)


class _ChainDraw(Draw):
    """What a builder of a model asks for comes from a generator, in place of hypothesis."""

    def __init__(self, chain: _Chain, rng: np.random.Generator, operator: str) -> None:
        self.chain, self.rng, self.operator = chain, rng, operator

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def flag(self) -> bool:
        return bool(self.rng.integers(2))

    def choice(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def order(self, count: int) -> list[int]:
        return [int(place) for place in self.rng.permutation(count)]

    def axes(self, rank: int, *, least: int = 1) -> list[int]:
        chosen = self.order(rank)[: self.integer(least, rank)]
        return [axis - rank if self.flag() else axis for axis in chosen]

    def sketch(
        self,
        shape: list[int],
        *,
        oldest: int = 8,
        newest: int = NEWEST_OPSET,
        double: bool = True,
    ) -> Sketch:
        """The chain itself, whose value so far has this shape."""
        chain = self.chain
        if not oldest <= chain.opset <= newest or (chain.dtype == np.float64 and not double):
            raise _Skip
        chain.alias = _reshaped(chain, self.rng, shape)
        return chain


def _reshaped(chain: _Chain, rng: np.random.Generator, shape: Sequence[int]) -> str:
    """The chain's value in another shape: the same entries, or as many mixtures of them."""
    size, wanted, value = math.prod(chain.shape), math.prod(shape), chain.value
    if size == wanted and rng.random() < 0.5:
        return Sketch.apply(chain, "Reshape", value, chain.constant(np.array(shape)))
    flat = Sketch.apply(chain, "Reshape", value, chain.constant(np.array([1, size])))
    weight = chain.constant(rng.normal(0, 1.5 / math.sqrt(size), (size, wanted)))
    mixed = Sketch.apply(chain, "MatMul", flat, weight)
    if rng.random() < 0.5:
        mixed = Sketch.apply(chain, "Add", mixed, chain.constant(rng.normal(0, 0.3, wanted)))
    if rng.random() < 0.5:
        mixed = Sketch.apply(chain, "Relu", mixed)
    return Sketch.apply(chain, "Reshape", mixed, chain.constant(np.array(shape)))


RARE = {"Add", "Sub", "Mul", "Div", "MatMul", "Gemm", "Reciprocal", "Softmax", "LogSoftmax"}
"""Their random models often multiply values, which radii seldom proves anything about: drawn less
often, so that most graphs have proofs."""


def _chained(rng: np.random.Generator) -> RandomGraph:
    inputs = int(rng.integers(2, 7))
    opset = int(rng.integers(OLDEST_OPSET, NEWEST_OPSET + 1))
    dtype = np.float64 if rng.random() < 0.2 else np.float32
    chain = _Chain(inputs, opset, dtype, bool(rng.integers(2)))
    names = sorted(OPERATOR_MODELS)
    shares = np.array([0.3 if name in RARE else 1.0 for name in names])
    for operator in rng.choice(names, int(rng.integers(2, 6)), p=shares / shares.sum()).tolist():
        before = list(chain.nodes), list(chain.weights), chain.value
        try:
            model = OPERATOR_MODELS[operator](_ChainDraw(chain, rng, operator))
            found = _run(model, (inputs,), rng)
        except (_Skip, UnsatisfiedAssumption):
            found = None
        if found is None or found.size < 1:
            chain.nodes, chain.weights, chain.value = before
            continue
        chain.shape = found.shape
    classes = int(rng.integers(2, 5))
    chain.alias = "x"
    size = math.prod(chain.shape)
    flat = chain.apply("Reshape", chain.value, chain.constant(np.array([1, size])))
    model = chain.model(_head(chain, rng, flat, size, classes))
    return RandomGraph(model, (inputs,), classes, "chained")


# --- exported


@dataclass(slots=True)
class _Exporting:
    """A network under construction as exporters write it."""

    sketch: Sketch
    rng: np.random.Generator
    shape: list[int]
    value: str = "x"
    inputs: list[int] = field(default_factory=list)

    def step(self, *candidates: str) -> None:
        """One of these steps, if the runtime takes it."""
        before = list(self.sketch.nodes), list(self.sketch.weights), self.value, list(self.shape)
        getattr(self, candidates[self.rng.integers(len(candidates))])()
        found = _run(self.sketch.model(self.value), self.inputs, self.rng)
        if found is None:
            self.sketch.nodes, self.sketch.weights, self.value, self.shape = before
        else:
            self.shape = list(found.shape)

    def apply(self, operator: str, *more: str, **attributes: Any) -> None:
        self.value = self.sketch.apply(operator, self.value, *more, **attributes)

    def constant(self, value: Any, dtype: Any = None) -> str:
        return self.sketch.constant(np.asarray(value), dtype)

    def flag(self) -> bool:
        return bool(self.rng.integers(2))

    # Layers.

    def convolution(self) -> None:
        channels, count = self.shape[1], int(self.rng.integers(1, 4))
        groups = channels if self.rng.random() < 0.2 else 1
        count = groups * (count if groups == 1 else 1)
        kernel = [int(self.rng.integers(1, min(4, size + 1))) for size in self.shape[2:]]
        scale = 1.5 / math.sqrt(channels // groups * math.prod(kernel))
        weight = self.constant(self.rng.normal(0, scale, (count, channels // groups, *kernel)))
        bias = [self.constant(self.rng.normal(0, 0.3, count))] if self.flag() else []
        given = {"kernel_shape": kernel, "group": groups, **self.window(kernel, dilates=True)}
        self.apply("Conv", weight, *bias, **given)

    def window(self, kernel: list[int], *, dilates: bool) -> dict[str, Any]:
        axes = len(kernel)
        given: dict[str, Any] = {"strides": self.rng.integers(1, 3, axes).tolist()}
        if self.flag():
            given["pads"] = [int(self.rng.integers(0, k)) for k in [*kernel, *kernel]]
        if dilates and self.rng.random() < 0.3:
            given["dilations"] = self.rng.integers(1, 3, axes).tolist()
        return given

    def pool(self) -> None:
        operator = ("MaxPool", "AveragePool")[self.rng.integers(2)]
        kernel = [int(self.rng.integers(1, min(4, size + 1))) for size in self.shape[2:]]
        dilates = self.sketch.opset >= (10 if operator == "MaxPool" else 19)
        given = self.window(kernel, dilates=dilates)
        if self.sketch.opset >= 10 and self.flag():
            given["ceil_mode"] = 1
        if operator == "AveragePool" and self.flag():
            given["count_include_pad"] = 1
        self.apply(operator, kernel_shape=kernel, **given)

    def global_pool(self) -> None:
        self.apply(("GlobalMaxPool", "GlobalAveragePool")[self.rng.integers(2)])

    def dense(self) -> None:
        size, width = math.prod(self.shape), int(self.rng.integers(2, 7))
        self.flatten()
        self.value = _dense(self.sketch, self.rng, self.value, size, width)

    def flatten(self) -> None:
        if len(self.shape) != 2 or self.flag():
            self.apply("Flatten")

    def normalise(self) -> None:
        count = self.shape[1]
        parts = [self.rng.normal(1, 0.5, count), *self.rng.normal(0, 0.5, (2, count))]
        names = [self.constant(part) for part in [*parts, self.rng.uniform(0.2, 2, count)]]
        self.apply("BatchNormalization", *names)

    # Activations.

    def relu(self) -> None:
        self.apply("Relu")

    def leaky(self) -> None:
        self.apply("LeakyRelu", alpha=float(self.rng.choice([0.01, 0.1, 0.5, -0.2])))

    def parametric(self) -> None:
        slopes = self.rng.uniform(-0.3, 0.5, (self.shape[1], *(1,) * (len(self.shape) - 2)))
        self.apply("PRelu", self.constant(slopes))

    def clip(self) -> None:
        """ReLU6 or HardTanh."""
        low, high = ((0.0, 6.0), (-1.0, 1.0), (-0.2, 0.4))[self.rng.integers(3)]
        if self.sketch.opset < 11:
            self.apply("Clip", min=low, max=high)
        else:
            self.apply("Clip", self.constant(low), self.constant(high))

    def bound(self) -> None:
        """A maximum or minimum with one or two constants, of which some are vectors of one."""
        limits = [self.constant(self.rng.normal(0, 0.3, [1] * int(self.rng.integers(2))))]
        if self.flag():
            limits.append(self.constant(np.array(0.0)))
        if self.flag():
            self.apply(("Max", "Min")[self.rng.integers(2)], *limits)
        else:
            operator = ("Max", "Min")[self.rng.integers(2)]
            self.value = self.sketch.apply(operator, *limits, self.value)

    def smooth(self) -> None:
        self.apply(("Sigmoid", "Tanh")[self.rng.integers(2)])

    # Arrangements.

    def residual(self) -> None:
        before, shape = self.value, list(self.shape)
        if len(shape) > 2:
            channels = shape[1]
            kernel = [1] * (len(shape) - 2)
            weight = self.rng.normal(0, 1 / math.sqrt(channels), (channels, channels, *kernel))
            self.apply("Conv", self.constant(weight), kernel_shape=kernel)
        else:
            weight = self.rng.normal(0, 1 / math.sqrt(shape[-1]), (shape[-1], shape[-1]))
            self.apply("MatMul", self.constant(weight))
        if self.flag():
            self.apply("Relu")
        kind = ("Add", "Sum", "Sub")[self.rng.integers(3)]
        pair = [self.value, before]
        self.value = self.sketch.apply(kind, *(pair if self.flag() else pair[::-1]))

    def join(self) -> None:
        """Both signs of a value, one behind the other."""
        negated = self.sketch.apply("Neg", self.value)
        self.apply("Concat", negated, axis=1)

    def transpose(self) -> None:
        order = [0, *(1 + self.rng.permutation(len(self.shape) - 1)).tolist()]
        self.apply("Transpose", perm=order)

    def scale(self) -> None:
        operator = ("Mul", "Div", "Add", "Sub")[self.rng.integers(4)]
        sizes = [1, self.shape[1], *(1,) * (len(self.shape) - 2)] if self.flag() else []
        numbers = self.rng.normal(0, 0.5, sizes)
        constant = self.constant(numbers + np.copysign(0.5, numbers))
        if operator != "Div" and self.flag():
            self.value = self.sketch.apply(operator, constant, self.value)
        else:
            self.apply(operator, constant)

    def pad(self) -> None:
        pads = self.rng.integers(0, 2, 2 * len(self.shape))
        pads[[0, len(self.shape)]] = 0
        if self.sketch.opset < 11:
            self.apply("Pad", pads=pads.tolist(), value=0.25)
        else:
            self.apply("Pad", self.constant(pads), self.constant(0.25))

    def split(self) -> None:
        size = self.shape[1]
        if size < 2:
            return
        sizes, more = [1, size - 1], list[str]()
        given: dict[str, Any] = {"axis": 1}
        if self.sketch.opset >= 13:
            more.append(self.constant(np.array(sizes)))
        else:
            given["split"] = sizes
        parts = self.sketch.apply_many("Split", 2, self.value, *more, **given)
        self.value = self.sketch.apply("Concat", *parts[::-1], axis=1)

    def slice(self) -> None:
        size = self.shape[1]
        if size < 3:
            return
        if self.sketch.opset < 10:
            self.apply("Slice", starts=[1], ends=[size], axes=[1])
        else:
            bounds = [self.constant(np.array([number])) for number in (1, size, 1)]
            self.apply("Slice", *bounds)

    def gather(self) -> None:
        index = self.rng.integers(0, self.shape[1], int(self.rng.integers(2, 5)))
        self.apply("Gather", self.constant(index), axis=1)

    def mean(self) -> None:
        if len(self.shape) > 2:
            axes = list(range(2, len(self.shape)))
            if self.sketch.opset < 18:
                self.apply("ReduceMean", axes=axes, keepdims=int(self.flag()))
            else:
                self.apply("ReduceMean", self.constant(np.array(axes)), keepdims=int(self.flag()))


ACTIVATIONS = ("relu", "relu", "leaky", "parametric", "clip", "bound", "smooth")
PIECEWISE = tuple(name for name in ACTIVATIONS if name != "smooth")
ARRANGEMENTS = (
    *("residual", "join", "transpose", "scale", "scale", "pad", "split", "slice", "gather"),
    *("normalise", "bound"),
)


def _exported(rng: np.random.Generator) -> RandomGraph:
    images = rng.random() < 0.6
    shape = (
        [int(rng.integers(1, 3)), *rng.integers(2, 5, int(rng.integers(1, 3))).tolist()]
        if images
        else [int(rng.integers(2, 8))]
    )
    dtype = np.float64 if rng.random() < 0.2 else np.float32
    opset = int(rng.integers(OLDEST_OPSET, NEWEST_OPSET + 1))
    sketch = Sketch([1, *shape], opset=opset, dtype=dtype, inline=bool(rng.integers(2)))
    state = _Exporting(sketch, rng, [1, *shape], inputs=shape)
    activations = ACTIVATIONS if rng.random() < 0.25 else PIECEWISE
    if images:
        for _ in range(int(rng.integers(1, 3))):
            state.step("convolution")
            if rng.random() < 0.3:
                state.step("normalise")
            state.step(*activations)
            if rng.random() < 0.3:
                state.step(*ARRANGEMENTS)
            state.step("pool", "pool", "global_pool", *activations)
        if rng.random() < 0.2:
            state.step("mean")
    for _ in range(int(rng.integers(0 if images else 1, 3))):
        state.step("dense")
        state.step(*activations)
        if rng.random() < 0.4:
            state.step(*ARRANGEMENTS)
    classes = int(rng.integers(2, 5))
    size = math.prod(state.shape)
    state.apply("Flatten")
    model = sketch.model(_head(sketch, rng, state.value, size, classes))
    return RandomGraph(model, tuple(shape), classes, "exported")


def _head(sketch: Sketch, rng: np.random.Generator, value: str, size: int, classes: int) -> str:
    """Outputs for all classes; sometimes with a function of them behind."""
    outputs = _dense(sketch, rng, value, size, classes)
    behind = rng.choice(["", "", "", "Softmax", "LogSoftmax", "Relu", "Max"])
    if behind == "Max":
        return sketch.apply("Max", outputs, sketch.constant(np.array(-0.5)))
    return sketch.apply(str(behind), outputs) if behind else outputs


def _dense(sketch: Sketch, rng: np.random.Generator, value: str, size: int, width: int) -> str:
    """A dense layer of a value (1, size), in one of its spellings."""
    weight = rng.normal(0, 1.5 / math.sqrt(size), (size, width))
    bias = rng.normal(0, 0.3, ((width,), (1, width), (1, 1), (1,))[rng.integers(4)])
    if rng.random() < 0.3:
        product = sketch.apply("MatMul", value, sketch.constant(weight))
        return sketch.apply("Add", product, sketch.constant(bias))
    given: dict[str, Any] = {}
    if rng.random() < 0.4:
        given["transB"], weight = 1, weight.T
    if rng.random() < 0.4:
        given["alpha"] = float(rng.choice([0.5, 1.3, -0.7]))
        given["beta"] = float(rng.choice([0.3, 2.0]))
    if rng.random() < 0.1:
        given["transA"] = 1
        value = sketch.apply("Transpose", value, perm=[1, 0])
    return sketch.apply("Gemm", value, sketch.constant(weight), sketch.constant(bias), **given)
