"""Box plots of brackets: every quantile is an interval, and is drawn as one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from radii.plots.style import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from radii.distributions import Distribution

__all__ = ["BoxSummary", "box_summaries", "draw_boxes"]

WHISKERS = (0.05, 0.95)
"""The shares of inputs at which whiskers end. Extremes depend on how many inputs there are."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class BoxSummary:
    """Quantiles of a network's radii over its correctly classified inputs.

    Each is known as an interval from proven to witnessed; the upper end is inf without a witness.
    """

    network: str
    inputs: int
    low_whisker: Interval
    quartile: Interval
    median: Interval
    upper_quartile: Interval
    high_whisker: Interval


def box_summaries(distribution: Distribution) -> list[BoxSummary]:
    """One summary a network; a network that gets every input wrong has none."""
    summaries = []
    for name, part in distribution.by_network().items():
        if not part.correct.any():
            continue
        right = part.where(lambda m: m.correct)
        shares = (WHISKERS[0], 0.25, 0.5, 0.75, WHISKERS[1])
        summaries.append(BoxSummary(name, len(right), *map(right.quantile, shares)))
    return summaries


def draw_boxes(distribution: Distribution) -> Figure:
    """One box a network: a quantile's proven and witnessed ends, the doubt between them paler."""
    summaries = box_summaries(distribution)
    figure, axes = new_figure(6.0, 0.9 + 0.5 * max(1, len(summaries)))
    ends = [q for s in summaries for q in (*s.high_whisker, *s.upper_quartile) if math.isfinite(q)]
    edge = 1.05 * max(ends, default=1.0)
    for place, summary in enumerate(summaries):
        _draw_box(axes, place, summary, edge)
    axes.set_yticks(range(len(summaries)), [s.network for s in summaries])
    axes.set_ylim(max(1, len(summaries)) - 0.5, -0.5)
    axes.set_xlim(0, edge)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("radius $\\varepsilon$ of correctly classified inputs (5, 25, 50, 75, 95 %)")
    return figure


def _draw_box(axes: Axes, place: int, summary: BoxSummary, edge: float) -> None:
    """`edge` stands for infinity: where a quantile has no witness, the box runs out of the plot."""
    colour = COLOURS[place % len(COLOURS)]
    low, left, middle, right, high = (
        (start, min(end, edge))
        for start, end in (
            summary.low_whisker,
            summary.quartile,
            summary.median,
            summary.upper_quartile,
            summary.high_whisker,
        )
    )
    axes.hlines(place, low[0], left[1], color=colour, linewidth=1)
    axes.hlines(place, right[0], high[1], color=colour, linewidth=1)
    for start, end in (low, high):
        _shade(axes, place, start, end, height=0.2, colour=colour, alpha=0.5)
    _shade(axes, place, left[0], right[1], height=0.56, colour="white", alpha=1.0)
    _shade(axes, place, left[0], right[1], height=0.56, colour=colour, alpha=0.25)
    if left[1] < right[0]:
        _shade(axes, place, left[1], right[0], height=0.56, colour=colour, alpha=0.3)
    _shade(axes, place, *middle, height=0.56, colour="black", alpha=0.85)


def _shade(
    axes: Axes, place: int, start: float, end: float, *, height: float, colour: str, alpha: float
) -> None:
    """A bar over an interval; the outline keeps an interval without width visible."""
    axes.barh(
        place,
        end - start,
        left=start,
        height=height,
        color=colour,
        alpha=alpha,
        edgecolor=colour,
        linewidth=1.0,
        zorder=2,
    )
