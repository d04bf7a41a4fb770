"""Are the same inputs hard for different networks? Spearman's coefficients and scatter plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.distributions import Correlations, Distribution, spearman_matrix
from radii.errors import DataError
from radii.plots._matrices import draw_matrix, short
from radii.plots._style import (
    COLOURS,
    LABEL_SIZE,
    TEXT_WIDTH,
    left_out_text,
    new_figure,
    new_panels,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """The inputs that two networks share: each network's brackets, in the same order.

    `wrong` marks those that at least one misclassifies, `unsolved` those for which one has no
    answer at all, and so no point. `coefficient` is Spearman's on the proven sides of the `inputs`
    that both classify correctly and solve; NaN where it is not defined.
    """

    names: tuple[str, str]
    first: tuple[Float64, Float64]
    second: tuple[Float64, Float64]
    wrong: npt.NDArray[np.bool_]
    unsolved: npt.NDArray[np.bool_]
    coefficient: float
    inputs: int


def scatter_of(distribution: Distribution, first: str, second: str) -> Scatter:
    """The brackets of two networks on the inputs that were measured on both."""
    one, two = distribution.only(network=first), distribution.only(network=second)
    places = {key: place for place, key in enumerate(_inputs(two))}
    shared = [(place, places[key]) for place, key in enumerate(_inputs(one)) if key in places]
    if not shared:
        raise DataError(f"{first} and {second} were measured on no common input")
    at_one, at_two = np.array(shared).T
    a, b = one.select(at_one), two.select(at_two)
    found = spearman_matrix(Distribution.union([a, b]))
    return Scatter(
        (first, second),
        (a.lower, a.upper),
        (b.lower, b.upper),
        ~(a.holds & b.holds),
        a.is_unsolved | b.is_unsolved,
        float(found.coefficients[0, 1]),
        int(found.inputs[0, 1]),
    )


def extreme_pairs(correlations: Correlations) -> list[tuple[str, str]]:
    """The most and the least correlated pair of networks; the only one if there are two."""
    names = correlations.networks
    above = np.array(np.triu_indices(len(names), 1))
    values = correlations.coefficients[tuple(above)]
    order = above[:, np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")]
    order = order[:, : max(1, int(np.count_nonzero(~np.isnan(values))))]
    ends = dict.fromkeys((int(order[0, k]), int(order[1, k])) for k in (0, -1))
    return [(names[one], names[two]) for one, two in ends]


def draw_correlations(distribution: Distribution, *, width: float = TEXT_WIDTH) -> Figure:
    """Spearman's coefficients between all networks, on inputs that both classify correctly.

    A star: significant at 5 % after Holm's correction over all pairs. Results without any answer
    have no rank; the title counts them.
    """
    found = spearman_matrix(distribution)
    names = found.networks
    figure, axes = new_figure(width, 1.35 + 0.21 * len(names))
    stars = {(i, j) for i, j in np.argwhere(found.adjusted < 0.05).tolist()}
    draw_matrix(
        axes,
        found.coefficients,
        rows=names,
        columns=names,
        colours="RdBu_r",
        limits=(-1.0, 1.0),
        told=lambda value: short(value, 2),
        marks=stars,
    )
    title = "Spearman's $r_s$ of proven radii (* p < 0.05, Holm)"
    left_out = left_out_text(sum(found.left_out))
    figure.suptitle(f"{title}\n{left_out}" if left_out else title, fontsize=LABEL_SIZE)
    return figure


def draw_scatter(
    distribution: Distribution,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel a pair of networks: a point an input, at its two proven radii, with its brackets.

    Inputs that at least one network misclassifies are crosses; those that one leaves without any
    answer are not drawn, and counted in the title. Without `pairs`: the most and the least
    correlated pair.
    """
    shown = list(pairs) if pairs is not None else extreme_pairs(spearman_matrix(distribution))
    scatters = [scatter_of(distribution, *pair) for pair in shown]
    figure, axes = new_panels(
        [_title(scatter) for scatter in scatters], width=width, panel_width=2.6, panel_height=2.5
    )
    for panel, scatter in zip(axes, scatters, strict=True):
        _draw_points(panel, scatter)
    show_legend(figure, max(axes, key=lambda panel: len(panel.get_legend_handles_labels()[1])))
    return figure


def _draw_points(axes: Axes, scatter: Scatter) -> None:
    ends = np.concatenate([*scatter.first, *scatter.second])
    edge = 1.06 * float(ends[np.isfinite(ends)].max()) or 1.0
    (low_x, high_x), (low_y, high_y) = scatter.first, scatter.second
    right, wrong = ~scatter.wrong & ~scatter.unsolved, scatter.wrong & ~scatter.unsolved
    axes.plot([0, edge], [0, edge], color="#999999", linewidth=0.7, zorder=1)
    bars: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.35, "linewidth": 1.0, "zorder": 1.5}
    axes.hlines(low_y[right], low_x[right], np.minimum(high_x[right], edge), **bars)
    axes.vlines(low_x[right], low_y[right], np.minimum(high_y[right], edge), **bars)
    if right.any():
        axes.plot(
            low_x[right],
            low_y[right],
            "o",
            color=COLOURS[0],
            markersize=3,
            markeredgewidth=0,
            label="correct for both",
            clip_on=False,
        )
    if wrong.any():
        axes.plot(
            low_x[wrong],
            low_y[wrong],
            "x",
            color=COLOURS[1],
            markersize=4,
            label="misclassified by one or both",
            clip_on=False,
        )
    axes.set_xlim(0, edge)
    axes.set_ylim(0, edge)
    axes.set_aspect("equal")
    axes.set_xlabel(f"$\\varepsilon$, {scatter.names[0]}")
    axes.set_ylabel(f"$\\varepsilon$, {scatter.names[1]}")
    # The ticks of both axes are the same, since their limits are.
    axes.set_yticks(axes.get_xticks())
    axes.set_xlim(0, edge)
    axes.set_ylim(0, edge)


def _title(scatter: Scatter) -> str:
    told = f"{scatter.inputs} inputs"
    if not np.isnan(scatter.coefficient):
        told = f"$r_s$ = {scatter.coefficient:.2f}, {told}"
    left_out = left_out_text(int(scatter.unsolved.sum()))
    return f"{told}\n{left_out}" if left_out else told


def _inputs(distribution: Distribution) -> list[tuple[int, int, str]]:
    """What makes an input the same for two networks: its place, its target and its split."""
    names = ("input", "target", "split")
    return list(zip(*(distribution.column(name).tolist() for name in names), strict=True))
