from ._audit import (
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
from ._certificate_files import (
    CERTIFICATE_INDEX,
    CERTIFICATE_SUFFIX,
    ExportedCertificates,
    FileCheck,
    check_files,
    export_certificates,
)
from ._continuation import (
    continued,
)
from ._data_terms import (
    DataTerms,
)
from ._description import (
    Experiment,
    RunBudget,
    Settings,
    values_of_file,
)
from ._driver import (
    drive,
)
from ._fields import (
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
from ._growth import (
    Retry,
)
from ._inspection import (
    Inspection,
    Preprocessing,
    PreprocessingTrial,
    candidates,
    inspect,
)
from ._joining import (
    absolute_source,
)
from ._merging import (
    Merge,
    merge,
)
from ._plan import (
    Observer,
    Plan,
    default_jobs,
    plan,
    prepare,
)
from ._progress import (
    BarDisplay,
    ProgressBar,
    progress_bar,
    terminal_bar,
)
from ._replays import (
    EvidenceKind,
    EvidencePlace,
    RefusedEvidence,
)
from ._selection import (
    AXIS_ORDERS,
    check_labels,
    images_for,
    select,
)
from ._store_checks import (
    StoreCheck,
    StoreVerdict,
    UnreadableProof,
    check_store,
)
from ._suggestion import (
    experiment_text,
    findings_lines,
)
from ._units import (
    unit_warnings,
)
from .executors._base import (
    Executor,
    Inline,
    SealedToolbox,
    Toolbox,
)
from .executors._cluster import (
    Cluster,
)
from .executors._local import (
    WORKER_MODULES,
    LocalWorkers,
)
from .executors._ray_workers import (
    RayWorkers,
)

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
    "WORKER_MODULES",
    "Audit",
    "BarDisplay",
    "Claim",
    "ClaimStatus",
    "Cluster",
    "DataTerms",
    "EvidenceKind",
    "EvidencePlace",
    "Executor",
    "Experiment",
    "ExportedCertificates",
    "FileCheck",
    "Finding",
    "Inline",
    "Inspection",
    "LocalWorkers",
    "Merge",
    "Observer",
    "Option",
    "OptionForm",
    "OptionRefusal",
    "Plan",
    "Preprocessing",
    "PreprocessingTrial",
    "ProgressBar",
    "RayWorkers",
    "RefusedEvidence",
    "Retry",
    "RunBudget",
    "SealedToolbox",
    "Settings",
    "StoreCheck",
    "StoreVerdict",
    "Toolbox",
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
    "drive",
    "experiment_text",
    "export_certificates",
    "findings",
    "findings_frame",
    "findings_lines",
    "given_flags",
    "images_for",
    "inspect",
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
    "unit_warnings",
    "values_of_file",
    "whole",
]
