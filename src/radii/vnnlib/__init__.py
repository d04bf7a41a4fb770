"""VNN-LIB: reading and writing properties, and the result files of VNN-COMP."""

from __future__ import annotations

from radii.vnnlib._instances import (
    ListedInstance,
    ResultRow,
    ResultTable,
    counterexample_names,
    read_instances,
)
from radii.vnnlib._problems import Problem, parse_problem, read_problem
from radii.vnnlib._results import Outcome, Verification, parse_verification
from radii.vnnlib._texts import query_text, specification_text, write_benchmark

__all__ = [
    "ListedInstance",
    "Outcome",
    "Problem",
    "ResultRow",
    "ResultTable",
    "Verification",
    "counterexample_names",
    "parse_problem",
    "parse_verification",
    "query_text",
    "read_instances",
    "read_problem",
    "specification_text",
    "write_benchmark",
]
