"""The backward pass: a lower bound of each row over its region.

This is CROWN (Zhang et al., 2018; DeepPoly of Singh et al., 2019, is the same bound); where the
certificate states the slopes, which somebody optimised, it is alpha-CROWN (Xu et al., 2021). Going
from the output to the input, a coefficient on a value becomes coefficients on what that node reads:

    affine node     c becomes W^T c, and c b is added to the bound
    open ReLU       c becomes a with c max(0, z) >= a z + constant for l <= z <= u
    other ReLUs     c if l >= 0 (and u > 0), else 0
    smooth unit     the slope of a line below if c > 0, above if c < 0, with that line's offset
    any reading     loses |c| times the loss of the node that reads (see `_bounds.py`)

At the input the least value over the region is taken. Coefficients are exact numbers at every node:
what rounding changed of them is part of the losses.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from radii_check import _rows
from radii_check._bounds import Bounds
from radii_check._format import Array
from radii_check._linear_maps import add_up_places, apply_chain_backward
from radii_check._network import Affine, Unit
from radii_check._rows import SLOPE_STEPS, Rows

ROUND_UP = 1 + 2.0**-30
"""Losses are sums of float64 themselves, which are off by less than this."""


class ReluLines(Enum):
    """The lines between which a ReLU's value lies.

    STATED      of open units the stated slope and the chord; other units are linear
    FLAT        of open units 0 and u; other units are linear
    CONSTANT    of all units max(0, l) and max(0, u): intervals, but over joined affine nodes
    """

    STATED = "stated"
    FLAT = "flat"
    CONSTANT = "constant"


class BackwardPass:
    """Rows on their way to the input.

    coefficients   by node: places and coefficients (places, rows) on its value, summed so far
    total          (rows): the sum of all constants so far, the later bound
    size           (rows): the sum of their absolute values, and `additions` how many there were
    lost           (rows): what has to be subtracted in the end
    failed         (rows): nothing is known, since an open unit without bounds has a coefficient
    """

    def __init__(
        self,
        bounds: Bounds,
        violations: tuple[Array, Array],
        rows: Rows,
        lines: ReluLines = ReluLines.STATED,
    ) -> None:
        self.bounds, self.num, self.network = bounds, bounds.num, bounds.network
        self.rows, self.lines = rows, lines
        self.coefficients = dict[int, tuple[Array, Array]]()
        self.total, self.size, self.lost = (self.num.array(np.zeros(rows.count)) for _ in range(3))
        self.additions = 0
        self.failed = np.zeros(rows.count, bool)
        first = rows.regions[0]
        has_one_region = (rows.regions == first).all()
        self.columns: Any = slice(first, first + 1) if has_one_region else rows.regions
        self.start_from_violations(*violations)

    def lower_bounds(self) -> Array:
        """Lower bounds of the rows, as float64; -inf where nothing is known."""
        for number in range(len(self.network.nodes) - 1, 0, -1):
            node = self.network.nodes[number]
            if isinstance(node, Unit):
                self.through_nonlinear(number, node)
            elif number in self.coefficients:
                self.through_affine(node, *self.coefficients.pop(number))
        self.over_input()
        bound = self.num.floor(self.total - self.lost * ROUND_UP - _rows.UNDERFLOW)
        return np.where(self.failed, -np.inf, bound)

    def start_from_violations(self, matrix: Array, offset: Array) -> None:
        """sum of gamma_j (M_j y + o_j) as the constant gamma o and the coefficients M^T gamma."""
        num, end, on_violations = self.num, self.bounds.end, self.rows.on_violations
        used, position = np.unique(on_violations.index, return_inverse=True)
        if not len(used):
            return
        matrix, offset = matrix[used], offset[used]
        gamma = np.zeros((len(used), self.rows.count))
        gamma[position, on_violations.row] = on_violations.weight
        counts, gamma = (gamma != 0).sum(0), num.array(gamma)
        self.total = num.dot(offset[None], gamma)[0]
        self.size = abs(self.total)
        largest_outputs = self.bounds.reach[end][:, self.columns]
        row_sizes = num.dot(abs(matrix), largest_outputs) + abs(offset)[:, None]
        self.lost = 4 * (counts + 2) * num.unit * (row_sizes * gamma).sum(0)
        on_outputs = num.dot(matrix.T, gamma)
        at = np.flatnonzero(~(on_outputs == 0).all(1))  # of balls: all but those that are 0
        self.read(end, self.network.output, at, on_outputs[at])

    # Coefficients and losses.

    def accumulate(self, number: int, at: Array, c: Array) -> None:
        """Add coefficients on the value of a node to those that are there."""
        if number in self.coefficients:
            present_at, present = self.coefficients[number]
            if np.array_equal(present_at, at):
                c = present + c
            else:
                at, c = np.concatenate([present_at, at]), np.concatenate([present, c])
        self.coefficients[number] = add_up_places(at, c)

    def read(self, reader: int, source: int, at: Array, c: Array) -> None:
        """From what `reader` reads, z = v + e with |e| <= loss, to the value v of `source`."""
        if len(at):
            self.subtract_loss(c, self.bounds.loss[reader][at])
            self.accumulate(source, at, c)

    def subtract_loss(self, c: Array, loss: Array) -> None:
        """sum |c_i| loss_i, where `loss` is (places, regions)."""
        self.lost = self.lost + self.num.weighted_sums(abs(c), loss[:, self.columns])

    def add_constant(self, constant: Array) -> None:
        self.total, self.size = self.total + constant, self.size + abs(constant)
        self.additions += 1

    def exact_coefficients(self, number: int) -> tuple[Array, Array]:
        """The coefficients on a node's value, as exact numbers: of balls the midpoints, where the
        radii are lost times the largest value."""
        nothing = np.zeros(0, int), np.zeros((0, self.rows.count))
        at, c = self.coefficients.pop(number, nothing)
        c, radius = self.num.midpoints(c)
        if radius is not None and len(at):
            self.subtract_loss(radius, self.bounds.enclosures[number].size[at])
        return at, c

    # From node to node.

    def through_affine(self, node: Affine, at: Array, c: Array) -> None:
        """c (sum of W_i v_i + b) = sum of (W_i^T c) v_i + c b."""
        self.add_constant(node.offset[at] @ c)
        offset_size = abs(node.offset[at]) @ abs(c)
        self.lost = self.lost + 2 * len(at) * self.num.unit * offset_size
        for source, chain in zip(node.inputs, node.maps, strict=True):
            self.accumulate(source, *apply_chain_backward(chain, self.num, at, c))

    def through_nonlinear(self, number: int, node: Unit) -> None:
        """From a node's value to the value that it reads."""
        at, c = self.exact_coefficients(number)
        if node.has_units:
            at, c = self.through_units(number, node, at, c)
        self.read(number, node.inputs[0], at, c)

    def through_units(self, number: int, node: Unit, at: Array, c: Array) -> tuple[Array, Array]:
        """Coefficients on values of units as ones on their arguments; and the rows' own terms on
        these arguments, which begin here."""
        own = self.rows.on_units.among(node.units)
        weight = self.num.array(own.weight)
        places = np.union1d(at, own.index)
        if not len(places):
            return at, c
        on_arguments = np.zeros((len(places), self.rows.count), c.dtype)
        on_arguments[np.searchsorted(places, at)] = c
        if len(at) and node.kind == "Relu":
            on_arguments = self.through_relus(on_arguments, node.units.start + places)
        elif len(at):
            on_arguments = self.through_curves(on_arguments, number, places)
        entry = np.searchsorted(places, own.index), own.row
        np.add.at(on_arguments, entry, weight)
        largest = self.bounds.reach[number][own.index, self.rows.regions[own.row]]
        sizes = (abs(weight) + abs(on_arguments[entry])) * largest
        rounded = 4 * (len(own.index) + 4) * self.num.unit * sizes
        np.add.at(self.lost, own.row, rounded)
        return places, on_arguments

    def through_relus(self, c: Array, units: Array) -> Array:
        """Coefficients on max(0, z) as ones on z, for units in any state.

        An open unit's c becomes c times the stated slope if c > 0, and c times the chord's slope
        u / (u - l) if c < 0. For whatever number `a` this gives,

            c max(0, z) - a z >= min(0, -a l, (c - a) u)    for l <= z <= u,

        since the left side is piecewise linear with values -a l, 0 and (c - a) u at l, 0 and u.
        """
        num, rows = self.num, self.rows
        lower, upper, slopes = rows.lower[units], rows.upper[units], rows.slopes[units]
        is_on = (upper > 0) & (lower >= 0)
        is_open = (upper > 0) & (lower < 0)
        if self.lines is ReluLines.CONSTANT:
            is_constant = is_on & np.isfinite(upper)
            self.add_least(c, np.where(is_constant, lower, 0.0), np.where(is_constant, upper, 0.0))
            is_on &= ~is_constant
        on_arguments = c * is_on

        some_open = np.flatnonzero(is_open.any(1))
        c, is_open = c[some_open], is_open[some_open]
        lower, upper = lower[some_open], upper[some_open]
        is_unbounded = is_open & ~np.isfinite(upper - lower)
        self.failed |= (is_unbounded & (c != 0)).any(0)
        is_open &= ~is_unbounded
        low, high = np.where(is_open, lower, 0.0), np.where(is_open, upper, 0.0)

        steepness = 1.0 if self.lines is ReluLines.STATED else 0.0
        slope_below = steepness * slopes[some_open] / SLOPE_STEPS
        slope_above = steepness * high / np.where(is_open, high - low, 1.0)
        a, _ = num.midpoints(c * np.where(c > 0, slope_below, slope_above))
        on_arguments[some_open] = np.where(is_open, a, on_arguments[some_open])

        least = num.minimum(num.minimum(-a * low, (c - a) * high), 0.0)
        constant = least.sum(0)
        self.add_constant(constant)
        self.lost = self.lost + 2 * (len(some_open) + 4) * num.unit * abs(constant)
        return np.asarray(on_arguments)

    def add_least(self, c: Array, low: Array, high: Array) -> None:
        """sum c_i z_i >= sum min(c_i low_i, c_i high_i) for low <= z <= high, as a constant."""
        least = self.num.minimum(c * low, c * high)
        self.add_constant(least.sum(0))
        self.lost = self.lost + 2 * (len(c) + 4) * self.num.unit * abs(least).sum(0)

    def through_curves(self, c: Array, number: int, places: Array) -> Array:
        """Coefficients on smooth units as ones on their arguments: c s(z) >= c (k z + d) with the
        line (k, d) below the curve if c > 0, and above it if c < 0."""
        lines = self.bounds.lines[number]
        slope_below, slope_above, offset_below, offset_above = (
            values[places][:, self.columns] for values in lines[:4]
        )
        constants = c * np.where(c > 0, offset_below, offset_above)
        self.add_constant(constants.sum(0))
        rounded = 2 * (len(c) + 4) * self.num.unit * abs(constants).sum(0)
        self.lost = self.lost + rounded
        return np.asarray(c * np.where(c > 0, slope_below, slope_above))

    def over_input(self) -> None:
        """The least value over the region; and what all additions to the total have rounded."""
        at, c = self.exact_coefficients(0)
        regions, inputs = self.bounds.regions, self.bounds.enclosures[0]
        least, sizes = regions.least(self.num, inputs, at, c, self.columns)
        self.add_constant(least)
        rounded = (len(at) + 8) * sizes + self.additions * self.size
        self.lost = self.lost + 2 * self.num.unit * rounded
