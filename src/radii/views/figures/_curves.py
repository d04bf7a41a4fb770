"""Curves over eps, or over time: shares of inputs as step functions, with what is open shaded.

The empirical distribution of the radii and robust accuracy show both sides of the brackets; two
networks are compared by who leads at which eps; constraint satisfaction and security are one side
each; run times are the share of inputs done within a time.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from radii.errors import DataError
from radii.statistics import Distribution, Float64, dominance, ecdf
from radii.statistics import turnbull as turnbull_estimate
from radii.views.figures._style import (
    DASHES,
    TEXT_WIDTH,
    TICK_SIZE,
    colour_of,
    draw_band,
    draw_line,
    finish_curves,
    groups_of,
    last_edge,
    mark_eps,
    new_figure,
    new_panels,
    show_legend,
    step_edges,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Metric = Literal["satisfaction", "security"]

PANEL_WIDTH = 2.8
"""Inches, where there are several properties."""
SHORTEST_SECONDS = 1e-3
"""Seconds. What took less is drawn here: a logarithmic axis has no 0."""


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
    """One curve for each group, with edges wherever one of its sides steps.

    `confidence` adds a band that holds at every eps at once (Dvoretzky, Kiefer and Wolfowitz).
    """
    end = last_edge(distribution)
    curves = []
    for group in groups_of(distribution, by):
        part, low, high = group.distribution, None, None
        edges = step_edges(part, end)
        middles = (edges[:-1] + edges[1:]) / 2
        proven, not_refuted = part.shares(middles)
        if confidence is not None:
            least, most = part.band(confidence).at(middles)
            low, high = 1 - most, 1 - least
        curves.append(EcdfCurve(group.name, part, edges, 1 - not_refuted, 1 - proven, low, high))
    return curves


def turnbull_line(distribution: Distribution) -> tuple[Float64, Float64]:
    """Corners of the most likely distribution, by eps and share.

    It is straight within intervals, where the data do not say how the mass lies, and ends where
    the rest of the mass lies beyond every witness.
    """
    estimate = turnbull_estimate(distribution)
    ends = np.cumsum(estimate.mass)
    corners_x = np.stack([estimate.left, estimate.right], axis=1)
    corners_y = np.stack([ends - estimate.mass, ends], axis=1)
    is_finite = np.isfinite(corners_x)
    x, y = corners_x[is_finite], corners_y[is_finite]
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
    measure = "share broken within $\\varepsilon$"
    finish_curves(figure, axes, measure, curves[0].edges[-1], eps)
    return figure


def draw_confidence(axes: Axes, place: int, edges: Float64, low: Float64, high: Float64) -> None:
    """A pale band with a hair line around it: where the population's curve lies."""
    colour = colour_of(place)
    axes.stairs(low, edges, baseline=high, fill=True, color=colour, alpha=0.08, linewidth=0)
    for end in (low, high):
        axes.stairs(end, edges, baseline=None, color=colour, alpha=0.5, linewidth=0.4)


