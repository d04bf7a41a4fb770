"""What an operator is: a map of batches of values, with what bounds and proofs need of it.

An operator's file holds its class, its translator, which makes it from an ONNX node, and its rules:
how it encloses intervals, what it rounds, and the pieces or curves that it consists of. Nothing
else in radii has a list of operators. Defaults are safe, not helpful: what an operator does not say
raises an UnsupportedQuery where a proof would need it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor, nn

from radii.errors import NetworkError, UnsupportedOperator, UnsupportedQuery
from radii.networks.operators._intervals import Interval, sum_slack
from radii.networks.operators._lines import Relaxation
from radii.networks.operators._maps import LinearMap, SelectionMap, SparseMap
from radii.networks.operators._memo import Derived, Memo
from radii.networks.operators._slopes import Float64, IntervalMatrix, Saturation

if TYPE_CHECKING:
    import onnx

    from radii.networks._building import Translation

Array = npt.NDArray[np.generic]
Shape = tuple[int, ...]

GRADIENTS_AT_ONCE = 1 << 22
"""How many numbers a batch of gradients may hold for one value: 32 MB in float64."""

MAX_VALUES = 2**28
"""How many numbers one value of a network may hold for one input; more is taken for an error."""


class OperatorKind(Enum):
    """What a verifier may assume of an operator, jointly in all its inputs."""

    AFFINE = auto()
    PIECEWISE_LINEAR = auto()
    SMOOTH = auto()
    OPAQUE = auto()


@dataclass(frozen=True, slots=True)
class NumberType:
    """The unit roundoff, the smallest normal and the largest number of a floating-point type."""

    unit: float
    smallest: float
    largest: float

    @classmethod
    def of(cls, dtype: np.dtype[np.floating]) -> NumberType:
        numbers = np.finfo(dtype)
        # 1 % below the largest: a sum that rounds up must not overflow either.
        return cls(float(numbers.eps) / 2, float(numbers.tiny), 0.99 * float(numbers.max))


@dataclass(frozen=True, slots=True, eq=False)
class Hinges:
    """Entry i of the result is, for z the entry `sources[i]` of the input:

    slope[i] * z + offset[i] + the sum over k of change[k, i] * max(0, z - knee[k, i]).
    """

    sources: npt.NDArray[np.int64]
    slope: npt.NDArray[np.float64]
    offset: npt.NDArray[np.float64]
    knee: npt.NDArray[np.float64]
    change: npt.NDArray[np.float64]


class Operator(nn.Module):
    """One step of a network. Constants are buffers, so that they follow a dtype and a device.

    Every argument and the result of `forward` is a tensor (B, *shape) for B independent inputs,
    where `shape` is the shape that the value has in the ONNX graph with a batch of 1.

    An affine operator W x + b says `make_magnitude`, `make_linear_part` and `terms`, unless it
    `is_exact`, and `linear_maps` where large values are to be fused fast. A nonlinear one says
    `enclosure` and `value_error`, and `hinges`, `candidates` or `relaxation` for bounds that are
    tighter than intervals.
    """

    kind: ClassVar[OperatorKind] = OperatorKind.AFFINE

    gain: float = 1.0
    """How many times larger, or smaller, than with the constants as they are here what the file
    computes on the way may be: it may apply a common factor of them before or after."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Another `forward` is another operator: rules of the one it derives from would be wrong,
        and nothing would say so."""
        super().__init_subclass__(**options)
        bases = [b for b in cls.__mro__ if b not in (Operator, nn.Module) and "forward" in vars(b)]
        replaced = next((b for b in bases[1:] if issubclass(b, Operator)), None)
        if replaced is not None:
            raise TypeError(
                f"operator '{cls.__name__}' replaces the forward of '{replaced.__name__}', whose "
                "rules it would inherit; derive it from Operator"
            )

    def _constant(self, name: str, value: Tensor | None) -> None:
        self.register_buffer(name, value)

    @classmethod
    def translate(cls, call: OnnxNode) -> int | Sequence[int]:
        """Add the nodes of one ONNX node to the graph; the index of its output, or of each output.

        By default the operator without constants, applied to the node's inputs.
        """
        return call.emit(cls(), *(call.node(p) for p in range(len(call.proto.input))))

    def result_shape(self, *shapes: Shape) -> Shape:
        """The shape of the result from those of the inputs, none with the batch axis.

        A ValueError says that they do not fit. Nothing is computed, whatever sizes a file claims.
        """
        return shapes[0]

    # Enclosures of every operator.

    is_exact: ClassVar[bool] = False
    """It only moves, copies or drops entries, and inserts constants: it rounds nothing and never
    decreases in any input."""

    inserts_constants: ClassVar[bool] = True
    """Where nothing else is rounded: constants of the file may be part of the result. They are
    exact in float64 only."""

    def enclosure(self, *inputs: Interval) -> Interval:
        """An interval that holds the value for all values of the inputs, in real arithmetic.

        It is computed in the type of the inputs, and widened by what that rounds.
        """
        if self.is_exact:
            return self._monotone_enclosure(*inputs)
        if self.kind is OperatorKind.AFFINE:
            return self._affine_enclosure(*inputs)
        raise UnsupportedQuery(f"operator '{type(self).__name__}' cannot be bounded")

    def _monotone_enclosure(self, *inputs: Interval) -> Interval:
        """Of an operator that never decreases in any input and is computed without rounding."""
        low, high = self(*(x.low for x in inputs)), self(*(x.high for x in inputs))
        if self.inserts_constants and low.dtype != torch.float64:
            return Interval(low, high).widened(1)
        return Interval(low, high)

    def _affine_enclosure(self, *inputs: Interval) -> Interval:
        """With centre c and radius r of the inputs: W c + b, off by |W| r and by the rounding."""
        centred = [x.centred() for x in inputs]
        centre = self(*(c for c, _ in centred))
        magnitude = self.magnitude
        bias = magnitude(*(torch.zeros_like(c) for c, _ in centred))
        radius = magnitude(*(r for _, r in centred)) - bias
        size = magnitude(*(c.abs() + r for c, r in centred))
        spread = radius + sum_slack(size, self.terms([c for c, _ in centred], centre))
        return Interval(centre - spread, centre + spread).without_nan()

    # What an affine operator W x + b adds up, multiplies and rounds.

    @final
    @property
    def magnitude(self) -> Operator:
        """The operator |W| x + |b|; made once.

        It gives both the spread of an interval, |W| r, and the size of what was added up, which
        bounds the rounding.
        """
        return self._derive("magnitude", self.make_magnitude)

    @final
    @property
    def linear_part(self) -> Operator:
        """The operator |W| x: what becomes of errors; made once."""
        return self._derive("linear part", self.make_linear_part)

    def make_magnitude(self) -> Operator:
        """A new operator that computes |W| x + |b|."""
        if self.is_exact:
            return self._with_absolute_constants()
        raise self._unsaid("magnitude")

    def make_linear_part(self) -> Operator:
        """A new operator that computes |W| x."""
        if self.is_exact:
            return self._with_absolute_constants()
        raise self._unsaid("linear part")

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        """How many products each entry of the result is a sum of, at most.

        Products with a weight of 0 do not count: they are 0, and adding them changes nothing.
        """
        raise self._unsaid("number of terms")

    def reach(self, *largest: Tensor) -> Tensor:
        """The largest number that computing each entry may pass through.

        `largest` are the largest absolute values of its inputs. Factors that are below 1 may come
        last.
        """
        result: Tensor = self.magnitude(*largest)
        return result

    def factors(self) -> Tensor | None:
        """The numbers that it multiplies with; None if there are none.

        A runtime may move factors: behind the product that follows, into the weights before.
        """
        constants = [b.flatten() for b in self.buffers() if b.is_floating_point()]
        return torch.cat(constants) if constants else None

    def single_factor(self) -> float | None:
        """The one number that a runtime may move to another place in the network; None without."""
        return None

    starts_sum: ClassVar[bool] = False
    """What is added to its result is not added up together with what its inputs are sums of."""

    def linear_maps(self, *shapes: Shape) -> tuple[LinearMap, ...]:
        """W of an affine operator, as one map of each input, from their shapes; in float64.

        The operator's constants are in float64 when this is asked for. By default the matrix is
        made of gradients, row by row, which is slow for large values.
        """
        if self.is_exact:
            return tuple(self._selection(number, shapes) for number in range(len(shapes)))
        return self._gradients(shapes)

    @final
    def _selection(self, number: int, shapes: tuple[Shape, ...]) -> SelectionMap:
        """Where the entries of one input go: each is known by a number of its own."""
        zeros = [torch.zeros((1, *shape), dtype=torch.float64) for shape in shapes]
        size = zeros[number].numel()
        numbers = torch.arange(1.0, size + 1, dtype=torch.float64).reshape(zeros[number].shape)
        without = self(*zeros)
        moved = self(*zeros[:number], numbers, *zeros[number + 1 :])
        places = torch.where(moved == without, 0.0, moved).flatten().long() - 1
        return SelectionMap(places, size)

    @final
    def _gradients(self, shapes: tuple[Shape, ...]) -> tuple[LinearMap, ...]:
        """Each row of W is the gradient of one entry of the result."""
        size = math.prod(self.result_shape(*shapes))
        step = max(1, GRADIENTS_AT_ONCE // max(size, *(math.prod(shape) for shape in shapes)))
        parts: list[list[csr_array]] = [[] for _ in shapes]
        for first in range(0, size, step):
            count = min(step, size - first)
            inputs = [
                torch.zeros((count, *shape), dtype=torch.float64).requires_grad_()
                for shape in shapes
            ]
            with torch.enable_grad():
                result = self(*inputs).reshape(count, -1)
                chosen = result[:, first : first + count].diagonal().sum()
                slopes = torch.autograd.grad(chosen, inputs, allow_unused=True)
            for part, given, slope in zip(parts, inputs, slopes, strict=True):
                held = torch.zeros_like(given) if slope is None else slope
                part.append(csr_array(held.detach().reshape(count, -1).numpy()))
        return tuple(SparseMap(csr_array(vstack(part))) for part in parts)

    @final
    def _derive(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Something made of the constants, once. Operators never change theirs once in a graph."""
        memo: Memo = vars(self).setdefault("_memo", Memo())
        return memo.get(name, make)

    @final
    def _with_absolute_constants(self) -> Operator:
        absolute = copy.deepcopy(self)
        for name, buffer in dict(absolute.named_buffers()).items():
            if buffer.is_floating_point():
                setattr(absolute, name, buffer.abs())
        return absolute

    def _unsaid(self, what: str) -> UnsupportedQuery:
        return UnsupportedQuery(
            f"operator '{type(self).__name__}' states no {what}, so that it cannot be bounded"
        )

    # What a nonlinear operator of one value consists of, and rounds.

    def hinges(self, shape: Shape, result: Shape) -> Hinges | None:
        """A piecewise-linear function entry by entry, from the shapes of its input and its result;
        None if it is another."""
        return None

    def candidates(self, shape: Shape) -> Tensor | None:
        """For each entry of the result the entries of the flattened input it is the maximum of;
        None if it is no maximum. Integers (result size, most entries), -1 where there are fewer."""
        return None

    def relaxation(self, shape: Shape, arguments: Interval) -> Relaxation | None:
        """Its own linear bounds over intervals (regions, entries) of a flattened input of this
        shape; None for those that follow from its hinges, its candidates or its enclosure."""
        return None

    # Its slopes.

    is_activation: ClassVar[bool] = False
    """A continuous function of each entry, defined everywhere. Where it is flat, attacks follow its
    secants."""

    def saturation(self, shape: Shape) -> Saturation | None:
        """For attacks, where it ends a network and flattens the outputs; None if it does not."""
        return None

    def has_slopes(self, shape: Shape) -> bool:
        """Whether it says `chain_rule`, of an input of this shape."""
        return False

    def chain_rule(
        self, rows: IntervalMatrix, shape: Shape, low: Float64, high: Float64
    ) -> IntervalMatrix:
        """Derivatives by the operator's values as derivatives by its argument.

        They hold for all arguments, flattened, between `low` and `high`. Where it has no
        derivative, they hold the slopes on both sides.
        """
        raise self._unsaid("slopes")

    @property
    def roundings(self) -> int:
        """How often a constant that is added to its values may be rounded, beyond that addition: a
        runtime may begin with the constant the sum that such a value is."""
        return 0

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor | None:
        """How far a runtime's values may be from the function of its arguments; None where not.

        `arguments` and `values` are (regions, *shape), as the operator takes and gives them; all
        errors of one operation in the number type count `widening` times.
        """
        raise UnsupportedQuery(
            f"operator '{type(self).__name__}' does not state how far its values are rounded: "
            "nothing is proven for floating point; ask for arithmetic real"
        )


