"""Statistical guarantees: how many inputs a statement about all inputs needs, and what it says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "MEASURED_BY": "_global",
    "BettingLimit": "_sequences",
    "Change": "_changes",
    "ChangeAttack": "_changes",
    "CurvePoint": "_curves",
    "DataSource": "_draws",
    "Demand": "_demands",
    "Estimate": "_estimates",
    "GeneratorSource": "_draws",
    "GlobalRobustness": "_global",
    "StoppingRule": "_sequences",
    "METHODS": "_limits",
    "ChangeSettings": "_quantities",
    "Method": "_limits",
    "MetricEstimate": "_metrics",
    "Metrics": "_metrics",
    "Population": "_populations",
    "Range": "_populations",
    "RepeatedEstimates": "_plans",
    "Sample": "_populations",
    "SamplePlan": "_plans",
    "SampledInput": "_global",
    "SequentialEstimate": "_sequences",
    "InputSource": "_draws",
    "Tally": "_demands",
    "estimate_change": "_quantities",
    "estimate_mean": "_estimates",
    "estimate_robustness": "_global",
    "grid_through": "_metrics",
    "load_generator": "_draws",
    "mean_estimate": "_metrics",
    "measure": "_metrics",
    "measure_plan": "_metrics",
    "measure_run": "_metrics",
    "method": "_limits",
    "metrics_of": "_metrics",
    "narrow_change": "_changes",
    "one_value_grid": "_global",
    "plan_samples": "_plans",
    "proven_changes": "_changes",
    "reachable_confidence": "_plans",
    "reachable_error": "_plans",
    "repeat_estimates": "_plans",
    "robustness_curve": "_curves",
    "sampled_shares": "_metrics",
    "settings_for": "_global",
    "share_estimate": "_metrics",
    "witnessed_changes": "_changes",
}

__all__ = [
    "MEASURED_BY",
    "METHODS",
    "BettingLimit",
    "Change",
    "ChangeAttack",
    "ChangeSettings",
    "CurvePoint",
    "DataSource",
    "Demand",
    "Estimate",
    "GeneratorSource",
    "GlobalRobustness",
    "InputSource",
    "Method",
    "MetricEstimate",
    "Metrics",
    "Population",
    "Range",
    "RepeatedEstimates",
    "Sample",
    "SamplePlan",
    "SampledInput",
    "SequentialEstimate",
    "StoppingRule",
    "Tally",
    "estimate_change",
    "estimate_mean",
    "estimate_robustness",
    "grid_through",
    "load_generator",
    "mean_estimate",
    "measure",
    "measure_plan",
    "measure_run",
    "method",
    "metrics_of",
    "narrow_change",
    "one_value_grid",
    "plan_samples",
    "proven_changes",
    "reachable_confidence",
    "reachable_error",
    "repeat_estimates",
    "robustness_curve",
    "sampled_shares",
    "settings_for",
    "share_estimate",
    "witnessed_changes",
]

if TYPE_CHECKING:
    from radii.guarantees._changes import (
        Change,
        ChangeAttack,
        narrow_change,
        proven_changes,
        witnessed_changes,
    )
    from radii.guarantees._curves import CurvePoint, robustness_curve
    from radii.guarantees._demands import Demand, Tally
    from radii.guarantees._draws import DataSource, GeneratorSource, InputSource, load_generator
    from radii.guarantees._estimates import Estimate, estimate_mean
    from radii.guarantees._global import (
        MEASURED_BY,
        GlobalRobustness,
        SampledInput,
        estimate_robustness,
        one_value_grid,
        settings_for,
    )
    from radii.guarantees._limits import METHODS, Method, method
    from radii.guarantees._metrics import (
        MetricEstimate,
        Metrics,
        grid_through,
        mean_estimate,
        measure,
        measure_plan,
        measure_run,
        metrics_of,
        sampled_shares,
        share_estimate,
    )
    from radii.guarantees._plans import (
        RepeatedEstimates,
        SamplePlan,
        plan_samples,
        reachable_confidence,
        reachable_error,
        repeat_estimates,
    )
    from radii.guarantees._populations import Population, Range, Sample
    from radii.guarantees._quantities import ChangeSettings, estimate_change
    from radii.guarantees._sequences import BettingLimit, SequentialEstimate, StoppingRule


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
