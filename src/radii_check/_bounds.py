"""What is known of a network over regions of inputs: float errors, intervals, lines around curves.

A nonlinear node reads z = A(v) + e with |e| <= E, where v are the floats that earlier nonlinear
nodes gave. A sum whose terms are rounded n times at most, each, is off by gamma_n = n u / (1 - n u)
of the sum of the absolute values that it adds up, in whatever order. Both go on from operator to
operator, so that runtimes may fuse them. What underflows is off by the smallest normal number,
times what it may be multiplied with. Where the largest number on the way may overflow, nothing is
proven. docs/soundness.md of radii gives the reasons. Arrays are (entries, regions).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii_check._curves import curve_lines
from radii_check._format import Array, Certificate, hold, need, readable
from radii_check._network import CURVES, Affine, Network, Numbers, Unit, pushed

EXTRA_TERMS = 4
"""Roundings that every operator is granted beyond its sum: bias, alpha, beta, a folded factor."""
OWN_ROUNDING = 2.0**-30
"""What sums of absolute values may be off themselves, relative, in float64."""
NARROWED, SINGLE_FACTORS = 3 * 2.0**-24, (2.0**-40, 2.0**40)
"""In files of float64, runtimes round a factor of all entries to float32, up to three times."""
MEASURED, DOUBLE_ULPS = {"Sigmoid": 3.0, "Tanh": 5.5, "Softmax": 3.5}, 32.0
"""Errors of ONNX Runtime's kernels, over all numbers of float32, in units of 2^-24. Twice that
counts; in float64 it is so many of its units."""
LARGEST = 2.0**300
"""Beyond, this checker's own arithmetic might underflow."""
BISECTIONS, SMALLEST_PRICE = 28, 2.0**-300


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Boxes, (inputs, regions) each side, and balls of one norm within them, if that is no box.

    A ball in L1 or L2 is bounded by a price on the length of a step from its centre. Every price
    gives a lower bound, so that it may be found in floating point, whatever that rounds.
    """

    low: Array
    high: Array
    norm: str
    centre: Array
    eps: Array

    @classmethod
    def of(cls, certificate: Certificate, eps: Array, num: Numbers) -> Regions:
        """The claim's region with each eps, rounded outward."""
        arrays, norm, few = certificate.arrays, certificate.claim["norm"], 4 * num.unit
        low, high = (num.array(arrays[name])[:, None] + 0 * eps for name in ("low", "high"))
        centre = num.array(arrays.get("input", arrays["low"]))[:, None]
        if norm != "box":
            scale = num.array(arrays.get("scale", np.ones(len(low))))[:, None]
            reach = num.array(eps) * scale * (1 + few)
            below, above = centre - reach, centre + reach
            low = num.maximum(low, below - few * abs(below))
            high = num.minimum(high, above + few * abs(above))
        need(low <= high, "its region is empty")
        return cls(low, high, norm, centre, num.array(eps))

    def within(self, low: Array, high: Array, num: Numbers) -> tuple[Array, Regions]:
        """Of boxes (inputs, boxes) those that this one region reaches into, and its parts there."""
        is_empty = np.asarray(low > high, bool).any(0)
        if self.norm in ("l1", "l2"):
            far = num.maximum(num.maximum(low - self.centre, self.centre - high), 0.0) / self.eps
            length = (far if self.norm == "l1" else far * far).sum(0)
            is_empty |= num.below(length * (1 - 4 * (len(far) + 8) * num.unit)) > 1
        kept = np.flatnonzero(~is_empty)
        eps = np.repeat(self.eps, len(kept))
        return kept, Regions(low[:, kept], high[:, kept], self.norm, self.centre, eps)

    def least(self, num: Numbers, held: Held, at: Array, c: Array, region: Any) -> tuple[Any, Any]:
        """The least values of rows of coefficients (inputs, rows) on inputs, which are `held`, and
        the sums of the absolute values that they add up."""
        middle, radius, size = (x[at][:, region] for x in (held.centre, held.radius, held.size))
        values = num.weighted(c, middle) - num.weighted(abs(c), radius)
        sizes = num.weighted(abs(c), size)
        if self.norm not in ("l1", "l2"):
            return values, sizes
        low, high = self.low[at][:, region], self.high[at][:, region]
        centre, eps, few = self.centre[at], self.eps[region], 1 + 4 * num.unit
        down, up = num.minimum(low - centre, 0.0) * few, num.maximum(high - centre, 0.0) * few
        price = self.price(*(num.below(x) for x in (c, down, up, eps)))
        if self.norm == "l1":
            reach = num.maximum(abs(down) * (c > 0), up * (c <= 0))
            steps, budget = -num.maximum(abs(c) - price, 0.0) * reach, price * eps
        else:  # a step that is off by some units changes the sum by their square
            step = num.minimum(num.maximum(-c / (2 * price), down), up)
            steps, budget = c * step + price * step * step, price * eps * eps
        better = (c * centre + steps).sum(0) - budget
        more = (abs(c * centre) + abs(c) * num.maximum(abs(down), up)).sum(0) + 2 * budget
        return num.maximum(values, better), sizes + more

    def price(self, c: Array, down: Array, up: Array, eps: Array) -> Array:
        """For each row of coefficients a price that makes the bound large."""
        if self.norm == "l1":  # the slope of the last input that the budget reaches
            order = np.argsort(-abs(c), axis=0)
            reach = np.take_along_axis(np.where(c > 0, -down, up), order, axis=0)
            is_over = np.cumsum(reach, axis=0) >= eps
            last = np.take_along_axis(abs(c), order, axis=0)[is_over.argmax(0), range(c.shape[1])]
            return np.where(is_over.any(0), last, 0.0)
        high = np.where(eps > 0, np.linalg.norm(c, axis=0) / np.where(eps > 0, 2 * eps, 1.0), 1.0)
        low = np.zeros_like(high)
        for _ in range(BISECTIONS):
            middle = np.maximum((low + high) / 2, SMALLEST_PRICE)
            is_long = np.linalg.norm(np.clip(-c / (2 * middle), down, up), axis=0) > eps
            low, high = np.where(is_long, middle, low), np.where(is_long, high, middle)
        return np.maximum(high, SMALLEST_PRICE)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Of one value: a ball that it lies in; the absolute values that it adds up, the errors that it
    is handed, the largest numbers on the way, and the largest number that something may be
    multiplied with; how often its terms are `rounded`, and how often that which is added to it may
    be (`summed`); what factors lose in becoming float32; and how often this checker itself rounds
    (`steps`)."""

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


class Bounds:
    """Over some regions; `widening` is 0 in real arithmetic. `lower` and `upper` bound units.

    By the node that reads it, `loss` is what a coefficient of 1 on a value may lose: E, and what
    this checker rounds, which is at most some units of |a| |A| |v|. `reach` bounds what is read.
    """

    def __init__(self, network: Network, regions: Regions, widening: float, num: Numbers) -> None:
        why = "which every runtime may round differently: nothing is proven for floating point"
        is_plain = not (widening and network.rounded)
        readable(is_plain, f"the network computes constants by its node {network.rounded}, {why}")
        kind = np.finfo(np.float32 if network.is_single else np.float64)
        self.network, self.regions, self.num, self.widening = network, regions, num, widening
        self.unit = num.array(float(kind.eps) / 2 * widening)[()]
        self.smallest = num.array(float(kind.tiny))[()] * widening
        self.largest = min(LARGEST, 0.99 * float(kind.max))  # also of numbers: clips end there
        self.readers = Counter(source for node in network.nodes for source in node.inputs)
        self.held, self.curves = dict[int, Held](), dict[int, Any]()
        self.low, self.high, self.loss, self.reach = (dict[int, Array]() for _ in range(4))
        shape = network.units, regions.low.shape[1]
        self.lower, self.upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        self.leaf(0, regions.low, regions.high)

    def forward(self, tighten: Callable[[Unit, Array, Array], None]) -> None:
        """Node by node; `tighten` is given one with units, and what intervals say of them."""
        for number, node in enumerate(self.network.nodes):
            if isinstance(node, Affine):
                self.held[number] = self.affine(number, node, [self.held[i] for i in node.inputs])
            elif number:
                low, high = self.values(number, node, tighten)
                size = self.num.maximum(abs(low), abs(high))
                self.leaf(number, low, high, self.value_error(node.kind, size))
        self.argument(len(self.network.nodes), self.network.output)

    def leaf(self, number: int, low: Array, high: Array, error: Any = 0.0) -> None:
        """The input, or the value of a nonlinear node, which a runtime may have off by `error`."""
        low, high, num = low - error, high + error, self.num
        centre, size = low / 2 + high / 2, num.maximum(abs(low), abs(high))
        radius = num.maximum(high - centre, centre - low) * (1 + 4 * num.unit)
        peak, steps = num.maximum(size, 1.0), self.readers[number]  # coefficients are added up here
        held = Held(centre, radius, size, error + 0.0 * size, peak, steps=steps)
        self.low[number], self.high[number], self.held[number] = low, high, self.safe(held)

    def affine(self, number: int, node: Affine, inputs: Sequence[Held]) -> Held:
        """The value of an affine node."""

        def total(name: str, added: Any = 0.0, absolute: bool = True) -> Any:
            pairs = zip(node.maps, inputs, strict=True)
            parts = (pushed(maps, self.num, getattr(h, name), absolute) for maps, h in pairs)
            return sum(parts, start=added)

        offset = node.offset[:, None]
        added = abs(offset) if node.added is None else node.added[:, None]
        centre, radius, size = total("centre", offset, False), total("radius"), total("size", added)
        error, highest = total("error"), np.concatenate([h.peak for h in inputs]).max(0)
        error = error * (1 + OWN_ROUNDING)
        peak = self.num.maximum(total("peak", added), highest) * node.gain
        names = ("gain", "rounded", "summed", "narrowed", "steps")
        gain, rounded, summed, narrowed, steps = (max(getattr(h, n) for h in inputs) for n in names)
        steps += max(sum(each.terms for each in maps) for maps in node.maps)
        steps += len(inputs) + self.readers[number] + EXTRA_TERMS
        if node.terms:
            own = node.terms + EXTRA_TERMS
            before = 0 if node.starts_sum else sum(h.summed for h in inputs)
            rounded = own + max(h.rounded + max(0, before - h.summed) for h in inputs)
            summed, narrowed = before + own, narrowed + self.narrowing(node.single)
            gain = gain * node.factor * node.gain
            error = error + own * self.smallest * gain * peak.max(0)
            size = size * (1 + OWN_ROUNDING)
        found = (gain, rounded, summed, narrowed, steps)
        return self.safe(Held(centre, radius, size, error, peak, *found))

    def narrowing(self, factor: float) -> float:
        if not factor or self.network.is_single or not self.widening:
            return 0.0
        low, high = SINGLE_FACTORS
        hold(low <= factor <= high, "a factor of the network does not fit into float32")
        return 0.0 if math.frexp(factor)[0] == 0.5 else NARROWED * self.widening

    def gamma(self, held: Held) -> Any:
        share = held.rounded * self.unit
        hold(share < 1, "the network adds up too many numbers for its number type")
        return share / (1 - share)

    def safe(self, held: Held) -> Held:
        reached = held.peak * (1 + self.gamma(held))
        hold(reached < self.largest, "a value of the network may overflow: nothing is proven")
        return held

    def error(self, held: Held) -> Array:
        """E of what reads this value."""
        gamma = self.gamma(held)
        own = held.size * ((gamma + held.narrowed) * (1 + OWN_ROUNDING))
        return np.asarray(own + held.error * (1 + gamma))

    def value_error(self, kind: str, size: Array) -> Any:
        """How far a runtime's values of a nonlinear node may be off."""
        if kind in CURVES:
            return kernel_error(kind, self.network.is_single) * self.unit
        return size * (2 * self.unit) + self.smallest if kind == "Leaky" else 0.0

    def argument(self, reader: int, source: int) -> tuple[Array, Array]:
        """Intervals for what a node reads, and what it loses."""
        held = self.held[source]
        error = self.error(held)
        if reader == len(self.network.nodes) and self.network.behind == "LogSoftmax":
            reached = held.size + error
            hold(2 * reached < self.largest, "a difference of outputs may overflow")
            error = error + self.unit * (4 * reached.max(0) + math.log(len(reached)) + 2)
        loss = error + (2 * held.steps + 8) * self.num.unit * held.size
        self.loss[reader], self.reach[reader] = loss, held.size + loss
        return held.centre - held.radius - loss, held.centre + held.radius + loss

    def values(
        self, number: int, node: Unit, tighten: Callable[[Unit, Array, Array], None]
    ) -> tuple[Array, Array]:
        """Intervals for the values of a node that is not affine."""
        num, mine = self.num, node.units
        low, high = self.argument(number, node.inputs[0])
        if mine.stop > mine.start:
            tighten(node, low, high)
            low, high = num.maximum(low, self.lower[mine]), num.minimum(high, self.upper[mine])
            if node.kind == "Relu":
                return num.maximum(low, 0.0), num.maximum(high, 0.0)
            self.curves[number], low, high = curve_lines(node.kind, low, high, num)
            return low, high
        readable(node.kind in ("Held", "Leaky"), f"operator {node.kind} cannot be checked here")
        if node.function is not None:
            low, high = self.low[node.read].copy(), self.high[node.read].copy()
            for unit, index, knee in node.told:
                mine = slice(unit, unit + len(index))
                below, above = (num.array(x[mine]) + knee for x in (self.lower, self.upper))
                np.maximum.at(low, index, self.outward(below, -1))
                np.minimum.at(high, index, self.outward(above, 1))
            points = low, high, num.minimum(num.maximum(low, 0.0), high)
            one, two, three = (node.function(point) for point in points)
            low = self.outward(num.minimum(num.minimum(one, two), three), -1)
            return low, self.outward(num.maximum(num.maximum(one, two), three), 1)
        return low, high

    def outward(self, x: Array, sign: int) -> Array:
        """Down or up by some units in the last place."""
        return x if self.num.exact else np.asarray(x + sign * 8 * self.num.unit * abs(x))


def kernel_error(kind: str, is_single: bool) -> float:
    """What a runtime's elementary function may be off, in units of the number type."""
    return 2 * MEASURED[kind] if is_single else DOUBLE_ULPS
