"""Runs from stores: read at once, or followed while a run still writes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from radii.errors import StoreError
from radii.properties import TARGETED_FAMILIES
from radii.results._run import NO_NUMBER, Array, Run, columns_of, complete_columns
from radii.search import QuestionKind
from radii.store import PROOF_KINDS, Record, Store, StoredResult, StoredSettings
from radii.verdicts import Measurement, Verdict

UNANSWERED_VERDICTS = (Verdict.TIMEOUT, Verdict.MEMOUT, Verdict.ERROR, Verdict.CANCELLED)


def read_store(place: Store | Path | str) -> Run:
    """What an open store holds, or the one in a directory, as it is at one moment."""
    if isinstance(place, str | Path):
        with Store.open(Path(place)) as store:
            return read_store(store)
    return run_of_records(place.place, place.settings(), place.all_records())


def run_of_records(place: Path, settings: StoredSettings, records: Sequence[Record]) -> Run:
    """The run that consists of these records."""
    if not records:
        raise StoreError(f"{place}: the experiment holds no instances yet")
    measurements = [record.measurement for record in records]
    end = math.nan if settings.grid is None else settings.grid.values[-1]
    columns = complete_columns(
        {
            **columns_of(measurements),
            "critical": np.array([_missing_between(record) for record in records]),
            "searched": np.array([end if _is_attempted(record) else 0.0 for record in records]),
            "classes": _class_counts(settings, measurements),
            "split": settings.split or "",
        }
    )
    return Run(place, columns, settings, tuple(records))


def _class_counts(settings: StoredSettings, measurements: Sequence[Measurement]) -> Array:
    """How many classes each row's network has, where a run on every target shows it.

    An input then has one bracket for each other class.
    """
    if settings.property not in TARGETED_FAMILIES:
        return np.full(len(measurements), NO_NUMBER)
    pairs = [(m.fingerprint, m.input) for m in measurements]
    counts = Counter(pairs)
    return np.array([1 + counts[pair] for pair in pairs])


def _is_attempted(record: Record) -> bool:
    """Whether any attempt to break it was answered; UNKNOWN is an attack's answer."""
    return any(
        question.kind is not QuestionKind.REPLAY and result.verdict not in UNANSWERED_VERDICTS
        for question, result in record.answered
    )


def _missing_between(record: Record) -> int:
    """How many proofs between the bracket's sides were tried in vain; cancelled ones aside.

    A search for the radius that proves less than it was asked for leaves the rest unanswered.
    """
    return sum(
        question.kind in PROOF_KINDS
        and record.bracket.lower < question.eps < record.bracket.upper
        and result.verdict is not Verdict.CANCELLED
        and (result.verdict.is_missing or result.eps < question.eps)
        for question, result in record.answered
    )


class FollowedStore:
    """A store that is read once, and then only what is new in it: a run may still be writing.

    `records` has one row an instance, without inputs, which may be large. `generation` changes when
    another experiment has taken the directory's place, or the same was begun anew.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.generation = ""
        self._forget()

    def _forget(self) -> None:
        self.settings = StoredSettings()
        self.records: list[Record] = []
        self.last_number = 0
        self._rows: dict[str, int] = {}

    def refresh(self) -> list[StoredResult]:
        """Read what is new, in the order in which it was reported."""
        with Store.open(self.place) as store:
            generation = "".join(filter(str.isdigit, store.first_answer_at()))
            is_other = self.records and store.settings() != self.settings
            if is_other or (self.last_number and generation != self.generation):
                self._forget()
            self.generation = generation
            if not self.records:
                self._begin(store)
            new = list(store.answers(after=self.last_number)) if self.records else []
        answers: dict[int, list[StoredResult]] = {}
        for answer in new:
            answers.setdefault(self.row_of(answer), []).append(answer)
            self.last_number = answer.number
        for row, reported in answers.items():
            pairs = ((answer.question, answer.result) for answer in reported)
            known = self.records[row]
            self.records[row] = replace(known, answered=(*known.answered, *pairs))
        return new

    def row_of(self, answer: StoredResult) -> int:
        return self._rows[answer.key]

    def run(self) -> Run:
        """All that is known of it now."""
        return run_of_records(self.place, self.settings, self.records)

    def _begin(self, store: Store) -> None:
        self.settings = store.settings()
        self.records = list(store.unanswered_records())
        self._rows = {record.key: row for row, record in enumerate(self.records)}
