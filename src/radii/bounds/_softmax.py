"""A final softmax: its values from differences of its arguments, and doing without it.

softmax_i = 1 / (1 + sum over j of exp(z_j - z_i)), so bounds on differences bound it. Where a
specification only compares outputs, the softmax changes no comparison, and log-softmax no
difference: the specification then speaks about the arguments just as well.

As floats, two probabilities whose arguments differ by little are equal, and so are two that both
underflow to 0; a tie is a violation. So "y_a <= y_b" is put into what contains it on the arguments:

    z_a - z_b <= T   or, for some j,   z_a - z_j <= -K,

T being what separates two floats, and K how far below the largest argument one is still no
underflow. Where all comparisons with a are violations, the second part lies in the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import identity
from torch import Tensor

from radii.bounds._relu_form import Fusion
from radii.networks import (
    ELEMENTARY_ULPS,
    Interval,
    LogSoftmax,
    NumberType,
    Operator,
    Softmax,
    smallest_exponent,
    softmax_ratio,
    sum_slack,
)
from radii.problem import FLOAT, Arithmetic, Halfspaces

MOST_SOFTMAX_PAIRED = 64
"""Differences of all pairs are bounded up to this many outputs; beyond, intervals alone."""


def is_single_softmax(operator: Operator, shape: tuple[int, ...]) -> bool:
    """One softmax over all entries, few enough to compare all pairs of."""
    if not isinstance(operator, Softmax | LogSoftmax):
        return False
    count = int(np.prod(shape))
    return shape[operator.axis] == count and 2 <= count <= MOST_SOFTMAX_PAIRED


def pairs_of(count: int) -> Tensor:
    """Rows z_j - z_i for all pairs i != j, by i and then j."""
    units = torch.eye(count, dtype=torch.float64)
    rows = units[None, :, :] - units[:, None, :]
    return rows[~torch.eye(count, dtype=torch.bool)]


def from_differences(operator: Operator, least: Tensor, count: int) -> Interval:
    """Bounds of the (log-)softmax, one row for each region, from lower bounds of `pairs_of`."""
    is_other = ~torch.eye(count, dtype=torch.bool, device=least.device)
    of_pairs = least.new_full((len(least), count, count), 0.0)
    of_pairs[:, is_other] = least
    # z_j - z_i >= d_ij makes softmax_i small; and z_j - z_i <= -d_ji makes it large.
    high = -torch.logsumexp(of_pairs, 2)
    low = -torch.logsumexp(-of_pairs.transpose(1, 2), 2)
    low = low - ELEMENTARY_ULPS * sum_slack(1 + low.abs(), count)
    high = high + ELEMENTARY_ULPS * sum_slack(1 + high.abs(), count)
    low = torch.where(torch.isnan(low), -torch.inf, low)
    high = torch.where(torch.isnan(high), 0.0, high).clamp(max=0)
    if isinstance(operator, LogSoftmax):
        return Interval(low, high)
    return Interval(low.exp(), high.exp()).widened(ELEMENTARY_ULPS).clamped(0.0, 1.0)


def without_softmax(
    fusion: Fusion, violations: Sequence[Halfspaces], arithmetic: Arithmetic = FLOAT
) -> tuple[Fusion, tuple[Halfspaces, ...]]:
    """The fusion in front of a final softmax with violations that hold all of the given ones; else
    both as given.

    A softmax may go where every halfspace compares two outputs; a log-softmax where the
    coefficients of every halfspace add up to 0.
    """
    unchanged = fusion, tuple(violations)
    if not fusion.stages or not ends_in_last(fusion):
        return unchanged
    last = fusion.stages[-1]
    if not isinstance(last.operator, Softmax | LogSoftmax):
        return unchanged
    if last.shape[last.operator.axis] != int(np.prod(last.shape)):
        return unchanged
    if isinstance(last.operator, Softmax):
        moved = _on_arguments(violations, fusion.number, arithmetic)
    else:
        rows = [row for polyhedron in violations for row in polyhedron.matrix]
        moved = tuple(violations) if all(_is_difference(row) for row in rows) else None
    if moved is None:
        return unchanged
    return replace(without_last(fusion), behind=last.operator), moved


def without_last(fusion: Fusion) -> Fusion:
    """The network in front of its last nonlinear node, whose arguments are its outputs then."""
    last = fusion.stages[-1]
    output = replace(
        fusion.output,
        source=last.source,
        maps=last.maps,
        offset=last.offset,
        shape=last.shape,
        leaves=last.leaves,
        between=last.between,
    )
    return replace(fusion, stages=fusion.stages[:-1], output=output)


def _on_arguments(
    violations: Sequence[Halfspaces], number: NumberType, arithmetic: Arithmetic
) -> tuple[Halfspaces, ...] | None:
    """Comparisons of probabilities as comparisons of arguments; None if they are others."""
    comparisons = [_comparisons(polyhedron) for polyhedron in violations]
    known = [rows for rows in comparisons if rows is not None]
    if len(known) < len(violations):
        return None
    if not arithmetic.is_float:
        return tuple(violations)
    apart = softmax_ratio(number.unit) * arithmetic.widening
    moved = [
        Halfspaces(polyhedron.matrix, -apart * np.abs(polyhedron.matrix).max(axis=1))
        for polyhedron in violations
    ]
    outputs = violations[0].matrix.shape[1] if violations else 0
    alone = {rows[0] for rows in known if len(rows) == 1}
    lost = [
        (a, j)
        for a in sorted({a for rows in known if not _is_about_one(rows, outputs) for a, _ in rows})
        for j in range(outputs)
        if j != a and (a, j) not in alone
    ]
    depth = smallest_exponent(outputs, number.unit) if outputs else 0.0
    vanishing = [Halfspaces(_difference(a, j, outputs), np.array([depth])) for a, j in lost]
    return (*moved, *vanishing)


def _comparisons(polyhedron: Halfspaces) -> list[tuple[int, int]] | None:
    """The pairs (a, b) of a polyhedron of rows c (y_a - y_b) <= 0, c > 0; None if it is another."""
    if np.any(polyhedron.offset) or not all(_compares(row) for row in polyhedron.matrix):
        return None
    if not polyhedron.matrix.any(axis=1).all():
        return None
    return [(int(row.argmax()), int(row.argmin())) for row in polyhedron.matrix]


def _is_about_one(rows: Sequence[tuple[int, int]], outputs: int) -> bool:
    """One output is compared with all others: the largest of those does not underflow."""
    below = {b for _, b in rows}
    return len(below) == 1 and len({a for a, _ in rows} - below) == outputs - 1


def _difference(first: int, second: int, outputs: int) -> npt.NDArray[np.float64]:
    row = np.zeros(outputs)
    row[first], row[second] = 1.0, -1.0
    return row


def ends_in_last(fusion: Fusion) -> bool:
    """The output is the last nonlinear node's value, entry by entry, and nothing rounds it."""
    last, output = fusion.stages[-1], fusion.output
    if not all(fusion.graph.nodes[i].operator.is_exact for i in output.between):
        return False
    held = output.maps.get(last.node)
    if set(output.maps) != {last.node} or held is None or np.any(output.offset != 0):
        return False
    if held.inputs != held.outputs:
        return False
    return bool((held.matrix() != identity(held.inputs, format="csr")).nnz == 0)


def _compares(row: npt.NDArray[np.float64]) -> bool:
    """The row is c (y_a - y_b)."""
    held = row[row != 0]
    return len(held) == 0 or bool(len(held) == 2 and held[0] == -held[1])


def _is_difference(row: npt.NDArray[np.float64]) -> bool:
    """The coefficients add up to exactly 0: a pair, or small whole numbers."""
    held = row[row != 0]
    is_exact = bool(np.all(held == np.round(held)) and np.abs(held).max(initial=0) < 2**20)
    return _compares(row) or (is_exact and float(held.sum()) == 0)
