"""Figures of ensembles: the value of the game over eps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from radii.views import TEXT_WIDTH, colour_of, dashes_of, new_panels, show_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARK_SIZE = 3.0


@dataclass(frozen=True, slots=True)
class ValueAtEps:
    """Of an ensemble: at `eps` its value is attained as `lower` and proven to be at most `upper`.

    `upper` may be a belief; who draws it says so.
    """

    eps: float
    lower: float
    upper: float


def draw_game_values(
    panels: Mapping[str, Mapping[str, Sequence[ValueAtEps]]], *, width: float = TEXT_WIDTH
) -> Figure:
    """A panel for each name, with a line for each series over eps; gaps of brackets are shaded."""
    figure, axes_of = new_panels(
        list(panels),
        width=width,
        panel_width=1.9,
        panel_height=1.7,
        x_label="eps",
        y_label="value of the game",
    )
    for axes, series in zip(axes_of, panels.values(), strict=True):
        for place, (label, values) in enumerate(series.items()):
            eps = [each.eps for each in values]
            lower, upper = [each.lower for each in values], [each.upper for each in values]
            axes.plot(
                eps,
                lower,
                color=colour_of(place),
                linestyle=dashes_of(place),
                marker="o",
                markersize=MARK_SIZE,
                linewidth=1.2,
                label=label,
            )
            axes.fill_between(eps, lower, upper, color=colour_of(place), alpha=0.2, linewidth=0)
        axes.set_ylim(-0.03, 1.03)
    show_legend(figure, *axes_of)
    return figure
