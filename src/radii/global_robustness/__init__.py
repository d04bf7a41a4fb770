"""Global robustness: how likely, and how strongly, an input of a population can be perturbed."""

from __future__ import annotations

from radii.global_robustness.changes import (
    Change,
    ChangeAttack,
    narrowed,
    proven_changes,
    witnessed_changes,
)
from radii.global_robustness.quantities import Measuring, estimate_change
from radii.global_robustness.robustness import (
    BY,
    GlobalRobustness,
    SampledInput,
    estimate_robustness,
    one_value_grid,
    settings_for,
)
from radii.global_robustness.sampling import (
    DataSource,
    GeneratorSource,
    Source,
    load_generator,
)

__all__ = [
    "BY",
    "Change",
    "ChangeAttack",
    "DataSource",
    "GeneratorSource",
    "GlobalRobustness",
    "Measuring",
    "SampledInput",
    "Source",
    "estimate_change",
    "estimate_robustness",
    "load_generator",
    "narrowed",
    "one_value_grid",
    "proven_changes",
    "settings_for",
    "witnessed_changes",
]