class SumOfProducts(Operator):
    """W x + b with the file's constants, or products of them, as entries of W and b.

    |W| x + |b| is then the same operator with the absolute values of its constants. One that has a
    b says `make_linear_part` itself.
    """

    def make_magnitude(self) -> Operator:
        return self._with_absolute_constants()

    def make_linear_part(self) -> Operator:
        return self.make_magnitude()


class WeightedSum(SumOfProducts):
    """Sums of products with a constant `weight`."""

    starts_sum = True
    weight: Tensor

    def factors(self) -> Tensor:
        return self.weight

    def terms(self, inputs: Sequence[Tensor], result: Tensor) -> int:
        return self._derive("terms", self._most_terms)

    def _counts(self) -> Tensor:
        """How many weights that are not 0 meet in entries of the result."""
        raise NotImplementedError

    @final
    def _most_terms(self) -> int:
        counts = self._counts()
        return max(1, int(counts.max())) if counts.numel() else 1


class Input(Operator):
    """The network's input itself."""

    is_exact = True
    inserts_constants = False

    def forward(self, x: Tensor) -> Tensor:
        return x


def broadcast(*shapes: Shape) -> Shape:
    """The common shape of values that are combined elementwise; a ValueError if there is none."""
    return np.broadcast_shapes(*shapes)


