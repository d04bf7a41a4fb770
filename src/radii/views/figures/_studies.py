"""Figures of a study of many networks, and of estimates from many samples.

The former show robustness over accuracy, the effects of hyper-parameters, and what attacks hide;
the latter how estimates of global robustness gather as their stated error shrinks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import DataError
from radii.statistics import RepeatedEstimates, plan_samples, repeat_estimates
from radii.views.figures._style import (
    COLOURS,
    LABEL_SIZE,
    SMALL_SIZE,
    TEXT_WIDTH,
    TICK_SIZE,
    colour_of,
    groups_of,
    new_figure,
    new_panels,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from radii.statistics import Distribution


MARKERS = ("o", "s", "^", "D", "v")

ERRORS = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.04, 0.03, 0.02)

DOT_SPREAD = 0.25
"""How far the dots of one error stand apart, in steps between errors."""


@dataclass(frozen=True, slots=True)
class TradeoffPoint:
    """One network: its accuracy, its robustness, and the interval of the latter."""

    accuracy: float
    robustness: float
    low: float
    high: float


def draw_tradeoff(
    series: Mapping[str, Sequence[TradeoffPoint]], label: str, *, width: float = TEXT_WIDTH
) -> Figure:
    """One mark per network over its accuracy, with a hair line for its interval.

    Each series has a colour and a mark of its own; `label` names the measure.
    """
    if not any(series.values()):
        raise DataError("there are no networks to draw")
    figure, axes = new_figure(width)
    _draw_networks(axes, series)
    axes.set_xlabel("accuracy", fontsize=LABEL_SIZE)
    axes.set_ylabel(label, fontsize=LABEL_SIZE)
    show_legend(figure, axes)
    return figure


def draw_tradeoffs(
    panels: Mapping[str, Mapping[str, Sequence[TradeoffPoint]]], *, width: float = TEXT_WIDTH
) -> Figure:
    """`draw_tradeoff` for several measures or data sets: a panel for each title.

    All panels have the same series, in the same order; an empty one keeps its colour.
    """
    if not any(points for series in panels.values() for points in series.values()):
        raise DataError("there are no networks to draw")
    columns = 3 if len(panels) % 3 == 0 else 2
    figure, axes = new_panels(
        list(panels), width=width, panel_width=width / columns, x_label="accuracy"
    )
    for panel, series in zip(axes, panels.values(), strict=True):
        _draw_networks(panel, series, has_counts=False)
    show_legend(figure, *axes)
    return figure


def _draw_networks(
    axes: Axes, series: Mapping[str, Sequence[TradeoffPoint]], *, has_counts: bool = True
) -> None:
    for place, (name, points) in enumerate(series.items()):
        if not points:
            continue
        colour, accuracy = colour_of(place), [point.accuracy for point in points]
        low, high = [point.low for point in points], [point.high for point in points]
        axes.vlines(accuracy, low, high, color=colour, linewidth=0.5, alpha=0.35)
        axes.plot(
            accuracy,
            [point.robustness for point in points],
            linestyle="none",
            marker=MARKERS[place % len(MARKERS)],
            markersize=3.4,
            color=colour,
            alpha=0.85,
            label=f"{name} ({len(points)})" if has_counts else name,
        )


def draw_hyper_parameters(
    parameters: Mapping[str, Mapping[str, Sequence[float]]],
    label: str,
    *,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel for each hyper-parameter, and in it a box for each of its values.

    Whiskers reach the furthest network within one and a half times the box; others are dots.
    """
    if not parameters:
        raise DataError("no hyper-parameter varies: there is no effect to draw")
    figure, panels = new_panels(list(parameters), width=width, y_label=label)
    for place, (axes, groups) in enumerate(zip(panels, parameters.values(), strict=True)):
        colour = colour_of(place)
        drawn = axes.boxplot(
            [list(values) for values in groups.values()],
            tick_labels=list(groups),
            widths=0.6,
            patch_artist=True,
            medianprops={"color": "black"},
            flierprops={"markersize": 2},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, alpha=0.5)
        axes.tick_params(axis="x", labelsize=SMALL_SIZE)
        axes.grid(visible=False, axis="x")
    return figure


