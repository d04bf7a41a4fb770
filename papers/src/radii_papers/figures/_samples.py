"""Empirical distributions in panels: of several results, or of two samples with a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import InputError
from radii.statistics import Distribution, family_named, fit
from radii.views import (
    SMALL_SIZE,
    TEXT_WIDTH,
    draw_band,
    ecdf_curves,
    new_panels,
    shortened,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE_POINTS = 200

PANEL_WIDTH = 2.8
"""Inches."""


def draw_ecdf_panels(
    parts: Mapping[str, Distribution],
    *,
    by: str | Sequence[str] = "network",
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel for each distribution, with a curve for each of its groups, as `draw_ecdf` has them.

    Each panel names its own groups, which need not be those of the others.
    """
    figure, panels = new_panels(
        list(parts),
        width=width,
        panel_width=PANEL_WIDTH,
        panel_height=0.75 * PANEL_WIDTH,
        x_label="$\\varepsilon$",
        y_label="share broken within $\\varepsilon$",
    )
    for axes, part in zip(panels, parts.values(), strict=True):
        curves = ecdf_curves(part, by=by)
        for place, curve in enumerate(curves):
            draw_band(axes, place, curve.name, curve.edges, curve.least, curve.most)
        axes.set_xlim(0, curves[0].edges[-1])
        axes.set_ylim(0, 1.02)
        axes.legend(loc="lower right", fontsize=SMALL_SIZE, framealpha=0.7, edgecolor="none")
    return figure


def draw_samples(
    samples: Mapping[str, tuple[Distribution, Distribution]],
    names: tuple[str, str],
    family: str = "lognormal",
    *,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Two samples of each group, and the family fitted to the first: one panel per group.

    Where the sample is large enough, the fit of the first describes the second as well.
    """
    figure, axes = new_panels(
        [shortened(name) for name in samples],
        width=width,
        x_label="radius $\\varepsilon$ of correctly classified inputs",
        y_label="share broken within $\\varepsilon$",
    )
    for panel, both in zip(axes, samples.values(), strict=True):
        end = 0.0
        for place, (part, name) in enumerate(zip(both, names, strict=True)):
            (curve,) = ecdf_curves(part.correctly_classified().labelled(network=name))
            draw_band(panel, place, name, curve.edges, curve.least, curve.most)
            end = max(end, float(curve.edges[-1]))
        try:
            fitted = fit(both[0], family)
            places = np.linspace(0, end, CURVE_POINTS)
            label = f"{family_named(family).title}, fitted to {names[0]}"
            panel.plot(places, fitted.broken(places), "k:", linewidth=1.1, label=label)
        except InputError:  # too few brackets; the samples alone are shown
            pass
        panel.set_xlim(0, end)
        panel.set_ylim(0, 1.02)
    show_legend(figure, *axes)
    return figure
