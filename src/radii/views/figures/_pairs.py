"""Networks compared input by input: are the same inputs hard, and do witnesses refute claims?

Spearman's coefficients and scatter plots show whether inputs that are hard for one network are hard
for another. Where the two are results for the same network, the proofs that one claims are drawn
against the witnesses of the other: a point below the diagonal is a refuted claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from radii.errors import DataError
from radii.statistics import Correlations, Distribution, Float64, spearman_matrix
from radii.views.figures._matrices import draw_matrix, short, shortened
from radii.views.figures._style import (
    COLOURS,
    LABEL_SIZE,
    TEXT_WIDTH,
    draw_diagonal,
    new_figure,
    new_panels,
    show_legend,
    with_left_out,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


ScatterSide = Literal["lower", "upper"]


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """The inputs that two networks share: each network's brackets, in the same order.

    `wrong` marks those that at least one misclassifies, `unsolved` those for which one has no
    answer at all, and so no point. `coefficient` is Spearman's on the asked sides of the `inputs`
    that both classify correctly and solve; NaN where it is not defined.
    """

    names: tuple[str, str]
    first: tuple[Float64, Float64]
    second: tuple[Float64, Float64]
    wrong: npt.NDArray[np.bool_]
    unsolved: npt.NDArray[np.bool_]
    coefficient: float
    inputs: int


def scatter_of(
    distribution: Distribution, first: str, second: str, side: ScatterSide = "lower"
) -> Scatter:
    """The brackets of two networks on the inputs that were measured on both."""
    one, two = distribution.only(network=first), distribution.only(network=second)
    places = {key: place for place, key in enumerate(_inputs(two))}
    shared = [(place, places[key]) for place, key in enumerate(_inputs(one)) if key in places]
    if not shared:
        raise DataError(f"{first} and {second} were measured on no common input")
    at_one, at_two = np.array(shared).T
    a, b = one.select(at_one), two.select(at_two)
    correlations = spearman_matrix(Distribution.union([a, b]), side)
    return Scatter(
        (first, second),
        (a.lower, a.upper),
        (b.lower, b.upper),
        ~(a.holds & b.holds),
        a.is_unsolved | b.is_unsolved,
        float(correlations.coefficients[0, 1]),
        int(correlations.inputs[0, 1]),
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
    correlations = spearman_matrix(distribution)
    names = correlations.networks
    figure, axes = new_figure(width, 1.35 + 0.21 * len(names))
    stars = {(i, j) for i, j in np.argwhere(correlations.adjusted < 0.05).tolist()}
    draw_matrix(
        axes,
        correlations.coefficients,
        rows=names,
        columns=names,
        colours="RdBu_r",
        limits=(-1.0, 1.0),
        text_of=lambda value: short(value, 2),
        marks=stars,
    )
    title = "Spearman's $r_s$ of proven radii (* p < 0.05, Holm)"
    figure.suptitle(with_left_out(title, sum(correlations.left_out)), fontsize=LABEL_SIZE)
    return figure


def draw_scatter(
    distribution: Distribution,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    side: ScatterSide = "lower",
    width: float = TEXT_WIDTH,
) -> Figure:
    """Each input as a point at its proven radii on two networks, in a panel for each pair.

    Lines show the brackets. Inputs that at least one network misclassifies are crosses; those that
    have no answer on one of them are not drawn but counted in the title. Without `pairs`, the most
    and the least correlated pair are drawn. With `side="upper"` points are at the distances of the
    closest witnesses, without lines; inputs that have none are at the edge.
    """
    shown = list(pairs) if pairs is not None else extreme_pairs(spearman_matrix(distribution, side))
    scatters = [scatter_of(distribution, *pair, side) for pair in shown]
    figure, axes = new_panels(
        [_title(scatter) for scatter in scatters], width=width, panel_width=2.6, panel_height=2.5
    )
    for panel, scatter in zip(axes, scatters, strict=True):
        _draw_points(panel, scatter, side)
    show_legend(figure, *axes)
    return figure


def _draw_points(axes: Axes, scatter: Scatter, side: ScatterSide) -> None:
    ends = np.concatenate([*scatter.first, *scatter.second])
    edge = 1.06 * float(ends[np.isfinite(ends)].max()) or 1.0
    (low_x, high_x), (low_y, high_y) = (
        (low, np.minimum(high, edge)) for low, high in (scatter.first, scatter.second)
    )
    right, wrong = ~scatter.wrong & ~scatter.unsolved, scatter.wrong & ~scatter.unsolved
    draw_diagonal(axes, edge)
    if side == "lower":
        bars: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.35, "linewidth": 1.0, "zorder": 1.5}
        axes.hlines(low_y[right], low_x[right], high_x[right], **bars)
        axes.vlines(low_x[right], low_y[right], high_y[right], **bars)
    x, y = (low_x, low_y) if side == "lower" else (high_x, high_y)
    if right.any():
        style: dict[str, Any] = {"color": COLOURS[0], "markersize": 3, "markeredgewidth": 0}
        axes.plot(x[right], y[right], "o", label="correct for both", clip_on=False, **style)
    if wrong.any():
        style = {"color": COLOURS[1], "markersize": 4}
        name = "misclassified by one or both"
        axes.plot(x[wrong], y[wrong], "x", label=name, clip_on=False, **style)
    axes.set_aspect("equal")
    what = "$\\varepsilon$" if side == "lower" else "closest witness"
    axes.set_xlabel(f"{what}, {scatter.names[0]}")
    axes.set_ylabel(f"{what}, {scatter.names[1]}")
    # The ticks of both axes are the same, since their limits are.
    axes.set_yticks(axes.get_xticks())
    axes.set_xlim(0, edge)
    axes.set_ylim(0, edge)


def _title(scatter: Scatter) -> str:
    title = f"{scatter.inputs} inputs"
    if not np.isnan(scatter.coefficient):
        title = f"$r_s$ = {scatter.coefficient:.2f}, {title}"
    return with_left_out(title, int(scatter.unsolved.sum()))


def _inputs(distribution: Distribution) -> list[tuple[int, int, str]]:
    """What makes an input the same for two networks: its place, its target and its split."""
    names = ("input", "target", "split")
    return list(zip(*(distribution.column(name).tolist() for name in names), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """The proven sides of one result and the witnessed sides of another, input by input.

    A claim is `refuted` when a counterexample lies within it.
    """

    name: str
    claimed: Float64
    witnessed: Float64
    refuted: npt.NDArray[np.bool_]


def claims_of(distribution: Distribution, first: str, second: str, name: str) -> Claims:
    """What the network `first` claims, against what is witnessed of `second`, on shared inputs.

    A result of the first without any answer claims nothing, and is left out.
    """
    shared = scatter_of(distribution, first, second)
    lower, upper = shared.first
    has_answer = (lower > 0) | np.isfinite(upper)
    claimed, witnessed = lower[has_answer], shared.second[1][has_answer]
    return Claims(name, claimed, witnessed, (claimed > 0) & (witnessed <= claimed))


def draw_claims(
    distribution: Distribution,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    names: Sequence[str] | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Each input as a point: what one network claims against the witness of another.

    There is a panel for each pair; by default those of networks whose names differ only in the
    place that stands behind them in brackets. Points below the diagonal are claims that a witness
    refutes. Inputs without a witness are left out: nothing speaks against their claims.
    """
    if pairs is None:
        twice = _results_of_one_network(distribution)
        pairs, names = list(twice.values()), list(twice)
    several = [
        claims_of(distribution, *pair, name)
        for pair, name in zip(pairs, names or [pair[0] for pair in pairs], strict=True)
    ]
    titles = []
    for claims in several:
        count = f"{claims.refuted.sum()} of {claims.refuted.size} refuted"
        has_witness = np.isfinite(claims.witnessed).any()
        text = count if has_witness else "no witness to compare with"
        titles.append(f"{shortened(claims.name)}\n{text}")
    figure, axes = new_panels(
        titles,
        width=width,
        panel_height=1.75,
        x_label="claimed to be proven, $\\varepsilon$",
        y_label="distance of the witness",
    )
    for panel, claims in zip(axes, several, strict=True):
        _draw_claims_panel(panel, claims)
    show_legend(figure, *axes)
    return figure


def _results_of_one_network(distribution: Distribution) -> dict[str, tuple[str, str]]:
    named: dict[str, list[str]] = {}
    for name in distribution.networks:
        named.setdefault(name.split(" (")[0], []).append(name)
    twice = {plain: (names[0], names[1]) for plain, names in named.items() if len(names) == 2}
    if not twice:
        raise DataError("claims of one result are compared with another: give two, of one network")
    return twice


def _draw_claims_panel(axes: Axes, claims: Claims) -> None:
    has_witness = np.isfinite(claims.witnessed)
    ends = np.concatenate([claims.claimed, claims.witnessed[has_witness]])
    edge = 1.05 * float(ends.max()) or 1.0
    draw_diagonal(axes, edge)
    kinds = (
        ("not refuted", has_witness & ~claims.refuted, "o", COLOURS[0], 2.6),
        ("refuted", claims.refuted, "x", COLOURS[1], 3.6),
    )
    for label, rows, marker, colour, size in kinds:
        if rows.any():
            axes.plot(
                claims.claimed[rows],
                claims.witnessed[rows],
                marker,
                color=colour,
                markersize=size,
                label=label,
                clip_on=False,
            )
