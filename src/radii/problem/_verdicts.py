"""What deciding a query returns: a verdict and its evidence; and the bracket that these tighten.

Evidence is what moves a bracket, never the verdict's name: a `Proof` raises the lower side, a
`Witness` lowers the upper side, and a result with neither moves nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.processes import Ending

Array = npt.NDArray[np.floating]


MOST_WIDENING = 2.0**16
"""Roundings of float32 are then those of bfloat16; relative errors of a softmax stay below 1/2."""


class Verdict(StrEnum):
    """The answer to a query. All but the first two are missing answers."""

    ROBUST = "ROBUST"
    NOT_ROBUST = "NOT_ROBUST"
    UNKNOWN = "UNKNOWN"
    TIMEOUT = "TIMEOUT"
    MEMOUT = "MEMOUT"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"

    @property
    def is_missing(self) -> bool:
        """No statement about the query was made."""
        return self not in (Verdict.ROBUST, Verdict.NOT_ROBUST)

    @classmethod
    def of(cls, ending: Ending) -> Verdict:
        """The verdict of a query that ended like that, with neither proof nor witness."""
        return _MISSING_VERDICTS[ending]

    @property
    def ending(self) -> Ending:
        """How a query with this verdict ended, if nothing else is known."""
        if not self.is_missing:
            return Ending.ANSWERED
        return next(e for e in Ending if e is not Ending.ANSWERED and Verdict.of(e) is self)


_MISSING_VERDICTS = {
    Ending.ANSWERED: Verdict.UNKNOWN,
    Ending.GAVE_UP: Verdict.UNKNOWN,
    Ending.TIME_LIMIT: Verdict.TIMEOUT,
    Ending.CPU_LIMIT: Verdict.TIMEOUT,
    Ending.MEMORY_LIMIT: Verdict.MEMOUT,
    Ending.CANCELLED: Verdict.CANCELLED,
    Ending.FAILED: Verdict.ERROR,
    Ending.LOST: Verdict.ERROR,
}


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A counterexample that was replayed on ONNX Runtime. Made only by `radii.problem`.

    `input` is the exact array that was replayed, in the data's own units; `distance` is measured
    in float64 from the instance's input in the query's norm; `outputs` is what ONNX Runtime said.
    """

    input: Array
    distance: float
    predicted: int
    outputs: Array
    replayed_on: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Which numbers a proof speaks of.

    `float`: every execution of the file's operators in the file's own number type, in any order of
    summation, with or without fused multiply-add. Each rounding may be `widening` times as large
    as IEEE 754 allows, for runtimes that are less exact. `real`: the idealised network, whose
    operators do not round at all.
    """

    is_float: bool
    widening: float = 1.0

    def __post_init__(self) -> None:
        if not 1.0 <= self.widening <= MOST_WIDENING:
            raise SpecificationError(
                f"arithmetic: roundings {self.widening:g} times as large are not possible; "
                f"give 1 to {MOST_WIDENING:g}"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """`real`, `float`, or `float:8` for roundings up to eight times as large."""
        name, colon, widening = text.partition(":")
        try:
            factor = float(widening) if colon else 1.0
        except ValueError:
            factor = math.nan
        if name == "real" and not colon:
            return cls(is_float=False)
        if name != "float" or math.isnan(factor):
            raise SpecificationError(
                f"arithmetic '{text}' is not one of float, real, float:FACTOR (as in float:8)"
            )
        return cls(is_float=True, widening=factor)

    @property
    def scope(self) -> str:
        """What a proof holds for, as the end of a sentence."""
        if not self.is_float:
            return "in real arithmetic"
        wider = "" if self.widening == 1 else f" with {self.widening:g} times its rounding errors"
        return f"for floating point{wider}"

    @property
    def strength(self) -> tuple[bool, float]:
        """Larger is stronger: what holds with rounding errors up to some size holds with smaller
        ones and without any, so that a proof in a stronger arithmetic is one in a weaker."""
        return self.is_float, self.widening

    def __str__(self) -> str:
        if not self.is_float:
            return "real"
        return "float" if self.widening == 1 else f"float:{self.widening:g}"


FLOAT, REAL = Arithmetic(is_float=True), Arithmetic(is_float=False)


class ProofStatus(StrEnum):
    """What a proof rests on, the weakest first."""

    FAILED = "failed"
    """Its certificate was refused."""
    BELIEVED = "believed"
    """Rests on the tool that claimed it: it has no certificate."""
    UNREADABLE = "unreadable"
    """Rests on the tool that claimed it: the checker cannot read its certificate."""
    UNCHECKED = "unchecked"
    """A certificate that nobody has checked."""
    CHECKED = "checked"
    """A certificate that a checker accepted."""


STATUSES = tuple(ProofStatus)
"""In order of strength."""


class CheckOutcome(StrEnum):
    """How a check of a certificate ends."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    """The certificate does not show the claim that a store makes by it."""
    UNREADABLE = "unreadable"
    """The checker cannot tell: it does not know an operator, an opset or the format's version, or
    needs more memory. That says nothing against the claim."""


STATUS_AFTER = {
    CheckOutcome.ACCEPTED: ProofStatus.CHECKED,
    CheckOutcome.REFUSED: ProofStatus.FAILED,
    CheckOutcome.UNREADABLE: ProofStatus.UNREADABLE,
}
"""What a proof rests on once its certificate was checked."""


@dataclass(frozen=True, slots=True)
class CertificateCheck:
    """What a checker said of a certificate, and of the claim that a store makes by it.

    `checker` is a name and a version, `numbers` what it calculated in (float64 or exact), and
    `checked_at` a time in UTC. `reason` says why the certificate was not accepted; it is empty if
    it was. `margin` is the smallest by which a step holds; it is None, as counts are, where the
    checker did not come so far.
    """

    checker: str
    checked_at: str
    outcome: CheckOutcome
    reason: str = ""
    numbers: str = "float64"
    nodes: int | None = None
    lemmas: int | None = None
    margin: float | None = None
    seconds: float = 0.0

    @property
    def is_accepted(self) -> bool:
        return self.outcome is CheckOutcome.ACCEPTED


@dataclass(frozen=True, slots=True)
class KeptCertificate:
    """A certificate in a store, without its content: its hash, its bytes, and its last check.

    `size` is 0 where the store has lost it.
    """

    hash: str
    size: int
    check: CertificateCheck | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """The property holds on the whole closed ball of radius `eps`, in a stated arithmetic.

    `margin` is how far above zero the proven bound had to be, in units of the network's output:
    0 where the arithmetic already accounts for every error. `certificate` is the evidence that
    `radii_check` checks, None where the proof rests on the verifier's word. A proof that is read
    from a store has `kept` instead: what is known of its certificate.
    """

    eps: float
    margin: float
    arithmetic: Arithmetic = REAL
    certificate: bytes | None = field(default=None, repr=False, compare=False)
    kept: KeptCertificate | None = field(default=None, repr=False, compare=False)

    @property
    def status(self) -> ProofStatus:
        """What it rests on."""
        if self.kept is None:
            return ProofStatus.BELIEVED if self.certificate is None else ProofStatus.UNCHECKED
        if self.kept.check is None:
            return ProofStatus.UNCHECKED
        return STATUS_AFTER[self.kept.check.outcome]


_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


@dataclass(frozen=True, slots=True)
class Result:
    """One query's outcome: who answered, what, on which evidence, in how many wall seconds.

    `ending` is how the query ended. A missing answer has that of its verdict unless it is given; a
    proof or a witness may have any: a search for the radius that was stopped at its time limit
    keeps what it had proven by then. `message` is for people to read, and nothing depends on it.

    `cpu_seconds` counts all processes that worked on it, None where nobody measured it.
    `added_seconds` is what the query added to the wall time of its instance, whose queries may run
    side by side; None: all of `seconds`. `allowed_seconds` is the wall time that it had where that
    was not the run's own limit, as when a run has a budget.
    """

    verdict: Verdict
    eps: float
    verifier: str
    version: str
    seconds: float
    proof: Proof | None = None
    witness: Witness | None = None
    message: str = ""
    cpu_seconds: float | None = None
    added_seconds: float | None = None
    allowed_seconds: float | None = None
    ending: Ending = Ending.ANSWERED

    def __post_init__(self) -> None:
        if self.verdict.is_missing and self.ending is Ending.ANSWERED:
            object.__setattr__(self, "ending", self.verdict.ending)
        if self.verdict.is_missing and self.verdict is not Verdict.of(self.ending):
            raise ValueError(f"a query that ended with '{self.ending}' is not {self.verdict}")
        if self.verdict is Verdict.ROBUST and (self.proof is None or self.proof.eps < self.eps):
            raise ValueError(f"ROBUST at eps {self.eps} needs a proof that reaches it")
        if self.verdict is Verdict.NOT_ROBUST and (
            self.witness is None or self.witness.distance > self.eps
        ):
            raise ValueError(f"NOT_ROBUST at eps {self.eps} needs a witness within it")

    @property
    def author(self) -> str:
        """Who gave it: name and version."""
        return f"{self.verifier} {self.version}".strip()

    @property
    def is_partial(self) -> bool:
        """It proved a part of what it was asked for, and was then stopped."""
        return not self.verdict.is_missing and self.ending is not Ending.ANSWERED

    @property
    def ran_out_of_time(self) -> bool:
        """With more time it would have gone on; what it had proven or witnessed is kept."""
        return self.ending in (Ending.TIME_LIMIT, Ending.CPU_LIMIT)

    @property
    def ran_out_of_memory(self) -> bool:
        """The same of memory."""
        return self.ending is Ending.MEMORY_LIMIT

    @property
    def remark(self) -> str:
        """What there is to say beside the verdict and its evidence."""
        left_open = f"larger values were left open: {self.ending}" if self.is_partial else ""
        return "; ".join(filter(None, (left_open, self.message)))

    @property
    def message_kind(self) -> str:
        """The same for messages that differ only in numbers, such as addresses and lines."""
        return _NUMBERS.sub("#", self.message)

    @property
    def own_seconds(self) -> float:
        """What it adds to the wall time of its instance."""
        return self.seconds if self.added_seconds is None else self.added_seconds


# --- brackets


@dataclass(frozen=True, slots=True)
class Bracket:
    """The radius is at least `lower` (proven) and below `upper` (witnessed; inf without one).

    Both are 0 for an input that is misclassified as it stands.
    """

    lower: float = 0.0
    upper: float = math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper:  # also catches NaN
            raise ValueError(
                f"a bracket needs 0 <= lower <= upper, not [{self.lower}, {self.upper})"
            )

    @property
    def width(self) -> float:
        return self.upper - self.lower


@dataclass(frozen=True, slots=True)
class Measurement:
    """One instance's bracket with what statistics need to know about it.

    `network` is the network's name, `input` the position in the data set's split, `seconds` the
    wall time in which at least one of its queries ran, `cpu_seconds` the processor time of all of
    them, None where nobody measured it. `missing` counts the proofs that were left without an
    answer, aside from those that were cancelled or asked again; `timeouts` and `memouts` count
    every one. All three count a search for the radius that was stopped at a limit before it was
    through, if nothing was proven up to its eps or asked again since. Of the proof of the
    lower side, `arithmetic` is what it speaks of, `proof` what it rests on, `checked_by` the name
    and version of who has checked its certificate, and `certificate` the hash of that; they are
    None where there is none. `classes` is the number of the network's outputs, None where that is
    not known.
    """

    network: str
    fingerprint: str
    input: int
    label: int
    predicted: int
    correct: bool
    property: str
    target: int | None
    bracket: Bracket
    witness_class: int | None
    seconds: float
    queries: int
    missing: int
    cancelled: int
    timeouts: int = 0
    memouts: int = 0
    cpu_seconds: float | None = None
    arithmetic: Arithmetic | None = None
    proof: ProofStatus | None = None
    checked_by: str | None = None
    certificate: str | None = None
    classes: int | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A claimed proof that a replayed witness contradicts. The claim is not used."""

    claim: Result
    witness_distance: float

    def __str__(self) -> str:
        proof = self.claim.proof
        claimed = proof.eps if proof else self.claim.eps
        scope = f" {proof.arithmetic.scope}" if proof else ""
        return (
            f"{self.claim.verifier} {self.claim.version} claims a proof at eps {claimed:g}{scope}, "
            f"but a replayed witness lies at distance {self.witness_distance:g}"
        )


