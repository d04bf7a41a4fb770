"""A final log-softmax whose outputs are bounded one by one.

Output i is -log of the sum over j of exp(z_j - z_i). So it is at least what the largest values of
these differences give, and at most what the smallest give. Over a box they are bounded by rows, as
everything else is.
"""

from __future__ import annotations

import math

import numpy as np

from radii_check._bounds import Bounds, kernel_error
from radii_check._format import Array, hold
from radii_check._network import Numbers

MOST_OUTPUTS = 64


def rows_for(outputs: int) -> Array:
    """Rows on arguments: each, each negated, and all differences z_j - z_i, by j and then i."""
    units = np.eye(outputs)
    differences = (units[:, None] - units[None]).reshape(-1, outputs)
    return np.concatenate([units, -units, differences])


def least_of(bounds: Bounds, found: Array, matrix: Array, offset: Array) -> Array:
    """Lower bounds of matrix y + offset for the outputs y of a log-softmax, by columns, from lower
    bounds of `rows_for` its arguments; -inf where nothing is known."""
    num, outputs = bounds.num, matrix.shape[1]
    low, high = bounds.argument(len(bounds.network.nodes), bounds.network.output)
    low = num.maximum(low, found[:outputs])
    high = num.minimum(high, -found[outputs : 2 * outputs])
    largest = num.maximum(abs(low), abs(high)).max(0)
    hold(2 * largest < bounds.largest, "a difference of outputs may overflow")
    apart = low[:, None] - high[None]
    apart = apart - 2 * num.unit * abs(apart)  # z_j - z_i, from below
    apart = num.maximum(apart, found[2 * outputs :].reshape(apart.shape))
    is_same = np.eye(outputs, dtype=bool)[:, :, None]
    sums = [1 + np.where(is_same, 0.0, np.exp(d)).sum(0) for d in (-apart.swapaxes(0, 1), apart)]
    logs = [np.log(each) for each in sums]
    few = 64 * num.unit * (outputs + 1)
    lost = [few * (1 + abs(log)) + rounding(bounds, largest, outputs) for log in logs]
    low, high = -logs[0] - lost[0], lost[1] - logs[1]
    return np.stack([_least(num, row, o, low, high) for row, o in zip(matrix, offset, strict=True)])


def _least(num: Numbers, row: Array, offset: float, low: Array, high: Array) -> Array:
    used = np.flatnonzero(row)
    ends = np.where((row[used] > 0)[:, None], low[used], high[used])
    terms = row[used][:, None] * ends
    lost = 2 * (len(used) + 4) * num.unit * (abs(terms).sum(0) + abs(offset))
    return num.below(terms.sum(0) + offset - lost)


def rounding(bounds: Bounds, largest: Array, outputs: int) -> Array:
    """How far a runtime's values may be off: z - m and that less the logarithm, each in the size of
    the arguments; and the sum of exponentials, whose error is a relative one."""
    kernel = 2 * kernel_error("Softmax", bounds.network.is_single)
    count = math.log(outputs)
    of_sum = kernel + outputs + 8 + 2 * (1 + count)
    return np.asarray(bounds.unit * (4 * largest + count + 2 + of_sum))
