"""The tables of a store, and what their rows stand for: results, witnesses, instances.

This is the one definition of the schema, and of how older ones become it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from radii.problem import (
    Arithmetic,
    Array,
    Bracket,
    Disagreement,
    Instance,
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
from radii.store._certificates import (
    CERTIFICATES,
    CertifiedStatement,
    certificate_of,
    content_hash,
    kept_certificate,
)
from radii.strategy import Question, QuestionKind

SCHEMA_VERSION = 7

STEPS = """
CREATE TABLE steps (
    id INTEGER PRIMARY KEY,
    asked_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    ended_at TEXT,  -- NULL: nobody has come to its end
    described TEXT NOT NULL,
    summary TEXT NOT NULL
);
CREATE TABLE step_instances (
    step INTEGER NOT NULL REFERENCES steps (id),
    instance TEXT NOT NULL REFERENCES instances (key),
    PRIMARY KEY (step, instance)
) WITHOUT ROWID;
"""
"""What was asked when, and of which instances: see `StudyStep`."""

INPUTS = """
CREATE TABLE inputs (
    input_index INTEGER PRIMARY KEY,
    digest TEXT NOT NULL  -- of its values as the data set gives them, whichever network they go to
);
"""

SCHEMA = f"""{STEPS}{CERTIFICATES}{INPUTS}
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE networks (
    fingerprint TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    feeding TEXT,  -- JSON: how inputs get into it; NULL: not known
    model BLOB  -- as ONNX, where it comes from Python; NULL: its file has it
);
CREATE TABLE instances (
    key TEXT PRIMARY KEY,
    position INTEGER NOT NULL UNIQUE,
    network TEXT NOT NULL REFERENCES networks (fingerprint),
    input_index INTEGER NOT NULL,
    label INTEGER NOT NULL,
    predicted INTEGER NOT NULL,
    correct INTEGER NOT NULL,
    property TEXT NOT NULL,
    target INTEGER,
    norm TEXT NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,
    input BLOB NOT NULL,
    outputs BLOB NOT NULL
);
CREATE TABLE queries (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL REFERENCES instances (key),
    kind TEXT NOT NULL,
    eps REAL NOT NULL,
    verdict TEXT NOT NULL,
    seconds REAL NOT NULL,
    verifier TEXT NOT NULL,
    version TEXT NOT NULL,
    proof_eps REAL,
    proof_margin REAL,
    message TEXT NOT NULL,
    ended_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    cpu_seconds REAL,  -- NULL: not measured
    added_seconds REAL,  -- to the wall time of the instance; NULL: all of `seconds`
    allowed_seconds REAL,  -- wall seconds that it had; NULL: the limit of the experiment
    proof_arithmetic TEXT,  -- which numbers the proof speaks of; NULL without a proof
    step INTEGER NOT NULL DEFAULT 1,  -- in which it was asked
    certificate TEXT,  -- hash of what shows the proof; NULL: the verifier is believed
    ending TEXT NOT NULL DEFAULT 'answered'  -- how it ended; see `Ending`
);
CREATE INDEX queries_of_instance ON queries (instance);
CREATE TABLE witnesses (
    query INTEGER PRIMARY KEY REFERENCES queries (id),
    distance REAL NOT NULL,
    predicted INTEGER NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,
    input BLOB NOT NULL,
    outputs BLOB NOT NULL,
    replayed_on TEXT NOT NULL
);
CREATE TABLE brackets (
    instance TEXT PRIMARY KEY REFERENCES instances (key),
    lower REAL NOT NULL,
    upper REAL NOT NULL  -- Infinity without a witness
);
"""

MIGRATIONS = {
    1: """
    ALTER TABLE queries ADD COLUMN cpu_seconds REAL;
    ALTER TABLE queries ADD COLUMN added_seconds REAL;
    """,
    2: "ALTER TABLE queries ADD COLUMN allowed_seconds REAL;",
    3: """
    ALTER TABLE queries ADD COLUMN proof_arithmetic TEXT;
    UPDATE queries SET proof_arithmetic = 'real' WHERE proof_eps IS NOT NULL;
    UPDATE meta SET value = json_set(value, '$.arithmetic', 'real')
        WHERE name = 'experiment' AND json_extract(value, '$.search') IS NOT 'attack-only';
    """,
    4: f"""{STEPS}
    INSERT INTO steps (id, asked_at, described, summary)
        SELECT 1, coalesce((SELECT min(ended_at) FROM queries),
            strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), value, '' FROM meta WHERE name = 'experiment';
    INSERT INTO step_instances SELECT 1, key FROM instances;
    ALTER TABLE networks ADD COLUMN feeding TEXT;
    ALTER TABLE queries ADD COLUMN step INTEGER NOT NULL DEFAULT 1;
    """,
    5: f"""{CERTIFICATES}
    ALTER TABLE queries ADD COLUMN certificate TEXT;
    ALTER TABLE networks ADD COLUMN model BLOB;
    """,
    6: f"""
    UPDATE checks SET accepted = 2 WHERE NOT accepted AND (
        reason GLOB 'the certificate cannot be used: operator * known to this checker'
        OR reason = 'its check needs more memory than it may have');
    ALTER TABLE queries ADD COLUMN ending TEXT NOT NULL DEFAULT 'answered';
    UPDATE queries SET verdict = 'MEMOUT'
        WHERE verdict = 'UNKNOWN' AND message LIKE 'a layer of % units does not fit';
    UPDATE queries SET ending = CASE
        WHEN verdict = 'MEMOUT' THEN 'memory limit'
        WHEN verdict = 'CANCELLED' THEN 'cancelled'
        WHEN verdict = 'ERROR' THEN 'failed'
        WHEN verdict = 'UNKNOWN' THEN 'gave up'
        WHEN message LIKE '%its CPU limit' OR message LIKE '%used up the processor time' OR
            verdict = 'TIMEOUT' AND cpu_seconds >= (SELECT json_extract(described, '$.cpu_timeout')
                FROM steps WHERE id = step) THEN 'CPU limit'
        WHEN verdict = 'TIMEOUT' OR message LIKE '%its time limit' THEN 'time limit'
        WHEN message LIKE '%its memory limit' OR message = 'out of memory' OR
            message LIKE 'a layer of % units does not fit' THEN 'memory limit'
        ELSE 'answered' END;
    {INPUTS}""",
}
"""What makes a store of each older version one of the next.

