"""Rows of a store and what they stand for: instances, results, witnesses, measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii.properties import is_of_class
from radii.queries import Instance
from radii.search import Question, QuestionKind
from radii.verdicts import (
    Arithmetic,
    Array,
    Disagreement,
    Measurement,
    Proof,
    Result,
    Verdict,
    Witness,
    weigh,
)

AnsweredQuestion = tuple[Question, Result]


@dataclass(frozen=True, slots=True)
class Subject:
    """An instance before anything was asked; `digest` is equal for equal inputs."""

    key: str
    digest: str
    columns: tuple[Any, ...]

    def measured(self, answered: Sequence[AnsweredQuestion]) -> Measurement:
        """Its measurement, given all its answers."""
        return measurement_of(self.columns, answered)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result as it was reported. Later ones have larger numbers; `ended_at` is in UTC."""

    number: int
    key: str
    ended_at: str
    question: Question
    result: Result


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Everything a store holds about one instance; `answered` in the order it was reported."""

    key: str
    measurement: Measurement
    input: Array
    answered: tuple[AnsweredQuestion, ...]

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """Claims of proofs that a replayed witness contradicts."""
        return weigh(result for _, result in self.answered).disagreements


def instance_row(position: int, instance: Instance) -> tuple[object, ...]:
    """The columns of `instances`."""
    return (
        instance.key,
        position,
        instance.network,
        instance.index,
        instance.label,
        instance.predicted,
        int(instance.correct),
        instance.property.spec,
        instance.property.target,
        instance.norm.value,
        *array_columns(instance.input),
        np.asarray(instance.outputs, np.float64).tobytes(),
    )


def query_row(key: str, question: Question, result: Result) -> tuple[object, ...]:
    """The columns of `queries` but for its number and time."""
    proof = result.proof
    return (
        key,
        question.kind.value,
        question.eps,
        result.verdict.value,
        result.seconds,
        result.verifier,
        result.version,
        proof.eps if proof else None,
        proof.margin if proof else None,
        str(proof.arithmetic) if proof else None,
        result.message,
        result.cpu_seconds,
        result.added_seconds,
        result.allowed_seconds,
    )


def witness_row(query: int | None, witness: Witness) -> tuple[object, ...]:
    """The columns of `witnesses`, for the query of that number."""
    return (
        query,
        witness.distance,
        witness.predicted,
        *array_columns(witness.input),
        witness.outputs.astype(np.float64).tobytes(),
        witness.replayed_on,
    )


def array_columns(array: Array) -> tuple[str, str, bytes]:
    """An array as dtype, shape and bytes; read back by `array_of`."""
    return str(array.dtype), json.dumps(array.shape), np.ascontiguousarray(array).tobytes()


def array_of(dtype: str, shape: str, data: bytes) -> Array:
    """The array in those columns; it shares their memory and cannot be written."""
    return np.frombuffer(data, dtype=np.dtype(dtype)).reshape(json.loads(shape))


def result_of(question: Question, columns: Sequence[Any]) -> Result:
    """The result in the columns of `queries` from the verdict on, with those of its witness."""
    verdict, seconds, verifier, version, proof_eps, margin, arithmetic, *rest = columns
    message, *times, distance = rest[:5]
    rest = rest[5:]
    # A search for the radius is asked up to an eps and answers at the one that it could prove.
    is_lower = question.kind is QuestionKind.RADIUS and proof_eps is not None
    eps = proof_eps if is_lower else question.eps
    witness = None
    if distance is not None:
        predicted, dtype, shape, data, outputs, replayed_on = rest
        witness = Witness(
            array_of(dtype, shape, data), distance, predicted, np.frombuffer(outputs), replayed_on
        )
    proof = None
    if proof_eps is not None:
        if not isinstance(arithmetic, str):
            raise ValueError(f"a proof at eps {proof_eps!r} is in the arithmetic {arithmetic!r}")
        proof = Proof(proof_eps, margin, Arithmetic.parse(arithmetic))
    return Result(
        Verdict(verdict), eps, verifier, version, seconds, proof, witness, message, *times
    )


def measurement_of(columns: Sequence[Any], answered: Sequence[AnsweredQuestion]) -> Measurement:
    """What is known of an instance, from its columns (network to target) and all its answers."""
    network, fingerprint, index, label, predicted, correct, spec, target = columns
    results = [result for _, result in answered]
    weighed = weigh(results)
    closest = min(
        (r.witness for r in results if r.witness is not None),
        key=lambda witness: witness.distance,
        default=None,
    )
    tried = [result for question, result in answered if question.kind is not QuestionKind.REPLAY]
    proofs = [
        answer for answer in answered if answer[0].kind in (QuestionKind.PROVE, QuestionKind.RADIUS)
    ]
    return Measurement(
        network=network,
        fingerprint=fingerprint,
        input=index,
        label=label,
        predicted=predicted,
        correct=bool(correct),
        property=spec,
        target=target,
        bracket=weighed.bracket,
        witness_class=None if closest is None else _class_of(closest, label, spec, target),
        seconds=sum(result.own_seconds for result in results),
        queries=len(tried),
        missing=_missing(proofs),
        cancelled=sum(result.verdict is Verdict.CANCELLED for result in tried),
        timeouts=sum(result.verdict is Verdict.TIMEOUT for result in tried),
        memouts=sum(result.verdict is Verdict.MEMOUT for result in tried),
        cpu_seconds=_total(result.cpu_seconds for result in tried),
        arithmetic=weighed.arithmetic,
    )


def _missing(proofs: Sequence[AnsweredQuestion]) -> int:
    """How many were left without an answer: not counted are those that were cancelled, and those
    that nobody answered at first and that were asked again."""
    return sum(
        result.verdict.is_missing
        and result.verdict is not Verdict.CANCELLED
        and not (result.verdict is Verdict.ERROR and _is_repeated(question, proofs[place + 1 :]))
        for place, (question, result) in enumerate(proofs)
    )


def _is_repeated(question: Question, later: Sequence[AnsweredQuestion]) -> bool:
    return any(asked.repeats(question) for asked, _ in later)


def _total(amounts: Iterable[float | None]) -> float | None:
    """The sum of what was measured; None if one was not."""
    known = list(amounts)
    return None if None in known else sum(amount or 0.0 for amount in known)


def _class_of(witness: Witness, label: int, spec: str, target: int | None) -> int:
    """The class a witness goes to: the largest output but the label's, which it may only tie.

    A target that ties with others for the largest is the one. What breaks another property than
    that of the label's class may leave the class as it is.
    """
    others = witness.outputs.copy()
    if is_of_class(spec):
        others[label] = -np.inf
    if target is not None and others[target] == others.max():
        return target
    return int(np.argmax(others))
