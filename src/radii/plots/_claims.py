"""Claimed proofs against witnesses of others: a point below the diagonal is a refuted claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.distributions import Distribution
from radii.plots._correlations import scatter_of
from radii.plots._matrices import shortened
from radii.plots._style import COLOURS, TEXT_WIDTH, new_panels, show_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Float64 = npt.NDArray[np.float64]


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
    says = (lower > 0) | np.isfinite(upper)
    claimed, witnessed = lower[says], shared.second[1][says]
    return Claims(name, claimed, witnessed, (claimed > 0) & (witnessed <= claimed))


def draw_claims(
    distribution: Distribution,
    pairs: Sequence[tuple[str, str]],
    *,
    names: Sequence[str] | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel a pair of networks, a point an input: what one proves and the other's witness.

    Points below the diagonal are claims that a witness refutes. Inputs without a witness are left
    out; nothing speaks against them.
    """
    told = [
        claims_of(distribution, *pair, name)
        for pair, name in zip(pairs, names or [pair[0] for pair in pairs], strict=True)
    ]
    titles = [f"{shortened(claims.name)}\n{_count(claims)}" for claims in told]
    figure, axes = new_panels(
        titles,
        width=width,
        panel_height=1.75,
        x_label="claimed to be proven, $\\varepsilon$",
        y_label="distance of the witness",
    )
    for panel, claims in zip(axes, told, strict=True):
        _draw_claims_panel(panel, claims)
    show_legend(figure, max(axes, key=lambda panel: len(panel.get_legend_handles_labels()[1])))
    return figure


def _count(claims: Claims) -> str:
    if not np.isfinite(claims.witnessed).any():
        return "no witness to compare with"
    return f"{claims.refuted.sum()} of {claims.refuted.size} refuted"


def _draw_claims_panel(axes: Axes, claims: Claims) -> None:
    has_witness = np.isfinite(claims.witnessed)
    ends = np.concatenate([claims.claimed, claims.witnessed[has_witness]])
    edge = 1.05 * float(ends.max()) or 1.0
    axes.plot([0, edge], [0, edge], color="#999999", linewidth=0.7, zorder=1)
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
    axes.set_xlim(0, edge)
    axes.set_ylim(0, edge)
