"""What is known of a node's value over a region, and the error model of floating point.

A nonlinear node reads z = A(v) + e with |e| <= E, where v are the floats that earlier nonlinear
nodes gave. A sum whose terms are rounded at most n times each is off by at most

    gamma_n * (the sum of the absolute values that it adds up),    gamma_n = n u / (1 - n u),

in any order of summation, with or without fused multiply-add (Higham, Accuracy and Stability of
Numerical Algorithms, chapters 3 and 4). u is 2^-24 for float32 and 2^-53 for float64, times the
claim's widening. The n and the absolute values of one affine node go on into the next, so that
runtimes may fuse the two. A result that underflows is off by at most the smallest normal number,
times what it may be multiplied with. Where the largest number on the way may overflow, nothing is
proven. In `real` arithmetic u is 0, and so is E. docs/soundness.md of radii gives the reasons.

All arrays are (entries, regions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii_check._errors import require
from radii_check._format import Array
from radii_check._linear_maps import apply_chain
from radii_check._network import Affine, Unit
from radii_check._numbers import Numbers

EXTRA_TERMS = 4
"""Roundings that every operator is granted beyond its sum: bias, alpha, beta, a folded factor."""
OWN_ROUNDING = 2.0**-30
"""What this checker's sums of absolute values may be off themselves, relative, in float64."""
NARROWING = 3 * 2.0**-24
"""In files of float64, runtimes round a factor of all entries to float32, up to three times."""
NARROWED_FACTORS = (2.0**-40, 2.0**40)
"""The factors for which that neither underflows nor overflows."""
LARGEST = 2.0**300
"""Beyond this, the checker's own arithmetic might underflow or overflow."""
LARGEST_SHARE = 0.99
"""Of the largest number of the network's type: a clip at that very number means an open side."""


@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """The values of one node over the regions, and what rounding may add to them.

    centre, radius   a ball that holds the value in real arithmetic
    size             the sum of absolute values that it adds up, to which rounding is proportional
    error            what the rounding of earlier nonlinear values may change of it
    peak             the largest absolute value of any number on the way to it
    gain             the largest number that an underflow on the way may be multiplied with
    rounded          how often a term of its sum is rounded at most: the n of gamma_n
    summed           of these, how often in sums that a sum with this value may be fused with
    narrowed         relative errors of factors that runtimes round to float32
    steps            how often this checker itself rounds a term
    """

    centre: Array
    radius: Array
    size: Array
    error: Array
    peak: Array
    gain: Any = 1.0
    rounded: int = 0
    summed: int = 0
    narrowed: float = 0.0
    steps: int = 0


