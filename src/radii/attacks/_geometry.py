"""How points move in a norm: lengths, steps, projections and nearest points, on rows of a batch.

A row is one point, flattened: tensors have the shape (rows, features), with one radius or step size
a row. Results are exact up to rounding, no better: whether a point counts as a witness is decided
elsewhere, on ONNX Runtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from radii.problem import Features, Norm

SMALLEST_DIVISOR = 1e-30
"""Keeps quotients finite where a gradient vanishes."""
PROJECTION_STEPS = 12
"""Limit on the refinements of a projection, which stop earlier once nothing changes."""
PROJECTION_BISECTIONS = 40
"""Doublings and then halvings in the search for a multiplier: all bits of a float32."""
SPARSE_STEP = 32
"""Features that may always move in one step of L1."""
SPARSE_START = 8
"""Features that a random sparse start changes."""
JOINT_SWEEPS = 20
"""Rounds over the rows; each makes one row hold after the other, which is Hildreth's method."""
JOINT_OVERSHOOT = 0.01
"""How far below 0 rows are aimed, as a part of the largest row's size: steps that end on a boundary
never cross it."""


@dataclass(frozen=True, slots=True, eq=False)
class DomainRows:
    """The domain, as two rows of features."""

    low: Tensor
    high: Tensor

    def clip(self, points: Tensor) -> Tensor:
        return torch.clamp(points, self.low, self.high)

    def free(self, points: Tensor, gradients: Tensor) -> Tensor:
        """The gradients, 0 where a step against them would leave the domain at once."""
        blocked = torch.where(gradients > 0, points <= self.low, points >= self.high)
        return gradients.masked_fill(blocked, 0.0)

    def reach(self, points: Tensor, gradients: Tensor) -> Tensor:
        """How far each feature can move against the gradient."""
        return torch.where(gradients > 0, points - self.low, self.high - points)


class Geometry(ABC):
    """What an attack needs to know about a norm."""

    def units(self, values: Tensor) -> Tensor:
        """Multiples of the features' scales in the features' own units."""
        return values

    def outward(self, directions: Tensor) -> Tensor:
        """Points of the unit sphere in these directions, which are multiples of the scales."""
        offsets = self.units(directions)
        return offsets / (self.lengths(offsets)[:, None] + SMALLEST_DIVISOR)

    @abstractmethod
    def lengths(self, offsets: Tensor) -> Tensor:
        """The norm of each row."""

    @abstractmethod
    def slopes(self, gradients: Tensor) -> Tensor:
        """The dual norm of each row: the fastest decrease over a distance of 1."""

    @abstractmethod
    def step(self, points: Tensor, gradients: Tensor, sizes: Tensor, room: DomainRows) -> Tensor:
        """Steepest descent: points moved against the gradients over a distance of `sizes`.

        Features that a step would push out of the domain take no part, where that matters to the
        others. The result may leave the domain; `project` brings it back.
        """

    @abstractmethod
    def project(self, points: Tensor, centers: Tensor, radii: Tensor, room: DomainRows) -> Tensor:
        """Points next to these within `radii` of `centers` and the domain."""

    @abstractmethod
    def nearest(
        self, centers: Tensor, gradients: Tensor, gains: Tensor, room: DomainRows
    ) -> Tensor:
        """The points nearest to `centers` where the linear functions `gradients` fall by `gains`.

        Where the domain does not allow that much, points where they fall the most.
        """

    @abstractmethod
    def corners(self, noise: Tensor) -> Tensor:
        """Random extreme points of the unit ball, from noise uniform in [-1, 1]."""

    @abstractmethod
    def inner(self, noise: Tensor) -> Tensor:
        """Random points of the unit ball, from noise uniform in [-1, 1]."""


class _Linf(Geometry):
    def lengths(self, offsets: Tensor) -> Tensor:
        return offsets.abs().amax(dim=1)

    def slopes(self, gradients: Tensor) -> Tensor:
        return gradients.abs().sum(dim=1)

    def step(self, points: Tensor, gradients: Tensor, sizes: Tensor, room: DomainRows) -> Tensor:
        return points - sizes[:, None] * gradients.sign()

    def project(self, points: Tensor, centers: Tensor, radii: Tensor, room: DomainRows) -> Tensor:
        reach = radii[:, None]
        return room.clip(torch.clamp(points, centers - reach, centers + reach))

    def nearest(
        self, centers: Tensor, gradients: Tensor, gains: Tensor, room: DomainRows
    ) -> Tensor:
        reach, steep = room.reach(centers, gradients), gradients.abs()

        def gained(radii: Tensor) -> Tensor:
            return (steep * torch.minimum(reach, radii[:, None])).sum(dim=1)

        radii = _level(gained, gains, gains / (self.slopes(gradients) + SMALLEST_DIVISOR))
        return room.clip(centers - radii[:, None] * gradients.sign())

    def corners(self, noise: Tensor) -> Tensor:
        return noise.sign()

    def inner(self, noise: Tensor) -> Tensor:
        return noise


