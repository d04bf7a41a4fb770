"""What all proofs share: the violations, a tree of splits, and rows that are evaluated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from radii_check._bounds import Bounds
from radii_check._format import Array, Certificate
from radii_check._network import Network, Numbers
from radii_check._probabilities import covering
from radii_check._rows import Descent, Row
from radii_check._trees import path_to
from radii_check._violations import restated

MOST_ROWS = 256


class Proof:
    """What both kinds of proofs share: a tree of splits."""

    bounds: Bounds
    is_leaf: Array

    def __init__(self, read: Certificate, network: Network, num: Numbers, memory: int) -> None:
        outputs = network.size(network.output)
        is_linear = read.claim["requirement"]["kind"] != "probabilities"
        stated = read.violations(outputs) if is_linear else covering(read, outputs, num)
        self.network, self.violations = restated(network, stated, read.widening)
        self.certificate, self.arrays, self.num, self.margin = read, read.arrays, num, math.inf
        sizes = [self.network.size(number) for number in range(len(self.network.nodes))]
        row, region = 64 * (network.units + 2 * max(sizes)), 128 * sum(sizes)
        self.at_once = max(1, min(MOST_ROWS, memory // (4 * row)))
        self.most_regions = memory // (2 * region)

    def columns(self, lower: Array, upper: Array) -> list[tuple[Array, Array, Array]]:
        """For each region the bounds of units, and CROWN's slopes."""
        pairs = zip(lower.T.copy(), upper.T.copy(), strict=True)
        return [(low, high, 255 * (high > -low).astype(np.uint8)) for low, high in pairs]

    def path(self, node: int) -> list[int]:
        """The nodes from the root to this one."""
        return path_to(self.arrays["parent"], node)

    def evaluated(self, rows: Sequence[Row], is_flat: bool = False) -> Array:
        """Lower bounds of rows, some at once."""
        firsts = range(0, len(rows), self.at_once)
        parts = (Descent(self.bounds, rows[i : i + self.at_once], is_flat) for i in firsts)
        return np.concatenate([np.zeros(0), *(part.bounds_of_rows() for part in parts)])

    def run(self) -> None:
        raise NotImplementedError
