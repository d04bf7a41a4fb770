"""Searches: how the questions about one instance are chosen."""

from __future__ import annotations

from radii.search._attack_first import AttackGuided, AttackOnly, Native
from radii.search._base import Question, QuestionKind, Search, is_cut_short, open_range
from radii.search._registry import SEARCHES, get, make, search_names
from radii.search._scans import Binary, Cuts, KBinary, Linear

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
