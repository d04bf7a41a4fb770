"""VNN-LIB: reading and writing properties, and the result files of VNN-COMP."""

from __future__ import annotations

from radii.vnnlib._problems import Problem, parse_problem, read_problem
from radii.vnnlib._results import Outcome, Verification, parse_verification
from radii.vnnlib._writing import query_text, specification_text, write_benchmark

__all__ = [
    "Outcome",
    "Problem",
    "Verification",
    "parse_problem",
    "parse_verification",
    "query_text",
    "read_problem",
    "specification_text",
    "write_benchmark",
]
