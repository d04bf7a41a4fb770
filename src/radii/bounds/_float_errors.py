"""How far a network in floating point may be from its own operators in real arithmetic.

The statement: for every execution of the file's operators in the file's own number type, in any
order of summation, with or without fused multiply-add, a nonlinear node reads

    z = A(v) + e,   |e| <= E,

where v are the floats that earlier nonlinear nodes gave and A is the affine map between them in
real arithmetic; and a node gives f(z) + d with |d| <= D. Bounds that hold for every such e and d
hold for the floats that run.

A sum whose terms are rounded n times at most, each, is off by at most gamma_n = n u / (1 - n u)
times the sum S of the absolute values it adds up, and by n times the smallest normal number, should
something underflow. S goes on through |W|, operator by operator, and n adds up on the way. Both
count everything that was ever added up since the last nonlinear node, so the bound also covers
runtimes that fuse operators: that fold a batch normalisation into the convolution before it,
multiply by a factor before or after it, or add the products of a layer one by one to a bias, or to
the other part of a residual sum. Such a sum is what `_NodeErrors.summed` counts: ONNX Runtime makes
one Gemm of MatMul and Add, which rounds what is added once for every block of products.

Such rewriting matters most for what overflows or underflows: (x s) W is fine where s (x W) is not.
So the largest number on the way, in whatever order factors are applied, is bounded as well (the
peak: factors count as at least 1). Where it may overflow in a region, errors are infinite there,
whatever zeros follow: an infinity times 0 is no number, and nothing may be concluded. And what
underflows counts as the smallest normal number times the largest number it may be multiplied with,
which also covers runtimes that take subnormal numbers for 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from radii.errors import UnsupportedQuery
from radii.networks import (
    FLOAT32_ROUNDOFF,
    Graph,
    Interval,
    LogSoftmax,
    NumberType,
    Operator,
    log_softmax_error,
)
from radii.problem import Arithmetic

OPERATOR_EXTRA_TERMS = 4
"""Roundings that every operator is granted beyond its sum: the bias, alpha and beta of Gemm, and a
factor that a runtime has folded into the weights."""

OWN_ROUNDING = 2.0**-30
"""What these sums themselves may be off in float64, relative: for up to a million terms."""

GRANTED = 1 + 2.0**-16
"""Errors are stated so much larger than they are: whoever checks a proof rounds otherwise, and must
come to the same answer."""

GRANTED_SUMS = 2.0**-40
"""And by so much of the absolute values that are added up: whoever checks a proof evaluates it in
float64, operator by operator, and rounds also what cancels in our fused maps, or is only moved. The
larger of an entry and its copy is a unit that reads z - z. To us that is 0 with an error of 0, to
the checker a sum that is off by some units of |z|. 2^-40 are 2^13 units: `FUSING_ROUNDING` pays for
the terms of sums, and the rest is a few units for each operator and each reader, and four for each
of at most 256 rows that are bounded together."""

FUSING_ROUNDING = 2.0**-52
"""What one rounding in fusing operators to a linear map and an offset may be off: twice the unit
roundoff of float64, so that it matters for files in float64 and in real arithmetic only.

An entry of a product of several matrices, in whatever order they are multiplied, is a sum over
paths. If each path's product was rounded n times at most, the entry is off by gamma_n of the sum of
their absolute values, and what the map gives by gamma_n |W_k| ... |W_1| |x|: of the size that is
added up here, operator by operator. Maps count their n (`LinearMap.rounded`, that of a later
`matrix()` included); offsets are computed by the operators themselves, so that their n is that of
the network's own sums."""

SINGLE_FACTOR_ROUNDINGS = 3
"""Of a factor that ONNX Runtime moves to the other side of a product: it becomes a float32, in
files of float64 too, is inverted in that type, and multiplied with another one."""

SINGLE_FACTORS = 2.0**-40, 2.0**40
"""Between these, three such factors together are still normal numbers of float32."""


def unprovable(graph: Graph, arithmetic: Arithmetic) -> str | None:
    """Why nothing can be proven about a network in an arithmetic; None if something can."""
    if not arithmetic.is_float or graph.rounded_constants is None:
        return None
    return (
        f"computes constants by its node {graph.rounded_constants}, which every runtime may round "
        "differently: nothing is proven for floating point; export it with constants folded, or "
        "ask for arithmetic real"
    )


LARGEST_BOUNDED = {torch.float32: 2.0**60, torch.float64: 2.0**300}
"""By the type that bounds are computed in: nothing is proven where a number on the way may be
larger. Numbers that underflow are then too small to matter, wherever they are."""

LOST_TO_UNDERFLOW = {torch.float32: 2.0**-50, torch.float64: 2.0**-700}
"""What a sum may lose by coefficients that underflow on the way: fewer than 2^40 of them, each off
by half of the smallest subnormal number (2^-149, 2^-1074), on values up to `LARGEST_BOUNDED`."""


