"""Robust accuracy over eps: proven at least, not refuted at most, the band between them shaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.plots.ecdf import ecdf_curves
from radii.plots.style import draw_band, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.distributions import Distribution

__all__ = ["RobustAccuracyCurve", "draw_robust_accuracy", "robust_accuracy_curves"]

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RobustAccuracyCurve:
    """Share of all a network's inputs that are right and stay so within eps.

    Known as an interval from `proven` to `not_refuted`, constant between neighbouring `edges`.
    """

    network: str
    edges: Float64
    proven: Float64
    not_refuted: Float64


def robust_accuracy_curves(distribution: Distribution) -> list[RobustAccuracyCurve]:
    """One curve a network, at every eps where one of its sides steps."""
    return [
        RobustAccuracyCurve(
            curve.network, curve.edges, proven=1 - curve.not_proven, not_refuted=1 - curve.refuted
        )
        for curve in ecdf_curves(distribution)
    ]


def draw_robust_accuracy(distribution: Distribution) -> Figure:
    """Each network's robust accuracy, as a band from what is proven to what is not refuted."""
    figure, axes = new_figure()
    curves = robust_accuracy_curves(distribution)
    for place, curve in enumerate(curves):
        draw_band(axes, place, curve.network, curve.edges, curve.not_refuted, curve.proven)
    axes.set_xlabel("radius $\\varepsilon$")
    axes.set_ylabel("robust accuracy at $\\varepsilon$")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, curves[0].edges[-1])
    axes.legend(frameon=False, fontsize="small", loc="upper right")
    return figure
