"""alpha-CROWN (Xu et al. 2021): the same pass, each row with lines that were chosen by ascent.

Every choice of lines is valid, so each step's bounds are proven and the best of them count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt
import torch
from torch import Tensor

from radii.bounds._affine_maps import layered
from radii.bounds._ascent import Ascent, Choices
from radii.bounds._crown import bound_rows, output_rows, propagate
from radii.bounds._linear import LinearBounds, LinearFunctions, State, backward, joined_bounds
from radii.bounds._relu_form import fuse
from radii.bounds._supports import Supports
from radii.networks import Interval, Network
from radii.problem import FLOAT, UNLIMITED, Arithmetic, Ball, Box, Limits

CHOICES_AT_ONCE = 1 << 21
"""How many choices are optimised at once: 16 MB in float64, a few times."""


def alpha_crown_bounds(
    network: Network,
    regions: Sequence[Ball | Box],
    rows: npt.ArrayLike | None = None,
    *,
    steps: int = 20,
    arithmetic: Arithmetic = FLOAT,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Interval:
    """As `crown_bounds`, with lines optimised for every row, those of inner layers included.

    Never looser than CROWN, and about 3 * `steps` times its work.
    """
    ready = layered(fuse(network), dtype, device, arithmetic)
    supports = Supports.of(regions, dtype, device)
    bound = OptimisedPass(steps)
    with torch.no_grad():
        plain = propagate(ready, supports)
        wanted = output_rows(plain, rows)
        at_least = bound_rows(plain, wanted)
        tight = propagate(ready, supports, bound)
        return bound_rows(tight, wanted, bound).intersected(at_least)


class OptimisedPass:
    """Bounds rows like `backward`, after so many steps of ascent of their choices, or as many as
    there is time for."""

    def __init__(self, steps: int, limits: Limits = UNLIMITED) -> None:
        self.steps, self.limits = steps, limits

    def __call__(self, state: State, rows: LinearFunctions) -> LinearBounds:
        units = sum(layer.size for layer in state.network.layers[: len(state.lines)])
        count, each = rows.shape
        step = max(1, CHOICES_AT_ONCE // max(1, 2 * units * count))
        parts = [rows.part(slice(first, first + step)) for first in range(0, each, step)]
        return joined_bounds([self._climb(state, part) for part in parts], 1)

    def _climb(self, state: State, rows: LinearFunctions) -> LinearBounds:
        choices = _start(state, rows)
        best = backward(state, rows)
        if not choices:
            return best
        ascent = Ascent([Choices(held, most=1.0) for held in choices.values()])
        for _ in range(self.steps):
            if self.limits.is_over:
                return best
            bounds, gradients = _with_gradients(state, rows, choices)
            best = _better(best, bounds)
            ascent.climb([gradients.get(number) for number in choices])
        return _better(best, backward(state, rows, choices))


def _start(state: State, rows: LinearFunctions) -> dict[int, Tensor]:
    """A copy of CROWN's choices for each row and layer that has any."""
    choices = {}
    for number, relaxation in enumerate(state.relaxations):
        start = relaxation.start
        if start is not None:
            own = start[:, rows.regions]
            choices[number] = own.expand(-1, -1, rows.shape[1], -1).clone()
    return choices


def _with_gradients(
    state: State, rows: LinearFunctions, choices: dict[int, Tensor]
) -> tuple[LinearBounds, dict[int, Tensor]]:
    """The bounds of these choices and their derivatives, 0 where there is none."""
    leaves = {number: held.detach().requires_grad_() for number, held in choices.items()}
    with torch.enable_grad():
        bounds = backward(state, rows, leaves)
        total = bounds.values[torch.isfinite(bounds.values)].sum()
        if not total.requires_grad:
            return bounds, {}
        gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    known = zip(leaves, gradients, strict=True)
    return _detached(bounds), {n: g.nan_to_num() for n, g in known if g is not None}


def _detached(bounds: LinearBounds) -> LinearBounds:
    return LinearBounds(
        bounds.values.detach(),
        bounds.slopes.detach(),
        bounds.constants.detach(),
        bounds.points.detach(),
    )


def _better(first: LinearBounds, second: LinearBounds) -> LinearBounds:
    """Row by row whichever bound is higher."""
    wins = second.values > first.values
    return LinearBounds(
        torch.where(wins, second.values, first.values),
        torch.where(wins[..., None], second.slopes, first.slopes),
        torch.where(wins, second.constants, first.constants),
        torch.where(wins[..., None], second.points, first.points),
    )
