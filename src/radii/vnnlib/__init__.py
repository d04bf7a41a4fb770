"""VNN-LIB: reading and writing properties, and the result files of VNN-COMP."""

from __future__ import annotations

from radii.vnnlib.benchmarks import write_benchmark
from radii.vnnlib.problems import Problem, parse_problem, read_problem
from radii.vnnlib.results import Outcome, Verification, parse_verification
from radii.vnnlib.writing import query_text, specification_text

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
