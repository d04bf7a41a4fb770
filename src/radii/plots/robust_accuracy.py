"""Robust accuracy over eps: proven at least, not refuted at most, the band between them shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.plots.ecdf import draw_confidence, ecdf_curves
from radii.plots.style import TEXT_WIDTH, draw_band, mark_eps, new_figure, show_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.distributions import Distribution

__all__ = ["RobustAccuracyCurve", "draw_robust_accuracy", "robust_accuracy_curves"]

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RobustAccuracyCurve:
    """Share of all a group's inputs that are right and stay so within eps.

    Known as an interval from `proven` to `not_refuted`, constant between neighbouring `edges`. With
    a confidence level, the population's robust accuracy is between `low` and `high`.
    """

    name: str
    edges: Float64
    proven: Float64
    not_refuted: Float64
    low: Float64 | None = None
    high: Float64 | None = None


def robust_accuracy_curves(
    distribution: Distribution,
    *,
    by: str | Sequence[str] = "network",
    confidence: float | None = None,
) -> list[RobustAccuracyCurve]:
    """One curve a group, at every eps where one of its sides steps."""
    return [
        RobustAccuracyCurve(
            curve.name,
            curve.edges,
            proven=1 - curve.not_proven,
            not_refuted=1 - curve.refuted,
            low=None if curve.high is None else 1 - curve.high,
            high=None if curve.low is None else 1 - curve.low,
        )
        for curve in ecdf_curves(distribution, by=by, confidence=confidence)
    ]


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
        if curve.low is not None and curve.high is not None:
            draw_confidence(axes, place, curve.edges, curve.low, curve.high)
        draw_band(axes, place, curve.name, curve.edges, curve.not_refuted, curve.proven)
    axes.set_xlabel("radius $\\varepsilon$")
    measure = "recall" if "class" in ((by,) if isinstance(by, str) else by) else "accuracy"
    axes.set_ylabel(f"robust {measure} at $\\varepsilon$")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, curves[0].edges[-1])
    mark_eps(axes, eps)
    show_legend(figure, axes)
    return figure
