"""Proofs by splits of inputs, for few inputs and for smooth networks.

The certificate states nothing but boxes, which cover the region: input splits as in ReluVal (Wang
et al., 2018). For each box the checker bounds the network itself, by intervals and then by CROWN
over that box alone. In every box, every violation must have a row that is above 0.
"""

from __future__ import annotations

import numpy as np

from radii_check import _log_softmax
from radii_check._bounds import Bounds
from radii_check._errors import require, require_readable
from radii_check._format import Array, Certificate
from radii_check._network import Network, Unit
from radii_check._numbers import Numbers
from radii_check._proof import Proof
from radii_check._regions import Regions
from radii_check._rows import Rows, Terms, crown_slopes
from radii_check._trees import leaves_of, path_to

MAX_BOXES = 64
"""Boxes that are bounded together."""


class BoxProof(Proof):
    """A proof by splits of inputs. Where a log-softmax is left at the end of the network, the rows
    that are bounded are those of its arguments, and `output_violations` those of its outputs."""

    def __init__(
        self, certificate: Certificate, network: Network, num: Numbers, memory: int
    ) -> None:
        super().__init__(certificate, network, num, memory)
        self.output_violations = self.violations
        number = self.network.final_nonlinear()
        last = self.network.nodes[number]
        self.has_log_softmax = (
            isinstance(last, Unit) and last.kind == "LogSoftmax" and last.is_whole
        )
        if self.has_log_softmax:
            outputs = self.network.size(number)
            is_small = outputs <= _log_softmax.MAX_OUTPUTS
            require_readable(is_small, "its log-softmax is of too many outputs")
            self.network = self.network.before(number, 0)
            rows = _log_softmax.argument_rows(outputs)
            self.violations = rows, np.zeros(len(rows))

    def run(self) -> None:
        a, inputs = self.arrays, self.network.size(0)
        leaves = np.flatnonzero(leaves_of(a, "parent", "axis", "cut", "side"))
        is_root = a["parent"] < 0
        require(is_root.sum() == 1, "there is not exactly one root")
        is_input = (a["axis"] >= 0) & (a["axis"] < inputs)
        require(is_root | is_input, "a split is of no input")
        eps = np.array([self.certificate.claim.get("eps", 0.0)], np.float64)
        whole = Regions.of_claim(self.certificate, eps, self.num)
        at_once = max(1, min(MAX_BOXES, self.max_regions))
        for start in range(0, len(leaves), at_once):
            some = leaves[start : start + at_once]
            reached, regions = whole.parts_within(*self.boxes_of(some, whole), self.num)
            if len(reached):
                self.check_boxes(some[reached], regions)

    def boxes_of(self, leaves: Array, whole: Regions) -> tuple[Array, Array]:
        """The boxes of some leaves, (inputs, leaves): the region's, cut on the path to each."""
        a = self.arrays
        low, high = (np.repeat(side, len(leaves), axis=1) for side in (whole.low, whole.high))
        for column, leaf in enumerate(leaves):
            for node in path_to(a["parent"], leaf)[1:]:
                entry, cut = (a["axis"][node], column), a["cut"][node]
                if a["side"][node] > 0:
                    low[entry] = np.maximum(low[entry], cut)
                else:
                    high[entry] = np.minimum(high[entry], cut)
        return low, high

    def check_boxes(self, leaves: Array, regions: Regions) -> None:
        """No violation may be possible in any of these boxes."""
        self.bounds = Bounds(self.network, regions, self.certificate.widening, self.num)
        self.bounds.forward(self.tighten)
        every = np.arange(len(leaves))
        row_count = len(self.violations[0])
        values = [self.crown_of_row(every, row) for row in range(row_count)]
        if self.has_log_softmax:
            matrix, offset = self.output_violations
            values = [*_log_softmax.least_of_outputs(self.bounds, np.stack(values), matrix, offset)]
        for first, end in zip(self.first_rows[:-1], self.first_rows[1:], strict=True):
            best = np.max(values[first:end], axis=0)
            what = f"node {leaves[best.argmin()]}: a violation is possible in its box"
            require(best > 0, f"{what}: it fails by {-best.min():.3g}")
            self.margin = min(self.margin, best.min())

    def tighten(self, node: Unit, low: Array, high: Array) -> None:
        """Bounds of the units of a node: by intervals; and by rows for smooth units, and for those
        that intervals leave open."""
        units, lower, upper = node.units, self.bounds.lower, self.bounds.upper
        lower[units], upper[units] = self.num.floor(low), -self.num.floor(-high)
        if node.kind == "Relu":
            needs_rows = (lower[units] < 0) & (upper[units] > 0)
        else:
            needs_rows = lower[units] < upper[units]
        entry, box = np.nonzero(needs_rows)
        unit = units.start + entry
        below, above = (self.crown_of_units(box, unit, side) for side in (1.0, -1.0))
        lower[unit, box] = np.maximum(lower[unit, box], below)
        upper[unit, box] = np.minimum(upper[unit, box], -above)

    def crown_of_units(self, box: Array, unit: Array, side: float) -> Array:
        """Lower bounds of side * argument of a unit, each over a box."""

        def rows_of(numbers: Array) -> Rows:
            return self.rows(box[numbers], Terms.of(unit[numbers], side), Terms.none())

        return self.lower_bounds(np.arange(len(box)), rows_of)

    def crown_of_row(self, box: Array, row: int) -> Array:
        """Lower bounds of one row of the violations, over boxes."""

        def rows_of(numbers: Array) -> Rows:
            on_row = Terms.of(np.full(len(numbers), row), 1.0)
            return self.rows(box[numbers], Terms.none(), on_row)

        return self.lower_bounds(np.arange(len(box)), rows_of)

    def rows(self, box: Array, on_units: Terms, on_violations: Terms) -> Rows:
        lower, upper = self.bounds.lower[:, box], self.bounds.upper[:, box]
        return Rows(box, lower, upper, crown_slopes(lower, upper), on_units, on_violations)