class _L2(Geometry):
    def lengths(self, offsets: Tensor) -> Tensor:
        lengths: Tensor = torch.linalg.vector_norm(offsets, dim=1)
        return lengths

    def slopes(self, gradients: Tensor) -> Tensor:
        return self.lengths(gradients)

    def step(self, points: Tensor, gradients: Tensor, sizes: Tensor, room: DomainRows) -> Tensor:
        free = room.free(points, gradients)
        return points - free * (sizes / (self.lengths(free) + SMALLEST_DIVISOR))[:, None]

    def project(self, points: Tensor, centers: Tensor, radii: Tensor, room: DomainRows) -> Tensor:
        """Scales the offset and clips: what clipping takes away need not be scaled away.

        Clipping makes the length grow less than the scale, so each refinement stays inside.
        """
        offsets = points - centers
        scales = (radii / (self.lengths(offsets) + SMALLEST_DIVISOR)).clamp(max=1.0)
        inside = room.clip(centers + scales[:, None] * offsets)
        for _ in range(PROJECTION_STEPS):
            short = radii / (self.lengths(inside - centers) + SMALLEST_DIVISOR)
            if bool(((short < 1.001) | (scales >= 1.0)).all()):
                break
            scales = (scales * short).clamp(max=1.0)
            inside = room.clip(centers + scales[:, None] * offsets)
        return inside

    def nearest(
        self, centers: Tensor, gradients: Tensor, gains: Tensor, room: DomainRows
    ) -> Tensor:
        reach, steep = room.reach(centers, gradients), gradients.abs()

        def gained(multipliers: Tensor) -> Tensor:
            return (steep * torch.minimum(reach, steep * multipliers[:, None])).sum(dim=1)

        multipliers = _level(gained, gains, gains / (steep.square().sum(dim=1) + SMALLEST_DIVISOR))
        return room.clip(centers - multipliers[:, None] * gradients)

    def corners(self, noise: Tensor) -> Tensor:
        normal = torch.erfinv(noise * 0.999)
        return normal / (self.lengths(normal)[:, None] + SMALLEST_DIVISOR)

    def inner(self, noise: Tensor) -> Tensor:
        return self.corners(noise) * noise[:, :1].abs()


