"""Studies: many networks, made in many ways, measured in one way and compared."""

from __future__ import annotations

from radii.studies.description import Study, preset_names, preset_tables, read_tables
from radii.studies.members import Member, Value, read_members, write_csv
from radii.studies.recipes import HYPER_PARAMETERS, KINDS, Recipe, expand
from radii.studies.running import run_study
from radii.studies.trends import (
    MEASURES,
    Correlation,
    Effect,
    correlate,
    correlations,
    effects,
    measured,
)

__all__ = [
    "HYPER_PARAMETERS",
    "KINDS",
    "MEASURES",
    "Correlation",
    "Effect",
    "Member",
    "Recipe",
    "Study",
    "Value",
    "correlate",
    "correlations",
    "effects",
    "expand",
    "measured",
    "preset_names",
    "preset_tables",
    "read_members",
    "read_tables",
    "run_study",
    "write_csv",
]
