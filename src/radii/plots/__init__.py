"""Figures from distributions: a pure data function, and thin drawing that returns the figure."""

from __future__ import annotations

from radii.plots._box import BoxSummary, box_summaries, draw_boxes, draw_gaps, gap_summaries
from radii.plots._claims import Claims, claims_of, draw_claims
from radii.plots._class_maps import (
    ClassTable,
    class_table,
    draw_classes,
    draw_closest_targets,
    draw_targets,
    target_tables,
)
from radii.plots._constraints import ConstraintCurve, Metric, constraint_curves, draw_constraints
from radii.plots._correlations import Scatter, draw_correlations, draw_scatter, scatter_of
from radii.plots._counterexamples import Counterexample, as_picture, draw_counterexamples
from radii.plots._ecdf import (
    EcdfCurve,
    RobustAccuracyCurve,
    draw_ecdf,
    draw_leads,
    draw_robust_accuracy,
    ecdf_curves,
    robust_accuracy_curves,
)
from radii.plots._fairness import SpreadCurve, draw_class_gains, draw_fairness, spread_curves
from radii.plots._fits import (
    FittedGroup,
    QuantilePoints,
    draw_fits,
    draw_qq,
    fitted_groups,
    qq_points,
)
from radii.plots._matrices import draw_ks_matrix, ks_matrices
from radii.plots._repetition import draw_convergence, draw_repetition
from radii.plots._run_times import RunTimes, draw_run_times, run_times
from radii.plots._style import COLUMN_WIDTH, TEXT_WIDTH, save_figure
from radii.plots._tradeoff import (
    TradeoffPoint,
    draw_hyper_parameters,
    draw_proof_gaps,
    draw_tradeoff,
)

__all__ = [
    "COLUMN_WIDTH",
    "TEXT_WIDTH",
    "BoxSummary",
    "Claims",
    "ClassTable",
    "ConstraintCurve",
    "Counterexample",
    "EcdfCurve",
    "FittedGroup",
    "Metric",
    "QuantilePoints",
    "RobustAccuracyCurve",
    "RunTimes",
    "Scatter",
    "SpreadCurve",
    "TradeoffPoint",
    "as_picture",
    "box_summaries",
    "claims_of",
    "class_table",
    "constraint_curves",
    "draw_boxes",
    "draw_claims",
    "draw_class_gains",
    "draw_classes",
    "draw_closest_targets",
    "draw_constraints",
    "draw_convergence",
    "draw_correlations",
    "draw_counterexamples",
    "draw_ecdf",
    "draw_fairness",
    "draw_fits",
    "draw_gaps",
    "draw_hyper_parameters",
    "draw_ks_matrix",
    "draw_leads",
    "draw_proof_gaps",
    "draw_qq",
    "draw_repetition",
    "draw_robust_accuracy",
    "draw_run_times",
    "draw_scatter",
    "draw_targets",
    "draw_tradeoff",
    "ecdf_curves",
    "fitted_groups",
    "gap_summaries",
    "ks_matrices",
    "qq_points",
    "robust_accuracy_curves",
    "run_times",
    "save_figure",
    "scatter_of",
    "spread_curves",
    "target_tables",
]
