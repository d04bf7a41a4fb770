"""Properties: what must stay true in a ball around an input."""

from __future__ import annotations

from radii.properties._base import Anchor, Halfspaces, LinearRequirement, Property, Requirement
from radii.properties._classification import (
    Become,
    OneToAny,
    OneToOne,
    PredictionStays,
    StrongClassification,
)
from radii.properties._lipschitz import (
    RESOLUTION,
    LipschitzRequirement,
    LipschitzRobustness,
    resolution,
)
from radii.properties._probabilities import (
    ProbabilityBound,
    SoftmaxRequirement,
    log_odds,
    probabilities,
)
from radii.properties._registry import FORMS, TARGETED_FAMILIES, family, is_of_class, parse
from radii.properties._standard import StandardRobustness

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
    "family",
    "is_of_class",
    "log_odds",
    "parse",
    "probabilities",
    "resolution",
]
