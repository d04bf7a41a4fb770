"""From a description to brackets: the one place that wires everything together.

Follow one instance from here: `prepare` loads networks and data and selects instances; `Plan.run`
looks at each input itself, starts a search for it, lets `execution.drive` answer the questions, and
stores every result before the search learns of it. Running again starts from what is stored.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "AXIS_ORDERS": "_selection",
    "check_labels": "_selection",
    "select": "_selection",
    "images_for": "_selection",
    "Audit": "_audit",
    "Claim": "_audit",
    "RunEstimate": "_estimates",
    "Experiment": "_description",
    "PreprocessingTrial": "_inspection",
    "Finding": "_audit",
    "Inspection": "_inspection",
    "NetworkEstimate": "_estimates",
    "Observer": "_plan",
    "Plan": "_plan",
    "Preprocessing": "_inspection",
    "PredictionInterval": "_estimates",
    "SamplingAgenda": "_estimates",
    "Settings": "_description",
    "BudgetAgenda": "_spending",
    "ClaimStatus": "_audit",
    "AUDIT_FILE": "_audit",
    "candidates": "_inspection",
    "claims_of": "_audit",
    "default_jobs": "_plan",
    "estimate": "_estimates",
    "experiment_text": "_suggestion",
    "findings": "_audit",
    "findings_frame": "_audit",
    "findings_lines": "_suggestion",
    "inspect": "_inspection",
    "is_closed": "_estimates",
    "numbers": "_description",
    "parse_duration": "_durations",
    "parse_seconds": "_durations",
    "plan": "_plan",
    "prepare": "_plan",
    "prepare_audit": "_audit",
    "save_witnesses": "_audit",
    "show_duration": "_durations",
    "total_width": "_estimates",
    "width": "_estimates",
}

__all__ = [
    "AUDIT_FILE",
    "AXIS_ORDERS",
    "Audit",
    "BudgetAgenda",
    "Claim",
    "ClaimStatus",
    "Experiment",
    "Finding",
    "Inspection",
    "NetworkEstimate",
    "Observer",
    "Plan",
    "PredictionInterval",
    "Preprocessing",
    "PreprocessingTrial",
    "RunEstimate",
    "SamplingAgenda",
    "Settings",
    "candidates",
    "check_labels",
    "claims_of",
    "default_jobs",
    "estimate",
    "experiment_text",
    "findings",
    "findings_frame",
    "findings_lines",
    "images_for",
    "inspect",
    "is_closed",
    "numbers",
    "parse_duration",
    "parse_seconds",
    "plan",
    "prepare",
    "prepare_audit",
    "save_witnesses",
    "select",
    "show_duration",
    "total_width",
    "width",
]

if TYPE_CHECKING:
    from radii.experiments._audit import (
        AUDIT_FILE,
        Audit,
        Claim,
        ClaimStatus,
        Finding,
        claims_of,
        findings,
        findings_frame,
        prepare_audit,
        save_witnesses,
    )
    from radii.experiments._description import Experiment, Settings, numbers
    from radii.experiments._durations import parse_duration, parse_seconds, show_duration
    from radii.experiments._estimates import (
        NetworkEstimate,
        PredictionInterval,
        RunEstimate,
        SamplingAgenda,
        estimate,
        is_closed,
        total_width,
        width,
    )
    from radii.experiments._inspection import (
        Inspection,
        Preprocessing,
        PreprocessingTrial,
        candidates,
        inspect,
    )
    from radii.experiments._plan import Observer, Plan, default_jobs, plan, prepare
    from radii.experiments._selection import AXIS_ORDERS, check_labels, images_for, select
    from radii.experiments._spending import BudgetAgenda
    from radii.experiments._suggestion import experiment_text, findings_lines


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
