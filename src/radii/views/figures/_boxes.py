"""Box plots of radii, every quantile drawn as the interval that it is; and of brackets' widths."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from radii.errors import DataError
from radii.statistics import Distribution, ValueRange
from radii.views.figures._matrices import shortened
from radii.views.figures._style import (
    LABEL_SIZE,
    TEXT_WIDTH,
    colour_of,
    groups_of,
    mark_eps,
    name_rows,
    new_figure,
    show_legend,
    with_left_out,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WHISKERS = (0.05, 0.95)
"""The shares of inputs at which whiskers end. Extremes depend on how many inputs there are."""

BoxOrder = Literal["minimum", "median", "none"]
BoxSide = Literal["both", "upper"]


@dataclass(frozen=True, slots=True)
class BoxSummary:
    """Quantiles of a group's radii over its correctly classified inputs that have an answer.

    Each is known as an interval from proven to witnessed; the upper end is inf without a witness.
    `inputs` counts these inputs, `left_out` those without any answer: with many of them every
    quantile would be known to lie between 0 and infinity.
    """

    name: str
    keys: tuple[Any, ...]
    inputs: int
    left_out: int
    minimum: ValueRange
    low_whisker: ValueRange
    quartile: ValueRange
    median: ValueRange
    upper_quartile: ValueRange
    high_whisker: ValueRange


def box_summaries(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    sort: BoxOrder = "none",
    side: BoxSide = "both",
) -> list[BoxSummary]:
    """One summary for each group with an input that is classified correctly and has an answer.

    Sorted, the largest proven minimum (or median) is first. Groups by several things stay together
    by the first of them, and are sorted by the first of its summaries, such as that of the training
    data. With `side="upper"` quantiles are of the witnesses' distances alone, infinite where too
    few inputs have one.
    """
    if sort not in get_args(BoxOrder):
        raise DataError(f"boxes are sorted by minimum, median or none, not '{sort}'")
    summaries = []
    for group in groups_of(distribution, by):
        part = group.distribution
        if not np.any(part.holds & ~part.is_unsolved):
            continue
        right = part.correctly_classified().solved()
        shares = (0.0, WHISKERS[0], 0.25, 0.5, 0.75, WHISKERS[1])
        quantiles = [right.quantile(share) for share in shares]
        if side == "upper":
            quantiles = [(witnessed, witnessed) for _, witnessed in quantiles]
        summaries.append(BoxSummary(group.name, group.keys, len(right), part.unsolved, *quantiles))
    if sort == "none":
        return summaries
    leading: dict[Any, ValueRange] = {}
    for summary in summaries:
        value = summary.minimum if sort == "minimum" else summary.median
        leading.setdefault(summary.keys[0], value)
    ranks = {key: place for place, key in enumerate(leading)}
    return sorted(summaries, key=lambda s: (-leading[s.keys[0]][0], ranks[s.keys[0]]))


def draw_boxes(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    sort: BoxOrder = "none",
    eps: Sequence[float] = (),
    side: BoxSide = "both",
    width: float = TEXT_WIDTH,
) -> Figure:
    """One box per group: a quantile's proven and witnessed ends, paler where it is in doubt.

    A dot marks the smallest radius. `eps` are marked by lines: the share of a box right
    of one is the robust accuracy there. Groups by two things, such as network and split, have a
    colour for each value of the second. Results without any answer are left out, and counted below.
    With `side="upper"` boxes are of the witnesses' distances, which radii do not exceed.
    """
    summaries = box_summaries(distribution, by=by, sort=sort, side=side)
    what = "radius $\\varepsilon$" if side == "both" else "distance of the closest witness"
    label = with_left_out(f"{what}; whiskers at 5 and 95 %", distribution.unsolved)
    return draw_summaries(summaries, label, eps, width)


def draw_summaries(
    summaries: Sequence[BoxSummary], label: str, eps: Sequence[float], width: float
) -> Figure:
    """Boxes below each other; those that share their first key touch and share its name."""
    figure, axes = new_figure(width, 0.75 + 0.3 * max(1, len(summaries)))
    ends = [
        q
        for s in summaries
        for q in (*s.high_whisker, *s.upper_quartile, *s.median)
        if math.isfinite(q)
    ]
    edge = 1.05 * max([*ends, *eps], default=1.0) or 1.0
    is_nested = any(len(s.keys) > 1 for s in summaries)
    minors = list(dict.fromkeys(s.keys[1:] for s in summaries))
    places: list[float] = []
    for place, summary in enumerate(summaries):
        is_same = is_nested and place > 0 and summaries[place - 1].keys[0] == summary.keys[0]
        places.append(places[-1] + (0.8 if is_same else 1.1) if places else 0.0)
        colour = colour_of(minors.index(summary.keys[1:]) if is_nested else place)
        _draw_box(axes, places[-1], summary, edge, colour)
    rows: dict[str, list[float]] = {}
    for at, summary in zip(places, summaries, strict=True):
        rows.setdefault(str(summary.keys[0]) if is_nested else summary.name, []).append(at)
    middles = [sum(group) / len(group) for group in rows.values()]
    name_rows(axes, middles, [shortened(name, 28) for name in rows], 0.6)
    if is_nested:
        for place, minor in enumerate(minors):
            named = ", ".join(str(value) for value in minor if value is not None) or "other"
            axes.barh(math.nan, 0, color=colour_of(place), alpha=0.5, label=named)
        show_legend(figure, axes)
    axes.set_ylim((places[-1] if places else 0) + 0.6, -0.6)
    axes.set_xlim(0, edge)
    figure.supxlabel(label, fontsize=LABEL_SIZE)
    mark_eps(axes, eps)
    return figure


def _draw_box(axes: Axes, place: float, summary: BoxSummary, edge: float, colour: str) -> None:
    """`edge` stands for infinity: where a quantile has no witness, the box runs out of the plot."""
    low, left, middle, right, high = (
        (min(start, edge), min(end, edge))
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
        _shade(axes, place, start, end, height=0.22, colour=colour, alpha=0.5)
    _shade(axes, place, left[0], right[1], height=0.62, colour="white", alpha=1.0)
    _shade(axes, place, left[0], right[1], height=0.62, colour=colour, alpha=0.25)
    if left[1] < right[0]:
        _shade(axes, place, left[1], right[0], height=0.62, colour=colour, alpha=0.3)
    _shade(axes, place, *middle, height=0.62, colour="black", alpha=0.85)
    axes.plot(
        summary.minimum[0], place, marker="o", markersize=2.6, color=colour, clip_on=False, zorder=3
    )


def _shade(
    axes: Axes, place: float, start: float, end: float, *, height: float, colour: str, alpha: float
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


def gap_summaries(
    distribution: Distribution, *, by: str | Sequence[str] = "network"
) -> list[BoxSummary]:
    """Quantiles of the width of each group's brackets, over correct inputs with a witness."""
    summaries = []
    for group in groups_of(distribution, by):
        part = group.distribution
        has_width = part.holds & np.isfinite(part.upper)
        if has_width.any():
            widths = (part.upper - part.lower)[has_width]
            # A width is known exactly: a distribution whose two sides are equal.
            exact = Distribution.from_arrays(widths, widths, correct=True, network=group.name)
            (summary,) = box_summaries(exact)
            summaries.append(dataclasses.replace(summary, keys=group.keys))
    return summaries


def draw_gaps(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    width: float = TEXT_WIDTH,
) -> Figure:
    """One box per group: by how much the witnessed side of brackets exceeds the proven one.

    Only correct inputs with a witness have a gap; the group's name counts the others.
    """
    summaries = gap_summaries(distribution, by=by)
    if not summaries:
        raise DataError("no correctly classified input has a witness, so no bracket has a width")
    right = {
        group.name: int(group.distribution.holds.sum()) for group in groups_of(distribution, by)
    }
    named = []
    for summary in summaries:
        without = right[summary.name] - summary.inputs
        name = f"{summary.name} ({without} open)" if without else summary.name
        named.append(dataclasses.replace(summary, name=name))
    return draw_summaries(named, "verification gap; whiskers at 5 and 95 %", (), width)
