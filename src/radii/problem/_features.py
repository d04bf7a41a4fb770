"""The features of a table: how far each moves, which stay, are whole, or are categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.problem._domains import Domain, Float64


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The features of a flattened input: names, units of distance and valid values.

    A feature moves by at most eps times its `scale`; with scale 0 it stays. Those that are
    `is_whole` hold integers. Each of `groups` is a category as one-hot: one of its places holds 1,
    the others 0; to change it is a change of 1 at two places. `low` and `high` are the valid
    values, NaN where the domain says so.
    """

    names: tuple[str, ...]
    scale: Float64
    is_whole: npt.NDArray[np.bool_]
    groups: Mapping[str, tuple[int, ...]]
    low: Float64
    high: Float64

    @classmethod
    def of(cls, names: Sequence[str], scale: npt.ArrayLike = 1.0) -> Features:
        """Numbers that move by eps times `scale`, or times one number each."""
        unknown = np.full(len(names), np.nan)
        scales = np.broadcast_to(np.asarray(scale, np.float64), unknown.shape)
        return cls(tuple(names), scales, np.zeros(len(names), np.bool_), {}, unknown, unknown)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale).all() and np.all(self.scale >= 0)):
            place = int(np.flatnonzero(~(np.isfinite(self.scale) & (self.scale >= 0)))[0])
            raise SpecificationError(
                f"feature '{self.names[place]}': scale {self.scale[place]} must be a finite number "
                ">= 0"
            )
        for name, places in self.groups.items():
            if len(places) < 2 or len(set(self.scale[list(places)].tolist())) > 1:
                raise SpecificationError(
                    f"category '{name}' needs at least two features, of one scale"
                )

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.names, self.key()))

    @property
    def is_discrete(self) -> bool:
        """Some may not take every value in between."""
        return bool(self.groups) or bool(self.is_whole.any())

    @property
    def is_plain(self) -> bool:
        """Every feature moves by eps or stays, so that every norm measures it as it is."""
        return bool(np.isin(self.scale, (0.0, 1.0)).all())

    def units(self, differences: Float64) -> Float64:
        """Differences as multiples of the scale; infinite where a fixed feature moved."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(differences == 0, 0.0, differences / self.scale)

    def movable(self, eps: float) -> list[tuple[int, ...]]:
        """The groups whose category may change within eps."""
        return [places for places in self.groups.values() if self._change(places) <= eps]

    def _change(self, places: tuple[int, ...]) -> float:
        scale = float(self.scale[places[0]])
        return 1 / scale if scale > 0 else np.inf

    def flaw(self, point: Float64) -> str | None:
        """What is not valid about a point; None if integers are whole and groups have one 1."""
        x = np.ravel(point)
        for place in np.flatnonzero(self.is_whole & (x != np.round(x))):
            return f"'{self.names[place]}' is an integer, and holds {x[place]:g}"
        for name, places in self.groups.items():
            chosen = x[list(places)]
            if np.sum(chosen == 1) != 1 or np.sum(chosen == 0) != chosen.size - 1:
                return f"category '{name}' needs one 1 and else 0, and holds {chosen.tolist()}"
        return None

    def hull(self, center: Float64, eps: float, low: Float64, high: Float64) -> None:
        """Narrow flat sides of a box around `center` to what valid points reach, in place."""
        low[self.is_whole] = np.ceil(low[self.is_whole])
        high[self.is_whole] = np.floor(high[self.is_whole])
        moving = self.movable(eps)
        for places in self.groups.values():
            if places not in moving:
                low[list(places)] = high[list(places)] = center[list(places)]

    def rounded(self, point: Float64, low: Float64, high: Float64) -> Float64:
        """The valid point next to a flat one, or to each row, within a box made by `hull`."""
        x = np.array(point)
        whole = self.is_whole
        x[..., whole] = np.clip(np.round(x[..., whole]), low[whole], high[whole])
        for places in map(list, self.groups.values()):
            largest = np.where(high[places] >= 1, x[..., places], -np.inf).argmax(axis=-1)
            x[..., places] = np.arange(len(places)) == largest[..., None]
        return x

    def domain(self, otherwise: Domain | None) -> Domain:
        """The valid values, one pair a feature; `otherwise` is for those that say nothing."""
        if otherwise is None:
            unknown = np.flatnonzero(np.isnan(self.low) | np.isnan(self.high))
            if unknown.size:
                raise SpecificationError(
                    f"feature '{self.names[unknown[0]]}' has no low or no high: name both, or give "
                    "a domain for those without"
                )
            return Domain(self.low, self.high)
        if otherwise.low.size not in (1, len(self)):
            raise SpecificationError(
                f"domain {otherwise} has {otherwise.low.size} numbers a side, but there are "
                f"{len(self)} features"
            )
        sides = (
            np.broadcast_to(side.ravel(), (len(self),)) for side in (otherwise.low, otherwise.high)
        )
        low, high = (
            np.where(np.isnan(own), other, own)
            for own, other in zip((self.low, self.high), sides, strict=True)
        )
        return Domain(low, high)

    def to_json(self) -> dict[str, Any]:
        """As a store holds them."""
        sides = (
            [None if np.isnan(v) else v for v in side.tolist()] for side in (self.low, self.high)
        )
        return {
            "names": list(self.names),
            "scale": self.scale.tolist(),
            "whole": np.flatnonzero(self.is_whole).tolist(),
            "groups": {name: list(places) for name, places in self.groups.items()},
            **dict(zip(("low", "high"), sides, strict=True)),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Features:
        names = tuple(map(str, stored["names"]))
        sides = (
            np.array([np.nan if v is None else v for v in stored[side]], np.float64)
            for side in ("low", "high")
        )
        return cls(
            names,
            np.array(stored["scale"], np.float64),
            np.isin(np.arange(len(names)), stored["whole"]),
            {str(name): tuple(places) for name, places in stored["groups"].items()},
            *sides,
        )

    def key(self) -> str:
        """A stable text of all that a region depends on."""
        groups = sorted(map(list, self.groups.values()))
        return f"{self.scale.tolist()}:{np.flatnonzero(self.is_whole).tolist()}:{groups}"
