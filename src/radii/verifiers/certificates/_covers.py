"""Bounds on probabilities as linear statements that a certificate can make.

Outputs that break a bound lie in polyhedra: behind tangents where the probability is too large, and
in cells where it is too small. A certificate states the shares of the tangents, the cuts between
cells and the slopes of their chords; both sides make the polyhedra of them, as in
docs/certificates.md. Those made here are a little larger than the checker's, which rounds less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.problem import Halfspaces, LinearRequirement, ProbabilityBound

Float64 = npt.NDArray[np.float64]

STEPS = 2.0**40
"""Slopes and shares are whole multiples of one part in so many: their sums are exact."""

SLACK = 2.0**-36
"""What rounding may change of an offset, relative to the numbers in it."""

WIDER_SHARE, WIDER_LEAST = 1e-3, 1e-6
"""By how much the outermost cell is wider than the bounds that it was made of, as a part of its
width and at least: so that these are quickly proven once more."""


@dataclass(slots=True, eq=False)
class ProbabilityCover:
    """How the outputs that break one bound were put into polyhedra.

    With d_j = y_j - y_c for the other classes j: `low` and `high` are bounds on them, `cuts` the
    nodes of a tree of cells between these, as (parent, j, cut, side), the first one of all of it;
    `shares` are those of tangents. Cells are of bounds from below, tangents of those from above.
    """

    bound: ProbabilityBound
    low: Float64
    high: Float64
    cuts: list[tuple[int, int, float, int]] = field(default_factory=lambda: [(-1, -1, 0.0, 0)])
    shares: list[Float64] = field(default_factory=list)

    def split(self, node: int, axis: int, cut: float) -> tuple[int, int]:
        """The numbers of the two cells, the one above the cut first."""
        first = len(self.cuts)
        self.cuts += [(node, axis, cut, 1), (node, axis, cut, -1)]
        return first, first + 1

    @property
    def top(self) -> float:
        """What the sum of exp(d_j) has as its logarithm where the bound is just broken."""
        return -self.bound.log_odds


@dataclass(frozen=True, slots=True, eq=False)
class CoveredRequirement(LinearRequirement):
    """Polyhedra that hold all outputs which break bounds on probabilities, and how they came."""

    bounds: tuple[ProbabilityBound, ...] = ()
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def described(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The words of a claim, and the arrays that belong to it."""
        return {
            "kind": "probabilities",
            "bounds": [
                {"class": bound.index, "below" if bound.is_ceiling else "above": bound.level}
                for bound in self.bounds
            ],
        }, self.arrays


def covered(covers: Sequence[ProbabilityCover], outputs: int) -> CoveredRequirement:
    """The linear requirement that the covers make of their bounds, in their order."""
    polyhedra: list[Halfspaces] = []
    floors = [cover for cover in covers if not cover.bound.is_ceiling]
    boxes = [_widened(cover) for cover in floors]
    parents, slopes, shares, owners = [], [np.zeros((0, outputs - 1))], [], []
    for number, cover in enumerate(covers):
        rows = _differences(cover.bound.index, outputs)
        if cover.bound.is_ceiling:
            held = np.round(np.stack(cover.shares) * STEPS) / STEPS
            polyhedra.append(Halfspaces(held @ rows, _tangent_offsets(held, cover.top)))
            shares.append(held)
            owners += [number] * len(held)
            continue
        low, high = boxes[floors.index(cover)]
        polyhedra += [Halfspaces(row, -low[j : j + 1]) for j, row in enumerate(rows)]
        polyhedra += [Halfspaces(-row, high[j : j + 1]) for j, row in enumerate(rows)]
        first = sum(len(other.cuts) for other in floors[: floors.index(cover)])
        parents += [parent + first if parent >= 0 else -1 for parent, *_ in cover.cuts]
        chosen, cells = _cells(cover, rows, low, high)
        slopes.append(chosen)
        polyhedra += cells
    cuts = [cut for cover in floors for cut in cover.cuts]
    none = np.zeros((0, outputs - 1))
    arrays = {
        "cell_low": np.stack([low for low, _ in boxes]) if boxes else none,
        "cell_high": np.stack([high for _, high in boxes]) if boxes else none,
        "cell_parent": np.array(parents, "<i4"),
        "cell_axis": np.array([axis for _, axis, _, _ in cuts], "<i4"),
        "cell_cut": np.array([cut for _, _, cut, _ in cuts], "<f8"),
        "cell_side": np.array([side for *_, side in cuts], "|i1"),
        "cell_slopes": np.concatenate(slopes),
        "shares": np.concatenate([none, *shares]),
        "share_bound": np.array(owners, "<i4"),
    }
    return CoveredRequirement(tuple(polyhedra), tuple(cover.bound for cover in covers), arrays)


