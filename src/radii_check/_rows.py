"""Lower bounds of linear functions of a network, going back from node to node.

A row is a linear function of arguments of units and of outputs. A coefficient on a unit's output
becomes one on its argument, by a line below or above the unit, until only the input is left. The
coefficients are exact numbers at every node: what rounding changed of them is part of the losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii_check._bounds import Bounds
from radii_check._format import Array
from radii_check._network import Unit, collected

ROUND_UP = 1 + 2.0**-30
"""Losses are sums of float64 themselves, which are off by less than this."""
UNDERFLOW = 2.0**-700
"""What products that underflow may change of a row: 2^40 of them, with numbers below 2^300."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A linear function over one region: `terms` are (unit, coefficient) on arguments of units, and
    `gamma` are coefficients on rows of a violation.

    `lower` and `upper` bound all units; `slopes` are of lines below open ones, in 1/255.
    """

    region: int
    lower: Array
    upper: Array
    slopes: Array
    terms: Sequence[tuple[int, float]]
    violation: Any = None
    gamma: Any = ()


class Descent:
    """Rows on their way back: coefficients by node, with their places, and the sums so far. Flat
    ones have lines of slope 0 around open units."""

    def __init__(self, bounds: Bounds, rows: Sequence[Row], is_flat: bool = False) -> None:
        self.bounds, self.num, self.steep = bounds, bounds.num, 0.0 if is_flat else 1.0
        self.nodes, self.count, self.additions = bounds.network.nodes, len(rows), 0
        self.coefficients: dict[int, tuple[Array, Array]] = {}
        self.total, self.size, self.lost = (self.num.array(np.zeros(len(rows))) for _ in range(3))
        self.failed = np.zeros(len(rows), bool)
        self.regions = np.array([row.region for row in rows])
        is_one, first = bool((self.regions == self.regions[0]).all()), self.regions[0]
        self.region: Any = slice(first, first + 1) if is_one else self.regions
        self.lower, self.upper, self.slopes = (
            _stacked([getattr(row, name) for row in rows]) for name in ("lower", "upper", "slopes")
        )
        asked = [(unit, i, weight) for i, row in enumerate(rows) for unit, weight in row.terms]
        columns = np.array(asked, np.float64).reshape(-1, 3).T
        self.unit, self.row, self.weight = (
            columns[0].astype(int),
            columns[1].astype(int),
            columns[2],
        )
        self.put_violations(rows)

    def put_violations(self, rows: Sequence[Row]) -> None:
        num, end, output = self.num, len(self.nodes), self.bounds.network.output
        outputs = num.array(np.zeros((self.bounds.network.size(output), len(rows))))
        for i, row in enumerate(rows):
            if np.any(row.gamma):
                (matrix, offset), gamma = row.violation, num.array(row.gamma)[:, None]
                outputs[:, i] = num.dot(matrix.T, gamma)[:, 0]
                self.total[i] = num.dot(offset[None], gamma)[0, 0]
                sizes = num.dot(abs(matrix), self.bounds.reach[end][:, row.region][:, None])
                sizes = ((sizes + abs(offset)[:, None]) * gamma).sum()
                self.lost[i] = 4 * (len(offset) + 2) * num.unit * sizes
        self.size = abs(self.total)
        at = np.flatnonzero((outputs != 0).any(1))
        if len(at):
            self.put(end, output, at, outputs[at])

    def bounds_of_rows(self) -> Array:
        """Lower bounds of the rows, as float64; -inf where nothing is known."""
        unit = self.num.unit
        for number in range(len(self.nodes) - 1, 0, -1):
            node = self.nodes[number]
            if isinstance(node, Unit):
                self.through(number, node)
            elif number in self.coefficients:
                at, c = self.coefficients.pop(number)
                self.add(node.offset[at] @ c)
                self.lost = self.lost + 2 * len(at) * unit * (abs(node.offset[at]) @ abs(c))
                for source, maps in zip(node.inputs, node.maps, strict=True):
                    places, pulled = at, c
                    for each in reversed(maps):
                        places, pulled = each.pull(self.num, places, pulled)
                    self.join(source, places, pulled)
        at, c = self.settled(0)
        values, sizes = self.bounds.regions.least(self.num, at, c, self.region)
        self.add(values)
        lost = self.lost + 2 * unit * ((len(at) + 8) * sizes + self.additions * self.size)
        found = self.num.below(self.total - lost * ROUND_UP - UNDERFLOW)
        return np.where(self.failed, -np.inf, found)

    def add(self, values: Array) -> None:
        self.total, self.size = self.total + values, self.size + abs(values)
        self.additions += 1

    def lose(self, c: Array, each: Array) -> None:
        """`each` is (entries, regions): what a coefficient of 1 on each of them may lose."""
        self.lost = self.lost + (abs(c) * each[:, self.region]).sum(0)

    def join(self, number: int, at: Array, c: Array) -> None:
        """Coefficients on the value of a node, beside those that are there."""
        if number in self.coefficients:
            known, held = self.coefficients[number]
            if np.array_equal(known, at):
                c = held + c
            else:
                at, c = np.concatenate([known, at]), np.concatenate([held, c])
        self.coefficients[number] = collected(at, c)

    def put(self, reader: int, source: int, at: Array, c: Array) -> None:
        """Coefficients on what a node reads."""
        self.lose(c, self.bounds.loss[reader][at])
        self.join(source, at, c)

    def settled(self, number: int) -> tuple[Array, Array]:
        """The coefficients on a node's value, as exact numbers."""
        nothing = np.zeros(0, int), np.zeros((0, self.count))
        at, c = self.coefficients.pop(number, nothing)
        c, radius = self.num.settled(c)
        if radius is not None and len(at):
            self.lose(radius, self.bounds.held[number].size[at])
        return at, c

    def through(self, number: int, node: Unit) -> None:
        """From a node's value to what it reads."""
        at, c = self.settled(number)
        if node.kind == "Relu":
            at, c = self.units(number, node.first, at, c)
        elif number in self.bounds.curves:
            lines = (line[at][:, self.region] for line in self.bounds.curves[number])
            below, above, least, most = lines
            constant = c * np.where(c > 0, least, most)
            self.add(constant.sum(0))
            self.lost = self.lost + 2 * (len(at) + 4) * self.num.unit * abs(constant).sum(0)
            c = c * np.where(c > 0, below, above)
        if len(at):
            self.put(number, node.inputs[0], at, c)

    def units(self, number: int, first: int, at: Array, c: Array) -> tuple[Array, Array]:
        """Of ReLU units: from their outputs to their arguments, and what is asked of these."""
        reach = self.bounds.reach[number]
        asked = np.flatnonzero((self.unit >= first) & (self.unit < first + len(reach)))
        unit, row = self.unit[asked] - first, self.row[asked]
        weight = self.num.array(self.weight[asked])
        places = np.union1d(at, unit)
        on_outputs = np.zeros((len(places), self.count), c.dtype)
        on_outputs[np.searchsorted(places, at)] = c
        found = self.lines(on_outputs, first + places)
        spot = np.searchsorted(places, unit), row
        np.add.at(found, spot, weight)
        sizes = (abs(weight) + abs(found[spot])) * reach[unit, self.regions[row]]
        np.add.at(self.lost, row, 4 * (len(unit) + 4) * self.num.unit * sizes)
        return places, found

    def lines(self, c: Array, units: Array) -> Array:
        """Coefficients on the outputs of units as ones on their arguments.

        On an open unit c becomes some a between 0 and c. If c > 0, c max(0, z) >= a z. If c < 0,
        c max(0, z) - a z is concave, so that it is least at an end: -a l at l, (c - a) u at u.
        """
        num = self.num
        lower, upper, slopes = (x[units] for x in (self.lower, self.upper, self.slopes))
        is_open = (upper > 0) & (lower < 0)
        found = c * ((upper > 0) & (lower >= 0))
        bent = np.flatnonzero(is_open.any(1))
        c, is_open, slopes = c[bent], is_open[bent], self.steep * slopes[bent] / 255
        is_endless = is_open & ~np.isfinite(upper[bent] - lower[bent])
        self.failed |= (is_endless & (c != 0)).any(0)
        is_open &= ~is_endless
        low, high = (np.where(is_open, x[bent], 0.0) for x in (lower, upper))
        above = self.steep * high / np.where(is_open, high - low, 1.0)
        chosen = num.settled(c * np.where(c > 0, slopes, above))[0]
        found[bent] = np.where(is_open, chosen, found[bent])
        ends = num.minimum(-chosen * low, (c - chosen) * high)
        constant = num.minimum(ends, 0.0).sum(0)
        self.add(constant)
        self.lost = self.lost + 2 * (len(bent) + 4) * num.unit * abs(constant)
        return np.asarray(found)


def _stacked(arrays: Sequence[Array]) -> Array:
    """As columns; one column if all are the same."""
    is_one = all(each is arrays[0] for each in arrays)
    return arrays[0][:, None] if is_one else np.stack(arrays, 1)
