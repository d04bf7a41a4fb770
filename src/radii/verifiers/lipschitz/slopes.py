"""How steep each nonlinear operator can be while its arguments stay in an interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from radii.bounds import Hinges, Stage, hinges_of, windows_of
from radii.networks import Kind, Node
from radii.networks.operators import Clip, LeakyRelu, MaxPool, PRelu, Relu, Sigmoid, Softmax, Tanh

__all__ = ["Rows", "has_known_slope", "pulled_back"]

Float64 = npt.NDArray[np.float64]

SLOPED = (Clip, LeakyRelu, MaxPool, PRelu, Relu, Sigmoid, Tanh)
"""Nonlinear operators whose slopes are known here, beside a softmax over all entries."""

CURVE_SLACK = 2.0**-40
"""What the rounding of a curve's slope may be: thousands of units in the last place."""


def has_known_slope(node: Node) -> bool:
    """Whether `pulled_back` can go through the node."""
    operator = node.operator
    if isinstance(operator, Softmax):
        return node.shape[operator.axis] == node.size
    return node.kind is Kind.AFFINE or isinstance(operator, SLOPED)


class Rows:
    """A matrix, each entry within `radius` of `centre`: rows are outputs, columns are values."""

    def __init__(self, centre: Float64, radius: Float64) -> None:
        self.centre, self.radius = centre, radius

    def times(self, low: Float64, high: Float64) -> Rows:
        """Each column times a factor between low and high."""
        middle, half = low / 2 + high / 2, (high - low) / 2
        radius = self.radius * (np.abs(middle) + half) + np.abs(self.centre) * half
        return Rows(self.centre * middle, radius)


def pulled_back(
    rows: Rows, stage: Stage, result: tuple[int, ...], low: Float64, high: Float64
) -> Rows:
    """From the values of a stage to its arguments, which lie between low and high."""
    operator = stage.operator
    if isinstance(operator, MaxPool):
        return _through_windows(rows, stage, operator, low, high)
    if isinstance(operator, Softmax):
        return _through_softmax(rows, low, high)
    if isinstance(operator, Sigmoid):
        return rows.times(*_curve(low / 2, high / 2, 0.25))
    if isinstance(operator, Tanh):
        return rows.times(*_curve(low, high, 1.0))
    hinges = hinges_of(operator, stage.shape, result)
    assert hinges is not None
    steep = rows.times(*_hinged(hinges, low[hinges.sources], high[hinges.sources]))
    return _gathered(steep, hinges.sources, len(low))


def _gathered(rows: Rows, sources: npt.NDArray[np.int64], count: int) -> Rows:
    """Columns added up by the argument that each of them reads."""
    if len(sources) == count and np.array_equal(sources, np.arange(count)):
        return rows
    parts = []
    for held in (rows.centre, rows.radius):
        total = np.zeros((len(held), count))
        np.add.at(total.T, sources, held.T)
        parts.append(total)
    return Rows(parts[0], parts[1])


def _hinged(hinges: Hinges, low: Float64, high: Float64) -> tuple[Float64, Float64]:
    """The least and the greatest slope of the pieces that each interval touches."""
    order = np.argsort(hinges.knee, axis=0)
    knees = np.take_along_axis(hinges.knee, order, 0)
    changes = np.take_along_axis(hinges.change, order, 0)
    slope = hinges.slope
    least, greatest = np.full_like(slope, np.inf), np.full_like(slope, -np.inf)
    begins = np.full_like(slope, -np.inf)
    for piece in range(len(knees) + 1):
        ends = knees[piece] if piece < len(knees) else np.full_like(slope, np.inf)
        is_touched = (high >= begins) & (low <= ends)
        least = np.where(is_touched, np.minimum(least, slope), least)
        greatest = np.where(is_touched, np.maximum(greatest, slope), greatest)
        if piece < len(knees):
            slope, begins = slope + changes[piece], knees[piece]
    return least, greatest


def _curve(low: Float64, high: Float64, scale: float) -> tuple[Float64, Float64]:
    """The slope scale * (1 - tanh^2), which falls with the distance from 0."""
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    farthest = np.maximum(np.abs(low), np.abs(high))
    falls: Callable[[Float64], Float64] = lambda x: scale * (1 - np.tanh(x) ** 2)  # noqa: E731
    return np.maximum(falls(farthest) - CURVE_SLACK, 0.0), falls(nearest) + CURVE_SLACK


def _through_windows(
    rows: Rows, stage: Stage, operator: MaxPool, low: Float64, high: Float64
) -> Rows:
    """A window passes its row to the entry that is largest; to each that may be, if in doubt."""
    centre = np.zeros((len(rows.centre), len(low)))
    radius = np.zeros_like(centre)
    for unit, places in enumerate(windows_of(operator, stage.shape).candidates):
        possible = places[high[places] >= low[places].max()]
        half = 0.0 if len(possible) == 1 else 0.5
        own, spread = rows.centre[:, unit], rows.radius[:, unit]
        for place in possible:
            centre[:, place] += own * (1 - half)
            radius[:, place] += spread + half * np.abs(own)
    return Rows(centre, radius)


def _through_softmax(rows: Rows, low: Float64, high: Float64) -> Rows:
    """Slopes p_i (1 - p_i) on the diagonal and -p_i p_j beside it, one softmax over all entries."""
    count = len(low)
    is_other = ~np.eye(count, dtype=np.bool_)
    with np.errstate(over="ignore"):
        most = np.where(is_other, np.exp(high[None, :] - low[:, None]), 0.0).sum(axis=1)
        least = np.where(is_other, np.exp(low[None, :] - high[:, None]), 0.0).sum(axis=1)
    below, above = 1 / (1 + most) * (1 - CURVE_SLACK), 1 / (1 + least) * (1 + CURVE_SLACK)
    ends = np.stack([below * (1 - below), above * (1 - above)])
    peak = np.where((below <= 0.5) & (above >= 0.5), 0.25, ends.max(axis=0))
    slope_low, slope_high = -np.outer(above, above), -np.outer(below, below)
    np.fill_diagonal(slope_low, ends.min(axis=0) - CURVE_SLACK)
    np.fill_diagonal(slope_high, peak + CURVE_SLACK)
    middle, half = slope_low / 2 + slope_high / 2, (slope_high - slope_low) / 2
    radius = rows.radius @ (np.abs(middle) + half) + np.abs(rows.centre) @ half
    return Rows(rows.centre @ middle, radius)
