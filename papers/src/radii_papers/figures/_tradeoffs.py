"""Figures of a study of many networks: robustness over accuracy, the effects of hyper-parameters,
and what attacks hide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from radii.errors import DataError
from radii.views import (
    LABEL_SIZE,
    SMALL_SIZE,
    TEXT_WIDTH,
    colour_of,
    new_figure,
    new_panels,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v")


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
