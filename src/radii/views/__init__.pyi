from ._json import (
    plain_json,
)
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
from .figures._convergence import (
    draw_convergence,
    draw_repetition,
)
from .figures._counterexamples import (
    FEWEST_PIXELS,
    as_picture,
    draw_counterexamples,
    is_picture,
)
from .figures._curves import (
    Metric,
    RunTimes,
    ShareCurve,
    constraint_curves,
    draw_constraints,
    draw_ecdf,
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
    fitted_groups,
    qq_points,
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
from .figures._matrices import (
    draw_ks_matrix,
    ks_matrices,
    shortened,
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
from .figures._statistics import (
    draw_statistic,
)
from .figures._style import (
    COLUMN_WIDTH,
    LABEL_SIZE,
    SMALL_SIZE,
    TEXT_WIDTH,
    colour_of,
    dashes_of,
    draw_band,
    new_figure,
    new_panels,
    save_figure,
    show_legend,
)
from .notebook._counterexamples import counterexample_html, counterexample_text
from .notebook._distribution import distribution_html, distribution_text
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
from .tables._comparison import (
    comparison_object,
    comparison_parts,
    comparison_rows,
)
from .tables._console import (
    Console,
)
from .tables._ensembles import (
    game_curve_object,
    game_curve_parts,
    game_object,
    game_parts,
)
from .tables._guarantees import (
    curve_parts,
    estimate_sentences,
)
from .tables._latex import (
    ADDED_SPACE,
    LatexConsole,
    latex_lines,
    latex_row,
    latex_table,
    latex_text,
)
from .tables._metrics import (
    metrics_parts,
)
from .tables._records import (
    TableColumn,
    TableRecord,
    markdown_lines,
)
from .tables._results import (
    change_sentences,
    disagreement_objects,
    effort_tables,
    history_table,
    instance_table,
    missing_notes,
    results_object,
    summary_table,
)
from .tables._runs import (
    audit_tables,
    estimate_parts,
)

__all__ = [
    "ADDED_SPACE",
    "COLUMN_WIDTH",
    "FEWEST_PIXELS",
    "FIGURE_KINDS",
    "LABEL_SIZE",
    "SMALL_SIZE",
    "TEXT_WIDTH",
    "Board",
    "BoxSummary",
    "Claims",
    "ClassTable",
    "Console",
    "FigureKind",
    "FigureOptions",
    "FigureSource",
    "FittedGroup",
    "Gate",
    "LatexConsole",
    "LiveServer",
    "Metric",
    "Payload",
    "QuantilePoints",
    "RadiusDensity",
    "RadiusHistogram",
    "RunTimes",
    "Scatter",
    "ShareCurve",
    "SpreadCurve",
    "TableColumn",
    "TableRecord",
    "as_picture",
    "audit_tables",
    "box_summaries",
    "caption",
    "card",
    "change_sentences",
    "claims_of",
    "class_table",
    "colour_of",
    "comparison_object",
    "comparison_parts",
    "comparison_rows",
    "constraint_curves",
    "counterexample_html",
    "counterexample_text",
    "curve_parts",
    "dashes_of",
    "disagreement_objects",
    "distribution_html",
    "distribution_text",
    "draw_band",
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
    "draw_fairness",
    "draw_fits",
    "draw_gaps",
    "draw_histogram",
    "draw_ks_matrix",
    "draw_leads",
    "draw_qq",
    "draw_repetition",
    "draw_robust_accuracy",
    "draw_run_times",
    "draw_scatter",
    "draw_statistic",
    "draw_targets",
    "ecdf_curves",
    "effort_tables",
    "estimate_parts",
    "estimate_sentences",
    "figure_kind",
    "finding_sentences",
    "fitted_groups",
    "game_curve_object",
    "game_curve_parts",
    "game_object",
    "game_parts",
    "gap_summaries",
    "history_table",
    "instance_table",
    "is_picture",
    "ks_matrices",
    "latex_lines",
    "latex_row",
    "latex_table",
    "latex_text",
    "make_board",
    "make_payload",
    "markdown_lines",
    "metrics_parts",
    "missing_notes",
    "new_figure",
    "new_panels",
    "payload_of",
    "pictures_of",
    "plain_json",
    "qq_points",
    "radius_densities",
    "radius_histograms",
    "render_live_page",
    "render_page",
    "results_object",
    "robust_accuracy_curves",
    "run_times",
    "save_figure",
    "scatter_of",
    "shortened",
    "show_legend",
    "spread_curves",
    "summary_table",
    "target_tables",
    "token_for",
    "write_board",
    "write_comparison",
    "write_report",
]
