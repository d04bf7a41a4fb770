"""Whether what was read from a store can be what was written: its types, and what must agree.

A file may be damaged by a disk, an interrupted copy or an editor, and SQLite checks neither the
types nor the sense of what it holds. A radius that comes of damage must not be reported, so
everything that a number rests on is compared with something else that is stored: an instance
against its key, which is a digest of it; a witness against its instance's input, norm and domain;
a bracket against the evidence. What does not agree raises a ValueError that names it.
"""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from sqlite3 import Row
from types import SimpleNamespace
from typing import Any

import numpy as np

from radii.errors import SpecificationError
from radii.problem import Array, Domain, Features, Instance, Norm, Property, Result, Witness
from radii.problem import parse_property as parse
from radii.store._rows import InstanceFacts, array_of
from radii.strategy import Question

DISTANCE_ROUNDING = 2.0**-23
"""By which part of the largest input value a distance may be off: rounding to float32 moves a value
by less, and another machine sums in another order."""
FLOAT64_BYTES = 8
"""Outputs are stored as float64."""
MOST_SECONDS = 1e10
"""Three hundred years: no query takes as long."""


def selection_of(keys: Sequence[str]) -> str:
    """A short text that changes with the instances and with their order."""
    digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()
    return f"{len(keys)} instances, {digest[:16]}"


def checked_instance(
    row: Row, domains: Mapping[str, Domain], features: Features | None = None
) -> tuple[Array, InstanceFacts]:
    """The input of a row of `instances`, and the facts of a `Record`; a ValueError if damaged.

    `row` also has the name of the network; None if there is no such network.
    """
    place = f"instance {row['key']!r}"
    if row["name"] is None:
        raise ValueError(f"{place} is of a network that is not there")
    _check_texts(place, row, ("key", "name", "network", "property", "norm", "dtype", "shape"))
    _check_numbers(place, row, ("position", "input_index", "label", "predicted", "correct"))
    image = array_of(row)
    outputs = np.frombuffer(row["outputs"])
    if not 0 <= row["label"] < outputs.size or not np.isfinite(outputs).all():
        raise ValueError(f"{place} has a label of {row['label']} and {outputs.size} outputs")
    if row["network"] in domains:
        instance = _instance(row, domains[row["network"]], features)
        stored = (row["key"], row["predicted"], bool(row["correct"]))
        is_same = stored == (instance.key, instance.predicted, instance.correct)
        if not is_same or row["target"] != getattr(instance.property, "target", row["target"]):
            raise ValueError(f"{place} is not what its key was made of")
    return image, InstanceFacts(
        network=row["name"],
        fingerprint=row["network"],
        input=row["input_index"],
        label=row["label"],
        predicted=row["predicted"],
        correct=bool(row["correct"]),
        property=row["property"],
        target=row["target"],
        classes=outputs.size,
    )


def instance_of(
    row: Row, domains: Mapping[str, Domain], features: Features | None
) -> Instance | None:
    """The instance of a row that was checked; None where not all of it can be read from text."""
    if row["network"] not in domains:
        return None
    instance = _instance(row, domains[row["network"]], features)
    return instance if isinstance(instance.property, Property) else None


def _instance(row: Row, domain: Domain, features: Features | None) -> Instance:
    return Instance(
        network=row["network"],
        index=row["input_index"],
        input=array_of(row),
        label=row["label"],
        outputs=np.frombuffer(row["outputs"]),
        property=_property(row["property"]),
        norm=Norm(row["norm"]),
        domain=domain,
        features=features,
    )


@lru_cache(maxsize=1024)
def _property(spec: str) -> Any:
    """The property, or only its name if it was made in Python and no text stands for it."""
    try:
        return parse(spec)
    except SpecificationError:
        return SimpleNamespace(spec=spec)


