"""What would violate a specification, as linear cuts of boxes of inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from radii.balls import Ball, Norm
from radii.bounds.rounding import OFFSET_ROUNDING
from radii.properties import Halfspaces
from radii.queries import Specification
from radii.verifiers.branch_and_bound.clipping import Cuts, Weighed, clipped, hull, weighed

__all__ = ["Statement"]

DIRECTION_SLACK = 2.0**-40
"""What the rounding of a plane around a ball may be, relative to the numbers in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """The violations as cuts: one for each row of outputs and, behind them, of the inputs.

    `polyhedra` says which cuts each violation needs at once. A `ball` in L1 or L2 adds a cut of its
    own.
    """

    rows: Tensor
    offsets: Tensor
    input_rows: Tensor
    input_offsets: Tensor
    polyhedra: tuple[Tensor, ...]
    ball: Ball | None

    @classmethod
    def of(
        cls,
        violations: tuple[Halfspaces, ...],
        specification: Specification,
        device: torch.device | str,
    ) -> Statement:
        rows: dict[bytes, int] = {}
        kept: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
        members: list[list[int]] = []
        for polyhedron in violations:
            members.append([])
            for held in np.column_stack([polyhedron.matrix, polyhedron.offset]):
                place = rows.setdefault(held.tobytes(), len(kept))
                if place == len(kept):
                    kept.append(held)
                members[-1].append(place)
        table = torch.tensor(np.stack(kept), dtype=torch.float64, device=device)
        inputs, region = specification.inputs, specification.region
        is_round = isinstance(region, Ball) and region.norm is not Norm.LINF
        extra = np.zeros((0, 1)) if inputs is None else inputs.matrix
        offsets = np.zeros(0) if inputs is None else inputs.offset
        own = list(range(len(kept), len(kept) + len(extra) + is_round))
        return cls(
            table[:, :-1],
            table[:, -1],
            torch.tensor(extra, dtype=torch.float64, device=device),
            torch.tensor(offsets, dtype=torch.float64, device=device),
            tuple(torch.tensor(part + own, device=device) for part in members),
            region if isinstance(region, Ball) and is_round else None,
        )

    def cuts(self, slopes: Tensor, constants: Tensor, low: Tensor, high: Tensor) -> Cuts:
        """All cuts of each box, from linear functions below the rows of outputs."""
        rounding = OFFSET_ROUNDING * (constants.abs() + self.offsets.abs())
        all_slopes, all_constants = [slopes], [constants + self.offsets - rounding]
        count = len(slopes)
        if len(self.input_rows):
            all_slopes.append(self.input_rows.expand(count, -1, -1))
            all_constants.append(self.input_offsets.expand(count, -1))
        if self.ball is not None:
            slope, constant = _around(self.ball, low / 2 + high / 2)
            all_slopes.append(slope[:, None])
            all_constants.append(constant[:, None])
        return Cuts(torch.cat(all_slopes, 1), torch.cat(all_constants, 1))

    def weighed(self, cuts: Cuts, low: Tensor, high: Tensor) -> list[Weighed]:
        """For each violation whether its cuts leave anything of each box."""
        return [weighed(cuts.chosen(part), low, high) for part in self.polyhedra]

    def clipped(self, cuts: Cuts, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """What is left of each box by any of the violations."""
        return hull([clipped(cuts.chosen(part), low, high) for part in self.polyhedra])


def _around(ball: Ball, points: Tensor) -> tuple[Tensor, Tensor]:
    """A plane that the ball lies below, in the direction of each point: slope, constant.

    slope @ (x - centre) <= eps for any slope of length at most 1 in the dual norm.
    """
    centre = torch.from_numpy(ball.center.ravel().copy()).to(points)
    steps = points - centre
    if ball.norm is Norm.L1:
        slope = torch.sign(steps)
    else:
        length = torch.linalg.vector_norm(steps, dim=1, keepdim=True)
        slope = steps / length.clamp_min(1e-300) * (1 - DIRECTION_SLACK)
    size = (slope * centre).abs().sum(1) + ball.eps
    return slope, -(slope @ centre) - ball.eps - DIRECTION_SLACK * size
