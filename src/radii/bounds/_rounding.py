"""How far floating-point arithmetic may be from real arithmetic, and stepping over that distance.

A sum of n products computed in any order is off by at most about n * u times the same sum of
absolute values, where u is the unit roundoff. Every bound in this package is widened by that, so
that the value in real arithmetic is never outside.
"""

from __future__ import annotations

import torch
from torch import Tensor

BOUND_EXTRA_TERMS = 8
"""Roundings beside the sum itself: centre, radius, bias, and the widening of the result."""

ELEMENTARY_ULPS = 8
"""exp, tanh and their like are accurate to a few units in the last place, vectorised or not."""


ROUND_UP = 1 + 2.0**-20
"""What is lost to rounding is a sum in float64 that is rounded itself, by less than this."""

OFFSET_ROUNDING = 2.0**-50
"""What adding two numbers in float64 may be off, relative to both, several times over."""


def sum_slack(magnitude: Tensor, terms: int) -> Tensor:
    """How far a sum of `terms` products may be off, given the sum of their absolute values."""
    unit = torch.finfo(magnitude.dtype).eps / 2
    tiny = torch.finfo(magnitude.dtype).tiny
    return magnitude * (2 * unit * (terms + BOUND_EXTRA_TERMS)) + tiny


def widened(low: Tensor, high: Tensor, ulps: int) -> tuple[Tensor, Tensor]:
    """Both sides moved outward by `ulps` units in the last place (relative), and by a subnormal."""
    spread = torch.finfo(low.dtype).eps * ulps
    tiny = torch.finfo(low.dtype).tiny
    return low - low.abs() * spread - tiny, high + high.abs() * spread + tiny


def next_above(x: Tensor) -> Tensor:
    """The next larger number."""
    return torch.nextafter(x, torch.full_like(x, torch.inf))


def next_below(x: Tensor) -> Tensor:
    """The next smaller number."""
    return torch.nextafter(x, torch.full_like(x, -torch.inf))
