"""Products of operators that are one function of one value, as exporters write Gelu, Silu and Mish.

`x * sigmoid(x)` as a product of two values is bounded by what its factors may be apart from each
other; as a function of x it is bounded by lines that touch it. So what a product's factors are of a
common value is written out: a polynomial, or a function of one, times a factor, plus an offset. The
forms that are known become one node, of the product's name; nodes that nothing else reads are left
out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from radii.networks._network import Graph, Node
from radii.networks.operators._arithmetic import Add, AddConstant, DivideByConstant, Scale
from radii.networks.operators._arrangement import Concat, Reshape
from radii.networks.operators._base import Operator
from radii.networks.operators._bilinear import Multiply
from radii.networks.operators._curved import CurvedFunction
from radii.networks.operators._elementary import Erf, Softplus
from radii.networks.operators._gated import ClippedGate, Gelu, Mish, Silu, TanhGelu
from radii.networks.operators._piecewise_linear import Clip
from radii.networks.operators._powers import Square, WholePower
from radii.networks.operators._tanh import Sigmoid, Tanh

MOST_DEGREE = 3

DEEPEST = 12
"""How many operators a factor may consist of."""

MOST_ROUNDINGS = 4
"""Of sums and products by constants around the functions, which their stated errors grant."""

ROUNDINGS_OF_ARGUMENT, ROUNDINGS_OF_CUBIC = 3, 8
"""The same of what the functions are applied to."""


@dataclass(frozen=True, slots=True)
class _Formula:
    """What a value is of another one, x: a polynomial, its coefficients from the constant on; or
    `factor` * function(argument) + `offset`. `roundings` counts sums and products, without those of
    the argument."""

    polynomial: tuple[float, ...] = ()
    function: Operator | None = None
    argument: _Formula | None = None
    factor: float = 1.0
    offset: float = 0.0
    roundings: int = 0

    @property
    def is_line(self) -> bool:
        """slope * x + start with a positive slope."""
        return self.function is None and len(self.polynomial) == 2 and self.polynomial[1] > 0

    @property
    def rate(self) -> float:
        """Of r * x with r > 0; NaN for others."""
        return self.polynomial[1] if self.is_line and self.polynomial[0] == 0 else math.nan

    def scaled(self, factor: float) -> _Formula:
        return replace(
            self,
            polynomial=tuple(factor * c for c in self.polynomial),
            factor=factor * self.factor,
            offset=factor * self.offset,
            roundings=self.roundings + 1,
        )

    def shifted(self, by: float) -> _Formula:
        rounded = replace(self, roundings=self.roundings + 1)
        if self.function is not None:
            return replace(rounded, offset=self.offset + by)
        return replace(rounded, polynomial=(self.polynomial[0] + by, *self.polynomial[1:]))


def with_composites(nodes: Sequence[Node], output: int) -> Graph:
    """The graph in which products that are known functions of one value are nodes of their own."""
    found = list(nodes)
    within: set[int] = set()
    for index, node in enumerate(nodes):
        product = _product_at(nodes, node)
        if product is not None:
            for source in _sources(nodes, product):
                operator = _function_of(nodes, product, source)
                if operator is not None and node.shape == nodes[source].shape:
                    found[index] = Node(product.name, operator, (source,), node.shape)
                    within |= _between(nodes, node, source)
                    break
    return _without_unread(found, output, within)


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of two values, by the nodes of these, and what the file calls it."""

    name: str
    factors: tuple[int, int]


def _product_at(nodes: Sequence[Node], node: Node) -> _Product | None:
    """The two values lie flattened one behind the other in the one that a product reads."""
    if not isinstance(node.operator, Multiply):
        return None
    parts = nodes[node.inputs[0]]
    flat = [nodes[i] for i in parts.inputs]
    are_flat = all(isinstance(each.operator, Reshape) for each in flat)
    if not (isinstance(parts.operator, Concat) and are_flat and len(flat) == 2):
        return None
    return _Product(flat[0].name, (flat[0].inputs[0], flat[1].inputs[0]))


def _sources(nodes: Sequence[Node], product: _Product) -> Iterator[int]:
    """The values of which both factors may be functions, the nearest first."""
    for index in product.factors:
        yield index
        while _factor_of(nodes[index].operator) is not None:
            (index,) = nodes[index].inputs
            yield index


def _factor_of(operator: Operator) -> float | None:
    """The one number that an operator multiplies with."""
    if isinstance(operator, Scale | DivideByConstant) and operator.constant.numel() == 1:
        number = float(operator.constant)
        return number if isinstance(operator, Scale) else 1 / number
    return None


