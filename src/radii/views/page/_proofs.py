"""What the page says of proofs: how large their certificates are, and who has checked them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from radii.statistics import Distribution, Run, proof_statuses
from radii.store import Record
from radii.views.page._pictures import PackedArrays


def add_proofs(
    columns: PackedArrays, runs: Sequence[Run], measured: Distribution
) -> dict[str, Any] | None:
    """What the proof of each row rests on; None, and no columns, where there are no proofs.

    The words that are returned are those to which numbers refer.
    """
    if not proof_statuses(measured):
        return None
    records = (record for run in runs for record in run.records or [None] * len(run))
    rows = [_check_facts(record) for record in records]
    words = {
        name: columns.add_words(f"proof_{name}", (row.get(name, "") for row in rows))
        for name in ("status", "checker", "reason")
    }
    for name in ("bytes", "nodes", "lemmas", "seconds"):
        columns.add_known(f"proof_{name}", (row.get(name) for row in rows))
    return words


def _check_facts(record: Record | None) -> dict[str, Any]:
    """What the page says of the proof of a lower side; nothing of a row that a file claims."""
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
