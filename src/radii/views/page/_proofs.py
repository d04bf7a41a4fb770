"""What the page says of proofs: how large their certificates are, and who has checked them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from radii.statistics import Distribution, Run, proof_statuses
from radii.store import Record
from radii.views.page._pictures import PackedArrays

CHECK_NUMBERS = ("bytes", "nodes", "lemmas", "seconds")


def add_proofs(
    columns: PackedArrays, runs: Sequence[Run], measured: Distribution
) -> dict[str, Any] | None:
    """What the proof of each row rests on; None, and no columns, where there are no proofs.

    The words that are returned are those to which numbers refer.
    """
    if not proof_statuses(measured):
        return None
    words: dict[str, dict[str, int]] = {name: {} for name in ("status", "checker", "reason")}
    numbers: dict[str, list[float]] = {name: [] for name in CHECK_NUMBERS}
    codes: dict[str, list[int]] = {name: [] for name in words}
    for facts in (_check_facts(one) for run in runs for one in _records(run)):
        for name, found in words.items():
            codes[name].append(found.setdefault(facts.get(name, ""), len(found)))
        for name, values in numbers.items():
            values.append(math.nan if facts.get(name) is None else facts[name])
    for name, places in codes.items():
        columns.add(f"proof_{name}", places, "u2")
    for name, values in numbers.items():
        columns.add(f"proof_{name}", values, "f8")
    return {name: list(found) for name, found in words.items()}


def _records(run: Run) -> Sequence[Record | None]:
    """One a row; None where nothing is known but what a file says."""
    return run.records or [None] * len(run)


def _check_facts(record: Record | None) -> dict[str, Any]:
    """What the page says of the proof of a lower side."""
    proof = None if record is None else record.proof
    if record is None or proof is None:
        return {}
    facts: dict[str, Any] = {"status": proof.status.value}
    by = next((r.author for r in record.results if r.proof is proof), "")
    if proof.kept is None:
        return {**facts, "checker": by}
    check = proof.kept.check
    if check is None:
        return {**facts, "bytes": proof.kept.size}
    return {
        **facts,
        "bytes": proof.kept.size,
        "checker": f"{check.checker} on {check.checked_at[:10]}",
        "reason": check.reason,
        "nodes": check.nodes,
        "lemmas": check.lemmas,
        "seconds": check.seconds,
    }
