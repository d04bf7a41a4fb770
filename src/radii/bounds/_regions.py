"""Regions of inputs as boxes, and the least values of linear functions over boxes and balls.

Boxes are exact but for rounding. Balls in L1 and L2, clipped to their domain, are bounded by a
multiplier for the length: every multiplier gives a valid bound, so that its own rounding is
harmless.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor

from radii.problem import Ball, Box, Norm

Float64 = npt.NDArray[np.float64]

SUM_ROUNDING = 2.0**-40
"""What float64 sums may be off, relative to the sum of absolute values: up to 8,192 terms."""

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
"""Sums of products that underflow in float64 are off by less than this, with millions of terms: a
coefficient that is such a sum, times the largest value that it is on, counts as rounding too."""

REGION_ROWS_AT_ONCE = 256

ROUND_UP = 1 + 2.0**-20
"""What is lost to rounding is a sum in float64 that is rounded itself, by less than this."""

OFFSET_ROUNDING = 2.0**-50
"""What adding two numbers in float64 may be off, relative to both, several times over."""


def box_of(region: Ball | Box) -> tuple[Float64, Float64]:
    """The flattened lows and highs of the smallest box around a region."""
    low, high = region.box()
    return np.array(low, np.float64).ravel(), np.array(high, np.float64).ravel()


def centre_of(region: Ball | Box) -> Float64:
    """The flattened centre of a ball, or the middle of a box."""
    if isinstance(region, Ball):
        return region.center.ravel()
    low, high = box_of(region)
    return np.clip(low / 2 + high / 2, low, high)


def euclidean_lengths(rows: Float64) -> Float64:
    """Of each row, in parts of its largest entry: squares of small numbers would underflow."""
    largest = np.abs(rows).max(axis=-1, initial=0.0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return np.asarray(np.linalg.norm(rows / scale[..., None], axis=-1) * scale)


def linear_range(matrix: csr_array, offset: Float64, region: Ball | Box) -> tuple[Float64, Float64]:
    """The least and the greatest value of each row of `matrix @ x + offset` over the region.

    Exact up to rounding, which is added, for boxes and for Linf and L1 balls clipped to their
    domain; for L2 balls the better of the ball's bound and the box's.
    """
    low, high = box_of(region)
    centre = centre_of(region)
    down, up = np.maximum(centre - low, 0.0), np.maximum(high - centre, 0.0)
    middle = matrix @ centre + offset
    size = abs(matrix) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(offset)
    below, above = np.empty_like(middle), np.empty_like(middle)
    for first in range(0, matrix.shape[0], REGION_ROWS_AT_ONCE):
        rows = slice(first, first + REGION_ROWS_AT_ONCE)
        dense = matrix[rows].toarray()
        above[rows] = _greatest(dense, down, up, region)
        below[rows] = _greatest(-dense, down, up, region)
    slack = SUM_ROUNDING * size
    return middle - below - slack, middle + above + slack


def _greatest(rows: Float64, down: Float64, up: Float64, region: Ball | Box) -> Float64:
    """The greatest rows @ d over steps d between -down and up within the ball of the region."""
    reach = np.where(rows > 0, up, down)
    gains = np.abs(rows)
    within_box = (gains * reach).sum(axis=1)
    if isinstance(region, Box) or region.norm is Norm.LINF:
        return np.asarray(within_box)
    if region.norm is Norm.L2:
        by_length = euclidean_lengths(rows) * region.eps
        return np.asarray(np.minimum(within_box, by_length))
    # L1: the budget goes to the steepest features first, each as far as the domain lets it.
    order = np.argsort(-gains, axis=1)
    reach = np.take_along_axis(reach, order, axis=1)
    spent = np.cumsum(reach, axis=1) - reach
    steps = np.clip(region.eps - spent, 0.0, reach)
    return np.asarray((np.take_along_axis(gains, order, axis=1) * steps).sum(axis=1))


def least_by_budget(
    rows: Tensor, down: Tensor, up: Tensor, eps: Tensor | float
) -> tuple[Tensor, Tensor, Tensor]:
    """The least rows @ d, |d|_1 <= eps, down <= d <= up: values, absolute sizes, and the steps d.

    The budget goes to the steepest inputs first. The slope p of the last of them is the multiplier
    of the length, and for any p the least value is at least
    - sum_i max(|row_i| - p, 0) reach_i - p eps: its rounding is harmless.
    """
    reach = torch.where(rows > 0, -down, up)
    gains, order = rows.abs().sort(dim=-1, descending=True)
    sorted_reach = reach.gather(-1, order)
    spent = sorted_reach.cumsum(-1) - sorted_reach
    lengths = torch.minimum((eps - spent).clamp_min(0), sorted_reach)
    is_over = spent + sorted_reach >= eps
    last = is_over.to(torch.int8).argmax(-1, keepdim=True)
    price = torch.where(is_over.any(-1, keepdim=True), gains.gather(-1, last), 0.0)
    terms = (rows.abs() - price).clamp_min(0) * reach
    total = terms.sum(-1) + (price * eps).squeeze(-1)
    steps = -torch.sign(rows) * torch.zeros_like(rows).scatter(-1, order, lengths)
    return -total, total + (rows.abs() * reach).sum(-1), steps


def scale_of_small(rows: Tensor) -> Tensor:
    """Powers of two that rows (..., n) are divided by, so that none is far below 1: the price of a
    length would underflow, and what is least at another price is no bound."""
    largest = rows.detach().abs().amax(-1, keepdim=True)
    is_small = (largest > 0) & (largest < 1)
    exponent = torch.frexp(largest).exponent.to(rows.dtype) - 1
    return torch.where(is_small, torch.exp2(exponent), 1.0)


def least_by_length(
    rows: Tensor, down: Tensor, up: Tensor, eps: Tensor | float, bisections: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for |d|_2 <= eps.

    With a price p >= 0 on the squared length each input has a parabola of its own, and for any p
    the least value is at least the sum of their minima, row_i d_i + p d_i^2, less p eps^2. The best
    p is where the minimiser's length is eps; it is found by halving.
    """
    scale = scale_of_small(rows)
    rows = rows / scale

    def steps_at(price: Tensor) -> Tensor:
        free = -rows / (2 * price).clamp_min(torch.finfo(rows.dtype).tiny)
        return torch.minimum(torch.maximum(free, down), up)

    with torch.no_grad():
        high = torch.linalg.vector_norm(rows, dim=-1, keepdim=True) / (2 * eps)
        low = torch.zeros_like(high)
        for _ in range(bisections):
            middle = (low + high) / 2
            lengths = torch.linalg.vector_norm(steps_at(middle), dim=-1, keepdim=True)
            low = torch.where(lengths > eps, middle, low)
            high = torch.where(lengths > eps, high, middle)
    steps = steps_at(high)
    linear, square = rows * steps, high * steps * steps
    budget = (high * eps * eps).squeeze(-1)
    size = (linear.abs() + square).sum(-1) + budget
    scale = scale.squeeze(-1)
    return ((linear + square).sum(-1) - budget) * scale, size * scale, steps
