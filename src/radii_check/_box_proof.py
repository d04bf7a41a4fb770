"""Proofs by splits of inputs: CROWN over boxes, for few inputs and for smooth networks."""

from __future__ import annotations

import numpy as np

from radii_check import _logarithms
from radii_check._bounds import Bounds, Regions
from radii_check._format import Array, Certificate, hold, readable
from radii_check._network import Network, Numbers, Unit
from radii_check._proof import Proof, crown_slopes
from radii_check._rows import NOTHING, Rows, terms
from radii_check._trees import leaves_of, path_to

MOST_BOXES = 64


class BoxProof(Proof):
    """A proof by splits of inputs: nothing is stated but boxes. Where a log-softmax is left at the
    end, `stated` are its violations, and the others are rows on what it reads."""

    def __init__(self, read: Certificate, network: Network, num: Numbers, memory: int) -> None:
        super().__init__(read, network, num, memory)
        self.stated = self.violations
        last = self.network.nodes[number := self.network.last()]
        self.is_logarithm = isinstance(last, Unit) and last.kind == "LogSoftmax" and last.is_whole
        if self.is_logarithm:
            outputs = self.network.size(number)
            readable(outputs <= _logarithms.MOST_OUTPUTS, "its log-softmax is of too many outputs")
            self.network = self.network.without(number, 0)
            rows = _logarithms.rows_for(outputs)
            self.violations = rows, np.zeros(len(rows))

    def run(self) -> None:
        a, claim, inputs = self.arrays, self.certificate.claim, self.network.size(0)
        leaves = np.flatnonzero(leaves_of(a, "parent", "axis", "cut", "side"))
        is_root = a["parent"] < 0
        hold(is_root.sum() == 1, "there is not one root")
        hold(is_root | ((a["axis"] >= 0) & (a["axis"] < inputs)), "a split is of no input")
        whole = Regions.of(
            self.certificate, np.array([claim.get("eps", 0.0)], np.float64), self.num
        )
        at_once = max(1, min(MOST_BOXES, self.most_regions))
        for first in range(0, len(leaves), at_once):
            some = leaves[first : first + at_once]
            low, high = (np.repeat(side, len(some), axis=1) for side in (whole.low, whole.high))
            for column, leaf in enumerate(some):
                for node in path_to(a["parent"], leaf)[1:]:
                    place, cut = (a["axis"][node], column), a["cut"][node]
                    if a["side"][node] > 0:
                        low[place] = np.maximum(low[place], cut)
                    else:
                        high[place] = np.minimum(high[place], cut)
            kept, regions = whole.within(low, high, self.num)
            if len(kept):
                self.boxes(some[kept], regions)

    def boxes(self, leaves: Array, regions: Regions) -> None:
        """CROWN over some boxes: no violation may be possible in any."""
        self.bounds = Bounds(self.network, regions, self.certificate.widening, self.num)
        self.bounds.forward(self.tighten)
        every, rows = np.arange(len(leaves)), range(len(self.violations[0]))
        found = [self.crown(every, 0 * every + row, 1.0, of_units=False) for row in rows]
        if self.is_logarithm:
            found = [*_logarithms.least_of(self.bounds, np.stack(found), *self.stated)]
        for first, end in zip(self.firsts[:-1], self.firsts[1:], strict=True):
            best = np.max(found[first:end], axis=0)
            told = f"node {leaves[best.argmin()]}: a violation is possible in its box"
            hold(best > 0, f"{told}: it fails by {-best.min():.3g}")
            self.margin = min(self.margin, best.min())

    def tighten(self, node: Unit, low: Array, high: Array) -> None:
        """Units that intervals leave open, and smooth ones, by rows."""
        mine, lower, upper = node.units, self.bounds.lower, self.bounds.upper
        lower[mine], upper[mine] = self.num.below(low), -self.num.below(-high)
        is_open = (lower[mine] < 0) & (upper[mine] > 0)
        unit, box = np.nonzero(is_open if node.kind == "Relu" else lower[mine] < upper[mine])
        at = (mine.start + unit, box)
        below, above = (self.crown(box, at[0], sign, of_units=True) for sign in (1.0, -1.0))
        lower[at], upper[at] = np.maximum(lower[at], below), np.minimum(upper[at], -above)

    def crown(self, box: Array, what: Array, sign: float, of_units: bool) -> Array:
        """Bounds over boxes of arguments of units, or of rows of violations, times a sign."""
        bounds = self.bounds.lower, self.bounds.upper
        state = (*bounds, crown_slopes(*bounds))

        def rows(some: Array) -> Rows:
            lower, upper, slopes = (x[:, box[some]] for x in state)
            own = terms(what[some], sign)
            units, stated = (own, NOTHING) if of_units else (NOTHING, own)
            return Rows(box[some], lower, upper, slopes, units, stated)

        return self.evaluated(np.arange(len(box)), rows)
