"""Shares over eps of networks that were made several times: a line for the mean, a band around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from radii.statistics import Float64
from radii.views import TEXT_WIDTH, colour_of, dashes_of, new_panels, show_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class SeedCurve:
    """A share at each eps: its mean over seeds, the least and the largest."""

    name: str
    eps: Float64
    mean: Float64
    low: Float64
    high: Float64


def draw_seed_curves(
    panels: Mapping[str, Sequence[SeedCurve]],
    *,
    measure: str,
    eps: float | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel for each title, three in a row where that leaves none over, else two.

    A name has the same colour and dashes in all. `eps` is marked.
    """
    columns = 3 if len(panels) % 3 == 0 else min(2, len(panels))
    names = list(dict.fromkeys(curve.name for curves in panels.values() for curve in curves))
    figure, axes = new_panels(
        list(panels),
        width=width,
        panel_width=width / columns,
        panel_height=0.8 * width / columns,
        x_label="radius $\\varepsilon$",
        y_label=measure,
    )
    for panel, curves in zip(axes, panels.values(), strict=True):
        for curve in curves:
            place = names.index(curve.name)
            style = {"color": colour_of(place), "linestyle": dashes_of(place), "linewidth": 1.3}
            panel.plot(curve.eps, curve.mean, label=curve.name, **style)
            panel.fill_between(
                curve.eps, curve.low, curve.high, color=colour_of(place), alpha=0.15, linewidth=0
            )
        if eps is not None:
            panel.axvline(eps, color="#444444", linewidth=0.7, linestyle=":", zorder=1.5)
        panel.set_ylim(-0.02, 1.04)
        panel.set_xlim(left=0)
    show_legend(figure, *axes)
    return figure