class Weighing(NamedTuple):
    """What results amount to: the bracket, the claims that a witness contradicts, and the proof of
    the lower side, None without one."""

    bracket: Bracket
    disagreements: tuple[Disagreement, ...]
    proof: Proof | None

    @property
    def arithmetic(self) -> Arithmetic | None:
        """Which numbers the proof speaks of."""
        return None if self.proof is None else self.proof.arithmetic


def weigh(results: Iterable[Result]) -> Weighing:
    """The bracket that results allow, in any order, and the proofs that a witness contradicts.

    Missing answers have no evidence and so no weight. Proofs of a tool that was contradicted once
    on this instance are not used at all: a tool that is wrong at one eps is not trusted at another.
    Of two proofs at the same eps the one in the stronger arithmetic counts, then the one that rests
    on more.
    """
    known = list(results)
    upper = min((r.witness.distance for r in known if r.witness is not None), default=math.inf)
    wrong = tuple(
        Disagreement(r, upper) for r in known if r.proof is not None and r.proof.eps >= upper
    )
    distrusted = {(d.claim.verifier, d.claim.version) for d in wrong}
    best = max(
        (
            r.proof
            for r in known
            if r.proof is not None and (r.verifier, r.version) not in distrusted
        ),
        key=lambda proof: (proof.eps, proof.arithmetic.strength, STATUSES.index(proof.status)),
        default=None,
    )
    return Weighing(Bracket(0.0 if best is None else best.eps, upper), wrong, best)
