"""Questions and answers of all instances, packed: row r's are those from start[r] to start[r+1]."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from radii.report.packing import Block
from radii.report.sources import Source, Step

__all__ = ["pack_histories"]

NUMBERS = {"eps": "f8", "seconds": "f4", "proof_eps": "f8", "distance": "f8"}
NUMBERS |= {"lower": "f8", "upper": "f8"}
WORDS = ("kind", "verdict", "verifier", "message")


def pack_histories(columns: Block, sources: Sequence[Source]) -> dict[str, list[str]]:
    """Add the arrays; returns the words that they refer to by number."""
    counts: list[int] = []
    steps: list[Step] = []
    for source in sources:
        if source.steps:
            counts += [len(told) for told in source.steps]
            steps += [step for told in source.steps for step in told]
        else:
            counts += [0] * len(source.distribution)
    columns.add("history_start", np.concatenate([[0], np.cumsum(counts)]), "u4")
    for name, kind in NUMBERS.items():
        values = [getattr(step, name) for step in steps]
        columns.add(f"history_{name}", [math.nan if v is None else v for v in values], kind)
    tables = {}
    for name in WORDS:
        words: dict[str, int] = {}
        codes = [words.setdefault(getattr(step, name), len(words)) for step in steps]
        columns.add(f"history_{name}", codes, "u4" if name == "message" else "u2")
        tables[f"{name}s"] = list(words)
    return tables
