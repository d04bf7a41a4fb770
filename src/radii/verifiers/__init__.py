"""Verifiers: who decides a query."""

from __future__ import annotations

from radii.problem import Limits
from radii.verifiers._base import (
    Answer,
    GridVerifier,
    RadiusAnswer,
    RadiusVerifier,
    Verifier,
)
from radii.verifiers._enumeration import Enumeration
from radii.verifiers._marabou import Marabou
from radii.verifiers._portfolio import Portfolio
from radii.verifiers._problems import decide_problem
from radii.verifiers._registry import (
    VERIFIERS,
    arithmetic_of,
    check_device,
    get,
    has_option,
    verifier_names,
)
from radii.verifiers._vnncomp import VnnComp
from radii.verifiers.certificates._claims import claim_of
from radii.verifiers.certificates._container import Certificate, certificate_hash
from radii.verifiers.certificates._covers import CoveredRequirement, ProbabilityCover, covered
from radii.verifiers.milp._gurobi import Gurobi, gurobi_refusal
from radii.verifiers.milp._gurobi import environment as gurobi_environment
from radii.verifiers.milp._verifier import Milp
from radii.verifiers.native._verifier import BranchAndBound

__all__ = [
    "VERIFIERS",
    "Answer",
    "BranchAndBound",
    "Certificate",
    "CoveredRequirement",
    "Enumeration",
    "GridVerifier",
    "Gurobi",
    "Limits",
    "Marabou",
    "Milp",
    "Portfolio",
    "ProbabilityCover",
    "RadiusAnswer",
    "RadiusVerifier",
    "Verifier",
    "VnnComp",
    "arithmetic_of",
    "certificate_hash",
    "check_device",
    "claim_of",
    "covered",
    "decide_problem",
    "get",
    "gurobi_environment",
    "gurobi_refusal",
    "has_option",
    "verifier_names",
]
