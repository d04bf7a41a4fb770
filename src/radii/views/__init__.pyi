from .figures._boxes import (
    BoxSummary,
    box_summaries,
    draw_boxes,
    draw_gaps,
    gap_summaries,
)
from .figures._captions import (
    FigureSource,
    caption,
)
from .figures._classes import (
    ClassTable,
    SpreadCurve,
    class_table,
    draw_class_gains,
    draw_classes,
    draw_closest_targets,
    draw_fairness,
    draw_targets,
    spread_curves,
    target_tables,
)
from .figures._counterexamples import (
    FEWEST_PIXELS,
    as_picture,
    draw_counterexamples,
    is_picture,
)
from .figures._curves import (
    ConstraintCurve,
    EcdfCurve,
    Metric,
    RobustAccuracyCurve,
    RunTimes,
    constraint_curves,
    draw_constraints,
    draw_ecdf,
    draw_ecdf_panels,
    draw_leads,
    draw_robust_accuracy,
    draw_run_times,
    ecdf_curves,
    robust_accuracy_curves,
    run_times,
)
from .figures._fits import (
    FittedGroup,
    QuantilePoints,
    draw_fits,
    draw_qq,
    draw_samples,
    fitted_groups,
    qq_points,
)
from .figures._games import (
    ValueAtEps,
    draw_game_values,
)
from .figures._histograms import (
    RadiusDensity,
    RadiusHistogram,
    draw_density,
    draw_histogram,
    radius_densities,
    radius_histograms,
)
from .figures._kinds import (
    FIGURE_KINDS,
    FigureKind,
    FigureOptions,
    figure_kind,
)
from .figures._latex import (
    ADDED_SPACE,
    latex_row,
    latex_table,
    latex_text,
)
from .figures._matrices import (
    draw_ks_matrix,
    ks_matrices,
)
from .figures._pairs import (
    Claims,
    Scatter,
    claims_of,
    draw_claims,
    draw_correlations,
    draw_scatter,
    scatter_of,
)
from .figures._seeds import (
    SeedCurve,
    draw_seed_curves,
)
from .figures._statistics import (
    draw_statistic,
)
from .figures._studies import (
    TradeoffPoint,
    draw_convergence,
    draw_hyper_parameters,
    draw_proof_gaps,
    draw_repetition,
    draw_tradeoff,
    draw_tradeoffs,
)
from .figures._style import (
    COLUMN_WIDTH,
    TEXT_WIDTH,
    new_figure,
    save_figure,
)
from .page._access import (
    Gate,
    token_for,
)
from .page._board import (
    Board,
    make_board,
    write_board,
)
from .page._card import (
    card,
)
from .page._comparison import (
    write_comparison,
)
from .page._findings import (
    finding_sentences,
)
from .page._page import (
    render_live_page,
    render_page,
    write_report,
)
from .page._payload import (
    Payload,
    make_payload,
    payload_of,
    pictures_of,
)
from .page._server import (
    LiveServer,
)

__all__ = [
    "ADDED_SPACE",
    "COLUMN_WIDTH",
    "FEWEST_PIXELS",
    "FIGURE_KINDS",
    "TEXT_WIDTH",
    "Board",
    "BoxSummary",
    "Claims",
    "ClassTable",
    "ConstraintCurve",
    "EcdfCurve",
    "FigureKind",
    "FigureOptions",
    "FigureSource",
    "FittedGroup",
    "Gate",
    "LiveServer",
    "Metric",
    "Payload",
    "QuantilePoints",
    "RadiusDensity",
    "RadiusHistogram",
    "RobustAccuracyCurve",
    "RunTimes",
    "Scatter",
    "SeedCurve",
    "SpreadCurve",
    "TradeoffPoint",
    "ValueAtEps",
    "as_picture",
    "box_summaries",
    "caption",
    "card",
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
    "draw_density",
    "draw_ecdf",
    "draw_ecdf_panels",
    "draw_fairness",
    "draw_fits",
    "draw_game_values",
    "draw_gaps",
    "draw_histogram",
    "draw_hyper_parameters",
    "draw_ks_matrix",
    "draw_leads",
    "draw_proof_gaps",
    "draw_qq",
    "draw_repetition",
    "draw_robust_accuracy",
    "draw_run_times",
    "draw_samples",
    "draw_scatter",
    "draw_seed_curves",
    "draw_statistic",
    "draw_targets",
    "draw_tradeoff",
    "draw_tradeoffs",
    "ecdf_curves",
    "figure_kind",
    "finding_sentences",
    "fitted_groups",
    "gap_summaries",
    "is_picture",
    "ks_matrices",
    "latex_row",
    "latex_table",
    "latex_text",
    "make_board",
    "make_payload",
    "new_figure",
    "payload_of",
    "pictures_of",
    "qq_points",
    "radius_densities",
    "radius_histograms",
    "render_live_page",
    "render_page",
    "robust_accuracy_curves",
    "run_times",
    "save_figure",
    "scatter_of",
    "spread_curves",
    "target_tables",
    "token_for",
    "write_board",
    "write_comparison",
    "write_report",
]
