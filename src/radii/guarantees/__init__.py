"""Statistical guarantees: how many inputs a statement about all inputs needs, and what it says.

Limits, plans and estimates need numpy alone. Global robustness and the metrics measure networks:
what loads torch is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii import load_on_use
from radii.guarantees._estimates import (
    CurvePoint,
    Estimate,
    estimate_mean,
    mean_estimate,
    robustness_curve,
    share_estimate,
)
from radii.guarantees._limits import METHODS, Method, method
from radii.guarantees._plans import (
    RepeatedEstimates,
    SamplePlan,
    plan_samples,
    reachable_confidence,
    reachable_error,
    repeat_estimates,
)
from radii.guarantees._populations import (
    DataSource,
    GeneratorSource,
    InputSource,
    Population,
    Range,
    Sample,
    load_generator,
)
from radii.guarantees._sequences import (
    FINAL_MISS_SHARE,
    BettingLimit,
    Demand,
    SequentialEstimate,
    StoppingRule,
    Tally,
)

if TYPE_CHECKING:
    from radii.guarantees._changes import (
        Change,
        ChangeAttack,
        narrow_change,
        proven_changes,
        witnessed_changes,
    )
    from radii.guarantees._global import (
        MEASURED_BY,
        GlobalRobustness,
        SampledInput,
        estimate_robustness,
        one_value_grid,
        settings_for,
    )
    from radii.guarantees._mean_changes import ChangeSettings, estimate_change
    from radii.guarantees._metrics import (
        Metrics,
        measure,
        measure_plan,
        measure_run,
        metrics_of,
        sampled_shares,
    )

_LOADED_ON_USE = {
    "MEASURED_BY": "_global",
    "Change": "_changes",
    "ChangeAttack": "_changes",
    "ChangeSettings": "_mean_changes",
    "GlobalRobustness": "_global",
    "Metrics": "_metrics",
    "SampledInput": "_global",
    "estimate_change": "_mean_changes",
    "estimate_robustness": "_global",
    "measure": "_metrics",
    "measure_plan": "_metrics",
    "measure_run": "_metrics",
    "metrics_of": "_metrics",
    "narrow_change": "_changes",
    "one_value_grid": "_global",
    "proven_changes": "_changes",
    "sampled_shares": "_metrics",
    "settings_for": "_global",
    "witnessed_changes": "_changes",
}

__all__ = [
    "FINAL_MISS_SHARE",
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


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _LOADED_ON_USE)
