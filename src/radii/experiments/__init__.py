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
    "_certificate_files": (
        "CERTIFICATE_INDEX CERTIFICATE_SUFFIX ExportedCertificates FileCheck check_files "
        "export_certificates"
    ),
    "_continuation": "continued",
    "_data_terms": "DataTerms",
    "_description": "Experiment RunBudget Settings values_of_file",
    "_estimates": "NetworkEstimate PredictionInterval RunEstimate estimate",
    "_fields": (
        "COUNT OptionForm NUMBER NUMBERS Option PATH OptionRefusal SECONDS SEED SIZE TEXT "
        "SWITCH add_flags given_flags option options_of read_fields show_duration "
        "to_json whole"
    ),
    "_growth": "Retry",
    "_inspection": "Inspection Preprocessing PreprocessingTrial candidates inspect",
    "_joining": "absolute_source",
    "_merging": "Merge merge",
    "_plan": "Observer Plan default_jobs plan prepare",
    "_progress": "BarDisplay ProgressBar progress_bar terminal_bar",
    "_replays": "EvidenceKind EvidencePlace RefusedEvidence",
    "_selection": "AXIS_ORDERS check_labels images_for select",
    "_store_checks": "StoreCheck StoreVerdict UnreadableProof check_store",
    "_suggestion": "experiment_text findings_lines",
    "_units": "unit_warnings",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AUDIT_FILE",
    "AXIS_ORDERS",
    "CERTIFICATE_INDEX",
    "CERTIFICATE_SUFFIX",
    "COUNT",
    "NUMBER",
    "NUMBERS",
    "PATH",
    "SECONDS",
    "SEED",
    "SIZE",
    "SWITCH",
    "TEXT",
    "Audit",
    "BarDisplay",
    "BudgetAgenda",
    "Claim",
    "ClaimStatus",
    "DataTerms",
    "EvidenceKind",
    "EvidencePlace",
    "Experiment",
    "ExportedCertificates",
    "FileCheck",
    "Finding",
    "Inspection",
    "Merge",
    "NetworkEstimate",
    "Observer",
    "Option",
    "OptionForm",
    "OptionRefusal",
    "Plan",
    "PredictionInterval",
    "Preprocessing",
    "PreprocessingTrial",
    "ProgressBar",
    "RefusedEvidence",
    "Retry",
    "RunBudget",
    "RunEstimate",
    "SamplingAgenda",
    "Settings",
    "StoreCheck",
    "StoreVerdict",
    "UnreadableProof",
    "absolute_source",
    "add_flags",
    "candidates",
    "check_files",
    "check_labels",
    "check_store",
    "claims_of",
    "continued",
    "default_jobs",
    "estimate",
    "experiment_text",
    "export_certificates",
    "findings",
    "findings_frame",
    "findings_lines",
    "given_flags",
    "images_for",
    "inspect",
    "is_closed",
    "merge",
    "option",
    "options_of",
    "plan",
    "prepare",
    "prepare_audit",
    "progress_bar",
    "read_fields",
    "save_witnesses",
    "select",
    "show_duration",
    "terminal_bar",
    "to_json",
    "total_width",
    "unit_warnings",
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
    from radii.experiments._certificate_files import (
        CERTIFICATE_INDEX,
        CERTIFICATE_SUFFIX,
        ExportedCertificates,
        FileCheck,
        check_files,
        export_certificates,
    )
    from radii.experiments._continuation import continued
    from radii.experiments._data_terms import DataTerms
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
        SWITCH,
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
    from radii.experiments._growth import Retry
    from radii.experiments._inspection import (
        Inspection,
        Preprocessing,
        PreprocessingTrial,
        candidates,
        inspect,
    )
    from radii.experiments._joining import absolute_source
    from radii.experiments._merging import Merge, merge
    from radii.experiments._plan import Observer, Plan, default_jobs, plan, prepare
    from radii.experiments._progress import (
        BarDisplay,
        ProgressBar,
        progress_bar,
        terminal_bar,
    )
    from radii.experiments._replays import EvidenceKind, EvidencePlace, RefusedEvidence
    from radii.experiments._selection import AXIS_ORDERS, check_labels, images_for, select
    from radii.experiments._store_checks import (
        StoreCheck,
        StoreVerdict,
        UnreadableProof,
        check_store,
    )
    from radii.experiments._suggestion import experiment_text, findings_lines
    from radii.experiments._units import unit_warnings


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _HOMES)
