"""A final log-softmax whose outputs are bounded one by one.

Output i is y_i = -log(sum over j of exp(z_j - z_i)). It is at least what upper bounds of all these
differences give, and at most what lower bounds give. Over a box the arguments z and their
differences are bounded by rows, as everything else is.
"""

from __future__ import annotations

import math

import numpy as np

from radii_check._bounds import Bounds
from radii_check._curves import kernel_units
from radii_check._errors import require
from radii_check._format import Array
from radii_check._numbers import Numbers
from radii_check.operators._softmax import SOFTMAX_ERROR

MAX_OUTPUTS = 64
FEW_UNITS = 64
"""Bounds the rounding of exp, log and of what is computed of them, in units of float64."""


def argument_rows(outputs: int) -> Array:
    """Rows on the arguments z: z_i for each i, -z_i for each i, and z_j - z_i by j and then i."""
    units = np.eye(outputs)
    differences = (units[:, None] - units[None]).reshape(-1, outputs)
    return np.concatenate([units, -units, differences])


def least_of_outputs(bounds: Bounds, values: Array, matrix: Array, offset: Array) -> Array:
    """Lower bounds of matrix y + offset, (rows, regions), from lower bounds `values` of the
    `argument_rows`; -inf where nothing is known."""
    num, outputs = bounds.num, matrix.shape[1]
    low, high = bounds.argument_interval(bounds.end, bounds.network.output)
    low = num.maximum(low, values[:outputs])
    high = num.minimum(high, -values[outputs : 2 * outputs])
    largest = num.maximum(abs(low), abs(high)).max(0)
    overflow = "a difference of outputs may overflow"
    require(2 * largest < bounds.errors.largest, overflow)

    # difference[j, i] is a lower bound of z_j - z_i; so -difference[i, j] is an upper one.
    difference = low[:, None] - high[None]
    difference = difference - 2 * num.unit * abs(difference)
    difference = num.maximum(difference, values[2 * outputs :].reshape(difference.shape))
    log_largest_sum = _log_sum_exp(-difference.swapaxes(0, 1))
    log_smallest_sum = _log_sum_exp(difference)
    runtime = _runtime_error(bounds, largest, outputs)
    few = FEW_UNITS * num.unit * (outputs + 1)
    y_low = -log_largest_sum - (few * (1 + abs(log_largest_sum)) + runtime)
    y_high = few * (1 + abs(log_smallest_sum)) + runtime - log_smallest_sum
    rows = zip(matrix, offset, strict=True)
    return np.stack([_least(num, row, constant, y_low, y_high) for row, constant in rows])


def _log_sum_exp(difference: Array) -> Array:
    """log(sum over j of exp(difference[j, i])), where the term with j = i is exactly 1."""
    is_same = np.eye(len(difference), dtype=bool)[:, :, None]
    return np.asarray(np.log(1 + np.where(is_same, 0.0, np.exp(difference)).sum(0)))


def _least(num: Numbers, row: Array, offset: float, low: Array, high: Array) -> Array:
    """The least value of row y + offset for low <= y <= high."""
    used = np.flatnonzero(row)
    ends = np.where((row[used] > 0)[:, None], low[used], high[used])
    terms = row[used][:, None] * ends
    sizes = abs(terms).sum(0) + abs(offset)
    rounding = 2 * (len(used) + 4) * num.unit * sizes
    return num.floor(terms.sum(0) + offset - rounding)


def _runtime_error(bounds: Bounds, largest: Array, outputs: int) -> Array:
    """How far a runtime's values may be off: z - m, and that less the logarithm, are rounded in the
    size of the arguments; the sum of exponentials has a relative error, which its logarithm has as
    an absolute one."""
    kernel = 2 * kernel_units(SOFTMAX_ERROR, bounds.network.is_single)
    log_count = math.log(outputs)
    of_sum = kernel + outputs + 8 + 2 * (1 + log_count)
    return np.asarray(bounds.errors.unit * (4 * largest + log_count + 2 + of_sum))
