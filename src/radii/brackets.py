"""The bracket around a radius, and how results tighten it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from radii.verdicts import Arithmetic, Result

__all__ = ["Bracket", "Disagreement", "Measurement", "Weighing", "weigh"]


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
    answer, aside from those that were cancelled or asked again after an error; `timeouts` and
    `memouts` are among them. `arithmetic` is what the proof of the lower side speaks of, None
    without a proof.
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
    """What results amount to: the bracket, the claims that a witness contradicts, and in which
    arithmetic the lower side is proven, None without a proof."""

    bracket: Bracket
    disagreements: tuple[Disagreement, ...]
    arithmetic: Arithmetic | None


def weigh(results: Iterable[Result]) -> Weighing:
    """The bracket that results allow, in any order, and the proofs that a witness contradicts.

    Missing answers have no evidence and so no weight. Proofs of a tool that was contradicted once
    on this instance are not used at all: a tool that is wrong at one eps is not trusted at another.
    Of two proofs at the same eps the one in the stronger arithmetic counts.
    """
    told = list(results)
    upper = min((r.witness.distance for r in told if r.witness is not None), default=math.inf)
    wrong = tuple(
        Disagreement(r, upper) for r in told if r.proof is not None and r.proof.eps >= upper
    )
    distrusted = {(d.claim.verifier, d.claim.version) for d in wrong}
    best = max(
        (
            r.proof
            for r in told
            if r.proof is not None and (r.verifier, r.version) not in distrusted
        ),
        key=lambda proof: (proof.eps, proof.arithmetic.strength),
        default=None,
    )
    if best is None:
        return Weighing(Bracket(0.0, upper), wrong, None)
    return Weighing(Bracket(best.eps, upper), wrong, best.arithmetic)
