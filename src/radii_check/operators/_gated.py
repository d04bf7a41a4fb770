"""Functions z g(z) of each entry: Gelu, Silu, Mish and HardSwish; and the products that they are.

A product x * y of two values is read as one of these where one factor is r x and the other one
a known function of x. It is unknown otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from radii_check._builder import Builder, Call, Reader, Value, is_node
from radii_check._curves import kernel_units
from radii_check._errors import require_known
from radii_check._format import Array
from radii_check._numbers import Numbers
from radii_check._piece_curves import BY_ARGUMENT, PieceCurve
from radii_check.operators._arithmetic import multiply
from radii_check.operators._elementary import (
    ERF_ERROR,
    SOFTPLUS_ERROR,
    attribute,
    erf,
    logistic,
    softplus,
)
from radii_check.operators._tanh import Sigmoid, Tanh

OWN_PRODUCTS = 5
"""Roundings of the products themselves."""
MOST_OPERATORS = 12
"""Of which a factor consists."""
MOST_ROUNDINGS, ROUNDINGS_OF_ARGUMENT = 4, 3
"""Of sums and products by constants, around functions and in what they are applied to."""


class Gated(PieceCurve):
    measure = BY_ARGUMENT
    kernel_error: float
    """Of ONNX Runtime over the numbers of float32, in units of 2^-24."""

    def gate_units(self, is_single: bool) -> float:
        """How far the gate may be off, where operators compute it one by one."""
        raise NotImplementedError

    def rounded_units(self, is_single: bool) -> float:
        by_parts = self.gate_units(is_single) + OWN_PRODUCTS
        return max(kernel_units(self.kernel_error, is_single), by_parts)


class Gelu(Gated):
    """z (1 + erf(z / sqrt(2))) / 2."""

    kernel_error = 2.0
    pieces = ((-math.sqrt(2), -1), (math.sqrt(2), 1), (math.inf, -1))
    extrema = (-0.7517915246935645,)

    def gate_units(self, is_single: bool) -> float:
        return (kernel_units(ERF_ERROR, is_single) + 3.5) / 2

    def base(self, z: Array, num: Numbers) -> Array:
        return np.asarray(z * (1 + erf(z / math.sqrt(2), num)) / 2)

    def base_slope(self, z: Array, num: Numbers) -> Array:
        density = np.exp(num.maximum(-z * z / 2, -700.0)) / math.sqrt(2 * math.pi)
        return np.asarray((1 + erf(z / math.sqrt(2), num)) / 2 + z * density)


class Silu(Gated):
    """z / (1 + exp(-z))."""

    kernel_error = Sigmoid.kernel_error
    pieces = ((-2.3993572805154677, -1), (2.3993572805154677, 1), (math.inf, -1))
    extrema = (-1.2784645427610738,)

    def gate_units(self, is_single: bool) -> float:
        return kernel_units(Sigmoid.kernel_error, is_single) + 1

    def base(self, z: Array, num: Numbers) -> Array:
        return np.asarray(z * logistic(z, num))

    def base_slope(self, z: Array, num: Numbers) -> Array:
        gate = logistic(z, num)
        return np.asarray(gate * (1 + z * (1 - gate)))


class Mish(Gated):
    """z tanh(log(1 + exp(z)))."""

    kernel_error = 5.5
    pieces = ((-2.256376396360793, -1), (1.4905711794854284, 1), (math.inf, -1))
    extrema = (-1.1924312145154953,)

    def gate_units(self, is_single: bool) -> float:
        return kernel_units(Tanh.kernel_error, is_single) + kernel_units(SOFTPLUS_ERROR, is_single)

    def base(self, z: Array, num: Numbers) -> Array:
        return np.asarray(z * np.tanh(softplus(z, num)))

    def base_slope(self, z: Array, num: Numbers) -> Array:
        gate = np.tanh(softplus(z, num))
        return np.asarray(gate + z * logistic(z, num) * (1 - gate) * (1 + gate))


class ClippedGate(Gated):
    """z min(max(rate z + offset, low), high) with rate > 0 and 0 <= low < high."""

    kernel_error = 1.5

    def __init__(
        self, rate: float, offset: float, low: float, high: float, height: float = 1.0
    ) -> None:
        super().__init__(height=height)
        self.rate, self.offset, self.low, self.high = rate, offset, low, high
        self.scale = max(1.0, high + abs(offset))
        first, last = (low - offset) / rate, (high - offset) / rate
        self.pieces = ((first, 0), (last, 1), (math.inf, 0))
        least = -offset / (2 * rate)
        self.extrema = (first, last, *((least,) if first < least < last else ()))

    def gate_units(self, is_single: bool) -> float:
        return 3 * (self.high + 2 * abs(self.offset)) + 5 * max(1.0, self.high)

    def base(self, z: Array, num: Numbers) -> Array:
        gate = num.minimum(num.maximum(self.rate * z + self.offset, self.low), self.high)
        return np.asarray(z * gate)

    def base_slope(self, z: Array, num: Numbers) -> Array:
        return np.asarray(2 * self.rate * z + self.offset)


def gelu(builder: Builder, call: Call) -> int:
    is_exact = call.attributes.get("approximate", b"none") == b"none"
    require_known(is_exact, "Gelu by an approximation")
    return builder.unit("Gelu", call.first, curve=Gelu())


def mul(builder: Builder, call: Call) -> int:
    x, y = call.inputs
    both = is_node(x) and is_node(y)
    return product_of_two(builder, x, y) if both else multiply(builder, x, y)


def hard_swish(builder: Builder, call: Call) -> int:
    curve = ClippedGate(float(np.float32(1 / 6)), 0.5, 0.0, 1.0)
    return builder.unit("HardSwish", call.first, curve=curve)


READERS: dict[str, Reader] = {
    "Gelu": gelu,
    "HardSwish": hard_swish,
    "Mul": mul,
    "Mish": lambda builder, call: builder.unit("Mish", call.first, curve=Mish()),
}


# Products of two values.


@dataclass(frozen=True, slots=True)
class Factor:
    """rate x + start; or rate * kind(argument) + start with a function of that name."""

    rate: float
    start: float = 0.0
    kind: str = ""
    argument: Factor | None = None
    ends: tuple[float, float] = (0.0, 0.0)
    roundings: int = 0

    def scaled(self, by: float) -> Factor:
        rounded = replace(self, roundings=self.roundings + 1)
        return replace(rounded, rate=by * self.rate, start=by * self.start)

    def shifted(self, by: float) -> Factor:
        return replace(self, start=self.start + by, roundings=self.roundings + 1)


def product_of_two(builder: Builder, x: int, y: int) -> int:
    """One unit for each entry of r x times a known function of x."""
    for source in (*_behind(builder, x), *_behind(builder, y)):
        for first, second in ((x, y), (y, x)):
            line, gate = (_factor(builder, each, source) for each in (first, second))
            curve = None if line is None or gate is None else _known(line, gate)
            if curve is not None and builder.shape(source) == builder.shape(x):
                return builder.unit("Gate", source, curve=curve)
    require_known(False, "Mul or Div of such values")
    raise AssertionError


def _number(value: Value) -> float | None:
    """A constant of one number."""
    return None if is_node(value) or np.size(value) != 1 else float(np.asarray(value).item())


def _behind(builder: Builder, node: int) -> list[int]:
    """A node, and what it is a multiple of."""
    found = [node]
    while node in builder.origins:
        kind, call = builder.origins[node]
        nodes = [value for value in call.inputs if is_node(value)]
        numbers = [_number(value) for value in call.inputs if not is_node(value)]
        if kind not in ("Mul", "Div") or len(nodes) != 1 or numbers[0] is None:
            break
        node = nodes[0]
        found.append(node)
    return found


def _factor(builder: Builder, node: int, source: int, depth: int = 0) -> Factor | None:
    """What a node's value is of that of the source."""
    if node == source:
        return Factor(1.0)
    if node not in builder.origins or depth > MOST_OPERATORS:
        return None
    kind, call = builder.origins[node]
    nodes = [value for value in call.inputs if is_node(value)]
    if len(nodes) != 1 or builder.shape(node) != builder.shape(source):
        return None
    inner = _factor(builder, nodes[0], source, depth + 1)
    return None if inner is None else _applied(kind, call, inner)