def check_result(question: Question, result: Result) -> None:
    """A ValueError unless every field of a result is of its type, and within reason."""
    place = f"an answer at eps {question.eps!r}"
    if not (_is_amount(question.eps) and question.eps < math.inf):
        raise ValueError(f"{place} is at no number")
    fields = {"verifier": result.verifier, "version": result.version, "message": result.message}
    _check_texts(place, fields, tuple(fields))
    for seconds in (result.seconds, result.cpu_seconds, result.added_seconds):
        if seconds is not None and not (_is_amount(seconds) and seconds <= MOST_SECONDS):
            raise ValueError(f"{place} took {seconds!r} seconds")
    allowed = result.allowed_seconds
    if result.seconds is None or not (allowed is None or _is_amount(allowed)):
        raise ValueError(f"{place} had {result.allowed_seconds!r} seconds")
    proof = result.proof
    if proof is not None and not (_is_amount(proof.eps) and proof.eps < math.inf):
        raise ValueError(f"{place} has a proof at eps {proof.eps!r}")
    if proof is not None and not (_is_number(proof.margin) and math.isfinite(proof.margin)):
        raise ValueError(f"{place} has a proof with a margin of {proof.margin!r}")


def check_witness(
    witness: Witness, row: Row, domain: Domain | None, features: Features | None
) -> None:
    """A ValueError unless the witness lies in its domain, as far away as it says.

    `row` is of the answer, with the input, norm and size of outputs of its instance.
    """
    center, norm = array_of(row, "center_"), Norm(row["norm"])
    if not _is_amount(witness.distance) or witness.input.shape != center.shape:
        raise ValueError(
            f"a witness at distance {witness.distance!r} has shape {witness.input.shape}"
        )
    exact = np.asarray(witness.input, np.float64)
    difference = exact - np.asarray(center, np.float64)
    scale = max(norm.length(difference), float(np.abs(exact).max(initial=0.0)))
    if features is not None:
        difference = features.units(difference.ravel())
        scale /= float(np.min(features.scale, where=features.scale > 0, initial=1.0))
    measured = norm.length(difference)
    if not abs(measured - witness.distance) <= DISTANCE_ROUNDING * scale:  # also catches NaN
        raise ValueError(
            f"a witness that is said to be at distance {witness.distance:g} is at {measured:g}"
        )
    if domain is not None:
        low, high = domain.box(exact.shape)
        if not (np.all(exact >= low) and np.all(exact <= high)):
            raise ValueError(f"the witness at distance {measured:g} is outside of the domain")
    if (
        FLOAT64_BYTES * witness.outputs.size != row["outputs_size"]
        or not np.isfinite(witness.outputs).all()
    ):
        raise ValueError(f"the witness at distance {measured:g} has {witness.outputs.size} outputs")
    if witness.predicted != int(np.argmax(witness.outputs)):
        raise ValueError(f"the witness at distance {measured:g} has another class than it says")
    if not isinstance(witness.replayed_on, str):
        raise ValueError(f"the witness at distance {measured:g} was replayed nowhere")


def check_bracket(stored: tuple[Any, Any] | None, results: Iterable[Result]) -> None:
    """A ValueError unless the bracket that was written with the results is what they say.

    Where a witness contradicts a proof, the lower side is any proof's, or 0.
    """
    known = list(results)
    proofs = {result.proof.eps for result in known if result.proof is not None}
    upper = min((r.witness.distance for r in known if r.witness is not None), default=math.inf)
    best = max(proofs, default=0.0)
    allowed = {best} if best < upper or not proofs else proofs | {0.0}
    if stored is None and known:
        raise ValueError("an instance has answers and no bracket")
    if stored is not None and (stored[1] != upper or stored[0] not in allowed):
        raise ValueError(
            f"a bracket is [{stored[0]!r}, {stored[1]!r}), and its evidence [{best:g}, {upper:g})"
        )


def check_moment(moment: Any) -> None:
    """A ValueError unless this is a time, as the store writes it."""
    if not isinstance(moment, str):
        raise ValueError(f"an answer ended at {moment!r}")
    datetime.datetime.fromisoformat(moment)


def _check_texts(place: str, fields: Mapping[str, Any] | Row, names: Iterable[str]) -> None:
    for name in names:
        if not isinstance(fields[name], str):
            raise ValueError(f"{place} has {name} {fields[name]!r}, which is not text")


def _check_numbers(place: str, row: Row, names: Iterable[str]) -> None:
    for name in names:
        if not isinstance(row[name], int):
            raise ValueError(f"{place} has {name} {row[name]!r}, which is not a whole number")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _is_amount(value: Any) -> bool:
    return _is_number(value) and value >= 0
