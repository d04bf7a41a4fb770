"""Histograms and densities of radii that are known as intervals.

A radius is in (lower, upper]. So a bar of a histogram has three heights: the share of inputs whose
radius is surely in the bin, the share whose radius may be, and between them the most likely share
(Turnbull's estimate, whose mass is taken as spread evenly within each of its intervals, which the
data do not tell). Radii of which only a lower bound is known beyond the last bin have no bar; how
many these are is said in words. Both figures are of inputs at which the property holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics import Distribution, Float64, Turnbull, share_limits
from radii.views.figures._style import (
    TEXT_WIDTH,
    colour_of,
    dashes_of,
    groups_of,
    last_edge,
    mark_eps,
    new_figure,
    new_panels,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PANEL_WIDTH = 2.9
FEWEST_BINS, MOST_BINS = 5, 40
DENSITY_POINTS = 400


@dataclass(frozen=True, slots=True, eq=False)
class RadiusHistogram:
    """Shares of a group's `inputs` by the bin of their radius; bin i is (edges[i], edges[i + 1]].

    Between `least` and `most` as brackets leave it, with the `likely` share; with a confidence
    level the share of all inputs is between `low` and `high`, in every bin at once. `beyond` is the
    likely share of radii above the last edge.
    """

    name: str
    inputs: int
    edges: Float64
    least: Float64
    likely: Float64
    most: Float64
    beyond: float
    low: Float64 | None = None
    high: Float64 | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RadiusDensity:
    """The likely radii of a group, smoothed by a normal kernel of the `bandwidth`.

    The area below `density` is the share of radii that are not `beyond` every counterexample.
    """

    name: str
    inputs: int
    eps: Float64
    density: Float64
    bandwidth: float
    beyond: float


def radius_histograms(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    bins: int | npt.ArrayLike | None = None,
    confidence: float | None = None,
) -> list[RadiusHistogram]:
    """One for each group, all with the same bins: this number of them, or these edges.

    By default there are 2 n^(1/3) bins (Rice), but none is narrower than half of the brackets.
    Limits with confidence are Clopper and Pearson's, of which the bins share the permitted error.
    """
    right = distribution.correctly_classified()
    groups = groups_of(right, by)
    edges = _edges(right, min(len(group.distribution) for group in groups), bins)
    return [_histogram(group.name, group.distribution, edges, confidence) for group in groups]


def _histogram(
    name: str, part: Distribution, edges: Float64, confidence: float | None
) -> RadiusHistogram:
    surely, maybe = _members(part, edges)
    below = _mass_below(part.turnbull(), edges)
    low = high = None
    if confidence is not None:
        each = 1 - (1 - confidence) / (len(edges) - 1)
        limits = [_limits(part, edges, place, each) for place in range(len(edges) - 1)]
        low, high = np.array(limits).T
    return RadiusHistogram(
        name,
        len(part),
        edges,
        surely.mean(axis=0),
        np.maximum(np.diff(below), 0.0),
        maybe.mean(axis=0),
        float(1 - below[-1]),
        low,
        high,
    )


def _members(
    part: Distribution, edges: Float64
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Whether each radius (rows) surely is in each bin, and whether it may be."""
    lower, upper = part.lower[:, None], part.upper[:, None]
    start, stop = edges[:-1], edges[1:]
    exact = (lower == upper) & (start < lower) & (lower <= stop)
    is_open = lower < upper
    surely = is_open & (lower >= start) & (upper <= stop)
    maybe = is_open & (np.maximum(lower, start) < np.minimum(upper, stop))
    return exact | surely, exact | maybe


def _limits(part: Distribution, edges: Float64, place: int, level: float) -> tuple[float, float]:
    bin_edges = edges[place : place + 2]
    low, _ = share_limits(part, lambda inputs: int(_members(inputs, bin_edges)[0].sum()), level)
    _, high = share_limits(part, lambda inputs: int(_members(inputs, bin_edges)[1].sum()), level)
    return low, high


def _mass_below(estimate: Turnbull, at: Float64) -> Float64:
    """The estimated share of radii up to each value; mass without an end lies beyond all."""
    is_finite = np.isfinite(estimate.right)
    left, right, mass = (v[is_finite] for v in (estimate.left, estimate.right, estimate.mass))
    widths = np.where(right > left, right - left, 1.0)
    parts = np.clip((at[:, None] - left) / widths, 0.0, 1.0)
    return np.where(right > left, parts, at[:, None] >= right) @ mass


