"""What measuring cost: the share of inputs done within a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.distributions import Distribution, ecdf
from radii.errors import DataError
from radii.plots._style import TEXT_WIDTH, colour_of, dashes_of, groups_of, new_figure, show_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Float64 = npt.NDArray[np.float64]

SHORTEST_SECONDS = 1e-3
"""Seconds. What took less is drawn here: a logarithmic axis has no 0."""


@dataclass(frozen=True, slots=True, eq=False)
class RunTimes:
    """`shares[i]` of a group's inputs were done within `seconds[i]`."""

    name: str
    seconds: Float64
    shares: Float64


def run_times(distribution: Distribution, *, by: str | Sequence[str] = "network") -> list[RunTimes]:
    """One curve a group, over the inputs whose time is known."""

    curves = []
    for group in groups_of(distribution, by):
        seconds = group.distribution.column("seconds")
        told = seconds[np.isfinite(seconds)]
        if told.size:
            # A time is known exactly: a distribution whose two sides are equal.
            curve = ecdf(Distribution.from_arrays(told, told, correct=True))
            curves.append(RunTimes(group.name, curve.values, curve.shares))
    if not curves:
        raise DataError("the results do not tell how long an input took")
    return curves


def draw_run_times(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    width: float = TEXT_WIDTH,
) -> Figure:
    """Each group's share of inputs done within a wall-clock time, which is on a log scale."""
    curves = run_times(distribution, by=by)
    figure, axes = new_figure(width)
    longest = max(float(curve.seconds[-1]) for curve in curves)
    end = max(1.5 * longest, 2 * SHORTEST_SECONDS)
    for place, curve in enumerate(curves):
        at = np.maximum(curve.seconds, SHORTEST_SECONDS)
        edges = np.concatenate([at[:1], at, [end]])
        axes.stairs(
            np.concatenate([[0.0], curve.shares]),
            edges,
            baseline=None,
            color=colour_of(place),
            linestyle=dashes_of(place),
            linewidth=1.4,
            label=curve.name,
        )
    axes.set_xscale("log")
    axes.set_xlim(right=end)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("wall-clock time of an input (s)")
    axes.set_ylabel("share of inputs done")
    show_legend(figure, axes)
    return figure
