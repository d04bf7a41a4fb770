"""What the rows of a store stand for: instances, results, witnesses, certificates and checks."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from sqlite3 import Row
from typing import Any

import numpy as np

from radii.problem import (
    Arithmetic,
    Array,
    Bracket,
    CertificateCheck,
    CheckOutcome,
    Disagreement,
    Instance,
    KeptCertificate,
    Measurement,
    Proof,
    Result,
    Verdict,
    Weighing,
    Witness,
    is_of_class,
    weigh,
)
from radii.processes import Ending
from radii.strategy import Question, QuestionKind

MOST_BLOB_BYTES = 2**29
"""Of a certificate or a network: SQLite keeps at most 10^9 bytes in a cell."""

OUTCOMES = (CheckOutcome.REFUSED, CheckOutcome.ACCEPTED, CheckOutcome.UNREADABLE)
"""In the order of the numbers in `accepted`."""

AnsweredQuestion = tuple[Question, Result]

PROOF_KINDS = (QuestionKind.PROVE, QuestionKind.RADIUS)
"""Questions whose answer may be a proof."""


@dataclass(frozen=True, slots=True)
class CertifiedStatement:
    """What a certificate is to show: that an instance is robust at this eps."""

    certificate: str
    instance: str
    eps: float
    arithmetic: Arithmetic


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result as it was reported. Later ones have larger numbers; `ended_at` is in UTC."""

    number: int
    key: str
    ended_at: str
    question: Question
    result: Result


@dataclass(frozen=True, slots=True)
class SearchStep:
    """One question and its answer, and the bracket once it was known.

    `verifier` is a name and a version.
    """

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


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """What a measurement needs to know about an instance; see `Measurement`."""

    network: str
    fingerprint: str
    input: int
    label: int
    predicted: int
    correct: bool
    property: str
    target: int | None
    classes: int


@dataclass(frozen=True, eq=False)
class Record:
    """Everything a store holds about one instance; `answered` in the order it was reported.

    `digest` is equal for equal inputs, and `outputs` are what the network is said to give. Where
    inputs are left out, `input`, `outputs` and the witnesses' inputs are empty arrays. Evidence is
    weighed once, when it is first needed.
    """

    key: str
    facts: InstanceFacts
    digest: str
    input: Array
    outputs: Array
    answered: tuple[AnsweredQuestion, ...] = ()

    @property
    def results(self) -> list[Result]:
        return [result for _, result in self.answered]

    @cached_property
    def _weighing(self) -> Weighing:
        return weigh(self.results)

    @property
    def bracket(self) -> Bracket:
        return self._weighing.bracket

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """Claims of proofs that a replayed witness contradicts."""
        return self._weighing.disagreements

    @property
    def proof(self) -> Proof | None:
        """The proof that the lower side rests on; None without one."""
        return self._weighing.proof

    def statement(self, proof: Proof) -> CertifiedStatement | None:
        """What the certificate of one of its proofs is to show; None where there is none."""
        if proof.kept is None:
            return None
        return CertifiedStatement(proof.kept.hash, self.key, proof.eps, proof.arithmetic)

    def resting_on(self, accepted: Collection[CertifiedStatement]) -> Record:
        """The same without the proofs that none of these certificates shows."""
        answered = [
            (question, result)
            if result.proof is None or self.statement(result.proof) in accepted
            else (question, without_proof(result))
            for question, result in self.answered
        ]
        return dataclasses.replace(self, answered=tuple(answered))

    @property
    def closest_witness(self) -> Witness | None:
        """The witness that the upper side rests on; None without one."""
        witnesses = (result.witness for result in self.results if result.witness is not None)
        return min(witnesses, key=lambda witness: witness.distance, default=None)

    @cached_property
    def unanswered(self) -> tuple[AnsweredQuestion, ...]:
        """The questions that were left without an answer, and last a search for the radius that was
        stopped between what it proved and what it was asked for.

        Not counted are those that were cancelled, those that were asked again, after an error or
        with more time, and attacks that found nothing.
        """
        missing = [
            (question, result)
            for place, (question, result) in enumerate(self.answered)
            if result.verdict.is_missing
            and result.verdict is not Verdict.CANCELLED
            and (question.kind in PROOF_KINDS or result.ending is not Ending.GAVE_UP)
            and not any(later.repeats(question) for later, _ in self.answered[place + 1 :])
        ]
        proofs = [answer for answer in self.answered if answer[0].kind in PROOF_KINDS]
        settled = [answer for answer in proofs if answer[1].verdict is not Verdict.CANCELLED]
        if settled and _is_left_open(*settled[-1], self.bracket):
            missing.append(settled[-1])
        return tuple(missing)

    @cached_property
    def measurement(self) -> Measurement:
        """What statistics need of it."""
        facts, closest = self.facts, self.closest_witness
        tried = [
            result for question, result in self.answered if question.kind is not QuestionKind.REPLAY
        ]
        proofs = [answer for question, answer in self.unanswered if question.kind in PROOF_KINDS]
        partial = [result for result in proofs if result.is_partial]
        return Measurement(
            **dataclasses.asdict(facts),
            bracket=self.bracket,
            witness_class=None if closest is None else _class_of(closest, facts),
            seconds=sum(result.own_seconds for result in self.results),
            queries=len(tried),
            missing=len(proofs),
            cancelled=sum(result.verdict is Verdict.CANCELLED for result in tried),
            timeouts=sum(result.verdict is Verdict.TIMEOUT for result in tried)
            + sum(result.ran_out_of_time for result in partial),
            memouts=sum(result.verdict is Verdict.MEMOUT for result in tried)
            + sum(result.ran_out_of_memory for result in partial),
            cpu_seconds=_total(result.cpu_seconds for result in tried),
            **_evidence(self.proof),
        )

    @cached_property
    def steps(self) -> tuple[SearchStep, ...]:
        """How the bracket came about, one step an answer."""
        results, steps = self.results, []
        for place, (question, result) in enumerate(self.answered, 1):
            # A later witness may discredit the proofs of a tool, so each beginning counts alone.
            bracket = weigh(results[:place]).bracket
            steps.append(
                SearchStep(
                    kind=question.kind.value,
                    eps=question.eps,
                    verdict=result.verdict.value,
                    verifier=result.author,
                    seconds=result.seconds,
                    proof_eps=result.proof.eps if result.proof else None,
                    distance=result.witness.distance if result.witness else None,
                    message=result.remark,
                    lower=bracket.lower,
                    upper=bracket.upper,
                )
            )
        return tuple(steps)