def draw_proof_gaps(
    networks: Mapping[str, Sequence[tuple[float, float]]], *, width: float = TEXT_WIDTH
) -> Figure:
    """For each network a line from the share that is proven to the share that is not broken.

    Networks stand side by side within their kind, in the order of the latter.
    """
    if not any(networks.values()):
        raise DataError("no network has proven values to draw")
    figure, axes = new_figure(width)
    start = 0
    for place, (name, pairs) in enumerate(networks.items()):
        ordered = sorted(pairs, key=lambda pair: (pair[1], pair[0]))
        x, colour = list(range(start, start + len(ordered))), colour_of(place)
        proven, unbroken = [pair[0] for pair in ordered], [pair[1] for pair in ordered]
        axes.vlines(x, proven, unbroken, color=colour, linewidth=1, alpha=0.6)
        axes.plot(
            x,
            unbroken,
            linestyle="none",
            marker="_",
            color=colour,
            label=f"{name}: no attack found",
        )
        axes.plot(
            x,
            proven,
            linestyle="none",
            marker=".",
            markersize=4,
            color=colour,
            label=f"{name}: proven",
        )
        start += len(ordered) + 1
    axes.set_xticks([])
    axes.set_xlabel("networks", fontsize=LABEL_SIZE)
    axes.set_ylabel("share of inputs", fontsize=LABEL_SIZE)
    show_legend(figure, axes)
    return figure


def draw_convergence(
    distribution: Distribution,
    eps: float,
    *,
    by: Sequence[str] = ("network",),
    confidence: float = 0.95,
    repeats: int = 50,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Estimates of robust accuracy at an eps, from many samples of the inputs that were measured.

    Those by proof count what is proven, those by attack what is not refuted. Errors that need more
    inputs than there are are left out.
    """
    groups = groups_of(distribution, by)
    smallest = min(len(group.distribution) for group in groups)
    errors = [error for error in ERRORS if plan_samples(error, confidence).samples <= smallest]
    if not errors:
        raise DataError(f"{smallest} inputs are too few: {ERRORS[0]:g} is the largest error drawn")
    series = {}
    for group in groups:
        name = f"{group.name}, " if len(groups) > 1 else ""
        sides = {
            "by proof": group.distribution.lower >= eps,
            "by attack": group.distribution.upper > eps,
        }
        for way, values in sides.items():
            series[name + way] = repeat_estimates(
                values, errors=errors, confidence=confidence, repeats=repeats
            )
    return draw_repetition(series, measure=f"R({eps:g})", width=width)


def draw_repetition(
    series: Mapping[str, Sequence[RepeatedEstimates]],
    *,
    measure: str = "R",
    width: float = TEXT_WIDTH,
) -> Figure:
    """Every estimate as a dot over its stated error, which shrinks to the right.

    A line shows the size of the samples. Where values are bracketed, a dot is the middle of its
    interval, which a hair line shows.
    """
    if not series or not all(series.values()):
        raise DataError("there are no estimates to draw")
    figure, axes = new_figure(width)
    first = next(iter(series.values()))
    errors = [each.error for each in first]
    if any([each.error for each in other] != errors for other in series.values()):
        raise DataError("all series need the same errors")
    for place, (name, estimates) in enumerate(series.items()):
        shift = DOT_SPREAD * (place - (len(series) - 1) / 2)
        for column, each in enumerate(estimates):
            jitter = np.linspace(-0.1, 0.1, len(each.least)) if len(each.least) > 1 else np.zeros(1)
            at, colour = column + shift + jitter, colour_of(place)
            axes.vlines(at, each.least, each.most, color=colour, linewidth=0.5, alpha=0.5)
            middles = (each.least + each.most) / 2
            label = name if column == 0 else None
            axes.scatter(at, middles, s=4, color=colour, linewidths=0, label=label)
    axes.set_xticks(range(len(errors)), [f"{error:g}" for error in errors])
    axes.set_xlabel("error that is stated")
    axes.set_ylabel(f"estimate of {measure}")
    sizes = axes.twinx()
    sizes.plot(range(len(errors)), [each.samples for each in first], color=COLOURS[6], linewidth=1)
    sizes.set_yscale("log")
    sizes.set_ylabel("inputs in the sample", fontsize=LABEL_SIZE)
    sizes.tick_params(labelsize=TICK_SIZE)
    show_legend(figure, axes)
    return figure
