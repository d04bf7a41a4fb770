"""What both kinds of proofs share: the violations to exclude, and rows that are evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from radii_check._backward import BackwardPass, ReluLines
from radii_check._bounds import Bounds
from radii_check._errors import require_format
from radii_check._format import Array, Certificate
from radii_check._network import Network
from radii_check._numbers import Numbers
from radii_check._probabilities import covering
from radii_check._rows import Rows
from radii_check._violations import restated

MAX_ROWS = 256
"""Rows that are bounded together."""

# Bytes that are needed at once, by row, region and state: float64, with room for temporary arrays.
ROW_BYTES, REGION_BYTES, STATE_BYTES = 64, 128, 64
STATE_OVERHEAD_UNITS = 16


class Proof:
    """A proof about a network, and the least by which its steps exceed what they must show.

    violations    matrix and offset of the rows of all violations, numbered through
    first_rows    the rows of violation i are those from first_rows[i] to first_rows[i + 1]
    rows_at_once, max_regions, max_states
                  limits that keep the check within its memory
    margin        the smallest excess of a row over its bound, so far
    """

    bounds: Bounds

    def __init__(
        self, certificate: Certificate, network: Network, num: Numbers, memory: int
    ) -> None:
        outputs = network.size(network.output)
        if certificate.claim["requirement"]["kind"] == "probabilities":
            claimed = covering(certificate, outputs, num)
        else:
            claimed = certificate.violations(outputs)
        self.network, violations = restated(network, claimed, certificate.widening)
        require_format(len(violations), "nothing can violate what it claims")
        matrices, offsets = zip(*violations, strict=True)
        self.violations = np.concatenate(matrices), np.concatenate(offsets)
        self.first_rows = np.cumsum([0, *(len(offset) for offset in offsets)])
        self.certificate, self.arrays, self.num = certificate, certificate.arrays, num
        self.margin = math.inf

        sizes = [self.network.size(number) for number in range(len(self.network.nodes))]
        row_bytes = ROW_BYTES * (self.network.units + 2 * max(sizes) + self.first_rows[-1])
        state_bytes = STATE_BYTES * (self.network.units + STATE_OVERHEAD_UNITS)
        self.rows_at_once = max(1, min(MAX_ROWS, memory // (4 * row_bytes)))
        self.max_regions = memory // (2 * REGION_BYTES * sum(sizes))
        self.max_states = memory // state_bytes

    def lower_bounds(
        self,
        numbers: Array,
        rows_of: Callable[[Array], Rows],
        lines: ReluLines = ReluLines.STATED,
    ) -> Array:
        """Lower bounds of rows, a limited number at once: `rows_of` makes those with the numbers
        that it is given."""
        starts = range(0, len(numbers), self.rows_at_once)
        chunks = (numbers[start : start + self.rows_at_once] for start in starts)
        bounds = (self.lower_bounds_of(rows_of(chunk), lines) for chunk in chunks)
        return np.concatenate([np.zeros(0), *bounds])

    def lower_bounds_of(self, rows: Rows, lines: ReluLines = ReluLines.STATED) -> Array:
        return BackwardPass(self.bounds, self.violations, rows, lines).lower_bounds()

    def run(self) -> None:
        """Go through the proof; a Rejected says where it fails."""
        raise NotImplementedError
