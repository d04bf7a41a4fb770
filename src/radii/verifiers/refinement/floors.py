"""Outputs at which a probability falls to a level or below, in outer polyhedra.

With d_j = y_j - y_c for the classes j other than c, the probability of c is at most the level
exactly where the sum over j of exp(d_j) is at least e^t, t = log(1/level - 1). That set is not
convex. It is all of d_j >= t, for any one j, and a part of the cell where every d_j <= t. On a
cell exp lies below its chords, so that the sum of chords >= e^t holds wherever it is broken: one
halfspace. Smaller cells have better chords.

Everything is scaled by e^-t, so that no number is above 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from radii.properties import Halfspaces

__all__ = ["Cell", "differences", "first_cell", "halfspaces_of_rivals"]

Float64 = npt.NDArray[np.float64]

CHORD_SLACK = 2.0**-40
"""What the rounding of a chord may be, relative to the numbers in it: thousands of roundings."""

NARROW = 1e-9
"""Cells this narrow in a difference get a constant in place of a chord."""

INSIDE = 0.02
"""No cell is divided nearer to its sides than this part of its width."""


def differences(index: int, outputs: int) -> Float64:
    """Rows y_j - y_index for every other class j, in order."""
    rows = np.delete(np.eye(outputs), index, axis=0)
    rows[:, index] = -1.0
    return rows


def halfspaces_of_rivals(rows: Float64, top: float, high: Float64) -> list[Halfspaces]:
    """d_j >= top for each difference that can get there: violations, every point of them."""
    return [
        Halfspaces(-row, np.array([top]))
        for row, most in zip(rows, high, strict=True)
        if not most < top  # also where it is NaN
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Differences between low and high; no high is above `top`, where the sum alone reaches 1.

    `is_cut_low` and `is_cut_high` say where a side is a division, and not a bound that every
    output keeps anyhow.
    """

    low: Float64
    high: Float64
    top: float
    is_cut_low: npt.NDArray[np.bool_]
    is_cut_high: npt.NDArray[np.bool_]

    def polyhedron(self, rows: Float64) -> Halfspaces | None:
        """Contains every violation in the cell; None if there is none."""
        slope, constant, slack = self._chords()
        if float((slope * self.high + constant).sum()) + slack < 1:
            return None
        scale = float(slope.max(initial=0.0)) or 1.0
        reached = (1 - constant.sum() - slack) / scale
        cuts_low, cuts_high = rows[self.is_cut_low], rows[self.is_cut_high]
        matrix = np.vstack([-(slope / scale) @ rows, -cuts_low, cuts_high])
        offset = np.concatenate(
            [[reached], self.low[self.is_cut_low], -self.high[self.is_cut_high]]
        )
        return Halfspaces(matrix, offset)

    def gaps(self, point: Float64) -> Float64:
        """How far each chord is above exp at a point, relative to e^top."""
        slope, constant, _ = self._chords()
        inside = np.clip(point, self.low, self.high)
        return np.asarray(slope * inside + constant - np.exp(inside - self.top))

    def divided(self, point: Float64) -> tuple[Cell, Cell]:
        """Cut in two at a point, in the difference whose chord is farthest off there."""
        worst = int(np.argmax(self.gaps(point)))
        room = INSIDE * (self.high[worst] - self.low[worst])
        at = float(np.clip(point[worst], self.low[worst] + room, self.high[worst] - room))
        high, cut_high = self.high.copy(), self.is_cut_high.copy()
        high[worst], cut_high[worst] = at, True
        low, cut_low = self.low.copy(), self.is_cut_low.copy()
        low[worst], cut_low[worst] = at, True
        return replace(self, low=low, is_cut_low=cut_low), replace(
            self, high=high, is_cut_high=cut_high
        )

    def _chords(self) -> tuple[Float64, Float64, float]:
        """Slopes and constants of lines above exp(d - top), and what their rounding may be."""
        width = self.high - self.low
        at_low, at_high = np.exp(self.low - self.top), np.exp(self.high - self.top)
        is_narrow = width < NARROW
        slope = np.where(is_narrow, 0.0, (at_high - at_low) / np.where(is_narrow, 1.0, width))
        constant = np.where(is_narrow, at_high, at_high - slope * self.high)
        size = (
            1 + np.abs(constant) + np.abs(slope) * np.maximum(np.abs(self.low), np.abs(self.high))
        )
        return slope, constant, CHORD_SLACK * float(size.sum())


def first_cell(low: Float64, high: Float64, top: float) -> Cell | None:
    """All differences between proven bounds, up to `top`; None if some bound is above it."""
    if np.any(low > top):
        return None
    nothing = np.zeros(len(low), np.bool_)
    return Cell(low, np.minimum(high, top), top, nothing, high > top)
