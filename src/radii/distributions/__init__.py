"""Robustness distributions: the brackets of a set of inputs, as interval-censored data."""

from __future__ import annotations

from radii.distributions.arithmetics import arithmetics, proof_scope, weakest_arithmetic
from radii.distributions.class_fairness import (
    ClassCurves,
    ClassRecall,
    Fairness,
    class_curves,
    fairness,
)
from radii.distributions.comparisons import (
    Comparison,
    compare,
    compare_all,
    compare_sides,
    compare_splits,
)
from radii.distributions.confidence import (
    Band,
    clopper_pearson,
    dkw_half_width,
    inputs_for_half_width,
    robust_accuracy_band,
    robust_accuracy_interval,
)
from radii.distributions.correlations import Correlations, spearman_matrix
from radii.distributions.costs import adversarial_cost, target_recall
from radii.distributions.distribution import Distribution, Share
from radii.distributions.effects import CliffsDelta, MeanDifference
from radii.distributions.empirical import Ecdf, ecdf
from radii.distributions.families import FAMILIES
from radii.distributions.fits import Fit, fit, fit_all
from radii.distributions.gains import ClassGain, class_gains
from radii.distributions.goodness import GoodnessOfFit, goodness_of_fit
from radii.distributions.judgements import Judgement, check_all
from radii.distributions.matrices import KsMatrix, ks_matrix
from radii.distributions.multiple import holm
from radii.distributions.npmle import Turnbull, turnbull
from radii.distributions.qualities import Quality, quality, quality_table
from radii.distributions.reading import ImportedResults, read_results
from radii.distributions.requirements import Outcome, Requirement, parse_requirement
from radii.distributions.sample_size import Stability, sample_stability, stability_table
from radii.distributions.stochastic_order import Dominance, Stretch, dominance
from radii.distributions.summaries import Summary, summary, summary_table
from radii.distributions.targets import closest_targets, over_targets
from radii.distributions.two_samples import TestResult
from radii.distributions.verona import verona_frame, write_verona_folder

__all__ = [
    "FAMILIES",
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
    "Outcome",
    "Quality",
    "Requirement",
    "Share",
    "Stability",
    "Stretch",
    "Summary",
    "TestResult",
    "Turnbull",
    "adversarial_cost",
    "arithmetics",
    "check_all",
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
    "fit",
    "fit_all",
    "goodness_of_fit",
    "holm",
    "inputs_for_half_width",
    "ks_matrix",
    "over_targets",
    "parse_requirement",
    "proof_scope",
    "quality",
    "quality_table",
    "read_results",
    "robust_accuracy_band",
    "robust_accuracy_interval",
    "sample_stability",
    "spearman_matrix",
    "stability_table",
    "summary",
    "summary_table",
    "target_recall",
    "turnbull",
    "verona_frame",
    "weakest_arithmetic",
    "write_verona_folder",
]