def without_proof(result: Result) -> Result:
    """What is left of a result whose proof does not count."""
    witness = result.witness
    is_refuted = witness is not None and witness.distance <= result.eps
    verdict = Verdict.NOT_ROBUST if is_refuted else Verdict.of(result.ending)
    return dataclasses.replace(result, verdict=verdict, proof=None)


def instance_columns(position: int, instance: Instance) -> dict[str, object]:
    """A row of `instances`."""
    return {
        "key": instance.key,
        "position": position,
        "network": instance.network,
        "input_index": instance.index,
        "label": instance.label,
        "predicted": instance.predicted,
        "correct": int(instance.correct),
        "property": instance.property.spec,
        "target": instance.property.target,
        "norm": instance.norm.value,
        **array_columns(instance.input),
        "outputs": np.asarray(instance.outputs, np.float64).tobytes(),
    }


def query_columns(key: str, question: Question, result: Result, step: int) -> dict[str, object]:
    """A row of `queries` but for its number and time."""
    proof, content = result.proof, certificate_of(result)
    return {
        "instance": key,
        "kind": question.kind.value,
        "eps": question.eps,
        "verdict": result.verdict.value,
        "seconds": result.seconds,
        "verifier": result.verifier,
        "version": result.version,
        "proof_eps": proof.eps if proof else None,
        "proof_margin": proof.margin if proof else None,
        "proof_arithmetic": str(proof.arithmetic) if proof else None,
        "message": result.message,
        "cpu_seconds": result.cpu_seconds,
        "added_seconds": result.added_seconds,
        "allowed_seconds": result.allowed_seconds,
        "step": step,
        "certificate": None if content is None else content_hash(content),
        "ending": result.ending.value,
    }


def witness_columns(query: int, witness: Witness) -> dict[str, object]:
    """A row of `witnesses`, for the query of that number."""
    return {
        "query": query,
        "distance": witness.distance,
        "predicted": witness.predicted,
        **array_columns(witness.input),
        "outputs": witness.outputs.astype(np.float64).tobytes(),
        "replayed_on": witness.replayed_on,
    }


def input_digest(image: Array) -> str:
    """Equal for equal inputs, and for no others."""
    digest = hashlib.sha256(f"{image.dtype}{json.dumps(image.shape)}".encode())
    digest.update(np.ascontiguousarray(image).tobytes())
    return digest.hexdigest()


def array_columns(array: Array) -> dict[str, object]:
    """An input as dtype, shape and bytes; read back by `array_of`."""
    content = np.ascontiguousarray(array).tobytes()
    return {"dtype": str(array.dtype), "shape": json.dumps(array.shape), "input": content}


def array_of(row: Row, prefix: str = "") -> Array:
    """The array in those columns; it shares their memory and cannot be written."""
    dtype, shape = np.dtype(row[f"{prefix}dtype"]), json.loads(row[f"{prefix}shape"])
    return np.frombuffer(row[f"{prefix}input"], dtype=dtype).reshape(shape)