3: what proofs had to exceed for the network's own rounding was sampled, which proves nothing of
floating point: they count as proofs in real arithmetic, as does what the experiment asked for.
4: a store was one experiment; it becomes a study of one step.
6: a certificate that the checker could not read counted as refused; inputs were known only as
networks take them, and the next run adds what the data set gives; how a query ended
was the end of its message, and some memory-outs were UNKNOWN."""

AnsweredQuestion = tuple[Question, Result]

PROOF_KINDS = (QuestionKind.PROVE, QuestionKind.RADIUS)
"""Questions whose answer may be a proof."""


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
            and not _is_repeated(question, self.answered[place + 1 :])
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


def query_row(key: str, question: Question, result: Result, step: int) -> tuple[object, ...]:
    """The columns of `queries` but for its number and time."""
    proof, content = result.proof, certificate_of(result)
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
        step,
        None if content is None else content_hash(content),
        result.ending.value,
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


def input_digest(image: Array) -> str:
    """Equal for equal inputs, and for no others."""
    digest = hashlib.sha256(f"{image.dtype}{json.dumps(image.shape)}".encode())
    digest.update(np.ascontiguousarray(image).tobytes())
    return digest.hexdigest()


def array_columns(array: Array) -> tuple[str, str, bytes]:
    """An array as dtype, shape and bytes; read back by `array_of`."""
    return str(array.dtype), json.dumps(array.shape), np.ascontiguousarray(array).tobytes()


def array_of(dtype: str, shape: str, data: bytes) -> Array:
    """The array in those columns; it shares their memory and cannot be written."""
    return np.frombuffer(data, dtype=np.dtype(dtype)).reshape(json.loads(shape))


def result_of(question: Question, columns: Sequence[Any]) -> Result:
    """The result in the columns of `queries` from the verdict on, with those of its witness, its
    certificate and the check of that."""
    verdict, seconds, verifier, version, proof_eps, margin, arithmetic, *rest = columns
    message, cpu_seconds, added_seconds, allowed_seconds, ending, distance = rest[:6]
    predicted, dtype, shape, data, outputs, replayed_on, *certified = rest[6:]
    # A search for the radius is asked up to an eps and answers at the one that it could prove.
    is_lower = question.kind.searches_radius and proof_eps is not None
    eps = proof_eps if is_lower else question.eps
    witness = None
    if distance is not None:
        witness = Witness(
            array_of(dtype, shape, data), distance, predicted, np.frombuffer(outputs), replayed_on
        )
    proof = None
    if proof_eps is not None:
        if not isinstance(arithmetic, str):
            raise ValueError(f"a proof at eps {proof_eps!r} is in the arithmetic {arithmetic!r}")
        kept = kept_certificate(*certified)
        proof = Proof(proof_eps, margin, Arithmetic.parse(arithmetic), kept=kept)
    return Result(
        Verdict(verdict),
        eps,
        verifier,
        version,
        seconds,
        proof,
        witness,
        message,
        cpu_seconds,
        added_seconds,
        allowed_seconds,
        Ending(ending),
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


def _is_repeated(question: Question, later: Sequence[AnsweredQuestion]) -> bool:
    return any(later_question.repeats(question) for later_question, _ in later)


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
