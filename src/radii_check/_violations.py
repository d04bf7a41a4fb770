"""What must not happen, stated on the outputs of a network without a softmax or a ReLU at its end.

As floats, two probabilities of nearly equal arguments are equal, and so are two that underflow; a
tie is a violation. So "y_a <= y_b" is put into what contains it: z_a - z_b <= T or, for some j,
z_a - z_j <= -K. Where all comparisons with a are violations, the second part lies in the first.
Behind a ReLU, max(0, a) <= max(0, b) exactly where a <= b or a <= 0.
"""

from __future__ import annotations

import math

import numpy as np

from radii_check._bounds import kernel_error
from radii_check._format import Array
from radii_check._network import Network, Unit

Violations = list[tuple[Array, Array]]

EXPONENTS = {True: 88.0, False: 709.0}
"""Down to which argument exp gives a normal number, in float32 (True) and float64."""


def restated(network: Network, found: Violations, widening: float) -> tuple[Network, Violations]:
    """The network without a final (log-)softmax or ReLU, and the violations there."""
    last = network.last()
    node, rows = network.nodes[last], [row for matrix, _ in found for row in matrix]
    assert isinstance(node, Unit)
    are_pairs = all(_is_pair(row) for row in rows) and not any(o.any() for _, o in found)
    if node.kind == "Softmax" and node.is_whole and are_pairs:
        found = _of_arguments(network, found, widening) if widening else found
        return network.without(last, 0, node.kind), found
    if node.kind == "LogSoftmax" and node.is_whole and all(map(_is_difference, rows)):
        return network.without(last, 0, node.kind), found
    if node.kind == "Relu" and are_pairs and len(rows) == len(found):
        both = [each for row in rows for each in (row, row * (row > 0) + 0.0)]  # no -0.0
        unique = {row.tobytes(): (row[None], np.zeros(1)) for row in both}
        return network.without(last, network.size(last)), list(unique.values())
    return network, found


def _is_pair(row: Array) -> bool:
    """The row is c (y_a - y_b)."""
    held = row[row != 0]
    return len(held) == 2 and bool(held[0] == -held[1])


def _is_difference(row: Array) -> bool:
    """The coefficients add up to exactly 0: a pair, or small whole numbers."""
    is_small = bool((row == np.round(row)).all() and abs(row).max(initial=0) < 2**20)
    return _is_pair(row) or (is_small and float(row.sum()) == 0)


def _of_arguments(network: Network, violations: Violations, widening: float) -> Violations:
    """Comparisons of probabilities as comparisons of what the softmax reads."""
    outputs, is_single = network.size(network.output), network.is_single
    unit, kernel = 2.0**-24 if is_single else 2.0**-53, kernel_error("Softmax", is_single)
    apart = 2.5 * unit * (kernel + EXPONENTS[is_single] + 4) * widening
    pairs = [{(int(row.argmax()), int(row.argmin())) for row in m} for m, _ in violations]
    first = set()
    for each in pairs:  # one output against all others needs no second part
        above, below = {a for a, _ in each}, {b for _, b in each}
        is_about_one = len(below) == 1 and len(above - below) == outputs - 1
        first |= set() if is_about_one else above
    alone = {pair for each in pairs if len(each) == 1 for pair in each}
    lost = [(a, j) for a in sorted(first) for j in range(outputs) if j != a and (a, j) not in alone]
    moved = [(matrix, -apart * abs(matrix).max(axis=1)) for matrix, _ in violations]
    units, depth = np.eye(outputs), EXPONENTS[is_single] - 2.0 - math.log(outputs)
    return moved + [((units[a] - units[j])[None], np.array([depth])) for a, j in lost]