def _differences(index: int, outputs: int) -> Float64:
    rows = np.delete(np.eye(outputs), index, axis=0)
    rows[:, index] = -1.0
    return rows


def _widened(cover: ProbabilityCover) -> tuple[Float64, Float64]:
    """The outermost cell; beyond `top` a difference alone breaks the bound."""
    room = WIDER_SHARE * (cover.high - cover.low) + WIDER_LEAST
    return cover.low - room, np.minimum(cover.high + room, cover.top)


def _tangent_offsets(shares: Float64, top: float) -> Float64:
    total = shares.sum(1)
    terms = shares * np.log(np.where(shares > 0, shares, 1.0))
    entropy = total * np.log(np.where(total > 0, total, 1.0)) - terms.sum(1)
    size = total * (1 + abs(top)) + np.abs(terms).sum(1)
    return np.asarray(entropy - total * top - SLACK * size)


def _cells(
    cover: ProbabilityCover, rows: Float64, low: Float64, high: Float64
) -> tuple[Float64, list[Halfspaces]]:
    """Of every cell that is not cut any more: slopes of chords, and the polyhedron."""
    inner = {parent for parent, *_ in cover.cuts}
    slopes, found = [], []
    for node in range(len(cover.cuts)):
        if node in inner:
            continue
        path = _path(cover.cuts, node)
        box = low.copy(), high.copy()
        for _, axis, cut, side in path:
            box[0][axis] = max(box[0][axis], cut) if side > 0 else box[0][axis]
            box[1][axis] = min(box[1][axis], cut) if side < 0 else box[1][axis]
        chosen, offset = _chords(*box, cover.top)
        slopes.append(chosen)
        matrix = [-(chosen @ rows), *(-side * rows[axis] for _, axis, _, side in path)]
        offsets = [offset, *(side * cut for _, _, cut, side in path)]
        found.append(Halfspaces(np.stack(matrix), np.array(offsets)))
    return np.stack(slopes), found


def _path(
    cuts: Sequence[tuple[int, int, float, int]], node: int
) -> list[tuple[int, int, float, int]]:
    """The cuts on the way to a cell, the outermost first."""
    found = []
    while cuts[node][0] >= 0:
        found.append(cuts[node])
        node = cuts[node][0]
    return found[::-1]


def _chords(low: Float64, high: Float64, top: float) -> tuple[Float64, float]:
    """Slopes s, and the offset of the row that is -s d + offset <= 0 wherever the sum of
    exp(d_j - top) is at least 1. Flat lines where that is nowhere."""
    at_low, at_high = np.exp(low - top), np.exp(high - top)
    size = 1 + float(((1 + abs(top) + np.abs(high) + np.abs(low)) * at_high).sum())
    slopes = np.zeros(len(low))
    if float(at_high.sum()) + SLACK * size >= 1:
        slopes = (at_high - at_low) / np.maximum(high - low, WIDER_LEAST)
        slopes = np.round(np.clip(slopes, 0.0, 1.0) * STEPS) / STEPS
    constant = np.maximum(at_low - slopes * low, at_high - slopes * high)
    size += float((slopes * (np.abs(low) + np.abs(high))).sum())
    return slopes, 1.0 - float(constant.sum()) - SLACK * size
