"""Is robustness spread fairly over classes? The spread of recall over eps, and who gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.distributions import Distribution, class_curves, class_gains, fairness
from radii.errors import DataError, InputError
from radii.plots._style import (
    COLOURS,
    LABEL_SIZE,
    TEXT_WIDTH,
    draw_band,
    mark_eps,
    new_figure,
    show_legend,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure


Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SpreadCurve:
    """The largest robust recall of a class minus the smallest, of one network.

    Between `least` and `most`, constant between neighbouring `edges`. `p_value` is of a permutation
    test that the radii of all classes are distributed alike.
    """

    name: str
    edges: Float64
    least: Float64
    most: Float64
    p_value: float


def spread_curves(distribution: Distribution) -> list[SpreadCurve]:
    """One curve a network that has at least two classes."""
    finite = distribution.upper[np.isfinite(distribution.upper)]
    top = 1.05 * max([*finite, *distribution.lower]) or 1.0
    curves, reason = [], ""
    for name, part in distribution.by_network().items():
        steps = np.concatenate([[0.0], part.lower, part.upper[np.isfinite(part.upper)], [top]])
        edges = np.unique(steps)
        try:
            curve = class_curves(part, (edges[:-1] + edges[1:]) / 2)
            p_value = fairness(part, 0.0).p_value
        except InputError as error:
            reason = str(error)
            continue
        curves.append(SpreadCurve(name, edges, *curve.spread, p_value))
    if not curves:
        raise DataError(reason)
    return curves


def draw_fairness(
    distribution: Distribution, *, eps: Sequence[float] = (), width: float = TEXT_WIDTH
) -> Figure:
    """How far apart the classes' robust recalls are at each eps, as brackets leave it.

    With few inputs a class, recalls differ by chance too: the p-value in the legend says whether
    the classes differ at all.
    """
    figure, axes = new_figure(width)
    curves = spread_curves(distribution)
    for place, curve in enumerate(curves):
        told = "p < 0.001" if curve.p_value < 0.001 else f"p = {curve.p_value:.3f}"
        draw_band(axes, place, f"{curve.name}, {told}", curve.edges, curve.least, curve.most)
    axes.set_xlabel("radius $\\varepsilon$")
    axes.set_ylabel("spread of robust recall")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, curves[0].edges[-1])
    mark_eps(axes, eps)
    show_legend(figure, axes)
    return figure


def draw_class_gains(
    distribution: Distribution,
    first: str,
    second: str,
    eps: float,
    *,
    width: float = TEXT_WIDTH,
) -> Figure:
    """What each class's robust recall at `eps` gains from the first network to the second.

    A bar is what brackets leave open. Classes that significantly gain or lose (5 %, Holm) have a
    colour of their own.
    """
    gains = class_gains(distribution.only(network=first), distribution.only(network=second), eps)
    figure, axes = new_figure(width, 1.0 + 0.2 * len(gains))
    kinds = {"gains": COLOURS[2], "loses": COLOURS[1], "undecided": "#999999"}
    for kind, colour in kinds.items():
        rows = [(place, gain) for place, gain in enumerate(gains) if gain.verdict() == kind]
        if not rows:
            continue
        places = [place for place, _ in rows]
        axes.barh(
            places,
            [gain.most - gain.least for _, gain in rows],
            left=[gain.least for _, gain in rows],
            height=0.6,
            color=colour,
            edgecolor=colour,
            linewidth=1.5,
            label=kind if kind != "undecided" else "not significant",
        )
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(range(len(gains)), [str(gain.label) for gain in gains])
    axes.set_ylim(len(gains) - 0.5, -0.5)
    axes.set_xlim(-1.02, 1.02)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("class")
    figure.supxlabel(
        f"gain of robust recall at $\\varepsilon$ = {eps:g},\n{first} to {second}",
        fontsize=LABEL_SIZE,
    )
    show_legend(figure, axes)
    return figure
