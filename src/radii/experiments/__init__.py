"""From a description to brackets: the one place that wires everything together.

Follow one instance from here: `prepare` loads networks and data and selects instances; `Plan.run`
looks at each input itself, starts a search for it, lets `execution.drive` answer the questions, and
stores every result before the search learns of it. Running again starts from what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii import load_on_use

_NAMES = {
    "_agendas": "BudgetAgenda SamplingAgenda is_closed total_width width",
    "_audit": (
        "AUDIT_FILE Audit Claim ClaimStatus Finding claims_of findings findings_frame "
        "prepare_audit save_witnesses"
    ),
    "_description": "Experiment RunBudget Settings values_of_file",
    "_estimates": "NetworkEstimate PredictionInterval RunEstimate estimate",
    "_fields": (
        "COUNT OptionForm NUMBER NUMBERS Option PATH OptionRefusal SECONDS SEED SIZE TEXT "
        "add_flags given_flags option options_of read_fields show_duration "
        "to_json whole"
    ),
    "_inspection": "Inspection Preprocessing PreprocessingTrial candidates inspect",
    "_plan": "Observer Plan default_jobs plan prepare",
    "_selection": "AXIS_ORDERS check_labels images_for select",
    "_suggestion": "experiment_text findings_lines",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AUDIT_FILE",
    "AXIS_ORDERS",
    "COUNT",
    "NUMBER",
    "NUMBERS",
    "PATH",
    "SECONDS",
    "SEED",
    "SIZE",
    "TEXT",
    "Audit",
    "BudgetAgenda",
    "Claim",
    "ClaimStatus",
    "Experiment",
    "Finding",
    "Inspection",
    "NetworkEstimate",
    "Observer",
    "Option",
    "OptionForm",
    "OptionRefusal",
    "Plan",
    "PredictionInterval",
    "Preprocessing",
    "PreprocessingTrial",
    "RunBudget",
    "RunEstimate",
    "SamplingAgenda",
    "Settings",
    "add_flags",
    "candidates",
    "check_labels",
    "claims_of",
    "default_jobs",
    "estimate",
    "experiment_text",
    "findings",
    "findings_frame",
    "findings_lines",
    "given_flags",
    "images_for",
    "inspect",
    "is_closed",
    "option",
    "options_of",
    "plan",
    "prepare",
    "prepare_audit",
    "read_fields",
    "save_witnesses",
    "select",
    "show_duration",
    "to_json",
    "total_width",
    "values_of_file",
    "whole",
    "width",
]

if TYPE_CHECKING:
    from radii.experiments._agendas import (
        BudgetAgenda,
        SamplingAgenda,
        is_closed,
        total_width,
        width,
    )
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
    from radii.experiments._description import Experiment, RunBudget, Settings, values_of_file
    from radii.experiments._estimates import (
        NetworkEstimate,
        PredictionInterval,
        RunEstimate,
        estimate,
    )
    from radii.experiments._fields import (
        COUNT,
        NUMBER,
        NUMBERS,
        PATH,
        SECONDS,
        SEED,
        SIZE,
        TEXT,
        Option,
        OptionForm,
        OptionRefusal,
        add_flags,
        given_flags,
        option,
        options_of,
        read_fields,
        show_duration,
        to_json,
        whole,
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
    from radii.experiments._suggestion import experiment_text, findings_lines


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _HOMES)
