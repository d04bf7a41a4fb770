"""Into several halfspaces at once: the steps towards a violation that is a conjunction.

Following the worst row alone zigzags between rows, and jumps over a region that is thin. Here all
rows are linearised at the point, and the step is the shortest that brings every one of them down.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["joint_steps"]

SWEEPS = 20
"""Rounds over the rows; each makes one row hold after the other, which is Hildreth's method."""
OVERSHOOT = 0.01
"""How far below 0 rows are aimed, as a part of the largest row's size: steps that end on a boundary
never cross it."""


def joint_steps(rows: Tensor, slopes: Tensor) -> Tensor:
    """For each point the shortest step, in L2, with rows + slopes @ step below 0; at least nearly.

    `rows` is (points, rows), -inf where a point has fewer; `slopes` is (points, rows, features).
    """
    is_row = rows.isfinite()
    size = rows.abs().masked_fill(~is_row, 0.0).amax(dim=1, keepdim=True)
    needed = torch.where(is_row, rows + OVERSHOOT * size, 0.0)
    products = slopes @ slopes.transpose(1, 2)
    squares = products.diagonal(dim1=1, dim2=2)
    is_steep = is_row & (squares > torch.finfo(rows.dtype).tiny)
    multipliers = torch.zeros_like(needed)
    for _ in range(SWEEPS):
        for row in range(rows.shape[1]):
            missing = needed[:, row] - (products[:, row] * multipliers).sum(dim=1)
            change = missing / torch.where(is_steep[:, row], squares[:, row], 1.0)
            raised = (multipliers[:, row] + change).clamp(min=0.0)
            multipliers[:, row] = torch.where(is_steep[:, row], raised, 0.0)
    return -(multipliers[:, None] @ slopes)[:, 0]
