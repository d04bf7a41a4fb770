"""How distances are measured, which inputs are valid, and boxes of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError

Float64 = npt.NDArray[np.float64]


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
        """Text that `parse` reads back."""
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
        return clipped_exactly(
            np.asarray(point, dtype=np.float64), self.low, self.high, np.dtype(dtype)
        )

    def sample(self, rng: np.random.Generator, count: int) -> Float64:
        """`count` points drawn uniformly, stacked along the first axis."""
        return rng.uniform(self.low, self.high, size=(count, *self.shape))


def clipped_exactly(
    x: Float64, low: Float64, high: Float64, dtype: np.dtype[Any]
) -> npt.NDArray[np.floating]:
    """Clip to [low, high] after rounding to `dtype`: a bound not exact in `dtype` rounds inward."""
    rounded = np.clip(x, low, high).astype(dtype)
    too_high = rounded.astype(np.float64) > high
    too_low = rounded.astype(np.float64) < low
    rounded = np.where(too_high, np.nextafter(rounded, dtype.type(-np.inf)), rounded)
    return np.where(too_low, np.nextafter(rounded, dtype.type(np.inf)), rounded)
