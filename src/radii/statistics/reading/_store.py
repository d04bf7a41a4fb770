"""Runs from stores: read at once, or followed while a run still writes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from radii.errors import StoreError
from radii.problem import Measurement, Result, Verdict
from radii.statistics._columns import Array, columns_of
from radii.statistics._counterexamples import sources_of
from radii.statistics._distribution import Distribution
from radii.statistics.reading._draws import InputDraw, draw_of, joined_draw
from radii.statistics.reading._run import Run
from radii.store import (
    PROOF_KINDS,
    CertifiedStatement,
    Excerpt,
    PartChoice,
    Record,
    Store,
    StoredResult,
    StoredSettings,
    StudyPart,
)
from radii.strategy import Question, QuestionKind

ANY_PART = PartChoice()
PART_FIELDS = tuple(each.name for each in dataclasses.fields(PartChoice))
"""What tells parts of a study apart; also the flags that choose one."""

UNANSWERED_VERDICTS = (Verdict.TIMEOUT, Verdict.MEMOUT, Verdict.ERROR, Verdict.CANCELLED)


def read_store(
    place: Store | Path | str,
    choice: PartChoice = ANY_PART,
    *,
    accepted: Collection[CertifiedStatement] | None = None,
) -> Run:
    """What an open store holds, or the one in a directory, as it is at one moment.

    A study that has grown may hold brackets of several questions. They are never mixed: a
    StoreError names them unless `choice` leaves one. With `accepted`, only proofs count that one of
    these shows.
    """
    if isinstance(place, str | Path):
        with Store.open(Path(place)) as store:
            return read_store(store, choice, accepted=accepted)
    part = chosen_part(place, choice)
    records = place.all_records(part)
    if accepted is not None:
        records = [record.resting_on(accepted) for record in records]
    return run_of_records(place, settings_of(place, part), records, part)


def read_parts(place: Store | Path | str, choice: PartChoice = ANY_PART) -> list[Run]:
    """Each part of a study that has grown as a run. Where there are several, the networks' names
    say of which part they are, so that no table takes two for one."""
    if isinstance(place, str | Path):
        with Store.open(Path(place)) as store:
            return read_parts(store, choice)
    chosen = [part for part in place.parts() if choice.admits(part.settings)]
    if len(chosen) < 2:
        return [read_store(place, choice)]
    runs = []
    for part, title in zip(chosen, part_titles(chosen), strict=True):
        run = run_of_records(place, part.settings, place.all_records(part), part)
        runs.append(run.labelled(network=[f"{name} ({title})" for name in run.columns["network"]]))
    return runs


def chosen_part(store: Store, choice: PartChoice = ANY_PART) -> StudyPart | None:
    """The part that is meant; None where the store is new. A StoreError if that is not clear."""
    parts = store.parts()
    chosen = [part for part in parts if choice.admits(part.settings)]
    if len(chosen) == 1 or not parts:
        return chosen[0] if chosen else None
    if not chosen:
        known = " or ".join(_flags(part.settings, PART_FIELDS) for part in parts)
        raise StoreError(f"{store.place}: holds no such brackets; choose {known}")
    known = " or ".join(_flags(part.settings, _differing(chosen)) for part in chosen)
    raise StoreError(f"{store.place}: holds brackets of several questions; choose {known}")


def settings_of(store: Store, part: StudyPart | None) -> StoredSettings:
    """How a part was measured; of a study that never grew, as the store describes itself."""
    return store.settings() if part is None or len(part.arithmetics) == 1 else part.settings


def part_titles(parts: Sequence[StudyPart]) -> list[str]:
    """For each part what tells it from the others, in words."""
    names = _differing(parts)
    texts = ([str(part.settings.text_of(name) or "none") for name in names] for part in parts)
    return [", ".join(text) for text in texts]


def _differing(parts: Sequence[StudyPart]) -> list[str]:
    """The facts that tell some parts apart."""
    return [n for n in PART_FIELDS if len({part.settings.text_of(n) for part in parts}) > 1]


def _flags(settings: StoredSettings, names: Sequence[str]) -> str:
    given = ((name, settings.text_of(name)) for name in names)
    return " ".join(f"--{name} {value}" for name, value in given if value is not None)


def run_of_records(
    store: Store | Path,
    settings: StoredSettings,
    records: Sequence[Record],
    part: StudyPart | None = None,
) -> Run:
    """The run that consists of these records of a store, or of a directory's."""
    place = store if isinstance(store, Path) else store.place
    if not records:
        raise StoreError(f"{place}: the experiment holds no instances yet")
    measurements = [record.measurement for record in records]
    excerpts = () if part is None else part.excerpts
    # Shards are dealt out in the order of the selection: one alone is not a random part of it.
    dealt = [InputDraw.ORDERED] if excerpts else []
    brackets = Distribution.of_columns(
        {
            **columns_of(measurements),
            "critical": np.array([_missing_between(record) for record in records]),
            "searched": _searched(settings, records, part),
            "split": settings.split or "",
            "draw": joined_draw([draw_of(settings.source), *dealt]),
        },
        sources=sources_of(store, records),
        only_eps=_only_eps(settings, part),
    )
    return Run(
        place,
        brackets,
        settings,
        tuple(records),
        notes=(*_excerpted(place, measurements, excerpts), *_relabelled(place, measurements)),
        excerpts=excerpts,
    )


