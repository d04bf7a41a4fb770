"""alpha-CROWN (Xu et al. 2021): the same pass, each row with lines that were chosen by ascent.

Every choice of lines is valid, so each step's bounds are proven and the best of them count. So is
every choice of multipliers of known intervals (beta-CROWN, Wang et al. 2021), which are found in
the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy.typing as npt
import torch
from torch import Tensor

from radii.bounds._affine_maps import layered
from radii.bounds._ascent import Ascent, Choices
from radii.bounds._crown import bound_rows, output_rows, propagate
from radii.bounds._duals import MULTIPLIER_DAMPING
from radii.bounds._linear import (
    Between,
    LinearBounds,
    LinearFunctions,
    State,
    backward,
    joined_bounds,
)
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


@dataclass(frozen=True, slots=True, eq=False)
class FreeChoices:
    """What a bound may choose, by the numbers of layers: `lines` (2, regions, rows, units) in
    [0, 1], and multipliers of what is known of some arguments."""

    lines: dict[int, Tensor]
    between: dict[int, Between] = field(default_factory=dict)

    @classmethod
    def start(cls, state: State, rows: LinearFunctions) -> FreeChoices:
        """A copy of CROWN's lines for each row and layer that has any."""
        lines = {}
        for number, relaxation in enumerate(state.relaxations):
            start = relaxation.start
            if start is not None:
                own = start[:, rows.regions]
                lines[number] = own.expand(-1, -1, rows.shape[1], -1).clone()
        return cls(lines)

    @property
    def tensors(self) -> list[Tensor]:
        """All of them, the lines first."""
        sides = [side for known in self.between.values() for side in (known.above, known.below)]
        return [*self.lines.values(), *sides]

    def replaced(self, tensors: Sequence[Tensor]) -> FreeChoices:
        """The same with other numbers, in the order of `tensors`."""
        rest = iter(tensors)
        lines = {number: next(rest) for number in self.lines}
        between = {
            number: replace(known, above=next(rest), below=next(rest))
            for number, known in self.between.items()
        }
        return FreeChoices(lines, between)


def optimised(
    state: State,
    rows: LinearFunctions,
    choices: FreeChoices,
    steps: int,
    limits: Limits = UNLIMITED,
) -> tuple[LinearBounds, FreeChoices]:
    """The best bounds that some steps of ascent meet, and for each row the choices they are from.

    Once the `limits` are over, no further step is taken.
    """
    if not choices.tensors or not steps:
        return backward(state, rows, choices.lines, choices.between), choices
    current = choices.replaced([held.clone() for held in choices.tensors])
    ascent = Ascent(
        [Choices(held, most=1.0) for held in current.lines.values()]
        + [
            Choices(side, damping=MULTIPLIER_DAMPING)
            for known in current.between.values()
            for side in (known.above, known.below)
        ]
    )
    kept = current.replaced([held.clone() for held in current.tensors])
    best, gradients = _with_gradients(state, rows, current)
    for step in range(1, steps + 1):
        ascent.climb(gradients)
        if step == steps or limits.is_over:
            bounds = backward(state, rows, current.lines, current.between)
        else:
            bounds, gradients = _with_gradients(state, rows, current)
        wins = (bounds.values > best.values)[..., None]
        for held, tensor in zip(kept.tensors, current.tensors, strict=True):
            held.copy_(torch.where(wins, tensor, held))
        best = _better(best, bounds)
        if limits.is_over:
            break
    return best, kept


def _with_gradients(
    state: State, rows: LinearFunctions, choices: FreeChoices
) -> tuple[LinearBounds, list[Tensor | None]]:
    """The bounds of these choices and their derivatives, None where there is none."""
    leaves = [held.detach().requires_grad_() for held in choices.tensors]
    free = choices.replaced(leaves)
    with torch.enable_grad():
        bounds = backward(state, rows, free.lines, free.between)
        total = bounds.values[torch.isfinite(bounds.values)].sum()
        if not total.requires_grad:
            return _detached(bounds), [None] * len(leaves)
        gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    return _detached(bounds), [None if each is None else each.nan_to_num() for each in gradients]


def _detached(bounds: LinearBounds) -> LinearBounds:
    return LinearBounds(
        bounds.values.detach(),
        bounds.slopes.detach(),
        bounds.constants.detach(),
        bounds.points.detach(),
    )


class OptimisedPass:
    """Bounds rows like `backward`, after so many steps of ascent of their choices."""

    def __init__(self, steps: int, limits: Limits = UNLIMITED) -> None:
        self.steps, self.limits = steps, limits

    def __call__(self, state: State, rows: LinearFunctions) -> LinearBounds:
        units = sum(layer.size for layer in state.network.layers[: len(state.lines)])
        count, each = rows.shape
        step = max(1, CHOICES_AT_ONCE // max(1, 2 * units * count))
        parts = [rows.part(slice(first, first + step)) for first in range(0, each, step)]
        return joined_bounds([self._climb(state, part) for part in parts], 1)

    def _climb(self, state: State, rows: LinearFunctions) -> LinearBounds:
        return optimised(state, rows, FreeChoices.start(state, rows), self.steps, self.limits)[0]


def _better(first: LinearBounds, second: LinearBounds) -> LinearBounds:
    """Row by row whichever bound is higher."""
    wins = second.values > first.values
    return LinearBounds(
        torch.where(wins, second.values, first.values),
        torch.where(wins[..., None], second.slopes, first.slopes),
        torch.where(wins, second.constants, first.constants),
        torch.where(wins[..., None], second.points, first.points),
    )
