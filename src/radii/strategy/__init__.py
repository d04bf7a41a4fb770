"""Strategy: which question about an instance comes next."""

from __future__ import annotations

from radii.strategy._attack_first import (
    AttackGuided,
    AttackOnly,
    Native,
)
from radii.strategy._base import (
    Question,
    QuestionKind,
    Search,
    is_cut_short,
    open_range,
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

__all__ = [
    "SEARCHES",
    "AttackGuided",
    "AttackOnly",
    "Binary",
    "Cuts",
    "KBinary",
    "Linear",
    "Native",
    "Question",
    "QuestionKind",
    "Search",
    "get",
    "is_cut_short",
    "make",
    "open_range",
    "search_names",
]
