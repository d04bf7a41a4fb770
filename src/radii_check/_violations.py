"""Violations restated for the network without its final softmax, log-softmax or ReLU.

Comparisons of two outputs say the same of what such a node reads, but for ties:

    softmax       p_a <= p_b where z_a <= z_b, in real arithmetic. As floats, two probabilities of
                  nearly equal arguments may be equal, and so may two that underflow; and a tie is a
                  violation. So "p_a <= p_b" is replaced by something that contains it:
                  z_a - z_b <= T, or z_a - z_j <= -K for some class j.
    log-softmax   differences of outputs are differences of arguments; what rounding makes of them
                  is counted as an error of reading (see `_bounds.py`).
    ReLU          max(0, z_a) <= max(0, z_b) exactly where z_a <= z_b or z_a <= 0.
"""

from __future__ import annotations

import math

import numpy as np

from radii_check._curves import kernel_units
from radii_check._format import Array
from radii_check._network import Network, Unit
from radii_check.operators._softmax import SOFTMAX_ERROR

Violations = list[tuple[Array, Array]]
"""Polyhedra { y : matrix y + offset <= 0 } of outputs."""

SMALLEST_EXPONENT_SINGLE, SMALLEST_EXPONENT_DOUBLE = 88.0, 709.0
EXPONENT_MARGIN = 2.0
"""exp(-x) is a normal number of float32 (float64) for all x up to the first less this margin."""
TIE_FACTOR, TIE_UNITS = 2.5, 4
"""Two floats exp(z_a) / sum and exp(z_b) / sum, each off by a kernel's error and by the rounding of
its argument of at most 88 (or 709), are only equal if z_a and z_b are no further apart."""
MAX_EXACT_COEFFICIENT = 2**20


def restated(
    network: Network, violations: Violations, widening: float
) -> tuple[Network, Violations]:
    """The network without a final softmax, log-softmax or ReLU, and the violations there; both as
    they are if there is none, or if the violations are not comparisons."""
    number = network.final_nonlinear()
    node = network.nodes[number]
    assert isinstance(node, Unit)
    rows = [row for matrix, _ in violations for row in matrix]
    has_offsets = any(offset.any() for _, offset in violations)
    are_pairs = all(_is_pair(row) for row in rows) and not has_offsets

    if node.kind == "Softmax" and node.is_whole and are_pairs:
        if widening:
            violations = _of_softmax_arguments(network, violations, widening)
        return network.before(number, 0, removed=node.kind), violations
    if node.kind == "LogSoftmax" and node.is_whole and all(map(_is_difference, rows)):
        return network.before(number, 0, removed=node.kind), violations
    have_one_row = len(rows) == len(violations)
    if node.kind == "Relu" and are_pairs and have_one_row:
        return network.before(number, network.size(number)), _of_relu_arguments(rows)
    return network, violations


def _is_pair(row: Array) -> bool:
    """The row is c (y_a - y_b)."""
    coefficients = row[row != 0]
    return len(coefficients) == 2 and bool(coefficients[0] == -coefficients[1])


def _is_difference(row: Array) -> bool:
    """The coefficients add up to exactly 0: a pair, or whole numbers so small that their sum is
    exact."""
    is_whole = bool((row == np.round(row)).all())
    is_small = is_whole and abs(row).max(initial=0) < MAX_EXACT_COEFFICIENT
    return _is_pair(row) or bool(is_small and float(row.sum()) == 0)


def _of_relu_arguments(rows: list[Array]) -> Violations:
    """For c (y_a - y_b) <= 0 both c (z_a - z_b) <= 0 and c z_a <= 0, each once."""
    halves = [half for row in rows for half in (row, row * (row > 0) + 0.0)]  # + 0.0: no -0.0
    unique = {half.tobytes(): (half[None], np.zeros(1)) for half in halves}
    return list(unique.values())


def _of_softmax_arguments(network: Network, violations: Violations, widening: float) -> Violations:
    """Comparisons of probabilities that are floats, as comparisons of their arguments.

    Each violation moves by T, and for each class a that it compares, the violations
    z_a - z_j <= -K for all j are added: p_a may underflow there. This is left out where one class b
    is compared with all others at once: the largest argument is that of some class m, whose p_m is
    at least 1 / n. If m = b, then z_a - z_b <= 0. Else "p_m <= p_b" is one of the comparisons, so
    that z_m - z_b <= T, and z_a <= z_m for every a. It is left out as well where "p_a <= p_j" is a
    violation on its own, which contains it.
    """
    outputs, is_single = network.size(network.output), network.is_single
    unit, kernel = 2.0**-24 if is_single else 2.0**-53, kernel_units(SOFTMAX_ERROR, is_single)
    exponent = SMALLEST_EXPONENT_SINGLE if is_single else SMALLEST_EXPONENT_DOUBLE
    tie = TIE_FACTOR * unit * (kernel + exponent + TIE_UNITS) * widening
    depth = exponent - EXPONENT_MARGIN - math.log(outputs)

    pairs = [{(int(row.argmax()), int(row.argmin())) for row in matrix} for matrix, _ in violations]
    may_underflow = set[int]()
    for compared in pairs:
        lesser, greater = {a for a, _ in compared}, {b for _, b in compared}
        is_one_against_all = len(greater) == 1 and len(lesser - greater) == outputs - 1
        may_underflow |= set() if is_one_against_all else lesser
    alone = {pair for compared in pairs if len(compared) == 1 for pair in compared}

    moved = [(matrix, -tie * abs(matrix).max(axis=1)) for matrix, _ in violations]
    units = np.eye(outputs)
    underflows = [
        ((units[a] - units[j])[None], np.array([depth]))
        for a in sorted(may_underflow)
        for j in range(outputs)
        if j != a and (a, j) not in alone
    ]
    return moved + underflows
