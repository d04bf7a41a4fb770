"""Which of two networks is more robust at which eps: their curves over a strip of who leads."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from radii.distributions import Distribution, dominance
from radii.plots.robust_accuracy import robust_accuracy_curves
from radii.plots.style import (
    TEXT_WIDTH,
    TICK_SIZE,
    colour_of,
    draw_band,
    mark_eps,
    new_figure,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_leads"]


def draw_leads(
    distribution: Distribution,
    first: str,
    second: str,
    *,
    eps: Sequence[float] = (),
    confidence: float | None = None,
    tolerance: float = 0.0,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Robust accuracy of two networks; a strip below has the colour of the one shown to lead.

    The strip is empty where brackets, or with `confidence` the sizes of the samples, leave it open.
    The title says the same in words.
    """
    parts = [distribution.only(network=name) for name in (first, second)]
    found = dominance(parts[0], parts[1], level=confidence, tolerance=tolerance)
    figure, axes = new_figure(width)
    curves = robust_accuracy_curves(Distribution.union(parts))
    for place, curve in enumerate(curves):
        draw_band(axes, place, curve.name, curve.edges, curve.not_refuted, curve.proven)
    colours = {name: colour_of(place) for place, name in enumerate((first, second))}
    for stretch in found.stretches:
        axes.axvspan(
            stretch.start,
            stretch.stop,
            ymin=0,
            ymax=0.045,
            facecolor=colours[stretch.leader],
            linewidth=0,
        )
    axes.set_xlabel("radius $\\varepsilon$")
    axes.set_ylabel("robust accuracy at $\\varepsilon$")
    axes.set_xlim(0, max(curve.edges[-1] for curve in curves))
    axes.set_ylim(-0.07, 1.02)
    axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    mark_eps(axes, eps)
    show_legend(figure, axes)
    lines = textwrap.wrap(str(found), int((width - 0.6) * 72 / (0.6 * TICK_SIZE)))
    axes.set_title("\n".join(lines), fontsize=TICK_SIZE, pad=10 if eps else None)
    figure.set_figheight(figure.get_figheight() + 0.15 * len(lines))
    return figure
