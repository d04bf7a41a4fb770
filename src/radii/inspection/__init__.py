"""Networks and data that nobody has described yet: what fits them, with evidence."""

from __future__ import annotations

from radii.inspection.describing import experiment_text, findings_lines
from radii.inspection.inspecting import Finding, Inspection, inspect
from radii.inspection.preprocessing import Preprocessing, candidates

__all__ = [
    "Finding",
    "Inspection",
    "Preprocessing",
    "candidates",
    "experiment_text",
    "findings_lines",
    "inspect",
]