def _excerpted(
    place: Path, measurements: Sequence[Measurement], excerpts: Sequence[Excerpt]
) -> Iterator[str]:
    """These are not all the brackets that were asked for."""
    for excerpt in excerpts:
        yield (
            f"{place}: {len(measurements)} brackets are {excerpt}, and not all of it; radii merge "
            "joins shards"
        )


def _relabelled(place: Path, measurements: Sequence[Measurement]) -> Iterator[str]:
    """Once, a directory took inputs with corrected labels as further inputs."""
    labels: dict[int, set[int]] = {}
    for one in measurements:
        labels.setdefault(one.input, set()).add(one.label)
    twice = [index for index, own in labels.items() if len(own) > 1]
    if twice:
        several = f" and {len(twice) - 1} more" if len(twice) > 1 else ""
        yield (
            f"{place}: input {twice[0]}{several} is counted once for each of several labels that "
            "it had; radii run with --replace keeps the one that the data have now"
        )


def _only_eps(settings: StoredSettings, part: StudyPart | None) -> float | None:
    """The value of a grid of one, where all steps had that grid."""
    is_one_grid = part is None or len(part.ends) == 1
    if settings.grid is None or len(settings.grid) > 1 or not is_one_grid:
        return None
    return settings.grid[0] or None


def _searched(settings: StoredSettings, records: Sequence[Record], part: StudyPart | None) -> Array:
    """Up to where somebody tried to break each instance: the end of the grid, where all steps had
    one grid; else as far as was asked about it."""
    end = math.nan if settings.grid is None else settings.grid.values[-1]
    if part is None or len(set(part.ends)) < 2:
        return np.array([end if _is_attempted(record) else 0.0 for record in records])
    return np.array([min(max(part.ends), _asked_up_to(record)) for record in records])


def _asked_up_to(record: Record) -> float:
    return max((q.eps for q, result in record.answered if _is_attempt(q, result)), default=0.0)


def _is_attempted(record: Record) -> bool:
    """Whether any attempt to break it was answered; UNKNOWN is an attack's answer."""
    return any(_is_attempt(question, result) for question, result in record.answered)


def _is_attempt(question: Question, result: Result) -> bool:
    is_look = question.kind is QuestionKind.REPLAY
    return not is_look and result.verdict not in UNANSWERED_VERDICTS


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

    `records` has one row an instance, without inputs, which may be large. Of a study with several
    parts it follows the one that was asked for last. `generation` changes when another experiment
    has taken the directory's place, the same was begun anew, or its proofs were checked.
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
            moments = store.first_answer_at() + store.last_check_at()
            generation = "".join(filter(str.isdigit, moments))
            part = _latest_part(store)
            is_other = self.records and settings_of(store, part) != self.settings
            if is_other or (self.last_number and generation != self.generation):
                self._forget()
            self.generation = generation
            if not self.records:
                self._begin(store, part)
            answers_of = store.answers(after=self.last_number, part=part)
            new = list(answers_of) if self.records else []
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

    def _begin(self, store: Store, part: StudyPart | None) -> None:
        self.settings = settings_of(store, part)
        self.records = list(store.unanswered_records(part))
        self._rows = {record.key: row for row, record in enumerate(self.records)}


def _latest_part(store: Store) -> StudyPart | None:
    return max(store.parts(), key=lambda part: max(part.numbers), default=None)
