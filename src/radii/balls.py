"""Regions of inputs: norm balls clipped to a domain, and boxes.

All arithmetic is float64. A ball is closed, and `contains` allows no tolerance: who wants a point
inside a ball projects it there (`project` guarantees `contains`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError

Float64 = npt.NDArray[np.float64]

FIRST_SHRINK = 2.0**-24
"""Half a unit in the last place of float32: the least that rounding to it can need."""


class Norm(StrEnum):
    """How the distance between two inputs is measured."""

    LINF = "linf"
    L2 = "l2"
    L1 = "l1"

    @classmethod
    def parse(cls, text: str) -> Norm:
        """The norm called `text`, or a SpecificationError that lists the names."""
        try:
            return cls(text.lower())
        except ValueError:
            names = ", ".join(cls)
            raise SpecificationError(f"norm '{text}' is not one of {names}") from None

    def length(self, differences: npt.ArrayLike) -> float:
        """The norm of one array of differences, in float64."""
        flat = np.abs(np.asarray(differences, dtype=np.float64)).ravel()
        if flat.size == 0:
            return 0.0
        match self:
            case Norm.LINF:
                return float(flat.max())
            case Norm.L2:
                return float(np.linalg.norm(flat))
            case Norm.L1:
                return float(flat.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """The box of all valid inputs: `low` and `high` broadcast to the input's shape.

    One number a side serves every feature; an array of shape (channels, 1, 1) one channel each.
    """

    low: Float64
    high: Float64

    def __init__(self, low: npt.ArrayLike, high: npt.ArrayLike) -> None:
        lower, upper = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        if not (np.isfinite(lower).all() and np.isfinite(upper).all() and np.all(lower <= upper)):
            sides = f"{lower.tolist()}:{upper.tolist()}"
            raise SpecificationError(f"domain {sides} must be finite with low <= high everywhere")
        object.__setattr__(self, "low", lower)
        object.__setattr__(self, "high", upper)

    @classmethod
    def parse(cls, text: str) -> Domain:
        """`0:1` for every feature, or `0,0,0:1,1,1` for one pair a channel (channels first)."""
        try:
            low, high = (np.array([float(v) for v in side.split(",")]) for side in text.split(":"))
        except ValueError:
            raise SpecificationError(
                f"domain '{text}' is not of the form LOW:HIGH, such as 0:1"
            ) from None
        if low.size != high.size:
            raise SpecificationError(f"domain '{text}' has {low.size} lows but {high.size} highs")
        if low.size == 1:
            return cls(low[0], high[0])
        return cls(low[:, None, None], high[:, None, None])

    def __str__(self) -> str:
        """As `parse` reads it."""
        sides = (side.ravel().tolist() for side in (self.low, self.high))
        return ":".join(",".join(repr(v).removesuffix(".0") for v in side) for side in sides)

    def box(self, shape: tuple[int, ...]) -> tuple[Float64, Float64]:
        """Low and high, each of the given input shape."""
        try:
            return np.broadcast_to(self.low, shape), np.broadcast_to(self.high, shape)
        except ValueError:
            raise SpecificationError(
                f"domain of shape {self.low.shape} does not fit inputs of shape {shape}"
            ) from None

    def key(self) -> str:
        """A stable text of the bounds."""
        return f"{self.low.tolist()}:{self.high.tolist()}"


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """All inputs between `low` and `high`, both included; they may be equal in some features."""

    low: Float64
    high: Float64

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", np.asarray(self.low, dtype=np.float64))
        object.__setattr__(self, "high", np.asarray(self.high, dtype=np.float64))
        if self.low.shape != self.high.shape:
            raise SpecificationError(f"box of shapes {self.low.shape} and {self.high.shape}")
        if not np.all(self.low <= self.high):  # also catches NaN
            raise SpecificationError("a box needs low <= high in every feature")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.low.shape

    def box(self) -> tuple[Float64, Float64]:
        return self.low, self.high

    def contains(self, point: npt.ArrayLike) -> bool:
        x = np.asarray(point, dtype=np.float64)
        return bool(np.all(x >= self.low) and np.all(x <= self.high))

    def project(
        self, point: npt.ArrayLike, dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[np.floating]:
        """The nearest point of the box whose values are exact in `dtype`."""
        return _clip_exact(
            np.asarray(point, dtype=np.float64), self.low, self.high, np.dtype(dtype)
        )

    def sample(self, rng: np.random.Generator, count: int) -> Float64:
        """`count` points drawn uniformly, stacked along the first axis."""
        return rng.uniform(self.low, self.high, size=(count, *self.shape))


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """All inputs within `eps` of `center` in `norm` that also lie in `domain`."""

    center: Float64
    eps: float
    norm: Norm
    domain: Domain

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", np.asarray(self.center, dtype=np.float64))
        if not (np.isfinite(self.eps) and self.eps >= 0):
            raise SpecificationError(f"eps {self.eps} must be a finite number >= 0")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.center.shape

    def distance(self, point: npt.ArrayLike) -> float:
        """How far `point` is from the centre, in the ball's norm."""
        return self.norm.length(np.asarray(point, dtype=np.float64) - self.center)

    def contains(self, point: npt.ArrayLike) -> bool:
        x = np.asarray(point, dtype=np.float64)
        low, high = self.domain.box(self.shape)
        return bool(np.all(x >= low) and np.all(x <= high) and self.distance(x) <= self.eps)

    def box(self) -> tuple[Float64, Float64]:
        """The smallest box around the ball, clipped to the domain.

        Rounded outward by one unit in the last place, so that no point of the ball is outside.
        """
        low, high = self.domain.box(self.shape)
        below = np.nextafter(self.center - self.eps, -np.inf)
        above = np.nextafter(self.center + self.eps, np.inf)
        return np.maximum(low, below), np.minimum(high, above)

    def project(
        self, point: npt.ArrayLike, dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[np.floating]:
        """A point of the ball near `point` whose values are exact in `dtype`.

        Shrinks towards the centre (not always the Euclidean projection: for L1 and L2 this keeps
        the direction). The result is `contain`ed, provided that the centre is exact in `dtype`.
        """
        kind = np.dtype(dtype)
        low, high = self.domain.box(self.shape)
        x = np.clip(np.asarray(point, dtype=np.float64), low, high)
        if self.norm is Norm.LINF:
            x = np.clip(x, self.center - self.eps, self.center + self.eps)
        length = self.distance(x)
        if length > self.eps:
            x = self.center + (x - self.center) * (self.eps / length)
        shrink = 0.0  # what rounding needs; doubled until it does, at most back to the centre
        while True:
            inside = _clip_exact(self.center + (x - self.center) * (1 - shrink), low, high, kind)
            if shrink == 1.0 or self.distance(inside) <= self.eps:
                return inside
            shrink = min(1.0, max(FIRST_SHRINK, 2 * shrink))

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
        points = self.center + self.eps * steps.reshape(count, *self.shape)
        low, high = self.domain.box(self.shape)
        return np.clip(points, low, high)


def _clip_exact(
    x: Float64, low: Float64, high: Float64, dtype: np.dtype[Any]
) -> npt.NDArray[np.floating]:
    """Clip to [low, high] after rounding to `dtype`: a bound not exact in `dtype` rounds inward."""
    rounded = np.clip(x, low, high).astype(dtype)
    too_high = rounded.astype(np.float64) > high
    too_low = rounded.astype(np.float64) < low
    rounded = np.where(too_high, np.nextafter(rounded, dtype.type(-np.inf)), rounded)
    return np.where(too_low, np.nextafter(rounded, dtype.type(np.inf)), rounded)
