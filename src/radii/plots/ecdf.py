"""The empirical distribution of the radii: both sides, the gap between them shaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.plots.style import draw_band, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.distributions import Distribution

__all__ = ["EcdfCurve", "draw_ecdf", "ecdf_curves"]

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class EcdfCurve:
    """Share of a network's inputs broken within eps: `refuted` at least, `not_proven` at most.

    The shares are constant between neighbouring `edges`, so they have one value less.
    """

    network: str
    edges: Float64
    refuted: Float64
    not_proven: Float64


def ecdf_curves(distribution: Distribution) -> list[EcdfCurve]:
    """One curve a network, at every eps where one of its sides steps."""
    finite = distribution.upper[np.isfinite(distribution.upper)]
    top = 1.05 * max([*finite, *distribution.lower, 1e-12])
    curves = []
    for name, part in distribution.by_network().items():
        steps = np.concatenate([[0.0], part.lower, part.upper[np.isfinite(part.upper)], [top]])
        edges = np.unique(steps)
        shares = [part.robust_accuracy(value) for value in (edges[:-1] + edges[1:]) / 2]
        curves.append(
            EcdfCurve(
                name,
                edges,
                refuted=1 - np.array([share.not_refuted for share in shares]),
                not_proven=1 - np.array([share.proven for share in shares]),
            )
        )
    return curves


def draw_ecdf(distribution: Distribution) -> Figure:
    """Each network's empirical distribution of the radius, as a band between its two sides."""
    figure, axes = new_figure()
    curves = ecdf_curves(distribution)
    for place, curve in enumerate(curves):
        draw_band(axes, place, curve.network, curve.edges, curve.refuted, curve.not_proven)
    axes.set_xlabel("radius $\\varepsilon$")
    axes.set_ylabel("share of inputs broken within $\\varepsilon$")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, curves[0].edges[-1])
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return figure
