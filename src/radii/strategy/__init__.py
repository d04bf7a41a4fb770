"""Strategy: which question comes next, about which instance, of whom, and for how long.

All of it is pure ask and tell, without processes, files or clocks: a `Search` asks about one
instance, and a `Schedule` lets many of them ask in the order of an `Agenda`. The driver in
`radii.runs` starts what they ask for and tells them what came of it; tests do so on a virtual
clock.
"""

from __future__ import annotations

from radii.strategy._agendas import (
    BudgetAgenda,
    SamplingAgenda,
    TimeGrowth,
    is_closed,
    total_width,
    width,
)
from radii.strategy._attack_first import (
    AttackGuided,
    AttackOnly,
    Native,
    ProbeLimits,
    ProbeProof,
    joined_result,
    probe_proofs,
)
from radii.strategy._base import (
    Question,
    QuestionKind,
    Search,
    is_cut_short,
    open_range,
)
from radii.strategy._estimates import (
    NetworkEstimate,
    PredictionInterval,
    RunEstimate,
    estimate,
)
from radii.strategy._registry import (
    SEARCHES,
    get,
    make,
    search_names,
)
from radii.strategy._scans import (
    Binary,
    Cuts,
    KBinary,
    Linear,
)
from radii.strategy._schedule import (
    Agenda,
    Case,
    CaseAnswers,
    Schedule,
    ScheduleLimits,
    Task,
)

__all__ = [
    "SEARCHES",
    "Agenda",
    "AttackGuided",
    "AttackOnly",
    "Binary",
    "BudgetAgenda",
    "Case",
    "CaseAnswers",
    "Cuts",
    "KBinary",
    "Linear",
    "Native",
    "NetworkEstimate",
    "PredictionInterval",
    "ProbeLimits",
    "ProbeProof",
    "Question",
    "QuestionKind",
    "RunEstimate",
    "SamplingAgenda",
    "Schedule",
    "ScheduleLimits",
    "Search",
    "Task",
    "TimeGrowth",
    "estimate",
    "get",
    "is_closed",
    "is_cut_short",
    "joined_result",
    "make",
    "open_range",
    "probe_proofs",
    "search_names",
    "total_width",
    "width",
]
