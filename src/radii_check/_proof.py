"""What all proofs share: violations, trees of splits, and rows that are evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from radii_check._bounds import Bounds
from radii_check._format import Array, Certificate, need
from radii_check._network import Network, Numbers
from radii_check._probabilities import covering
from radii_check._rows import Descent, Rows
from radii_check._violations import restated

MOST_ROWS = 256


class Proof:
    """What both kinds of proofs share. The rows of all violations are numbered through, those of
    violation i from `firsts[i]` on."""

    bounds: Bounds

    def __init__(self, read: Certificate, network: Network, num: Numbers, memory: int) -> None:
        outputs = network.size(network.output)
        is_linear = read.claim["requirement"]["kind"] != "probabilities"
        stated = read.violations(outputs) if is_linear else covering(read, outputs, num)
        self.network, violations = restated(network, stated, read.widening)
        need(len(violations), "nothing can violate what it claims")
        self.violations = tuple(map(np.concatenate, zip(*violations, strict=True)))
        self.firsts = np.cumsum([0, *(len(offset) for _, offset in violations)])
        self.certificate, self.arrays, self.num, self.margin = read, read.arrays, num, math.inf
        sizes = [self.network.size(number) for number in range(len(self.network.nodes))]
        row, region = 64 * (network.units + 2 * max(sizes) + self.firsts[-1]), 128 * sum(sizes)
        self.at_once = max(1, min(MOST_ROWS, memory // (4 * row)))
        self.most_regions = memory // (2 * region)
        self.most_states = memory // (64 * (network.units + 16))

    def evaluated(
        self, numbers: Array, rows: Callable[[Array], Rows], is_flat: bool = False
    ) -> Array:
        """Lower bounds of rows, some at once: `rows` makes those of these numbers."""
        firsts = range(0, len(numbers), self.at_once)
        some = (self.bounds_of(rows(numbers[i : i + self.at_once]), is_flat) for i in firsts)
        return np.concatenate([np.zeros(0), *some])

    def bounds_of(self, rows: Rows, is_flat: bool = False) -> Array:
        return Descent(self.bounds, self.violations, rows, is_flat).bounds_of_rows()

    def run(self) -> None:
        raise NotImplementedError


def crown_slopes(lower: Array, upper: Array) -> Array:
    """Of lines below open units: 1 where that leaves less room, else 0; as bytes."""
    return np.asarray(255 * (upper > -lower).astype(np.uint8))
