"""The problem: balls, properties, queries, verdicts and brackets, in numpy alone.

All arithmetic is float64. A ball is closed, and `contains` allows no tolerance: to get a point
inside a ball, `project` it, which guarantees `contains`. `check_witness` is the only place where a
candidate becomes a counterexample.
"""

from __future__ import annotations

from radii.problem._ball import (
    Ball,
)
from radii.problem._domains import (
    Box,
    Domain,
    Norm,
)
from radii.problem._features import (
    Features,
)
from radii.problem._limits import (
    UNLIMITED,
    Limits,
)
from radii.problem._queries import (
    Grid,
    Instance,
    Query,
    Shard,
    Specification,
    distinct_names,
)
from radii.problem._verdicts import (
    FLOAT,
    REAL,
    STATUS_AFTER,
    STATUSES,
    Arithmetic,
    Array,
    Bracket,
    CertificateCheck,
    CheckOutcome,
    Disagreement,
    KeptCertificate,
    Measurement,
    Proof,
    ProofStatus,
    Result,
    Verdict,
    Weighing,
    Witness,
    weigh,
)
from radii.problem._witnesses import (
    check_witness,
)
from radii.problem.properties._base import (
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
from radii.problem.properties._classification import (
    Become,
    OneToAny,
    OneToOne,
    PredictionStays,
    StrongClassification,
    TopK,
)
from radii.problem.properties._registry import (
    PROPERTY_FORMS,
    TARGETED_FAMILIES,
    is_of_class,
    parse_family,
    parse_property,
    property_family,
    property_family_spec,
)
from radii.problem.properties._stability import (
    RESOLUTION,
    LipschitzRobustness,
    StandardRobustness,
    resolution,
)

__all__ = [
    "FLOAT",
    "PROPERTY_FORMS",
    "REAL",
    "RESOLUTION",
    "STATUSES",
    "STATUS_AFTER",
    "TARGETED_FAMILIES",
    "UNLIMITED",
    "Anchor",
    "Arithmetic",
    "Array",
    "Ball",
    "Become",
    "Box",
    "Bracket",
    "CertificateCheck",
    "CheckOutcome",
    "Disagreement",
    "Domain",
    "Features",
    "Grid",
    "Halfspaces",
    "Instance",
    "KeptCertificate",
    "Limits",
    "LinearRequirement",
    "LipschitzRequirement",
    "LipschitzRobustness",
    "Measurement",
    "Norm",
    "OneToAny",
    "OneToOne",
    "PredictionStays",
    "ProbabilityBound",
    "Proof",
    "ProofStatus",
    "Property",
    "Query",
    "Requirement",
    "Result",
    "Shard",
    "SoftmaxRequirement",
    "Specification",
    "StandardRobustness",
    "StrongClassification",
    "TargetedProperty",
    "TopK",
    "Verdict",
    "Weighing",
    "Witness",
    "check_witness",
    "distinct_names",
    "is_of_class",
    "log_odds",
    "parse_family",
    "parse_property",
    "probabilities",
    "property_family",
    "property_family_spec",
    "resolution",
    "weigh",
]