def with_rank(x: Tensor, rank: int) -> Tensor:
    """A batch whose values have at least `rank` axes: axes of length 1 go right behind the batch.

    ONNX aligns shapes at their last axes; the batch axis in front must take no part in that.
    """
    missing = rank - (x.dim() - 1)
    return x if missing <= 0 else x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])


class OnnxNode:
    """One ONNX node, as its translator sees it: attributes, inputs, and a place for new nodes."""

    def __init__(self, translation: Translation, proto: onnx.NodeProto, name: str) -> None:
        self.translation = translation
        self.proto = proto
        self.name = name
        self.opset = translation.opset
        is_standard = proto.domain in ("", "ai.onnx")
        self.operator = proto.op_type if is_standard else f"{proto.domain}.{proto.op_type}"
        self._attributes = {a.name: a for a in proto.attribute}

    def has(self, position: int) -> bool:
        """The input at this position is given (an empty name stands for an omitted one)."""
        return position < len(self.proto.input) and self.proto.input[position] != ""

    def is_constant(self, position: int) -> bool:
        return self.has(position) and not isinstance(self._value(position), int)

    def node(self, position: int) -> int:
        """The node that gives this input, which must depend on the network's input."""
        value = self._value(position)
        if not isinstance(value, int):
            raise self.unsupported(f"with a constant input {position}")
        return value

    def shape(self, position: int) -> tuple[int, ...]:
        """The shape of an input, constant or not."""
        value = self._value(position)
        return self.translation.nodes[value].shape if isinstance(value, int) else value.shape

    def shape_of(self, node: int) -> Shape:
        """The shape of the value of a node."""
        return self.translation.nodes[node].shape

    def rank(self, position: int) -> int:
        return len(self.shape(position))

    def constant(self, position: int) -> Array:
        """A constant input as it is in the file."""
        value = self._value(position)
        if isinstance(value, int):
            raise self.unsupported(f"whose input {position} depends on the network's input")
        return value

    def weight(self, position: int) -> Tensor:
        """A constant input that takes part in arithmetic: finite, in float64."""
        value = self.constant(position)
        if not np.isfinite(value).all():
            raise NetworkError(
                f"{self.translation.network}: '{self.proto.input[position]}', an input of node "
                f"'{self.name}', holds NaN or infinite values"
            )
        return torch.from_numpy(np.array(value, dtype=np.float64))

    def optional_weight(self, position: int) -> Tensor | None:
        return self.weight(position) if self.has(position) else None

    def integers(self, position: int) -> list[int]:
        """A constant input of integers, such as axes or a shape, as a flat list."""
        return [int(v) for v in np.ravel(self.constant(position))]

    def int_attribute(self, name: str, default: int) -> int:
        return int(self._attributes[name].i) if name in self._attributes else default

    def float_attribute(self, name: str, default: float) -> float:
        """Attributes are float32, in files of float64 too, and so are their defaults."""
        value = self._attributes[name].f if name in self._attributes else default
        return float(np.float32(value))

    def text_attribute(self, name: str, default: str) -> str:
        return self._attributes[name].s.decode() if name in self._attributes else default

    def ints_attribute(self, name: str) -> list[int] | None:
        return list(self._attributes[name].ints) if name in self._attributes else None

    def floats_attribute(self, name: str) -> list[float]:
        """A list of numbers; empty if it is not given."""
        return list(self._attributes[name].floats) if name in self._attributes else []

    def texts_attribute(self, name: str) -> list[str]:
        """A list of texts; empty if it is not given."""
        given = self._attributes[name].strings if name in self._attributes else []
        return [text.decode() for text in given]

    def axes(self, position: int, *, rank: int) -> list[int] | None:
        """Non-negative axes from this input or, in older opsets, from the attribute `axes`."""
        given = self.integers(position) if self.has(position) else self.ints_attribute("axes")
        return None if given is None else [self.axis(value, rank) for value in given]

    def axis(self, value: int, rank: int) -> int:
        """An axis that may count from the end, made non-negative."""
        if not -rank <= value < rank:
            raise NetworkError(
                f"{self.translation.network}: node '{self.name}' names axis {value} "
                f"of a value with {rank} axes"
            )
        return value % rank

    def is_whole(self, position: int) -> bool:
        """Whether an input holds whole numbers, by the types of the file."""
        return self._dtype(position).kind in "iu"

    def is_bool(self, position: int) -> bool:
        """Whether an input holds truth values: the numbers 0 and 1 here."""
        return self._dtype(position).kind == "b"

    def _dtype(self, position: int) -> np.dtype[Any]:
        value = self._value(position)
        if not isinstance(value, int):
            return value.dtype
        return self.translation.types.get(self.proto.input[position], np.dtype(np.float32))

    def evaluated(self, values: Mapping[int, npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """The node's first output by ONNX's reference implementation, for these values of the
        inputs that depend on the network's; a runtime must not say otherwise."""
        from radii.networks._building import constant_outputs

        known: dict[str, Array] = {}
        for position, name in enumerate(self.proto.input):
            if name:
                value = values[position] if position in values else self.constant(position)
                known[name] = value.astype(np.float64) if value.dtype.kind == "f" else value
        found = constant_outputs(self.proto, known, self.opset, self.translation.network)
        return np.asarray(found[0], np.float64)

    def emit(self, operator: Operator, *inputs: int) -> int:
        """Add a node that applies the operator, and return its index."""
        return self.translation.add(self.name, operator, inputs)

    def unsupported(self, detail: str = "") -> UnsupportedOperator:
        operator = f"{self.operator} {detail}".strip()
        return UnsupportedOperator(operator, self.name, self.translation.network)

    def _value(self, position: int) -> int | Array:
        if not self.has(position):
            raise NetworkError(
                f"{self.translation.network}: node '{self.name}' ({self.proto.op_type}) "
                f"lacks its input {position}"
            )
        return self.translation.values[self.proto.input[position]]


# From ONNX nodes to operators: one translator for each ONNX operator.


Translator = Callable[[OnnxNode], int | Sequence[int]]
"""Adds the nodes of one ONNX node and returns the index of its output, or of each output."""

OperatorLike = type[Operator] | Translator
"""What an ONNX operator becomes: a class, of which `translate` is called, or a translator."""

TRANSLATORS: dict[str, Translator] = {}
"""The ONNX operators of the default domain that may depend on a network's input."""

Translated = TypeVar("Translated", type[Operator], Translator)


@dataclass(frozen=True, slots=True)
class TranslatedOperator:
    """What docs/networks.md says of an ONNX operator: its kind, and of which uses that holds."""

    kind: OperatorKind
    note: str = ""


TRANSLATED: dict[str, tuple[TranslatedOperator, ...]] = {}
"""The same operators, and what becomes of them."""


def translates(
    *operators: str,
    kind: OperatorKind = OperatorKind.AFFINE,
    note: str = "",
    of_several: OperatorKind | None = None,
) -> Callable[[Translated], Translated]:
    """Makes a class or a function the translator of ONNX operators of the default domain.

    A class states its own kind; a function is given that of what it emits, and `of_several` for
    values that all depend on the network's input.
    """

    def register(translated: Translated) -> Translated:
        own = getattr(translated, "kind", kind)
        stated = [TranslatedOperator(own, note)]
        if of_several is not None:
            stated.append(TranslatedOperator(of_several, "of values that depend on the input"))
        TRANSLATORS.update(dict.fromkeys(operators, translator_of(translated)))
        TRANSLATED.update(dict.fromkeys(operators, tuple(stated)))
        return translated

    return register


def translator_of(operator: OperatorLike) -> Translator:
    """The translator itself, or that of a class."""
    either: Any = operator
    translator: Translator = getattr(either, "translate", either)
    return translator
