"""The empirical distribution of the radii: both sides, the gap between them shaded."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.distributions import Distribution, dominance
from radii.plots._style import (
    DASHES,
    TEXT_WIDTH,
    TICK_SIZE,
    colour_of,
    draw_band,
    groups_of,
    mark_eps,
    new_figure,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from radii.distributions import Distribution


Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class EcdfCurve:
    """Share of a group's inputs broken within eps: `refuted` at least, `not_proven` at most.

    The shares are constant between neighbouring `edges`, so they have one value less. With a
    confidence level, the share of all inputs of the population is between `low` and `high`.
    """

    name: str
    distribution: Distribution
    edges: Float64
    refuted: Float64
    not_proven: Float64
    low: Float64 | None = None
    high: Float64 | None = None


def ecdf_curves(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    confidence: float | None = None,
) -> list[EcdfCurve]:
    """One curve a group, at every eps where one of its sides steps.

    `confidence` adds a band that holds at every eps at once (Dvoretzky, Kiefer and Wolfowitz).
    """
    finite = distribution.upper[np.isfinite(distribution.upper)]
    top = 1.05 * max([*finite, *distribution.lower]) or 1.0
    curves = []
    for group in groups_of(distribution, by):
        part, low, high = group.distribution, None, None
        steps = np.concatenate([[0.0], part.lower, part.upper[np.isfinite(part.upper)], [top]])
        edges = np.unique(steps)
        middles = (edges[:-1] + edges[1:]) / 2
        proven, not_refuted = part.shares(middles)
        if confidence is not None:
            least, most = part.band(confidence).at(middles)
            low, high = 1 - most, 1 - least
        curves.append(EcdfCurve(group.name, part, edges, 1 - not_refuted, 1 - proven, low, high))
    return curves


def turnbull_line(distribution: Distribution) -> tuple[Float64, Float64]:
    """Corners of the most likely distribution: straight where the data do not say how mass lies.

    It ends where the rest of the mass lies beyond every witness.
    """
    from radii.distributions import turnbull

    estimate = turnbull(distribution)
    ends = np.cumsum(estimate.mass)
    corners_x = np.stack([estimate.left, estimate.right], axis=1)
    corners_y = np.stack([ends - estimate.mass, ends], axis=1)
    is_told = np.isfinite(corners_x)
    x, y = corners_x[is_told], corners_y[is_told]
    return np.concatenate([[0.0], x]), np.concatenate([[0.0], y])


def draw_ecdf(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    eps: Sequence[float] = (),
    confidence: float | None = None,
    turnbull: bool = False,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Each group's empirical distribution of the radius, as a band between its two sides.

    `eps` are marked by lines. `confidence` adds a pale band for the population, `turnbull` the most
    likely distribution between the sides. The papers leave misclassified inputs out: draw
    `distribution.correctly_classified()` for that.
    """
    figure, axes = new_figure(width)
    curves = ecdf_curves(distribution, by=by, confidence=confidence)
    for place, curve in enumerate(curves):
        if curve.low is not None and curve.high is not None:
            draw_confidence(axes, place, curve.edges, curve.low, curve.high)
        draw_band(axes, place, curve.name, curve.edges, curve.refuted, curve.not_proven)
        if turnbull:
            name = "most likely (Turnbull)" if place == len(curves) - 1 else None
            line = turnbull_line(curve.distribution)
            axes.plot(*line, color="black", linestyle=DASHES[2], linewidth=1.0, label=name)
    axes.set_xlabel("radius $\\varepsilon$")
    axes.set_ylabel("share broken within $\\varepsilon$")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, curves[0].edges[-1])
    mark_eps(axes, eps)
    show_legend(figure, axes)
    return figure


def draw_confidence(axes: Axes, place: int, edges: Float64, low: Float64, high: Float64) -> None:
    """A pale band with a hair line around it: where the population's curve lies."""
    colour = colour_of(place)
    axes.stairs(low, edges, baseline=high, fill=True, color=colour, alpha=0.08, linewidth=0)
    for end in (low, high):
        axes.stairs(end, edges, baseline=None, color=colour, alpha=0.5, linewidth=0.4)


# Robust accuracy over eps: proven at least, not refuted at most, the band between them shaded.


@dataclass(frozen=True, slots=True, eq=False)
class RobustAccuracyCurve:
    """Share of all a group's inputs that are right and stay so within eps.

    Known as an interval from `proven` to `not_refuted`, constant between neighbouring `edges`. With
    a confidence level, the population's robust accuracy is between `low` and `high`.
    """

    name: str
    edges: Float64
    proven: Float64
    not_refuted: Float64
    low: Float64 | None = None
    high: Float64 | None = None


def robust_accuracy_curves(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    confidence: float | None = None,
) -> list[RobustAccuracyCurve]:
    """One curve a group, at every eps where one of its sides steps."""
    return [
        RobustAccuracyCurve(
            curve.name,
            curve.edges,
            proven=1 - curve.not_proven,
            not_refuted=1 - curve.refuted,
            low=None if curve.high is None else 1 - curve.high,
            high=None if curve.low is None else 1 - curve.low,
        )
        for curve in ecdf_curves(distribution, by=by, confidence=confidence)
    ]


def draw_robust_accuracy(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    eps: Sequence[float] = (),
    confidence: float | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Each group's robust accuracy, as a band from what is proven to what is not refuted.

    By class it is the robust recall of each class. `confidence` adds a pale band for the
    population, which holds at every eps at once.
    """
    figure, axes = new_figure(width)
    curves = robust_accuracy_curves(distribution, by=by, confidence=confidence)
    for place, curve in enumerate(curves):
        if curve.low is not None and curve.high is not None:
            draw_confidence(axes, place, curve.edges, curve.low, curve.high)
        draw_band(axes, place, curve.name, curve.edges, curve.not_refuted, curve.proven)
    axes.set_xlabel("radius $\\varepsilon$")
    measure = "recall" if "class" in ((by,) if isinstance(by, str) else by) else "accuracy"
    axes.set_ylabel(f"robust {measure} at $\\varepsilon$")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, curves[0].edges[-1])
    mark_eps(axes, eps)
    show_legend(figure, axes)
    return figure


# Which of two networks is more robust at which eps: their curves over a strip of who leads.


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
