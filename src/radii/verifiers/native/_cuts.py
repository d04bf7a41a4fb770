"""Boxes against linear functions: where a violation may be, and where it cannot be.

A violation needs several functions of the input to be <= 0 at once. Linear functions below them
then cut the box: to a smaller one, or to nothing, which proves it (Clip-and-Verify, Zhou et al.
2025). `Statement` makes the cuts of a specification.

A cut also bounds other functions where it holds. At a violation slopes @ x + constant is at most 0,
so that for every weight w >= 0 a function f of the input is there at least the least of f + w cut
over the box (Lagrangian duality). Along w that least value is concave and bends where one input's
slope changes its sign, so the best w is one of few, as in a fractional knapsack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from radii.bounds import OFFSET_ROUNDING, SUM_ROUNDING
from radii.problem import Ball, Halfspaces, Norm, Specification

LARGEST_KNOWN = 1e150
"""Beyond, nothing is known: a chord between such bounds would be rounded to anything."""

DIRECTION_SLACK = 2.0**-40
"""What the rounding of a plane around a ball may be, relative to the numbers in it."""

SHORTEST_DIRECTION = 1e-140
"""Squares of shorter steps underflow: their length would be too small, and the slope too long."""

WEIGHT_STEPS = 12
WEIGHT_STEP = 0.5
"""Steps of ascent of the weights of a conjunction, and their size at first."""


@dataclass(frozen=True, slots=True, eq=False)
class ViolationCuts:
    """Functions slopes @ x + constants that are <= 0 at every violation in a box.

    `slopes` is (boxes, cuts, inputs), `constants` (boxes, cuts), in float64.
    """

    slopes: Tensor
    constants: Tensor

    def __post_init__(self) -> None:
        unknown = ~(torch.isfinite(self.slopes).all(2) & torch.isfinite(self.constants))
        if bool(unknown.any()):
            slopes = torch.where(unknown[..., None], 0.0, self.slopes)
            object.__setattr__(self, "slopes", slopes)
            object.__setattr__(self, "constants", torch.where(unknown, -1.0, self.constants))

    def chosen(self, cuts: Tensor) -> ViolationCuts:
        return ViolationCuts(self.slopes[:, cuts], self.constants[:, cuts])

    def taken(self, boxes: Tensor) -> ViolationCuts:
        return ViolationCuts(self.slopes[boxes], self.constants[boxes])

    def least(self, low: Tensor, high: Tensor) -> Tensor:
        """The least value of each cut over its box, less its rounding."""
        middle, reach = (low + high)[:, None] / 2, (high - low)[:, None] / 2
        magnitude = self.slopes.abs()
        size = (magnitude * (middle.abs() + reach)).sum(2) + self.constants.abs()
        values = (self.slopes * middle - magnitude * reach).sum(2) + self.constants
        return values - SUM_ROUNDING * size


def clipped(cuts: ViolationCuts, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest box around what each cut alone leaves; empty (low > high) where nothing is left.

    slope_j x_j <= -constant - the least of the others, so x_j is bounded on one side.
    """
    at_low, at_high = cuts.slopes * low[:, None], cuts.slopes * high[:, None]
    smallest = torch.minimum(at_low, at_high)
    total = smallest.sum(2) + cuts.constants
    size = torch.maximum(at_low.abs(), at_high.abs()).sum(2) + cuts.constants.abs()
    room = smallest - (total - SUM_ROUNDING * size)[..., None]  # what slope_j x_j may be at most
    steep = cuts.slopes.abs() > 0
    limit = room / torch.where(steep, cuts.slopes, 1.0)
    limit = torch.where(torch.isfinite(limit), limit, torch.inf * torch.sign(cuts.slopes))
    slack = SUM_ROUNDING * limit.abs()
    tops = torch.where(steep & (cuts.slopes > 0), limit + slack, torch.inf).amin(1)
    bottoms = torch.where(steep & (cuts.slopes < 0), limit - slack, -torch.inf).amax(1)
    # A cut without slope leaves all or nothing.
    is_empty = (total - SUM_ROUNDING * size > 0).any(1)[:, None]
    low = torch.where(is_empty, torch.inf, torch.maximum(low, bottoms))
    return low, torch.minimum(high, tops)