def _edges(right: Distribution, inputs: int, bins: int | npt.ArrayLike | None) -> Float64:
    if bins is not None and np.ndim(bins) == 1:
        edges = np.asarray(bins, np.float64)
        if len(edges) < 2 or not np.all(np.diff(edges) > 0) or not edges[0] >= 0:
            raise DataError("the edges of bins are numbers >= 0 that increase, at least two")
        return edges
    end = last_edge(right)
    if bins is not None:
        count = int(np.asarray(bins))
        if count < 1:
            raise DataError(f"a histogram has at least one bin, not {count}")
        return np.linspace(0.0, end, count + 1)
    widths = (right.upper - right.lower)[np.isfinite(right.upper)]
    narrowest = float(np.median(widths)) if widths.size else 0.0
    count = min(max(math.ceil(2 * inputs ** (1 / 3)), FEWEST_BINS), MOST_BINS)
    return np.linspace(0.0, end, max(1, min(count, int(end / max(narrowest, end / count)))) + 1)


def radius_densities(
    distribution: Distribution, *, by: str | Sequence[str] = "network"
) -> list[RadiusDensity]:
    """One for each group. Mass of an interval is spread evenly in it, then smoothed by a kernel
    of Silverman's width and mirrored at 0, where no radius is below.
    """
    right = distribution.correctly_classified()
    at = np.linspace(0.0, last_edge(right), DENSITY_POINTS)
    return [_density(group.name, group.distribution, at) for group in groups_of(right, by)]


def _density(name: str, part: Distribution, at: Float64) -> RadiusDensity:
    from scipy.special import ndtr

    estimate = part.turnbull()
    is_finite = np.isfinite(estimate.right) & (estimate.mass > 0)
    left, right, mass = (v[is_finite] for v in (estimate.left, estimate.right, estimate.mass))
    if not mass.size:
        raise DataError(f"{name}: no input has a counterexample, so there is no density to draw")
    middles = (left + right) / 2
    mean = float(mass @ middles) / float(mass.sum())
    deviation = math.sqrt(float(mass @ (middles - mean) ** 2) / float(mass.sum()))
    bandwidth = 0.9 * deviation * len(part) ** -0.2 or float(at[-1]) / 50
    half = np.maximum((right - left) / 2, 1e-3 * bandwidth)  # a point as a narrow interval
    total = np.zeros(len(at))
    for points in (at, -at):
        ends = [ndtr((points[:, None] - middles + sign * half) / bandwidth) for sign in (1.0, -1.0)]
        total += (ends[0] - ends[1]) / (2 * half) @ mass
    return RadiusDensity(name, len(part), at, total, bandwidth, float(1 - mass.sum()))


def draw_histogram(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    bins: int | npt.ArrayLike | None = None,
    eps: Sequence[float] = (),
    confidence: float | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel for each group: bars of the likely shares, hatched between what is sure and what is
    possible; with `confidence`, a line in each bar for all inputs.
    """
    histograms = radius_histograms(distribution, by=by, bins=bins, confidence=confidence)
    figure, panels = new_panels(
        [f"{each.name}{_beyond_text(each.beyond)}" for each in histograms],
        width=width,
        panel_width=PANEL_WIDTH,
        panel_height=0.7 * PANEL_WIDTH,
        x_label="radius $\\varepsilon$",
        y_label="share of inputs",
    )
    top = max(float(np.max(each.most if each.high is None else each.high)) for each in histograms)
    for place, (axes, each) in enumerate(zip(panels, histograms, strict=True)):
        _draw_bars(axes, place, each)
        axes.set_xlim(0, each.edges[-1])
        axes.set_ylim(0, min(1.0, 1.05 * top) or 1.0)
        mark_eps(axes, [value for value in eps if value <= each.edges[-1]])
    return figure


def _draw_bars(axes: Axes, place: int, each: RadiusHistogram) -> None:
    colour = colour_of(place)
    axes.stairs(each.likely, each.edges, fill=True, color=colour, alpha=0.45, linewidth=0)
    axes.stairs(
        each.most,
        each.edges,
        baseline=each.least,
        fill=True,
        facecolor="none",
        edgecolor=colour,
        hatch="//////",
        linewidth=0.4,
    )
    if each.low is not None and each.high is not None:
        middles = (each.edges[:-1] + each.edges[1:]) / 2
        axes.vlines(middles, each.low, each.high, color="black", linewidth=0.8)


def draw_density(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    eps: Sequence[float] = (),
    width: float = TEXT_WIDTH,
) -> Figure:
    """A line for each group; the legend says which share of the radii lies beyond."""
    figure, axes = new_figure(width)
    densities = radius_densities(distribution, by=by)
    for place, each in enumerate(densities):
        label = f"{each.name}{_beyond_text(each.beyond)}"
        style = dashes_of(place)
        axes.plot(each.eps, each.density, color=colour_of(place), linestyle=style, label=label)
    axes.set_xlabel("radius $\\varepsilon$")
    axes.set_ylabel("density")
    axes.set_xlim(0, densities[0].eps[-1])
    axes.set_ylim(bottom=0)
    mark_eps(axes, eps)
    show_legend(figure, axes)
    return figure


def _beyond_text(share: float) -> str:
    return f" ({100 * share:.0f} % beyond)" if share >= 0.005 else ""
