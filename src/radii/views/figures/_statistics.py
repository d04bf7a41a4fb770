"""A figure of any statistic of the catalogue: a mark for each group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from radii.errors import DataError
from radii.statistics import CATALOGUE, Distribution, StatisticUnit
from radii.views.figures._matrices import shortened
from radii.views.figures._style import TEXT_WIDTH, colour_of, groups_of, name_rows, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_statistic(
    distribution: Distribution,
    name: str,
    *,
    by: str | Sequence[str] = "network",
    width: float = TEXT_WIDTH,
) -> Figure:
    """A dot for each group, or for a bracket the line between its ends; without a witness it runs
    out of the plot. Groups for which the statistic is not known are left out.
    """
    shown = CATALOGUE[name]
    values = {group.name: shown(group.distribution) for group in groups_of(distribution, by)}
    known = {group: value for group, value in values.items() if shown.text(value) != "-"}
    if not known:
        raise DataError(f"'{name}' is not known of any of these results")
    is_bracket = shown.unit is StatisticUnit.BRACKET
    sides = [value if is_bracket else (value, value) for value in known.values()]
    end = 1.05 * max(side for pair in sides for side in pair if math.isfinite(side)) or 1.0
    figure, axes = new_figure(width, 0.75 + 0.3 * len(known))
    for place, (low, high) in enumerate(sides):
        colour = colour_of(place)
        axes.hlines(place, low, min(high, end), color=colour, linewidth=2.5)
        axes.plot(low, place, marker="o", markersize=4, color=colour, clip_on=False)
    name_rows(axes, range(len(known)), [shortened(group, 28) for group in known], 0.6)
    axes.set_xlim(0, end)
    axes.set_xlabel(f"{shown.title}: {shown.about}" if width >= TEXT_WIDTH else shown.title)
    return figure