@dataclass(frozen=True, slots=True, eq=False)
class FloatErrors:
    """The errors of one graph's operators in one arithmetic; the graph's constants are float64.

    `bounding` is the type of the bounds that they are for: it has no numbers below its smallest
    one, so that maps, and products of them, lose those whatever the arithmetic is.
    """

    graph: Graph
    number: NumberType
    arithmetic: Arithmetic
    bounding: torch.dtype = torch.float64

    def __post_init__(self) -> None:
        reason = unprovable(self.graph, self.arithmetic)
        if reason is not None:
            raise UnsupportedQuery(f"the network {reason}")

    @property
    def unit(self) -> float:
        """The largest relative rounding error of one operation; 0 in real arithmetic."""
        return self.number.unit * self.arithmetic.widening if self.arithmetic.is_float else 0.0

    @property
    def smallest(self) -> float:
        """The largest absolute error of one operation whose result underflows, in the network's
        own type or in that of the bounds."""
        own = self.number.smallest * self.arithmetic.widening if self.arithmetic.is_float else 0.0
        return max(own, torch.finfo(self.bounding).tiny)

    def of_arguments(
        self,
        source: int,
        between: tuple[int, ...],
        sizes: Mapping[int, Tensor],
        errors: Mapping[int, Tensor],
        behind: Operator | None = None,
        fused: int = 0,
    ) -> Tensor:
        """E for the value of node `source`, (regions, entries), in float64 on the CPU.

        `between` are the affine nodes up to it; `sizes` has for each node before them the largest
        absolute values that it gives, `errors` its D, where that is not 0; (regions, entries) each.
        A log-softmax `behind` it adds what differences of its values may be off. `fused` is how
        often the entries of the fused map were rounded.
        """
        held = {node: self._leaf(node, size, errors.get(node)) for node, size in sizes.items()}
        is_safe = torch.stack([self._is_safe(each) for each in held.values()]).all(0)
        for index in between:
            node = self.graph.nodes[index]
            held[index] = self._through(node.operator, [held[i] for i in node.inputs])
            is_safe &= self._is_safe(held[index])
        arguments = held[source]
        error = self._total(arguments, fused)
        if isinstance(behind, LogSoftmax):
            reached = arguments.size + error
            error = error + self.of_logarithms(reached)
            # Differences to the largest entry must not overflow: two that do are equal.
            is_safe &= (2 * _flat(reached) < self._largest).all(1)
        return torch.where(is_safe[:, None], _flat(error) * GRANTED, torch.inf)

    def overflowing(self, between: tuple[int, ...], sizes: Mapping[int, Tensor]) -> str | None:
        """The name of the first of the affine nodes that may overflow; None if none can."""
        held = {node: self._leaf(node, size, None) for node, size in sizes.items()}
        for index in between:
            node = self.graph.nodes[index]
            held[index] = self._through(node.operator, [held[i] for i in node.inputs])
            if not bool(self._is_safe(held[index]).all()):
                return node.name
        return None

    def of_values(self, operator: Operator, arguments: Interval, values: Interval) -> Tensor | None:
        """D of a nonlinear operator, shaped as its values; None where it computes exactly.

        `arguments` and `values` are (regions, *shape), as the operator takes and gives them.
        """
        if not self.arithmetic.is_float:
            return None
        return operator.value_error(arguments, values, self.number, self.arithmetic.widening)

    def _through(self, operator: Operator, inputs: list[_NodeErrors]) -> _NodeErrors:
        sizes = [held.size for held in inputs]
        # Absolute values: an exact operator may hold constants that are no buffers.
        size = operator.magnitude(*sizes).abs()
        error = None
        if any(held.error is not None for held in inputs):
            given = [h.size * 0 if h.error is None else h.error for h in inputs]
            error = operator.linear_part(*given).abs() * (1 + OWN_ROUNDING)
        largest = torch.stack([_flat(held.peak).amax(1) for held in inputs]).amax(0)
        largest = largest.reshape(-1, *(1,) * (size.dim() - 1))
        # A factor that is below 1 may come later, or one that follows may come earlier.
        peak = torch.maximum(operator.reach(*(held.peak for held in inputs)).abs(), largest)
        peak, gain = peak * operator.gain, max(held.gain for held in inputs)
        roundings, summed = _joined(operator, inputs)
        narrowing = self._narrowing(operator)
        if narrowing == math.inf:
            peak = torch.full_like(peak, torch.inf)
        if not operator.is_exact:
            terms = operator.terms(sizes, size) + OPERATOR_EXTRA_TERMS
            gain *= _largest_factor(operator) * operator.gain
            # The operator's own constants too: a factor that underflows may meet a mean.
            met = _flat(peak).amax(1).reshape(largest.shape)
            own = (terms * self.smallest * gain) * met
            error = own.expand_as(size) if error is None else error + own
            size = size * (1 + OWN_ROUNDING)
            roundings, summed = roundings + terms, summed + terms
        narrowing += max(held.narrowing for held in inputs)
        return _NodeErrors(size, error, peak, gain, roundings, summed, narrowing)

    def _narrowing(self, operator: Operator) -> float:
        """What a factor loses in becoming a float32, relative; inf where it does not fit."""
        factor = operator.single_factor()
        if not factor or not self.arithmetic.is_float or self.number.unit == FLOAT32_ROUNDOFF:
            return 0.0
        smallest, largest = SINGLE_FACTORS
        if not smallest <= factor <= largest:
            return math.inf
        is_power_of_two = math.frexp(factor)[0] == 0.5
        roundings = 0 if is_power_of_two else SINGLE_FACTOR_ROUNDINGS
        return roundings * FLOAT32_ROUNDOFF * self.arithmetic.widening

    def _total(self, held: _NodeErrors, fused: int) -> Tensor:
        """How far a value may be off: what its sum rounds, there, here and where it is checked, and
        the errors that it is handed."""
        gamma = self._gamma(held)
        share = gamma + max(held.roundings, fused) * FUSING_ROUNDING + held.narrowing
        own = held.size * (share * (1 + OWN_ROUNDING) + GRANTED_SUMS)
        return own if held.error is None else own + held.error * (1 + gamma)

    def _gamma(self, held: _NodeErrors) -> float:
        """What a sum rounds, relative to the absolute values that it adds up."""
        rounding = held.roundings * self.unit
        return rounding / (1 - rounding) if rounding < 1 else math.inf

    def of_logarithms(self, arguments: Tensor) -> Tensor:
        """What differences of logarithms of a softmax of these have of each entry."""
        largest = _flat(arguments).amax(1)
        error = log_softmax_error(largest, arguments[0].numel(), self.unit)
        return error.reshape(-1, *(1,) * (arguments.dim() - 1))

    def _is_safe(self, held: _NodeErrors) -> Tensor:
        """For each region whether nothing that the value adds up can overflow; no NaN is safe."""
        return (_flat(held.peak) * (1 + self._gamma(held)) < self._largest).all(1)

    @property
    def _largest(self) -> float:
        """The number that nothing may reach, also in real arithmetic: exporters write the largest
        float where they mean that a Clip is open, and it is read so."""
        return min(LARGEST_BOUNDED[self.bounding], self.number.largest)

    def _leaf(self, node: int, size: Tensor, error: Tensor | None) -> _NodeErrors:
        """The value of a nonlinear node, or the input: factors that follow may come first."""
        held = self._shaped(node, size)
        own = None if error is None else self._shaped(node, error)
        summed = self.graph.nodes[node].operator.roundings
        return _NodeErrors(held, own, held.clamp_min(1.0), 1.0, summed=summed)

    def _shaped(self, node: int, entries: Tensor) -> Tensor:
        shape = (len(entries), *self.graph.nodes[node].shape)
        return entries.detach().to("cpu", torch.float64).reshape(shape)


