"""Figures from distributions: a pure data function, and thin drawing that returns the figure."""

from __future__ import annotations

from radii.plots.box import BoxSummary, box_summaries, draw_boxes
from radii.plots.counterexamples import Counterexample, as_picture, draw_counterexamples
from radii.plots.ecdf import EcdfCurve, draw_ecdf, ecdf_curves
from radii.plots.robust_accuracy import (
    RobustAccuracyCurve,
    draw_robust_accuracy,
    robust_accuracy_curves,
)
from radii.plots.style import save_figure

__all__ = [
    "BoxSummary",
    "Counterexample",
    "EcdfCurve",
    "RobustAccuracyCurve",
    "as_picture",
    "box_summaries",
    "draw_boxes",
    "draw_counterexamples",
    "draw_ecdf",
    "draw_robust_accuracy",
    "ecdf_curves",
    "robust_accuracy_curves",
    "save_figure",
]