class _L1(Geometry):
    def lengths(self, offsets: Tensor) -> Tensor:
        return offsets.abs().sum(dim=1)

    def slopes(self, gradients: Tensor) -> Tensor:
        return gradients.abs().amax(dim=1)

    def step(self, points: Tensor, gradients: Tensor, sizes: Tensor, room: DomainRows) -> Tensor:
        """Moves the steepest features to their bounds, one after the other, until `sizes` is spent.

        That is the largest decrease of a linear function, and as sparse as it can be. An eighth of
        the features at most move: to sort all of them takes longer than the network.
        """
        free = room.free(points, gradients)
        count = max(SPARSE_STEP, free.shape[1] // 8)
        order = free.abs().topk(min(count, free.shape[1]), dim=1).indices
        reach = room.reach(points, free).gather(1, order)
        before = reach.cumsum(dim=1) - reach
        moves = torch.minimum((sizes[:, None] - before).clamp(min=0.0), reach)
        steps = torch.zeros_like(points).scatter(1, order, moves)
        return points - steps * free.sign()

    def project(self, points: Tensor, centers: Tensor, radii: Tensor, room: DomainRows) -> Tensor:
        """Soft thresholding of the clipped offset; the threshold by Newton's method.

        It is a part of the room that a feature has within the ball, so that features with a narrow
        domain keep their moves beside those with a wide one. What is left beyond the radius is
        convex in the threshold, so that it never overshoots.
        """
        offsets = room.clip(points) - centers
        sizes = offsets.abs()
        widths = torch.minimum(room.high - room.low, radii[:, None])
        widths = widths / (widths.amax(dim=1, keepdim=True) + SMALLEST_DIVISOR)
        thresholds = torch.zeros_like(radii)
        for _ in range(PROJECTION_STEPS):
            kept = (sizes - thresholds[:, None] * widths).clamp(min=0.0)
            excess = kept.sum(dim=1) - radii
            if bool((excess <= 1e-6 * radii).all()):
                break
            count = (widths * (kept > 0)).sum(dim=1) + SMALLEST_DIVISOR
            thresholds = thresholds + excess.clamp(min=0.0) / count
        kept = (sizes - thresholds[:, None] * widths).clamp(min=0.0)
        return centers + kept * offsets.sign()

    def nearest(
        self, centers: Tensor, gradients: Tensor, gains: Tensor, room: DomainRows
    ) -> Tensor:
        """Fills the steepest features up to their bounds until the gain is reached."""
        steep, order = gradients.abs().sort(dim=1, descending=True)
        reach = room.reach(centers, gradients).gather(1, order)
        before = (steep * reach).cumsum(dim=1) - steep * reach
        missing = (gains[:, None] - before).clamp(min=0.0)
        moves = torch.minimum(missing / (steep + SMALLEST_DIVISOR), reach)
        steps = torch.zeros_like(centers).scatter(1, order, moves)
        return room.clip(centers - steps * gradients.sign())

    def corners(self, noise: Tensor) -> Tensor:
        """Some features each: a proper corner, one feature, seldom changes much."""
        chosen = noise.abs().topk(min(SPARSE_START, noise.shape[1]), dim=1).indices
        sparse = torch.zeros_like(noise).scatter(1, chosen, noise.gather(1, chosen))
        return self.inner(sparse)

    def inner(self, noise: Tensor) -> Tensor:
        return noise / (self.lengths(noise)[:, None] + SMALLEST_DIVISOR)


def _level(function: Callable[[Tensor], Tensor], targets: Tensor, first: Tensor) -> Tensor:
    """Where a nondecreasing function, 0 at 0, reaches `targets`; a large argument if nowhere."""
    above = first.clamp(min=SMALLEST_DIVISOR)
    for _ in range(PROJECTION_BISECTIONS):
        short = function(above) < targets
        if not bool(short.any()):
            break
        above = torch.where(short, 2 * above, above)
    below = torch.zeros_like(above)
    for _ in range(PROJECTION_BISECTIONS):
        middle = (below + above) / 2
        short = function(middle) < targets
        below, above = torch.where(short, middle, below), torch.where(short, above, middle)
    return above


class _ScaledLinf(_Linf):
    """The largest change of a feature, each as a part of its own scale; with scale 0 it stays."""

    def __init__(self, scale: Tensor) -> None:
        self.scale = scale

    def units(self, values: Tensor) -> Tensor:
        return values * self.scale

    def lengths(self, offsets: Tensor) -> Tensor:
        return super().lengths(offsets / self.scale.clamp(min=SMALLEST_DIVISOR))

    def slopes(self, gradients: Tensor) -> Tensor:
        return super().slopes(gradients * self.scale)

    def step(self, points: Tensor, gradients: Tensor, sizes: Tensor, room: DomainRows) -> Tensor:
        return points - sizes[:, None] * self.scale * gradients.sign()

    def project(self, points: Tensor, centers: Tensor, radii: Tensor, room: DomainRows) -> Tensor:
        reach = radii[:, None] * self.scale
        return room.clip(torch.clamp(points, centers - reach, centers + reach))

    def nearest(
        self, centers: Tensor, gradients: Tensor, gains: Tensor, room: DomainRows
    ) -> Tensor:
        scale = self.scale.clamp(min=SMALLEST_DIVISOR)
        low, high = ((side - centers) / scale for side in (room.low, room.high))
        steps = super().nearest(
            torch.zeros_like(centers), gradients * self.scale, gains, DomainRows(low, high)
        )
        return room.clip(centers + steps * self.scale)

    def corners(self, noise: Tensor) -> Tensor:
        return self.scale * noise.sign()

    def inner(self, noise: Tensor) -> Tensor:
        return self.scale * noise


_GEOMETRIES: dict[Norm, Geometry] = {Norm.LINF: _Linf(), Norm.L2: _L2(), Norm.L1: _L1()}


def geometry(
    norm: Norm, features: Features | None = None, dtype: torch.dtype = torch.float64
) -> Geometry:
    """The geometry of a norm, in the scales of features. Scales other than 0 and 1 need Linf."""
    if features is None or norm is not Norm.LINF:
        return _GEOMETRIES[norm]
    return _ScaledLinf(torch.from_numpy(features.scale.copy()).to(dtype))


def joint_steps(rows: Tensor, slopes: Tensor) -> Tensor:
    """For each point the shortest step, in L2, with rows + slopes @ step below 0; at least nearly.

    Slopes and steps are those per unit of each feature's scale. `rows` is (points, rows), -inf
    where a point has fewer; `slopes` is (points, rows, features). Following the worst row alone
    zigzags between rows, and jumps over a region that is thin.
    """
    is_row = rows.isfinite()
    size = rows.abs().masked_fill(~is_row, 0.0).amax(dim=1, keepdim=True)
    needed = torch.where(is_row, rows + JOINT_OVERSHOOT * size, 0.0)
    products = slopes @ slopes.transpose(1, 2)
    squares = products.diagonal(dim1=1, dim2=2)
    is_steep = is_row & (squares > torch.finfo(rows.dtype).tiny)
    multipliers = torch.zeros_like(needed)
    for _ in range(JOINT_SWEEPS):
        for row in range(rows.shape[1]):
            missing = needed[:, row] - (products[:, row] * multipliers).sum(dim=1)
            change = missing / torch.where(is_steep[:, row], squares[:, row], 1.0)
            raised = (multipliers[:, row] + change).clamp(min=0.0)
            multipliers[:, row] = torch.where(is_steep[:, row], raised, 0.0)
    return -(multipliers[:, None] @ slopes)[:, 0]