def hull(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The smallest box around several, of which some may be empty; empty if all are."""
    lows, highs = (torch.stack(sides) for sides in zip(*parts, strict=True))
    is_empty = (lows > highs).any(2, keepdim=True)
    low = torch.where(is_empty, torch.inf, lows).amin(0)
    return low, torch.where(is_empty, -torch.inf, highs).amax(0)


@dataclass(frozen=True, slots=True, eq=False)
class CutMixture:
    """The best mixture of cuts found: its least value in the box (> 0: no violation), and where."""

    values: Tensor
    points: Tensor
    slopes: Tensor

    def taken(self, boxes: Tensor) -> CutMixture:
        return CutMixture(self.values[boxes], self.points[boxes], self.slopes[boxes])


def best_mixture(cuts: ViolationCuts, low: Tensor, high: Tensor) -> CutMixture:
    """Weights >= 0 of all cuts that make the least value of their mixture large, by ascent."""
    single = cuts.least(low, high)
    best, place = single.max(1)
    weights = torch.zeros_like(single).scatter(1, place[:, None], 1.0)
    mixture = _mixed(cuts, weights, low, high)
    if single.shape[1] == 1:
        return CutMixture(best, mixture.points, mixture.slopes)
    found = CutMixture(best, mixture.points, mixture.slopes)
    weights = torch.full_like(single, 1 / single.shape[1])
    scale = single.abs().amax(1, keepdim=True).clamp_min(1e-12)
    for count in range(WEIGHT_STEPS):
        mixture = _mixed(cuts, weights, low, high)
        wins = mixture.values > found.values
        found = CutMixture(
            torch.where(wins, mixture.values, found.values),
            torch.where(wins[:, None], mixture.points, found.points),
            torch.where(wins[:, None], mixture.slopes, found.slopes),
        )
        gains = (cuts.slopes * mixture.points[:, None]).sum(2) + cuts.constants
        weights = weights * torch.exp(
            (WEIGHT_STEP * 0.85**count * 4) * (gains / scale).clamp(-5, 5)
        )
        weights = weights / weights.sum(1, keepdim=True)
    return found


def _mixed(cuts: ViolationCuts, weights: Tensor, low: Tensor, high: Tensor) -> CutMixture:
    slopes = (weights[..., None] * cuts.slopes).sum(1, keepdim=True)
    constants = (weights * cuts.constants).sum(1, keepdim=True)
    sizes = (weights[..., None] * cuts.slopes.abs()).sum(1) * torch.maximum(low.abs(), high.abs())
    slack = SUM_ROUNDING * (sizes.sum(1) + (weights * cuts.constants.abs()).sum(1))
    values = ViolationCuts(slopes, constants).least(low, high).squeeze(1) - slack
    slopes = slopes.squeeze(1)
    return CutMixture(values, torch.where(slopes > 0, low, high), slopes)


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

    def cuts(self, slopes: Tensor, constants: Tensor, low: Tensor, high: Tensor) -> ViolationCuts:
        """All cuts of each box, from linear functions below the rows of outputs."""
        rounding = OFFSET_ROUNDING * (constants.abs() + self.offsets.abs())
        all_slopes, all_constants = [slopes], [constants + self.offsets - rounding]
        count = len(slopes)
        if len(self.input_rows):
            all_slopes.append(self.input_rows.expand(count, -1, -1))
            all_constants.append(self.input_offsets.expand(count, -1))
        if self.ball is not None:
            slope, constant = _supporting_plane(self.ball, low / 2 + high / 2)
            all_slopes.append(slope[:, None])
            all_constants.append(constant[:, None])
        return ViolationCuts(torch.cat(all_slopes, 1), torch.cat(all_constants, 1))

    def weighed(self, cuts: ViolationCuts, low: Tensor, high: Tensor) -> list[CutMixture]:
        """For each violation whether its cuts leave anything of each box."""
        return [best_mixture(cuts.chosen(part), low, high) for part in self.polyhedra]

    def clipped(self, cuts: ViolationCuts, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """What is left of each box by any of the violations."""
        return hull([clipped(cuts.chosen(part), low, high) for part in self.polyhedra])


def _supporting_plane(ball: Ball, points: Tensor) -> tuple[Tensor, Tensor]:
    """A plane that the ball lies below, in the direction of each point: slope, constant.

    slope @ (x - centre) <= eps for any slope of length at most 1 in the dual norm.
    """
    centre = torch.from_numpy(ball.center.ravel().copy()).to(points)
    steps = points - centre
    if ball.norm is Norm.L1:
        slope = torch.sign(steps)
    else:
        length = torch.linalg.vector_norm(steps, dim=1, keepdim=True)
        is_known = length > SHORTEST_DIRECTION
        slope = torch.where(is_known, steps / length, 0.0) * (1 - DIRECTION_SLACK)
    size = (slope * centre).abs().sum(1) + ball.eps
    return slope, -(slope @ centre) - ball.eps - DIRECTION_SLACK * size


@dataclass(frozen=True, slots=True, eq=False)
class CentredFunctions:
    """Functions slopes @ u + constants of u in [-1, 1]: a box seen from its middle, by its reach.

    `slopes` is (boxes, functions, inputs), `constants` (boxes, functions).
    """

    slopes: Tensor
    constants: Tensor

    def taken(self, boxes: Tensor) -> CentredFunctions:
        return CentredFunctions(self.slopes[boxes], self.constants[boxes])


def centred_cut(mixture: CutMixture, low: Tensor, high: Tensor, reach: Tensor) -> CentredFunctions:
    """The best mixture of a violation's cuts, one for each box, less its rounding.

    `reach` may be a little more than half of a side.
    """
    magnitude = mixture.slopes.abs()
    size = (magnitude * torch.maximum(low.abs(), high.abs())).sum(1) + mixture.values.abs()
    constants = mixture.values + (magnitude * (high / 2 - low / 2)).sum(1) - SUM_ROUNDING * size
    return CentredFunctions((mixture.slopes * reach)[:, None], constants[:, None])


def least_at_violations(functions: CentredFunctions, cut: CentredFunctions) -> Tensor:
    """The least value of each function where the box's cut is at most 0, less its rounding."""
    slopes, turn = functions.slopes, cut.slopes
    is_opposed = slopes * turn < 0
    weights, order = torch.where(is_opposed, -slopes / turn, torch.inf).sort(2)
    steps = turn.abs()
    first = cut.constants + torch.where(is_opposed, steps, -steps).sum(2)
    ahead = first[..., None] - 2 * steps.expand_as(slopes).gather(2, order).cumsum(2)
    place = (ahead > 0).sum(2, keepdim=True).clamp_max(slopes.shape[2] - 1)
    weight = weights.gather(2, place).squeeze(2)
    weight = torch.where((first > 0) & torch.isfinite(weight), weight, 0.0)
    values = functions.constants + weight * cut.constants
    values = values - (slopes + weight[..., None] * turn).abs().sum(2)
    size = functions.constants.abs() + weight * (cut.constants.abs() + steps.sum(2))
    values = values - SUM_ROUNDING * (size + slopes.abs().sum(2))
    return known_only(values)


def known_only(values: Tensor) -> Tensor:
    """Lower bounds; what is no number, or so large that sums of it may overflow, is none."""
    return torch.where(values.abs() < LARGEST_KNOWN, values, -torch.inf)
