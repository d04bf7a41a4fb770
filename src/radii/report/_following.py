"""What a report is made of: experiments from their stores, or files of published results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.distributions import Distribution, classes_of, read_results
from radii.errors import StoreError
from radii.store import STORE_FILE, Store, StoredResult, Subject
from radii.verdicts import Disagreement, Measurement, weigh

if TYPE_CHECKING:
    from radii.ensembles import EnsembleResults


@dataclass(frozen=True, slots=True)
class SearchStep:
    """One question and its answer, and the bracket once it was known."""

    kind: str
    eps: float
    verdict: str
    verifier: str
    seconds: float
    proof_eps: float | None
    distance: float | None
    message: str
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One experiment. Rows of all lists correspond; a file of published results has no details.

    `inputs` tell inputs apart: the same bytes are the same input, whichever experiment used them.
    """

    place: Path
    experiment: dict[str, Any]
    distribution: Distribution
    notes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    steps: tuple[tuple[SearchStep, ...], ...] = ()
    disagreements: tuple[tuple[int, Disagreement], ...] = ()


# An experiment that is read once, and then only what is new in it: a run may still be writing.


class FollowedStore:
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
        self.answers: list[list[StoredResult]] = []
        self.measurements: list[Measurement] = []
        self.disagreements: list[tuple[Disagreement, ...]] = []
        self.last_number = 0
        self._steps: list[tuple[SearchStep, ...]] = []
        self._rows: dict[str, int] = {}

    def refresh(self) -> list[StoredResult]:
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

    def row_of(self, answer: StoredResult) -> int:
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


def _steps(answers: list[StoredResult]) -> tuple[SearchStep, ...]:
    told = []
    for place, answer in enumerate(answers):
        question, result = answer.question, answer.result
        bracket = weigh(known.result for known in answers[: place + 1]).bracket
        told.append(
            SearchStep(
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


# Reading what a report is about, from directories and files.


ENSEMBLE_FILE = "ensemble.sqlite"
"""As `radii.ensembles` calls it, which is loaded only where there is one: it brings PyTorch."""


def read_places(places: Sequence[Path]) -> tuple[list[Source], list[EnsembleResults]]:
    """Experiments, without inputs and witnesses, which may be large, and ensembles.

    No two networks of experiments share a name.
    """
    seen: set[Path] = set()
    for place in places:
        if place.resolve() in seen:
            raise StoreError(f"{place}: the same experiment is given twice")
        seen.add(place.resolve())
    ensembles = [place for place in places if (place / ENSEMBLE_FILE).is_file()]
    others = [place for place in places if place not in ensembles or (place / STORE_FILE).is_file()]
    return with_distinct_names([_read(place) for place in others]), _read_ensembles(ensembles)


def _read_ensembles(places: Sequence[Path]) -> list[EnsembleResults]:
    if not places:
        return []
    from radii.ensembles import read_ensemble_results

    return [read_ensemble_results(place) for place in places]


def _read(place: Path) -> Source:
    if place.is_file():
        imported = read_results(place)
        notes = (*imported.notes, *_caveats(place.name, imported.distribution))
        return Source(place, {"source": place.name}, imported.distribution, notes)
    followed = FollowedStore(place)
    followed.refresh()
    return followed.source()


def _caveats(name: str, distribution: Distribution) -> list[str]:
    """What a reader of a file's numbers must know, whatever is in it."""
    told = [f"{name}: proofs and counterexamples are its claims, which radii has not checked."]
    if distribution.correct.all():
        told.append(
            f"{name} has no misclassified inputs. Published files leave them out: robust accuracy "
            "is then that of correctly classified inputs."
        )
    return told


def with_distinct_names(sources: list[Source]) -> list[Source]:
    """Networks of the same name in several experiments carry the experiment's name too."""
    counts = Counter(name for source in sources for name in source.distribution.networks)
    titles = _short_places([source.place for source in sources])
    named = []
    for source, title in zip(sources, titles, strict=True):
        names = {
            name: name if counts[name] == 1 else f"{name} ({title})"
            for name in source.distribution.networks
        }
        told = source.distribution.labelled(network=names)
        named.append(replace(source, distribution=told))
    return named


def _short_places(places: Sequence[Path]) -> list[str]:
    """The last parts of the paths, as many as tell them apart."""
    parts = [place.resolve().parts for place in places]
    short: list[str] = []
    for kept in range(1, max(map(len, parts), default=0) + 1):
        short = ["/".join(part[-kept:]) for part in parts]
        if len(set(short)) == len(short):
            break
    return short