def _formula(nodes: Sequence[Node], index: int, source: int, depth: int = 0) -> _Formula | None:
    """What a node's value is of that of the source; None where that has no such form."""
    if index == source:
        return _Formula(polynomial=(0.0, 1.0))
    node = nodes[index]
    if index < source or depth > DEEPEST or node.shape != nodes[source].shape:
        return None
    product = _product_at(nodes, node)
    inputs = node.inputs if product is None else product.factors
    parts = [_formula(nodes, i, source, depth + 1) for i in inputs]
    given = [part for part in parts if part is not None]
    if not given or len(given) < len(parts):
        return None
    operator, factor = node.operator, _factor_of(node.operator)
    if factor is not None:
        return given[0].scaled(factor)
    match operator:
        case AddConstant() if operator.constant.numel() == 1:
            return given[0].shifted(float(operator.constant))
        case Add():
            return _sum(*given)
        case Multiply():
            return _multiplied(*given)
        case Square():
            return _multiplied(given[0], given[0])
        case WholePower() if operator.exponent == MOST_DEGREE:
            square = _multiplied(given[0], given[0])
            return None if square is None else _multiplied(square, given[0])
        case Tanh() | Sigmoid() | Erf() | Softplus() | Clip():
            return _Formula(function=operator, argument=given[0])
    return None


def _sum(one: _Formula, other: _Formula) -> _Formula | None:
    if one.function is not None or other.function is not None:
        return None
    count = max(len(one.polynomial), len(other.polynomial))
    padded = [(*each.polynomial, *(0.0,) * count)[:count] for each in (one, other)]
    sums = tuple(a + b for a, b in zip(*padded, strict=True))
    return _Formula(polynomial=sums, roundings=one.roundings + other.roundings + 1)


def _multiplied(one: _Formula, other: _Formula) -> _Formula | None:
    degree = len(one.polynomial) + len(other.polynomial) - 2
    if one.function is not None or other.function is not None or degree > MOST_DEGREE:
        return None
    coefficients = [0.0] * (degree + 1)
    for i, a in enumerate(one.polynomial):
        for j, b in enumerate(other.polynomial):
            coefficients[i + j] += a * b
    roundings = one.roundings + other.roundings + 1
    return _Formula(polynomial=tuple(coefficients), roundings=roundings)


def _function_of(nodes: Sequence[Node], product: _Product, source: int) -> CurvedFunction | None:
    """The function of the source's value that the product is."""
    factors = [_formula(nodes, index, source) for index in product.factors]
    for line, gate in (factors, factors[::-1]):
        if line is None or gate is None or gate.argument is None or not line.rate > 0:
            continue
        granted = (
            ROUNDINGS_OF_ARGUMENT if len(gate.argument.polynomial) <= 2 else ROUNDINGS_OF_CUBIC
        )
        is_granted = line.roundings + gate.roundings <= MOST_ROUNDINGS
        if not is_granted or gate.argument.roundings > granted:
            continue
        function = _known(gate, gate.argument, line.rate * gate.factor)
        if function is not None:
            return function
    return None


def _known(gate: _Formula, argument: _Formula, height: float) -> CurvedFunction | None:
    """height * x * (function(argument) + offset / factor), where that is known."""
    if not (0 < height < math.inf and gate.factor > 0):
        return None
    is_raised, is_plain = gate.offset == gate.factor, gate.offset == 0
    rate, polynomial = argument.rate, argument.polynomial
    match gate.function:
        case Erf() if is_raised and rate > 0:
            pace = math.sqrt(2) * rate
            return Gelu(pace=pace, height=2 * height / pace)
        case Sigmoid() if is_plain and rate > 0:
            return Silu(pace=rate, height=height / rate)
        case Tanh() if is_raised and len(polynomial) == 4 and polynomial[0] == polynomial[2] == 0:
            slope, cubic = polynomial[1], polynomial[3] / polynomial[1]
            if TanhGelu.is_known(slope, cubic):
                return TanhGelu(slope, cubic, height=2 * height)
        case Tanh() if is_plain and isinstance(argument.function, Softplus):
            inner = argument.argument
            is_mish = argument.factor == 1 and argument.offset == 0 and not argument.roundings
            if is_mish and inner is not None and inner.rate == 1 and not inner.roundings:
                return Mish(height=height)
        case Clip() as clip if is_plain and argument.is_line and 0 <= clip.low < clip.high:
            if clip.high < math.inf:
                start, slope = polynomial
                return ClippedGate(slope, start, clip.low, clip.high, height=height)
    return None


def _between(nodes: Sequence[Node], product: Node, source: int) -> set[int]:
    """The nodes that the product is made of, without the source."""
    found, waiting = set[int](), list(product.inputs)
    while waiting:
        index = waiting.pop()
        if index > source and index not in found:
            found.add(index)
            waiting.extend(nodes[index].inputs)
    return found


def _without_unread(nodes: Sequence[Node], output: int, candidates: set[int]) -> Graph:
    """The graph without those of the candidates that no node reads any longer."""
    unread = set[int]()
    for index in sorted(candidates, reverse=True):
        readers = (i for i in range(index + 1, len(nodes)) if i not in unread)
        if index != output and not any(index in nodes[i].inputs for i in readers):
            unread.add(index)
    position, kept = list[int](), list[Node]()
    for index, node in enumerate(nodes):
        position.append(len(kept))
        if index not in unread:
            inputs = tuple(position[i] for i in node.inputs)
            kept.append(Node(node.name, node.operator, inputs, node.shape))
    graph = Graph(kept, position[output])
    kept_names = {node.name for node in kept}
    graph.joined = frozenset(nodes[index].name for index in unread) - kept_names
    return graph
