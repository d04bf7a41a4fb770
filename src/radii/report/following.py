"""An experiment that is read once, and then only what is new in it: a run may still be writing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from radii.brackets import Disagreement, Measurement, weigh
from radii.distributions import Distribution
from radii.distributions.stores import classes_of
from radii.errors import StoreError
from radii.report.sources import Source, Step
from radii.store import Answer, Store, Subject

__all__ = ["Followed"]


class Followed:
    """What a store holds, a row an instance; `refresh` reads what has come since.

    Inputs and witnesses, which may be large, are not kept. `generation` changes when another
    experiment has taken the directory's place, or the same was begun anew.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.generation = ""
        self._forget()

    def _forget(self) -> None:
        self.experiment: dict[str, Any] = {}
        self.subjects: tuple[Subject, ...] = ()
        self.answers: list[list[Answer]] = []
        self.measurements: list[Measurement] = []
        self.disagreements: list[tuple[Disagreement, ...]] = []
        self.last_number = 0
        self._steps: list[tuple[Step, ...]] = []
        self._rows: dict[str, int] = {}

    def refresh(self) -> list[Answer]:
        """Read what is new, in the order in which it was reported."""
        with Store.open(self.place) as store:
            generation = "".join(filter(str.isdigit, store.first_answer_at()))
            is_other = self.subjects and store.experiment() != self.experiment
            if is_other or (self.last_number and generation != self.generation):
                self._forget()
            self.generation = generation
            if not self.subjects:
                self._begin(store)
            new = list(store.answers(after=self.last_number)) if self.subjects else []
        for answer in new:
            self.answers[self.row_of(answer)].append(answer)
            self.last_number = answer.number
        for row in {self.row_of(answer) for answer in new}:
            self._weigh(row)
        return new

    def row_of(self, answer: Answer) -> int:
        return self._rows[answer.key]

    def source(self) -> Source:
        """All that is known of it now."""
        if not self.measurements:
            raise StoreError(f"{self.place}: the experiment holds no instances yet")
        split = str(self.experiment.get("split") or "")
        return Source(
            self.place,
            self.experiment,
            Distribution(self.measurements).labelled(
                split=split, classes=classes_of(self.experiment, self.measurements)
            ),
            keys=tuple(subject.key for subject in self.subjects),
            inputs=tuple(subject.digest for subject in self.subjects),
            steps=tuple(self._steps),
            disagreements=tuple(
                (row, wrong) for row, told in enumerate(self.disagreements) for wrong in told
            ),
        )

    def _begin(self, store: Store) -> None:
        self.experiment = store.experiment() or {}
        self.subjects = tuple(store.subjects())
        self._rows = {subject.key: row for row, subject in enumerate(self.subjects)}
        self.answers = [[] for _ in self.subjects]
        self.measurements = [subject.measured(()) for subject in self.subjects]
        self.disagreements = [() for _ in self.subjects]
        self._steps = [() for _ in self.subjects]

    def _weigh(self, row: int) -> None:
        answers = self.answers[row]
        pairs = [(answer.question, answer.result) for answer in answers]
        self.measurements[row] = self.subjects[row].measured(pairs)
        self.disagreements[row] = weigh(result for _, result in pairs).disagreements
        self._steps[row] = _steps(answers)


def _steps(answers: list[Answer]) -> tuple[Step, ...]:
    told = []
    for place, answer in enumerate(answers):
        question, result = answer.question, answer.result
        bracket = weigh(known.result for known in answers[: place + 1]).bracket
        told.append(
            Step(
                kind=question.kind.value,
                eps=question.eps,
                verdict=result.verdict.value,
                verifier=f"{result.verifier} {result.version}".strip(),
                seconds=result.seconds,
                proof_eps=result.proof.eps if result.proof else None,
                distance=result.witness.distance if result.witness else None,
                message=result.message,
                lower=bracket.lower,
                upper=bracket.upper,
            )
        )
    return tuple(told)
