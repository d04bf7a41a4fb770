"""Searches: how the questions about one instance are chosen."""

from __future__ import annotations

from radii.search._attack_guided import AttackGuided, AttackOnly
from radii.search._base import Question, QuestionKind, Search
from radii.search._k_binary import Binary, KBinary
from radii.search._linear import Linear
from radii.search._native import Native
from radii.search._registry import SEARCHES, get, make
from radii.search._splitting import Cuts

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
    "make",
]
