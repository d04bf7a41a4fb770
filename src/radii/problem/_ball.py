"""Norm balls around an input, clipped to a domain."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.problem._domains import Box, Domain, Float64, Norm, clipped_exactly
from radii.problem._features import Features

FIRST_SHRINK = 2.0**-24
"""Half a unit in the last place of float32: the least that rounding to it can need."""

REACH_ROUNDING = 1 + 2.0**-50
"""Factor by which a reach of eps times a scale is widened: more than the rounding of that product
and of the quotient in `distance`."""

MOST_PIECES = 64
"""Combinations of categories that are looked at one by one; more are taken together, as a box."""


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """All inputs within `eps` of `center` in `norm` that also lie in `domain`.

    With `features`, eps counts in their scales, and only valid points belong to it.
    """

    center: Float64
    eps: float
    norm: Norm
    domain: Domain
    features: Features | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", np.asarray(self.center, dtype=np.float64))
        if not (np.isfinite(self.eps) and self.eps >= 0):
            raise SpecificationError(f"eps {self.eps} must be a finite number >= 0")
        # Bounds and solvers know such balls in Linf alone: elsewhere it would pass for smaller.
        if self.norm is not Norm.LINF and self.features is not None and not self.features.is_plain:
            raise SpecificationError(
                f"a ball in {self.norm.value} has features with a scale of 1, or of 0 where they "
                "stay; other scales need linf"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.center.shape

    def distance(self, point: npt.ArrayLike) -> float:
        """How far `point` is from the centre, in the ball's norm and the features' scales."""
        difference = np.asarray(point, dtype=np.float64) - self.center
        if self.features is not None:
            difference = self.features.units(difference.ravel())
        return self.norm.length(difference)

    def contains(self, point: npt.ArrayLike) -> bool:
        x = np.asarray(point, dtype=np.float64)
        low, high = self.domain.box(self.shape)
        if self.features is not None and self.features.flaw(x) is not None:
            return False
        return bool(np.all(x >= low) and np.all(x <= high) and self.distance(x) <= self.eps)

    def box(self) -> tuple[Float64, Float64]:
        """The smallest box around the ball, clipped to the domain.

        Rounded outward by one unit in the last place, so that no point of the ball is outside.
        """
        low, high = self.domain.box(self.shape)
        if self.features is not None:
            return self._box_of_features(self.features, low, high)
        below = np.nextafter(self.center - self.eps, -np.inf)
        above = np.nextafter(self.center + self.eps, np.inf)
        return np.maximum(low, below), np.minimum(high, above)

    def _box_of_features(
        self, features: Features, low: Float64, high: Float64
    ) -> tuple[Float64, Float64]:
        center, scale = self.center.ravel(), features.scale
        reach = self.eps * scale * REACH_ROUNDING
        below = np.where(scale > 0, np.nextafter(center - reach, -np.inf), center)
        above = np.where(scale > 0, np.nextafter(center + reach, np.inf), center)
        lower, upper = np.maximum(low.ravel(), below), np.minimum(high.ravel(), above)
        features.hull(center, self.eps, lower, upper)
        return lower.reshape(self.shape), upper.reshape(self.shape)

    def pieces(self) -> list[Box]:
        """Boxes that hold the ball, one for each combination of categories in reach.

        None where no category can change; where there are too many, the box that holds all.
        """
        moving = [] if self.features is None else self.features.movable(self.eps)
        low, high = (side.ravel() for side in self.box())
        choices = [[place for place in places if high[place] >= 1] for places in moving]
        if not choices or math.prod(map(len, choices)) > MOST_PIECES:
            return [Box(*self.box())] if choices else []
        pieces = []
        for chosen in itertools.product(*choices):
            bottom, top = low.copy(), high.copy()
            for places, one in zip(moving, chosen, strict=True):
                bottom[list(places)] = top[list(places)] = 0.0
                bottom[one] = top[one] = 1.0
            pieces.append(Box(bottom.reshape(self.shape), top.reshape(self.shape)))
        return pieces

    def project(
        self, point: npt.ArrayLike, dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[np.floating]:
        """A point of the ball near `point` whose values are exact in `dtype`.

        Shrinks towards the centre (not always the Euclidean projection: for L1 and L2 this keeps
        the direction). The result is `contain`ed, provided that the centre is exact in `dtype`.
        """
        kind = np.dtype(dtype)
        # A value that rounds to beyond the ball's own box must not shrink all others with it.
        is_box = self.norm is Norm.LINF or self.features is not None
        low, high = self.box() if is_box else self.domain.box(self.shape)
        x = np.clip(np.asarray(point, dtype=np.float64), low, high)
        length = self.distance(x)
        if length > self.eps:
            x = self.center + (x - self.center) * (self.eps / length)
        shrink = 0.0  # what rounding needs; doubled until it does, at most back to the centre
        while True:
            nearer = self._valid(self.center + (x - self.center) * (1 - shrink))
            inside = clipped_exactly(nearer, low, high, kind)
            if shrink == 1.0 or self.distance(inside) <= self.eps:
                return inside
            shrink = min(1.0, max(FIRST_SHRINK, 2 * shrink))

    def _valid(self, point: Float64) -> Float64:
        """The point, or points, with whole numbers and categories where features ask for them."""
        if self.features is None or not self.features.is_discrete:
            return point
        low, high = self.box()
        rows = point.reshape(-1, self.center.size)
        return self.features.rounded(rows, low.ravel(), high.ravel()).reshape(point.shape)

    def sample(self, rng: np.random.Generator, count: int) -> Float64:
        """`count` points of the ball: uniform in it before clipping to the domain."""
        size = (count, self.center.size)
        match self.norm:
            case Norm.LINF:
                steps = rng.uniform(-1.0, 1.0, size)
            case Norm.L2:
                steps = rng.standard_normal(size)
                steps /= np.linalg.norm(steps, axis=1, keepdims=True)
                steps *= rng.uniform(size=(count, 1)) ** (1.0 / self.center.size)
            case Norm.L1:
                magnitudes = rng.exponential(size=(count, self.center.size + 1))
                magnitudes /= magnitudes.sum(axis=1, keepdims=True)
                steps = magnitudes[:, :-1] * rng.choice([-1.0, 1.0], size)
        if self.features is not None:
            steps *= self.features.scale
        points = self.center + self.eps * steps.reshape(count, *self.shape)
        return self._valid(np.clip(points, *self.domain.box(self.shape)))