def _flat(values: Tensor) -> Tensor:
    """One row for each region; values may be single numbers."""
    return values.reshape(len(values), -1)


@dataclass(frozen=True, slots=True, eq=False)
class _NodeErrors:
    """Of one node's value: the absolute values that it adds up, and the errors that it is handed.

    `peak` is the largest number on the way to it, and `gain` the largest number that something on
    the way may be multiplied with. `roundings` is how often each of the absolute values was rounded
    at most, and `summed` how often something that is added to the value may be: a runtime may add
    it first, and then all that the value itself is a sum of. `narrowing` is what its factors may
    have lost in becoming float32, relative.
    """

    size: Tensor
    error: Tensor | None
    peak: Tensor
    gain: float
    roundings: int = 0
    summed: int = 0
    narrowing: float = 0.0


def _largest_factor(operator: Operator) -> float:
    """The largest absolute value of the numbers that an operator multiplies with; at least 1."""
    factors = operator.factors()
    if factors is None or factors.numel() == 0:
        return 1.0
    return max(1.0, float(factors.abs().max()))


def _joined(operator: Operator, inputs: list[_NodeErrors]) -> tuple[int, int]:
    """`roundings` and `summed` of a value, before its own operator rounds."""
    roundings = max(held.roundings for held in inputs)
    if operator.is_exact:
        return roundings, max(held.summed for held in inputs)
    if operator.starts_sum:
        return roundings, 0
    summed = sum(held.summed for held in inputs)
    return max(held.roundings + summed - held.summed for held in inputs), summed
