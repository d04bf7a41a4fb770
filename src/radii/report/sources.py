"""What a report is made of: experiments read from their stores, or files of published results."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from radii.brackets import Disagreement, Measurement, weigh
from radii.distributions import Distribution, read_results
from radii.errors import StoreError
from radii.store import Record, Store

__all__ = ["Source", "Step", "read_sources"]


@dataclass(frozen=True, slots=True)
class Step:
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
    steps: tuple[tuple[Step, ...], ...] = ()
    disagreements: tuple[tuple[int, Disagreement], ...] = ()


def read_sources(places: Sequence[Path]) -> list[Source]:
    """Everything but inputs and witnesses, which may be large; no two networks share a name."""
    seen: set[Path] = set()
    for place in places:
        if place.resolve() in seen:
            raise StoreError(f"{place}: the same experiment is given twice")
        seen.add(place.resolve())
    return _named_apart([_read(place) for place in places])


def _read(place: Path) -> Source:
    if place.is_file():
        imported = read_results(place)
        notes = (*imported.notes, *_caveats(place.name, imported.distribution))
        return Source(place, {"source": place.name}, imported.distribution, notes)
    with Store.open(place) as store:
        experiment = store.experiment() or {}
        measurements: list[Measurement] = []
        keys, inputs, steps = [], [], []
        wrong: list[tuple[int, Disagreement]] = []
        for row, record in enumerate(store.records()):
            measurements.append(record.measurement)
            keys.append(record.key)
            inputs.append(_identity(record))
            steps.append(_steps(record))
            wrong.extend((row, disagreement) for disagreement in record.disagreements)
    if not measurements:
        raise StoreError(f"{place}: the experiment holds no instances yet")
    distribution = Distribution(measurements).labelled(split=str(experiment.get("split") or ""))
    return Source(
        place, experiment, distribution, (), tuple(keys), tuple(inputs), tuple(steps), tuple(wrong)
    )


def _caveats(name: str, distribution: Distribution) -> list[str]:
    """What a reader of a file's numbers must know, whatever is in it."""
    told = [f"{name}: proofs and counterexamples are its claims, which radii has not checked."]
    if distribution.correct.all():
        told.append(
            f"{name} has no misclassified inputs. Published files leave them out: robust accuracy "
            "is then that of correctly classified inputs."
        )
    return told


def _identity(record: Record) -> str:
    digest = hashlib.sha256(f"{record.input.dtype}{record.input.shape}".encode())
    digest.update(record.input.tobytes())
    return digest.hexdigest()


def _steps(record: Record) -> tuple[Step, ...]:
    told = []
    for place, (question, result) in enumerate(record.answered):
        bracket, _ = weigh(result for _, result in record.answered[: place + 1])
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


def _named_apart(sources: list[Source]) -> list[Source]:
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
    for kept in range(1, max(map(len, parts)) + 1):
        short = ["/".join(part[-kept:]) for part in parts]
        if len(set(short)) == len(short):
            break
    return short
