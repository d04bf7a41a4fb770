"""Figures that only the studies of papers draw, in the style of those of `radii.views`."""

from __future__ import annotations

from radii_papers.figures._games import ValueAtEps, draw_game_values
from radii_papers.figures._samples import draw_ecdf_panels, draw_samples
from radii_papers.figures._seeds import SeedCurve, draw_seed_curves
from radii_papers.figures._tradeoffs import (
    TradeoffPoint,
    draw_hyper_parameters,
    draw_proof_gaps,
    draw_tradeoff,
    draw_tradeoffs,
)

__all__ = [
    "SeedCurve",
    "TradeoffPoint",
    "ValueAtEps",
    "draw_ecdf_panels",
    "draw_game_values",
    "draw_hyper_parameters",
    "draw_proof_gaps",
    "draw_samples",
    "draw_seed_curves",
    "draw_tradeoff",
    "draw_tradeoffs",
]
