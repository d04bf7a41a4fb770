"""Robustness distributions: the brackets of a set of inputs, as interval-censored data."""

from __future__ import annotations

from radii.distributions._arithmetics import (
    arithmetics,
    proof_scope,
    ranked_arithmetics,
    weakest_arithmetic,
)
from radii.distributions._classes import (
    ClassCurves,
    ClassGain,
    ClassRecall,
    Fairness,
    class_curves,
    class_gains,
    fairness,
)
from radii.distributions._comparisons import (
    CliffsDelta,
    Comparison,
    MeanDifference,
    compare,
    compare_all,
    compare_sides,
    compare_splits,
)
from radii.distributions._confidence import (
    Band,
    check_inputs_differ,
    clopper_pearson,
    dkw_half_width,
    hoeffding_half_width,
    inputs_for_half_width,
    robust_accuracy_band,
    robust_accuracy_interval,
)
from radii.distributions._correlations import Correlations, spearman_matrix
from radii.distributions._costs import adversarial_cost, target_recall
from radii.distributions._distribution import (
    Distribution,
    ImportedResults,
    Share,
    ValueRange,
    read_results,
)
from radii.distributions._dominance import Dominance, Stretch, dominance
from radii.distributions._empirical import Ecdf, ecdf
from radii.distributions._families import FAMILIES, family_named
from radii.distributions._fits import Fit, fit, fit_all
from radii.distributions._goodness import GoodnessOfFit, goodness_of_fit
from radii.distributions._npmle import Turnbull, turnbull
from radii.distributions._quality import Quality, quality, quality_table
from radii.distributions._requirements import (
    Judgement,
    RequirementOutcome,
    RobustnessRequirement,
    check_all,
    parse_requirement,
)
from radii.distributions._sample_size import Stability, sample_stability, stability_table
from radii.distributions._searched import is_unsearched, why_unsearched
from radii.distributions._summaries import Summary, inputs_with_radius, summary, summary_table
from radii.distributions._targets import closest_targets, over_targets
from radii.distributions._tests import KsMatrix, TestResult, holm, ks_matrix, several_p_value
from radii.results import NO_NUMBER, verona_frame, write_verona_folder

__all__ = [
    "FAMILIES",
    "NO_NUMBER",
    "Band",
    "ClassCurves",
    "ClassGain",
    "ClassRecall",
    "CliffsDelta",
    "Comparison",
    "Correlations",
    "Distribution",
    "Dominance",
    "Ecdf",
    "Fairness",
    "Fit",
    "GoodnessOfFit",
    "ImportedResults",
    "Judgement",
    "KsMatrix",
    "MeanDifference",
    "Quality",
    "RequirementOutcome",
    "RobustnessRequirement",
    "Share",
    "Stability",
    "Stretch",
    "Summary",
    "TestResult",
    "Turnbull",
    "ValueRange",
    "adversarial_cost",
    "arithmetics",
    "check_all",
    "check_inputs_differ",
    "class_curves",
    "class_gains",
    "clopper_pearson",
    "closest_targets",
    "compare",
    "compare_all",
    "compare_sides",
    "compare_splits",
    "dkw_half_width",
    "dominance",
    "ecdf",
    "fairness",
    "family_named",
    "fit",
    "fit_all",
    "goodness_of_fit",
    "hoeffding_half_width",
    "holm",
    "inputs_for_half_width",
    "inputs_with_radius",
    "is_unsearched",
    "ks_matrix",
    "over_targets",
    "parse_requirement",
    "proof_scope",
    "quality",
    "quality_table",
    "ranked_arithmetics",
    "read_results",
    "robust_accuracy_band",
    "robust_accuracy_interval",
    "sample_stability",
    "several_p_value",
    "spearman_matrix",
    "stability_table",
    "summary",
    "summary_table",
    "target_recall",
    "turnbull",
    "verona_frame",
    "weakest_arithmetic",
    "why_unsearched",
    "write_verona_folder",
]
