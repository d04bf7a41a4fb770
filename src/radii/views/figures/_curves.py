"""Curves over eps, or over time: shares of inputs as step functions, with what is open shaded.

The empirical distribution of the radii and robust accuracy show both sides of the brackets; two
networks are compared by who leads at which eps; constraint satisfaction and security are one side
each; run times are the share of inputs done within a time.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from radii.errors import DataError
from radii.statistics import Distribution, Float64, dominance
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
class ShareCurve:
    """A share of a group's inputs over eps, known as an interval from `least` to `most`.

    Both are constant between neighbouring `edges`, so they have one value less. With a confidence
    level, the share of all inputs of the population is between `low` and `high`.
    """

    name: str
    distribution: Distribution
    edges: Float64
    least: Float64
    most: Float64
    low: Float64 | None = None
    high: Float64 | None = None


def ecdf_curves(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    confidence: float | None = None,
) -> list[ShareCurve]:
    """The share broken within eps: `least` is what is refuted, `most` what is not proven.

    There is one curve for each group, with edges wherever one of its sides steps. `confidence` adds
    a band that holds at every eps at once (Dvoretzky, Kiefer and Wolfowitz).
    """
    return [
        dataclasses.replace(
            kept,
            least=1 - kept.most,
            most=1 - kept.least,
            low=None if kept.high is None else 1 - kept.high,
            high=None if kept.low is None else 1 - kept.low,
        )
        for kept in robust_accuracy_curves(distribution, by=by, confidence=confidence)
    ]


def robust_accuracy_curves(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    confidence: float | None = None,
) -> list[ShareCurve]:
    """The share that stays right within eps: `least` is what is proven, `most` what is not refuted.

    By class it is the robust recall of each class. Edges and `confidence` are as in `ecdf_curves`.
    """
    end = last_edge(distribution)
    curves = []
    for group in groups_of(distribution, by):
        part, low, high = group.distribution, None, None
        edges = step_edges(part, end)
        middles = (edges[:-1] + edges[1:]) / 2
        if confidence is not None:
            low, high = part.band(confidence).at(middles)
        curves.append(ShareCurve(group.name, part, edges, *part.shares(middles), low, high))
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
        draw_confidence(axes, place, curve)
        draw_band(axes, place, curve.name, curve.edges, curve.least, curve.most)
        if turnbull:
            name = "most likely (Turnbull)" if place == len(curves) - 1 else None
            line = turnbull_line(curve.distribution)
            axes.plot(*line, color="black", linestyle=DASHES[2], linewidth=1.0, label=name)
    measure = "share broken within $\\varepsilon$"
    finish_curves(figure, axes, measure, curves[0].edges[-1], eps)
    return figure


def draw_confidence(axes: Axes, place: int, curve: ShareCurve) -> None:
    """A pale band with a hair line around it: where the population's curve lies, if known."""
    if curve.low is None or curve.high is None:
        return
    edges, colour = curve.edges, colour_of(place)
    axes.stairs(
        curve.low, edges, baseline=curve.high, fill=True, color=colour, alpha=0.08, linewidth=0
    )
    for end in (curve.low, curve.high):
        axes.stairs(end, edges, baseline=None, color=colour, alpha=0.5, linewidth=0.4)


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
        draw_confidence(axes, place, curve)
        draw_band(axes, place, curve.name, curve.edges, curve.most, curve.least)
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
        draw_band(axes, place, curve.name, curve.edges, curve.most, curve.least)
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


def constraint_curves(
    distribution: Distribution,
    metric: Metric = "security",
    *,
    by: str | Sequence[str] = "network",
    confidence: float | None = None,
) -> dict[str, list[ShareCurve]]:
    """By property a curve for each group: the share for which it is proven, or not refuted.

    Both ends of the interval are that share. Results of one network under several properties carry
    the name of their directory, which is left out where the property alone tells them apart.
    """
    properties = dict.fromkeys(distribution.column("property").tolist())
    curves = {}
    for spec in properties:
        sides = robust_accuracy_curves(distribution.only(property=spec), by=by)
        plain = [curve.name.split(" (")[0] for curve in sides]
        is_plain = len(properties) > 1 and len(set(plain)) == len(plain)
        curves[spec] = [
            _one_sided(curve, metric, short if is_plain else curve.name, confidence)
            for curve, short in zip(sides, plain, strict=True)
        ]
    return curves


def _one_sided(
    curve: ShareCurve, metric: Metric, name: str, confidence: float | None
) -> ShareCurve:
    low = high = None
    if confidence is not None:
        middles = (curve.edges[:-1] + curve.edges[1:]) / 2
        band = curve.distribution.band(confidence)
        low, high = band.of_side(middles, is_proven=metric != "security")
    share = curve.most if metric == "security" else curve.least
    return ShareCurve(name, curve.distribution, curve.edges, share, share, low, high)


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

    There is a panel for each property and a line for each group, in the same colour and dashes in
    every panel. `confidence` adds a pale band for the population, which holds at every eps at once.
    """
    panels_of = constraint_curves(distribution, metric, by=by, confidence=confidence)
    names = list(dict.fromkeys(curve.name for curves in panels_of.values() for curve in curves))
    x_label, y_label = "radius $\\varepsilon$", f"constraint {metric}"
    if len(panels_of) == 1:
        (spec,) = panels_of
        figure, axes = new_figure(width)
        panels = [axes]
        axes.set_xlabel(x_label)
        axes.set_ylabel(f"{y_label}, {spec}" if spec != "one-to-any" else y_label)
    else:
        figure, panels = new_panels(
            list(panels_of),
            width=width,
            panel_width=min(PANEL_WIDTH, width),
            panel_height=0.75 * PANEL_WIDTH,
            x_label=x_label,
            y_label=y_label,
        )
    for panel, curves in zip(panels, panels_of.values(), strict=True):
        for curve in curves:
            place = names.index(curve.name)
            draw_confidence(panel, place, curve)
            draw_line(panel, place, curve.name, curve.edges, curve.least)
        panel.set_ylim(0, 1.02)
        panel.set_xlim(0, curves[0].edges[-1])
        mark_eps(panel, eps)
    show_legend(figure, *panels)
    return figure


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
    from scipy import stats

    curves = []
    for group in groups_of(distribution, by):
        seconds = group.distribution.column(time)
        known = seconds[np.isfinite(seconds)]
        if known.size:
            curve = stats.ecdf(known).cdf
            curves.append(RunTimes(group.name, curve.quantiles, curve.probabilities))
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
