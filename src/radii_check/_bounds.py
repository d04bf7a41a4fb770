"""The forward pass: intervals for every node over some regions, and what each reading loses.

Intervals come from enclosures of the values (see `_enclosures.py`), intersected with the bounds of
units that are known from elsewhere. The backward pass (`_rows.py`) then needs, for each node that
reads a value, by how much one coefficient on that reading may be wrong: its `loss`. All arrays are
(entries, regions).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from radii_check._curves import CurveLines
from radii_check._enclosures import Enclosure, ErrorModel
from radii_check._errors import require, require_readable
from radii_check._format import Array
from radii_check._network import Affine, Network, Unit
from radii_check._numbers import Numbers
from radii_check._regions import Regions

Tighten = Callable[[Unit, Array, Array], None]
"""Given a node with units, and what intervals say of their arguments, below and above."""


class Bounds:
    """What is known over some regions; `widening` is 0 in real arithmetic.

    lower, upper    float64 bounds of the arguments of all units, (units, regions); whoever makes
                    this object sets them, at the latest in `tighten`
    enclosures      by node: its value
    low, high       by nonlinear node: an interval for its value
    loss            by the node that reads a value: E, and what this checker itself rounds
    reach           by the node that reads a value: the largest absolute value that it may read
    lines           by node of smooth units: lines below and above the curve
    reached         by node of smooth units: the largest absolute value of an argument
    """

    def __init__(self, network: Network, regions: Regions, widening: float, num: Numbers) -> None:
        why = "which every runtime may round differently: nothing is proven for floating point"
        is_rounded_alike = not (widening and network.rounded_constant)
        constants = f"the network computes constants by its node {network.rounded_constant}, {why}"
        require_readable(is_rounded_alike, constants)
        self.network, self.regions, self.num = network, regions, num
        self.errors = ErrorModel(network.is_single, widening, num)
        self.readers = Counter(source for node in network.nodes for source in node.inputs)
        self.enclosures = dict[int, Enclosure]()
        self.low, self.high = dict[int, Array](), dict[int, Array]()
        self.loss, self.reach = dict[int, Array](), dict[int, Array]()
        self.lines = dict[int, CurveLines]()
        self.reached = dict[int, Array]()
        shape = network.units, regions.low.shape[1]
        self.lower, self.upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        self.set_value(0, regions.low, regions.high)

    @property
    def end(self) -> int:
        """Stands for whoever reads the output, behind all nodes."""
        return len(self.network.nodes)

    def forward(self, tighten: Tighten) -> None:
        """All nodes in order; `tighten` is called for each node with units before it is used."""
        for number, node in enumerate(self.network.nodes):
            if isinstance(node, Affine):
                inputs = [self.enclosures[source] for source in node.inputs]
                enclosure = self.errors.affine(node, inputs, self.readers[number])
                self.enclosures[number] = enclosure
            elif number:
                low, high = self.value_interval(number, node, tighten)
                size = self.num.maximum(abs(low), abs(high))
                error = self.errors.value_error(node, size, self.reached.get(number, 0.0))
                self.set_value(number, low, high, error)
        self.argument_interval(self.end, self.network.output)

    def set_value(self, number: int, low: Array, high: Array, error: Array | float = 0.0) -> None:
        """The input, or the value of a nonlinear node, which a runtime may have off by `error`."""
        low, high = low - error, high + error
        self.low[number], self.high[number] = low, high
        self.enclosures[number] = self.errors.leaf(low, high, error, self.readers[number])

    def argument_interval(self, reader: int, source: int) -> tuple[Array, Array]:
        """An interval for what `reader` reads of `source`, floats included; sets loss and reach.

        A coefficient c on a reading loses |c| E. And the coefficients that come to it, W^T c, are
        rounded by this checker: by at most `steps` units of |c| |W| |v| on each of two ways.
        """
        value = self.enclosures[source]
        error = self.errors.argument_error(value)
        if reader == self.end and self.network.removed == "LogSoftmax":
            error = error + self._log_softmax_error(value.size + error)
        own_rounding = (2 * value.steps + 8) * self.num.unit * value.size
        loss = error + own_rounding
        self.loss[reader], self.reach[reader] = loss, value.size + loss
        return value.centre - value.radius - loss, value.centre + value.radius + loss

    def _log_softmax_error(self, reached: Array) -> Array:
        """What a removed log-softmax rounds in comparisons of its outputs.

        Output i is (z_i - m) - log(sum) with the largest argument m. What the sum and its logarithm
        are off is the same for all outputs; the two differences are rounded for each, by u times at
        most 2 |z| and 2 |z| + log n.
        """
        overflow = "a difference of outputs may overflow"
        require(2 * reached < self.errors.largest, overflow)
        rounded = 4 * reached.max(0) + math.log(len(reached)) + 2
        return np.asarray(self.errors.unit * rounded)

    def value_interval(self, number: int, node: Unit, tighten: Tighten) -> tuple[Array, Array]:
        """An interval for the exact value of a nonlinear node of the floats that it reads."""
        num = self.num
        low, high = self.argument_interval(number, node.inputs[0])
        if node.has_units:
            tighten(node, low, high)
            units = node.units
            low, high = num.maximum(low, self.lower[units]), num.minimum(high, self.upper[units])
            if node.kind == "Relu":
                return num.maximum(low, 0.0), num.maximum(high, 0.0)
            assert node.curve is not None
            lines = node.curve.lines(low, high, num)
            self.reached[number] = num.maximum(abs(low), abs(high))
            self.lines[number] = lines
            return lines.low, lines.high
        is_copy = node.kind in ("Copy", "Leaky")
        require_readable(is_copy, f"operator {node.kind} cannot be checked here")
        return (low, high) if node.function is None else self._function_interval(node)

    def _function_interval(self, node: Unit) -> tuple[Array, Array]:
        """The range of a piecewise-linear function, from that of its argument z.

        Each unit's bounds l <= z - knee <= u give l + knee <= z <= u + knee. The functions are
        monotone, or bend once at 0: their extreme values are at the ends or at 0.
        """
        num, function = self.num, node.function
        assert function is not None
        low, high = self.low[node.read].copy(), self.high[node.read].copy()
        for piece in node.unit_arguments:
            units = slice(piece.first, piece.first + len(piece.entries))
            below = num.array(self.lower[units]) + piece.knee
            above = num.array(self.upper[units]) + piece.knee
            np.maximum.at(low, piece.entries, num.outward(below, -1))
            np.minimum.at(high, piece.entries, num.outward(above, 1))
        points = low, high, num.minimum(num.maximum(low, 0.0), high)
        at_low, at_high, at_zero = (function(point) for point in points)
        least = num.minimum(num.minimum(at_low, at_high), at_zero)
        most = num.maximum(num.maximum(at_low, at_high), at_zero)
        return num.outward(least, -1), num.outward(most, 1)
