"""Distributions from the store of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions.columns import columns_of
from radii.errors import StoreError

if TYPE_CHECKING:
    from radii.store import Record, Store

__all__ = ["columns_of_store"]


def columns_of_store(place: Store | Path | str) -> dict[str, Any]:
    """What a store tells about its instances."""
    from radii.store import Store

    if isinstance(place, (str, Path)):
        with Store.open(Path(place)) as store:
            return columns_of_store(store)
    measurements, critical = [], []
    for record in place.records():
        measurements.append(record.measurement)
        critical.append(_critical(record))
    if not measurements:
        raise StoreError("the store holds no instances yet")
    split = (place.experiment() or {}).get("split") or ""
    return {**columns_of(measurements), "critical": np.array(critical), "split": str(split)}


def _critical(record: Record) -> int:
    """How many proofs between the bracket's sides were tried in vain; cancelled ones aside.

    A search for the radius that proves less than it was asked for leaves the rest unanswered.
    """
    from radii.search import Kind
    from radii.verdicts import Verdict

    bracket = record.measurement.bracket
    return sum(
        question.kind in (Kind.PROVE, Kind.RADIUS)
        and bracket.lower < question.eps < bracket.upper
        and result.verdict is not Verdict.CANCELLED
        and (result.verdict.is_missing or result.eps < question.eps)
        for question, result in record.answered
    )
