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


def terms(what: Any, weights: Any, rows: Any = None) -> Array:
    """Weights on units, or on rows of violations: these, in which row (one in each if not given),
    and the weight."""
    rows = np.arange(len(what)) if rows is None else rows
    return np.stack([np.float64(what), rows, np.broadcast_to(weights, len(what))])


NOTHING = terms([], 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Linear functions, each over its region: `units` are terms on arguments of units, `stated` on
    rows of violations. By columns, `lower` and `upper` bound all units, and `slopes` are those of
    lines below open ones, in 1/255."""

    regions: Array
    lower: Array
    upper: Array
    slopes: Array
    units: Array
    stated: Array

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All of them, one behind the other."""
        columns = ([p.regions, p.lower, p.upper, p.slopes] for p in parts)
        held = (np.concatenate(each, -1) for each in zip(*columns, strict=True))
        regions, lower, upper, slopes = held
        firsts = np.cumsum([0, *(len(p.regions) for p in parts[:-1])])
        moves = [(p, np.array([[0], [first], [0]])) for p, first in zip(parts, firsts, strict=True)]
        units = np.concatenate([p.units + move for p, move in moves], 1)
        stated = np.concatenate([p.stated + move for p, move in moves], 1)
        return cls(regions, lower, upper, slopes, units, stated)


class Descent:
    """Rows on their way back: coefficients by node, with their places, and the sums so far. Flat
    ones have lines of slope 0 around open units."""

    def __init__(self, bounds: Bounds, violations: Any, rows: Rows, is_flat: bool = False) -> None:
        self.bounds, self.num, self.steep = bounds, bounds.num, 0.0 if is_flat else 1.0
        self.nodes, self.additions, self.rows = bounds.network.nodes, 0, rows
        self.count, first = len(rows.regions), rows.regions[0]
        self.coefficients: dict[int, tuple[Array, Array]] = {}
        self.total, self.size, self.lost = (self.num.array(np.zeros(self.count)) for _ in range(3))
        self.failed, is_one = np.zeros(self.count, bool), (rows.regions == first).all()
        self.region: Any = slice(first, first + 1) if is_one else rows.regions
        self.put_violations(*violations)

    def put_violations(self, matrix: Array, offset: Array) -> None:
        """Rows of violations as coefficients on outputs."""
        num, end, (stated, row) = self.num, len(self.nodes), self.rows.stated[:2].astype(int)
        used, place = np.unique(stated, return_inverse=True)
        if len(used):
            matrix, offset, gamma = matrix[used], offset[used], np.zeros((len(used), self.count))
            gamma[place, row] = self.rows.stated[2]
            counts, gamma = (gamma != 0).sum(0), num.array(gamma)
            self.total = num.dot(offset[None], gamma)[0]
            self.size = abs(self.total)
            sizes = num.dot(abs(matrix), self.bounds.reach[end][:, self.region])
            sizes = ((sizes + abs(offset)[:, None]) * gamma).sum(0)
            self.lost = 4 * (counts + 2) * num.unit * sizes
            outputs = num.dot(matrix.T, gamma)
            at = np.flatnonzero(~(outputs == 0).all(1))  # of balls: all but those that are 0
            self.put(end, self.bounds.network.output, at, outputs[at])

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
        held, regions = self.bounds.held[0], self.bounds.regions
        values, sizes = regions.least(self.num, held, at, c, self.region)
        self.add(values)
        lost = self.lost + 2 * unit * ((len(at) + 8) * sizes + self.additions * self.size)
        found = self.num.below(self.total - lost * ROUND_UP - UNDERFLOW)
        return np.where(self.failed, -np.inf, found)

    def add(self, values: Array) -> None:
        self.total, self.size = self.total + values, self.size + abs(values)
        self.additions += 1

    def lose(self, c: Array, each: Array) -> None:
        """`each` is (entries, regions): what a coefficient of 1 on each of them may lose."""
        self.lost = self.lost + self.num.weighted(abs(c), each[:, self.region])

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
        if len(at):
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
        if node.units.stop > node.units.start:
            at, c = self.units(number, node, at, c)
        self.put(number, node.inputs[0], at, c)

    def units(self, number: int, node: Unit, at: Array, c: Array) -> tuple[Array, Array]:
        """From outputs of units to their arguments, and what is asked of these."""
        mine, asked = node.units, self.rows.units
        asked = asked[:, (asked[0] >= mine.start) & (asked[0] < mine.stop)]
        (unit, row), weight = asked[:2].astype(int), self.num.array(asked[2])
        unit -= mine.start
        places = np.union1d(at, unit)
        if not len(places):
            return at, c
        found, reach = np.zeros((len(places), self.count), c.dtype), self.bounds.reach[number]
        found[np.searchsorted(places, at)] = c
        if len(at) and node.kind == "Relu":
            found = self.lines(found, mine.start + places)
        elif len(at):
            found = self.curves(found, [line[places] for line in self.bounds.curves[number]])
        spot = np.searchsorted(places, unit), row
        np.add.at(found, spot, weight)
        sizes = (abs(weight) + abs(found[spot])) * reach[unit, self.rows.regions[row]]
        np.add.at(self.lost, row, 4 * (len(unit) + 4) * self.num.unit * sizes)
        return places, found

    def curves(self, c: Array, lines: Sequence[Array]) -> Array:
        """Coefficients on the outputs of smooth units as ones on their arguments."""
        below, above, least, most = (line[:, self.region] for line in lines)
        constant = c * np.where(c > 0, least, most)
        self.add(constant.sum(0))
        self.lost = self.lost + 2 * (len(c) + 4) * self.num.unit * abs(constant).sum(0)
        return np.asarray(c * np.where(c > 0, below, above))

    def lines(self, c: Array, units: Array) -> Array:
        """Coefficients on the outputs of units as ones on their arguments.

        On an open unit c becomes some a between 0 and c. If c > 0, c max(0, z) >= a z. If c < 0,
        c max(0, z) - a z is concave, so that it is least at an end: -a l at l, (c - a) u at u.
        """
        num, rows = self.num, self.rows
        lower, upper, slopes = (x[units] for x in (rows.lower, rows.upper, rows.slopes))
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
