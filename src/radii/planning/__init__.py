"""Planning: what a run would take, and how to spend the time that there is."""

from __future__ import annotations

from radii.planning.durations import parse_duration, parse_seconds, show_duration
from radii.planning.estimates import Estimate, NetworkEstimate, Range, estimate
from radii.planning.sampling import Sampling
from radii.planning.spending import Spending
from radii.planning.widths import is_closed, total_width, width

__all__ = [
    "Estimate",
    "NetworkEstimate",
    "Range",
    "Sampling",
    "Spending",
    "estimate",
    "is_closed",
    "parse_duration",
    "parse_seconds",
    "show_duration",
    "total_width",
    "width",
]
