"""TODO radii.results."""

from __future__ import annotations

from radii.results._effort import Effort, effort_of, theoretical_maximum
from radii.results._verona import find_experiment

__all__ = ["Effort", "effort_of", "find_experiment", "theoretical_maximum"]
