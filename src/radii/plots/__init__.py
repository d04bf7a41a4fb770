"""Figures from distributions: a pure data function, and thin drawing that returns the figure."""

from __future__ import annotations

from radii.plots.ecdf import EcdfCurve, draw_ecdf, ecdf_curves
from radii.plots.style import save_figure

__all__ = ["EcdfCurve", "draw_ecdf", "ecdf_curves", "save_figure"]