def _applied(kind: str, call: Call, inner: Factor) -> Factor | None:
    numbers = [_number(value) for value in call.inputs if value is not None and not is_node(value)]
    number = numbers[0] if numbers else None
    is_first = is_node(call.first)
    if kind in ("Erf", "Sigmoid", "Softplus", "Tanh"):
        return Factor(1.0, kind=kind, argument=inner)
    if kind == "HardSigmoid":
        alpha, beta = attribute(call, "alpha", 0.2), attribute(call, "beta", 0.5)
        argument = inner.scaled(alpha).shifted(beta)
        return Factor(1.0, kind="Clip", argument=argument, ends=(0.0, 1.0))
    if kind == "Clip":
        return _clipped(call, inner)
    if number is None:
        return None
    if kind == "Mul" or (kind == "Div" and is_first and number):
        return inner.scaled(number if kind == "Mul" else 1 / number)
    if kind == "Add" or (kind == "Sub" and is_first):
        return inner.shifted(number if kind == "Add" else -number)
    return None


def _clipped(call: Call, inner: Factor) -> Factor | None:
    given: list[Any] = [*call.inputs[1:], call.attributes.get("min"), call.attributes.get("max")]
    ends = [None if end is None else _number(end) for end in given[:2]]
    if ends[0] is None or ends[1] is None:
        return None
    return Factor(1.0, kind="Clip", argument=inner, ends=(ends[0], ends[1]))


def _known(line: Factor, gate: Factor) -> PieceCurve | None:
    """line * gate, where the line is r x with r > 0."""
    inner, height = gate.argument, line.rate * gate.rate
    is_line = not line.kind and line.start == 0 and line.rate > 0
    if not is_line or inner is None or not (gate.rate > 0 and height < math.inf):
        return None
    is_granted = line.roundings + gate.roundings <= MOST_ROUNDINGS
    if not is_granted or inner.roundings > ROUNDINGS_OF_ARGUMENT:
        return None
    is_raised, is_plain = gate.start == gate.rate, gate.start == 0
    is_ray = not inner.kind and inner.start == 0 and inner.rate > 0
    if gate.kind == "Erf" and is_raised and is_ray:
        pace = math.sqrt(2) * inner.rate
        return Gelu(pace, 2 * height / pace)
    if gate.kind == "Sigmoid" and is_plain and is_ray:
        return Silu(inner.rate, height / inner.rate)
    if gate.kind == "Tanh" and is_plain and inner == Factor(1.0, 0.0, "Softplus", Factor(1.0)):
        return Mish(height=height)
    low, high = gate.ends
    is_clip = gate.kind == "Clip" and is_plain and not inner.kind and inner.rate > 0
    if is_clip and 0 <= low < high < math.inf:
        return ClippedGate(inner.rate, inner.start, low, high, height)
    return None
