"""Properties: what must stay true in a ball around an input."""

from __future__ import annotations

from radii.properties._base import Anchor, Halfspaces, LinearRequirement, Property, Requirement
from radii.properties.classification import Become, OneToAny, OneToOne, PredictionStays
from radii.properties.lipschitz import (
    RESOLUTION,
    LipschitzRequirement,
    LipschitzRobustness,
    resolution,
)
from radii.properties.parsing import FAMILIES, FORMS, family, is_of_class, parse
from radii.properties.probabilities import (
    ProbabilityBound,
    SoftmaxRequirement,
    log_odds,
    probabilities,
)
from radii.properties.standard import StandardRobustness
from radii.properties.strong_classification import StrongClassification

__all__ = [
    "FAMILIES",
    "FORMS",
    "RESOLUTION",
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