@dataclass(frozen=True, slots=True, eq=False)
class RobustAccuracyCurve:
    """Share of all inputs of a group that are classified correctly within the whole ball.

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
    """One curve for each group, with edges wherever one of its sides steps."""
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
    share = "recall" if "class" in ((by,) if isinstance(by, str) else by) else "accuracy"
    measure = f"robust {share} at $\\varepsilon$"
    finish_curves(figure, axes, measure, curves[0].edges[-1], eps)
    return figure


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
    """Robust accuracy of two networks, above a strip in the colour of the one shown to lead.

    The strip is empty where brackets, or with `confidence` the sizes of the samples, leave open
    which network leads. The title says the same in words.
    """
    parts = [distribution.only(network=name) for name in (first, second)]
    leads = dominance(parts[0], parts[1], level=confidence, tolerance=tolerance)
    figure, axes = new_figure(width)
    curves = robust_accuracy_curves(Distribution.union(parts))
    for place, curve in enumerate(curves):
        draw_band(axes, place, curve.name, curve.edges, curve.not_refuted, curve.proven)
    colours = {name: colour_of(place) for place, name in enumerate((first, second))}
    for stretch in leads.stretches:
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
    lines = textwrap.wrap(str(leads), int((width - 0.6) * 72 / (0.6 * TICK_SIZE)))
    axes.set_title("\n".join(lines), fontsize=TICK_SIZE, pad=10 if eps else None)
    figure.set_figheight(figure.get_figheight() + 0.15 * len(lines))
    return figure


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
    """One curve for each property and group.

    Results of one network under several properties carry the name of their directory, which is
    left out where the property alone tells them apart.
    """
    properties = dict.fromkeys(distribution.column("property").tolist())
    curves = []
    for spec in properties:
        sides = ecdf_curves(distribution.only(property=spec), by=by)
        plain = [curve.name.split(" (")[0] for curve in sides]
        is_plain = len(properties) > 1 and len(set(plain)) == len(plain)
        for curve, short in zip(sides, plain, strict=True):
            share = 1 - (curve.refuted if metric == "security" else curve.not_proven)
            low = high = None
            if confidence is not None:
                middles = (curve.edges[:-1] + curve.edges[1:]) / 2
                band = curve.distribution.band(confidence)
                low, high = band.of_side(middles, is_proven=metric != "security")
            name = short if is_plain else curve.name
            curves.append(ConstraintCurve(name, spec, curve.edges, share, low, high))
    return curves


def draw_constraints(
    distribution: Distribution,
    metric: Metric = "security",
    *,
    by: str | Sequence[str] = "network",
    eps: Sequence[float] = (),
    confidence: float | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Constraint security, the share without a counterexample within eps, or satisfaction.

    There is a panel for each property and a line for each group. `confidence` adds a pale band for
    the population, which holds at every eps at once.
    """
    curves = constraint_curves(distribution, metric, by=by, confidence=confidence)
    properties = list(dict.fromkeys(curve.property for curve in curves))
    names = list(dict.fromkeys(curve.name for curve in curves))
    x_label, y_label = "radius $\\varepsilon$", f"constraint {metric}"
    if len(properties) == 1:
        figure, axes = new_figure(width)
        panels = [axes]
        axes.set_xlabel(x_label)
        axes.set_ylabel(f"{y_label}, {properties[0]}" if properties[0] != "one-to-any" else y_label)
    else:
        figure, panels = new_panels(
            properties,
            width=width,
            panel_width=min(PANEL_WIDTH, width),
            panel_height=0.75 * PANEL_WIDTH,
            x_label=x_label,
            y_label=y_label,
        )
    for panel, spec in zip(panels, properties, strict=True):
        _draw_property_panel(
            panel, [curve for curve in curves if curve.property == spec], names, eps
        )
    show_legend(figure, *panels)
    return figure


def _draw_property_panel(
    axes: Axes, curves: Sequence[ConstraintCurve], names: Sequence[str], eps: Sequence[float]
) -> None:
    """One property; a name has the same colour and dashes in every panel."""
    for curve in curves:
        place = names.index(curve.name)
        if curve.low is not None and curve.high is not None:
            draw_confidence(axes, place, curve.edges, curve.low, curve.high)
        draw_line(axes, place, curve.name, curve.edges, curve.share)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, curves[0].edges[-1])
    mark_eps(axes, eps)


@dataclass(frozen=True, slots=True, eq=False)
class RunTimes:
    """`shares[i]` of a group's inputs were done within `seconds[i]`."""

    name: str
    seconds: Float64
    shares: Float64


TIMES = {
    "seconds": "wall-clock time of an input (s)",
    "cpu_seconds": "CPU time of an input (s)",
}
"""Columns that tell how long an input took, and what they are called on an axis."""


def run_times(
    distribution: Distribution, *, by: str | Sequence[str] = "network", time: str = "seconds"
) -> list[RunTimes]:
    """One curve for each group, over the inputs whose time is known; `time` is one of `TIMES`."""
    curves = []
    for group in groups_of(distribution, by):
        seconds = group.distribution.column(time)
        known = seconds[np.isfinite(seconds)]
        if known.size:
            # A time is known exactly: a distribution whose two sides are equal.
            curve = ecdf(Distribution.from_arrays(known, known, correct=True))
            curves.append(RunTimes(group.name, curve.values, curve.shares))
    if not curves:
        raise DataError("the results do not tell how long an input took")
    return curves


def draw_run_times(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    time: str = "seconds",
    width: float = TEXT_WIDTH,
) -> Figure:
    """Each group's share of inputs done within a time, which is on a log scale.

    `time`: `seconds` on the wall, or `cpu_seconds`.
    """
    curves = run_times(distribution, by=by, time=time)
    figure, axes = new_figure(width)
    longest = max(float(curve.seconds[-1]) for curve in curves)
    end = max(1.5 * longest, 2 * SHORTEST_SECONDS)
    for place, curve in enumerate(curves):
        at = np.maximum(curve.seconds, SHORTEST_SECONDS)
        edges = np.concatenate([at[:1], at, [end]])
        draw_line(axes, place, curve.name, edges, np.concatenate([[0.0], curve.shares]))
    axes.set_xscale("log")
    axes.set_xlim(right=end)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(TIMES[time])
    axes.set_ylabel("share of inputs done")
    show_legend(figure, axes)
    return figure
