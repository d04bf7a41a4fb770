"""Constraint satisfaction, security and accuracy: how much of a data set a property holds for."""

from __future__ import annotations

from radii.metrics.estimates import Estimate, mean_estimate, share_estimate
from radii.metrics.measuring import grid_through, measure, measure_plan, measure_run
from radii.metrics.rows import Metrics, metrics_of
from radii.metrics.sampling import sampled_shares

__all__ = [
    "Estimate",
    "Metrics",
    "grid_through",
    "mean_estimate",
    "measure",
    "measure_plan",
    "measure_run",
    "metrics_of",
    "sampled_shares",
    "share_estimate",
]
