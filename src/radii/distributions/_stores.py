"""Distributions from the store of an experiment."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions._columns import NO_NUMBER, Array, columns_of
from radii.errors import StoreError
from radii.properties import TARGETED_FAMILIES
from radii.queries import Grid
from radii.verdicts import Measurement

if TYPE_CHECKING:
    from radii.store import Record, Store


def columns_of_store(place: Store | Path | str) -> dict[str, Any]:
    """What a store tells about its instances."""
    from radii.store import Store

    if isinstance(place, (str, Path)):
        with Store.open(Path(place)) as store:
            return columns_of_store(store)
    experiment = place.experiment() or {}
    end = Grid.parse(experiment["grid"]).values[-1] if experiment.get("grid") else math.nan
    measurements, critical, searched = [], [], []
    for record in place.records():
        measurements.append(record.measurement)
        critical.append(_proofs_tried(record))
        searched.append(end if _is_tried(record) else 0.0)
    if not measurements:
        raise StoreError("the store holds no instances yet")
    return {
        **columns_of(measurements),
        "critical": np.array(critical),
        "searched": np.array(searched),
        "classes": classes_of(experiment, measurements),
        "split": str(experiment.get("split") or ""),
    }


def classes_of(experiment: Mapping[str, Any], measurements: Sequence[Measurement]) -> Array:
    """How many the networks have, where a run on every target shows it: an input has one bracket
    for each other class."""
    if experiment.get("property") not in TARGETED_FAMILIES:
        return np.full(len(measurements), NO_NUMBER)
    pairs = [(m.fingerprint, m.input) for m in measurements]
    counts = Counter(pairs)
    return np.array([1 + counts[pair] for pair in pairs])


def _is_tried(record: Record) -> bool:
    """Whether anybody who was to break it said anything; UNKNOWN is the answer of an attack."""
    from radii.search import QuestionKind
    from radii.verdicts import Verdict

    unanswered = (Verdict.TIMEOUT, Verdict.MEMOUT, Verdict.ERROR, Verdict.CANCELLED)
    return any(
        question.kind is not QuestionKind.REPLAY and result.verdict not in unanswered
        for question, result in record.answered
    )


def _proofs_tried(record: Record) -> int:
    """How many proofs between the bracket's sides were tried in vain; cancelled ones aside.

    A search for the radius that proves less than it was asked for leaves the rest unanswered.
    """
    from radii.search import QuestionKind
    from radii.verdicts import Verdict

    bracket = record.measurement.bracket
    return sum(
        question.kind in (QuestionKind.PROVE, QuestionKind.RADIUS)
        and bracket.lower < question.eps < bracket.upper
        and result.verdict is not Verdict.CANCELLED
        and (result.verdict.is_missing or result.eps < question.eps)
        for question, result in record.answered
    )
