"""Statistical guarantees: how many inputs a statement about all inputs needs, and what it says."""

from __future__ import annotations

from radii.guarantees.betting import BettingLimit
from radii.guarantees.curves import CurvePoint, robustness_curve
from radii.guarantees.demands import Demand, Tally
from radii.guarantees.estimates import Estimate, estimate_mean
from radii.guarantees.limits import METHODS, Method, method
from radii.guarantees.planning import (
    SamplePlan,
    plan_samples,
    reachable_confidence,
    reachable_error,
)
from radii.guarantees.populations import Population, Range, Sample
from radii.guarantees.repetition import RepeatedEstimates, repeat_estimates
from radii.guarantees.sequential import Goal, SequentialEstimate

__all__ = [
    "METHODS",
    "BettingLimit",
    "CurvePoint",
    "Demand",
    "Estimate",
    "Goal",
    "Method",
    "Population",
    "Range",
    "RepeatedEstimates",
    "Sample",
    "SamplePlan",
    "SequentialEstimate",
    "Tally",
    "estimate_mean",
    "method",
    "plan_samples",
    "reachable_confidence",
    "reachable_error",
    "repeat_estimates",
    "robustness_curve",
]
