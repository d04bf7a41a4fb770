"""Constraint satisfaction or security over eps: a panel a property, a line a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from radii.plots._ecdf import draw_confidence, ecdf_curves
from radii.plots._style import (
    TEXT_WIDTH,
    colour_of,
    dashes_of,
    mark_eps,
    new_figure,
    new_panels,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from radii.distributions import Distribution


Float64 = npt.NDArray[np.float64]
Metric = Literal["satisfaction", "security"]

PANEL_WIDTH = 2.8
"""Inches, where there are several properties."""


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintCurve:
    """Share of a group's inputs for which the property is proven, or not refuted, within eps.

    Constant between neighbouring `edges`. With a confidence level, the same share of all inputs is
    between `low` and `high`.
    """

    name: str
    property: str
    edges: Float64
    share: Float64
    low: Float64 | None = None
    high: Float64 | None = None


def constraint_curves(
    distribution: Distribution,
    metric: Metric = "security",
    *,
    by: str | Sequence[str] = "network",
    confidence: float | None = None,
) -> list[ConstraintCurve]:
    """One curve a property and group.

    Results of one network under several properties carry the name of their directory, which is
    left out where the property alone tells them apart.
    """
    asked = dict.fromkeys(distribution.column("property").tolist())
    found = []
    for spec in asked:
        curves = ecdf_curves(distribution.only(property=spec), by=by)
        plain = [curve.name.split(" (")[0] for curve in curves]
        is_plain = len(asked) > 1 and len(set(plain)) == len(plain)
        for curve, short in zip(curves, plain, strict=True):
            share = 1 - (curve.refuted if metric == "security" else curve.not_proven)
            low = high = None
            if confidence is not None:
                half = curve.distribution.band(confidence).half_width
                low, high = np.maximum(share - half, 0.0), np.minimum(share + half, 1.0)
            name = short if is_plain else curve.name
            found.append(ConstraintCurve(name, spec, curve.edges, share, low, high))
    return found


def draw_constraints(
    distribution: Distribution,
    metric: Metric = "security",
    *,
    by: str | Sequence[str] = "network",
    eps: Sequence[float] = (),
    confidence: float | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Constraint security: the share without a counterexample within eps; or what is proven.

    `confidence` adds a pale band for the population, which holds at every eps at once.
    """
    curves = constraint_curves(distribution, metric, by=by, confidence=confidence)
    asked = list(dict.fromkeys(curve.property for curve in curves))
    names = list(dict.fromkeys(curve.name for curve in curves))
    x_label, y_label = "radius $\\varepsilon$", f"constraint {metric}"
    if len(asked) == 1:
        figure, axes = new_figure(width)
        panels = [axes]
        axes.set_xlabel(x_label)
        axes.set_ylabel(f"{y_label}, {asked[0]}" if asked[0] != "one-to-any" else y_label)
    else:
        figure, panels = new_panels(
            asked,
            width=width,
            panel_width=min(PANEL_WIDTH, width),
            panel_height=0.75 * PANEL_WIDTH,
            x_label=x_label,
            y_label=y_label,
        )
    for panel, spec in zip(panels, asked, strict=True):
        _draw_property_panel(
            panel, [curve for curve in curves if curve.property == spec], names, eps
        )
    show_legend(figure, max(panels, key=lambda panel: len(panel.get_legend_handles_labels()[1])))
    return figure


def _draw_property_panel(
    axes: Axes, curves: Sequence[ConstraintCurve], names: Sequence[str], eps: Sequence[float]
) -> None:
    """One property; a name has the same colour and dashes in every panel."""
    for curve in curves:
        place = names.index(curve.name)
        if curve.low is not None and curve.high is not None:
            draw_confidence(axes, place, curve.edges, curve.low, curve.high)
        axes.stairs(
            curve.share,
            curve.edges,
            baseline=None,
            color=colour_of(place),
            linestyle=dashes_of(place),
            linewidth=1.4,
            label=curve.name,
        )
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, curves[0].edges[-1])
    mark_eps(axes, eps)
