"""Properties: what must stay true in a ball around an input."""

from __future__ import annotations

from radii.properties._base import (
    Anchor,
    Halfspaces,
    LinearRequirement,
    LipschitzRequirement,
    ProbabilityBound,
    Property,
    Requirement,
    SoftmaxRequirement,
    TargetedProperty,
    log_odds,
    probabilities,
)
from radii.properties._classification import (
    Become,
    OneToAny,
    OneToOne,
    PredictionStays,
    StrongClassification,
)
from radii.properties._registry import (
    FORMS,
    TARGETED_FAMILIES,
    family,
    family_spec,
    is_of_class,
    parse,
    parse_family,
)
from radii.properties._stability import (
    RESOLUTION,
    LipschitzRobustness,
    StandardRobustness,
    resolution,
)

__all__ = [
    "FORMS",
    "RESOLUTION",
    "TARGETED_FAMILIES",
    "Anchor",
    "Become",
    "Halfspaces",
    "LinearRequirement",
    "LipschitzRequirement",
    "LipschitzRobustness",
    "OneToAny",
    "OneToOne",
    "PredictionStays",
    "ProbabilityBound",
    "Property",
    "Requirement",
    "SoftmaxRequirement",
    "StandardRobustness",
    "StrongClassification",
    "TargetedProperty",
    "family",
    "family_spec",
    "is_of_class",
    "log_odds",
    "parse",
    "parse_family",
    "probabilities",
    "resolution",
]