def result_of(question: Question, row: Row) -> Result:
    """The result in a row of `queries`, with its witness, its certificate and the check of that."""
    proof_eps, arithmetic = row["proof_eps"], row["proof_arithmetic"]
    # A search for the radius is asked up to an eps and answers at the one that it could prove.
    is_lower = question.kind.searches_radius and proof_eps is not None
    witness = None
    if row["distance"] is not None:
        witness = Witness(
            array_of(row),
            row["distance"],
            row["predicted"],
            np.frombuffer(row["outputs"]),
            row["replayed_on"],
        )
    proof = None
    if proof_eps is not None:
        if not isinstance(arithmetic, str):
            raise ValueError(f"a proof at eps {proof_eps!r} is in the arithmetic {arithmetic!r}")
        margin, kept = row["proof_margin"], kept_certificate(row)
        proof = Proof(proof_eps, margin, Arithmetic.parse(arithmetic), kept=kept)
    return Result(
        Verdict(row["verdict"]),
        proof_eps if is_lower else question.eps,
        row["verifier"],
        row["version"],
        row["seconds"],
        proof,
        witness,
        row["message"],
        row["cpu_seconds"],
        row["added_seconds"],
        row["allowed_seconds"],
        Ending(row["ending"]),
    )


def _evidence(proof: Proof | None) -> dict[str, Any]:
    """What a measurement says of the proof of its lower side."""
    if proof is None:
        return {}
    kept = proof.kept
    return {
        "arithmetic": proof.arithmetic,
        "proof": proof.status,
        "checked_by": None if kept is None or kept.check is None else kept.check.checker,
        "certificate": None if kept is None else kept.hash,
    }


def _is_left_open(question: Question, result: Result, bracket: Bracket) -> bool:
    """It was a search for the radius, stopped at a limit between what it proved and what it was
    asked for."""
    is_stopped = result.ran_out_of_time or result.ran_out_of_memory
    is_partial = question.kind is QuestionKind.RADIUS and result.is_partial
    return is_partial and is_stopped and bracket.lower < question.eps


def _total(amounts: Iterable[float | None]) -> float | None:
    """The sum of what was measured; None if one was not."""
    known = list(amounts)
    return None if None in known else sum(amount or 0.0 for amount in known)


def _class_of(witness: Witness, facts: InstanceFacts) -> int:
    """The class a witness goes to: the largest output but the label's, which it may only tie.

    A target that ties with others for the largest is the one. What breaks another property than
    that of the label's class may leave the class as it is.
    """
    others = witness.outputs.copy()
    if is_of_class(facts.property):
        others[facts.label] = -np.inf
    if facts.target is not None and others[facts.target] == others.max():
        return facts.target
    return int(np.argmax(others))


# --- certificates and their checks


def certificate_of(result: Result) -> bytes | None:
    """What is kept beside a result; nothing where it is too large for a database."""
    return kept_blob(None if result.proof is None else result.proof.certificate)


def kept_blob(content: bytes | None) -> bytes | None:
    """What a cell has room for."""
    return None if content is None or len(content) > MOST_BLOB_BYTES else content


def content_hash(content: bytes) -> str:
    """The name of a certificate: 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def kept_certificate(row: Row) -> KeptCertificate | None:
    """What is known of an answer's certificate; a ValueError if that cannot be."""
    name = row["certificate"]
    if name is None:
        return None
    if not isinstance(name, str) or not re.fullmatch("[0-9a-f]{64}", name):
        raise ValueError(f"a certificate is called {name!r}")
    size, accepted = row["certificate_size"] or 0, row["accepted"]
    if row["checker"] is None:
        return KeptCertificate(name, size)
    texts = {each: row[each] for each in ("checker", "checked_at", "reason", "numbers")}
    is_text = all(isinstance(text, str) for text in texts.values())
    if not is_text or accepted not in range(len(OUTCOMES)):
        raise ValueError(f"a check of certificate {name[:12]} is by {texts['checker']!r}")
    amounts = {each: row[f"check_{each}"] for each in ("nodes", "lemmas", "margin", "seconds")}
    for amount in amounts.values():
        if amount is not None and not isinstance(amount, int | float):
            raise ValueError(f"a check of certificate {name[:12]} has the number {amount!r}")
    check = CertificateCheck(outcome=OUTCOMES[accepted], **texts, **amounts)
    return KeptCertificate(name, size, check)


def check_columns(statement: CertifiedStatement, check: CertificateCheck) -> dict[str, object]:
    """A row of `checks`."""
    said = dataclasses.asdict(check)
    del said["outcome"]
    return {
        **dataclasses.asdict(statement),
        "arithmetic": str(statement.arithmetic),
        **said,
        "accepted": OUTCOMES.index(check.outcome),
    }