class ErrorModel:
    """How far floats may be off, for a network in float32 (`is_single`) or float64."""

    def __init__(self, is_single: bool, widening: float, num: Numbers) -> None:
        kind = np.finfo(np.float32 if is_single else np.float64)
        self.num, self.is_single, self.widening = num, is_single, widening
        self.unit = num.array(float(kind.eps) / 2 * widening)[()]
        self.smallest = num.array(float(kind.tiny))[()] * widening
        self.largest = min(LARGEST, LARGEST_SHARE * float(kind.max))

    def gamma(self, value: Enclosure) -> Any:
        """gamma_n = n u / (1 - n u) for a value that is rounded n times."""
        share = value.rounded * self.unit
        require(share < 1, "the network adds up too many numbers for its number type")
        return share / (1 - share)

    def argument_error(self, value: Enclosure) -> Array:
        """E of a node that reads this value: gamma_n size + (1 + gamma_n) error."""
        gamma = self.gamma(value)
        own_error = value.size * ((gamma + value.narrowed) * (1 + OWN_ROUNDING))
        return np.asarray(own_error + value.error * (1 + gamma))

    def value_error(self, node: Unit, size: Array, reached: Array | float = 0.0) -> Any:
        """How far a runtime's value of a nonlinear node may be off the exact function of what it
        reads, which is at most `reached`; the value is at most `size`."""
        if node.curve is not None:
            return node.curve.error(reached, size, self.unit, self.smallest, self.is_single)
        return size * (2 * self.unit) + self.smallest if node.kind == "Leaky" else 0.0

    def narrowing(self, factor: float) -> float:
        """The relative error of a factor of all entries that is stored in float64, as runtimes may
        round it to float32; powers of two are exact there."""
        if not factor or self.is_single or not self.widening:
            return 0.0
        low, high = NARROWED_FACTORS
        require(low <= factor <= high, "a factor of the network does not fit into float32")
        is_power_of_two = math.frexp(factor)[0] == 0.5
        return 0.0 if is_power_of_two else NARROWING * self.widening

    def without_overflow(self, value: Enclosure) -> Enclosure:
        """The same value, once no number on the way to it can overflow."""
        reached = value.peak * (1 + self.gamma(value))
        overflow = "a value of the network may overflow: nothing is proven"
        require(reached < self.largest, overflow)
        return value

    def leaf(self, low: Array, high: Array, error: Any, readers: int) -> Enclosure:
        """The input, or the value of a nonlinear node, between `low` and `high`; `readers` nodes
        read it, so that the backward pass adds up as many coefficients on it."""
        num = self.num
        centre = low / 2 + high / 2
        size = num.maximum(abs(low), abs(high))
        radius = num.maximum(high - centre, centre - low) * (1 + 4 * num.unit)
        peak = num.maximum(size, 1.0)
        error = error + 0.0 * size
        return self.without_overflow(Enclosure(centre, radius, size, error, peak, steps=readers))

    def affine(self, node: Affine, inputs: Sequence[Enclosure], readers: int) -> Enclosure:
        """The value of an affine node, sum over i of W_i v_i + b:

        centre = sum W_i centre_i + b      radius = sum |W_i| radius_i
        size = sum |W_i| size_i + |b|      error = sum |W_i| error_i + underflow
        """

        def transformed(field: str, start: Any = 0.0, absolute: bool = True) -> Any:
            pairs = zip(node.maps, inputs, strict=True)
            parts = (apply_chain(maps, self.num, getattr(h, field), absolute) for maps, h in pairs)
            return sum(parts, start=start)

        offset = node.offset[:, None]
        offset_size = abs(offset) if node.added is None else node.added[:, None]
        centre = transformed("centre", offset, absolute=False)
        radius = transformed("radius")
        size = transformed("size", offset_size)
        error = transformed("error") * (1 + OWN_ROUNDING)
        highest_input = np.concatenate([value.peak for value in inputs]).max(0)
        peak = self.num.maximum(transformed("peak", offset_size), highest_input) * node.gain

        gain = max(value.gain for value in inputs)
        rounded = max(value.rounded for value in inputs)
        summed = max(value.summed for value in inputs)
        narrowed = max(value.narrowed for value in inputs)
        steps = max(value.steps for value in inputs)
        steps += max(sum(linear_map.terms for linear_map in chain) for chain in node.maps)
        steps += len(inputs) + readers + EXTRA_TERMS
        if node.terms:
            own_terms = node.terms + EXTRA_TERMS
            fused = 0 if node.starts_sum else sum(value.summed for value in inputs)
            # A term of one input is also rounded as often as what the other inputs are sums of.
            others = (value.rounded + max(0, fused - value.summed) for value in inputs)
            rounded = own_terms + max(others)
            summed = fused + own_terms
            narrowed = narrowed + self.narrowing(node.single)
            gain = gain * node.factor * node.gain
            error = error + own_terms * self.smallest * gain * peak.max(0)
            size = size * (1 + OWN_ROUNDING)
        account = (gain, rounded, summed, narrowed, steps)
        return self.without_overflow(Enclosure(centre, radius, size, error, peak, *account))
