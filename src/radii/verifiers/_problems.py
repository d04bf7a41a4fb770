"""Deciding a VNN-LIB problem: attack all of its specifications, then prove them one by one.

`sat` needs a witness that was replayed on ONNX Runtime and satisfies the file's own formula,
strict comparisons included. `unsat` needs a proof of every specification.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from radii.attacks import attack_specification
from radii.errors import SpecificationError, UnsupportedQuery
from radii.networks import Network
from radii.problem import Arithmetic, Box, Limits, Specification, Verdict, Witness
from radii.verifiers._base import Verifier
from radii.vnnlib import Outcome, Problem, Verification

PROBLEM_ATTACK_SECONDS = 10.0
"""All attacks together: longer searches seldom find what a complete verifier would not."""
PROBLEM_ATTACK_SHARE = 0.25
"""At most this part of the time that is left goes to attacks."""
STRICT_SLACK = 1e-6
"""How far inside a strict comparison to look for witnesses: some units in float32's last place."""


@dataclass(frozen=True, slots=True, eq=False)
class ProblemResult:
    """What was found. A `sat` has its witness; `message` says why an answer is missing.

    `arithmetic` is that in which `unsat` is proven: the weakest of its proofs, None without any.
    `certificates` show them, one for each specification; None for one that only the verifier's word
    stands for.

    `verification.inputs` are the witness's values, except where the file allows no float32 value
    at all (a feature fixed to 0.1): there it is the file's own value, which rounds to the one that
    was replayed.
    """

    verification: Verification
    witness: Witness | None = None
    message: str = ""
    arithmetic: Arithmetic | None = None
    certificates: tuple[bytes | None, ...] = ()


def decide_problem(
    network: Network,
    problem: Problem,
    *,
    verifier: Verifier,
    limits: Limits | None = None,
    seed: int = 0,
) -> ProblemResult:
    """Is there an input that satisfies the file? An InputError if it is not about `network`."""
    limits = limits or Limits()
    problem.check_fits(network.input_shape, network.output_size, network.input_dtype)
    closed = problem.specifications(network.input_shape)
    inner = closed
    if problem.strict:
        inner = problem.specifications(network.input_shape, slack=STRICT_SLACK)
    search = _ProblemSearch(network, problem, limits)
    return search.attack(inner, seed) or search.prove(closed, inner, verifier)


@dataclass(slots=True)
class _ProblemSearch:
    network: Network
    problem: Problem
    limits: Limits
    timed_out: bool = False
    message: str = ""
    arithmetics: list[Arithmetic] = field(default_factory=list)
    certificates: list[bytes | None] = field(default_factory=list)

    def attack(self, specifications: tuple[Specification, ...], seed: int) -> ProblemResult | None:
        """The first counterexample that attacks find, each with an equal part of the time left."""
        end = time.monotonic() + min(
            PROBLEM_ATTACK_SECONDS, PROBLEM_ATTACK_SHARE * self.limits.remaining
        )
        for done, specification in enumerate(specifications):
            seconds = (end - time.monotonic()) / (len(specifications) - done)
            if seconds <= 0:
                break
            runnable = _runnable(specification, self.network.input_dtype)
            witness = attack_specification(self.network, runnable, seed=seed, seconds=seconds)
            if result := self._solved(specification, witness):
                return result
        return None

    def prove(
        self,
        closed: tuple[Specification, ...],
        inner: tuple[Specification, ...],
        verifier: Verifier,
    ) -> ProblemResult:
        """Sat or unsat if the verifier can tell, within the limits."""
        is_proven = True
        for specification in closed:
            answer, result = self._verified(specification, verifier)
            if result:
                return result
            is_proven &= answer is Verdict.ROBUST
            if answer is Verdict.NOT_ROBUST:
                self.message = "a counterexample replays but misses the file's own constraints"
        if is_proven:
            weakest = min(self.arithmetics, key=lambda each: each.strength, default=None)
            return ProblemResult(
                Verification(Outcome.UNSAT),
                arithmetic=weakest,
                certificates=tuple(self.certificates),
            )
        for specification in inner if self.problem.strict else ():
            _, result = self._verified(specification, verifier)
            if result:
                return result
        outcome = Outcome.TIMEOUT if self.timed_out else Outcome.UNKNOWN
        return ProblemResult(Verification(outcome), message=self.message)

    def _verified(
        self, specification: Specification, verifier: Verifier
    ) -> tuple[Verdict, ProblemResult | None]:
        expired = self.limits.expired
        if expired is not None:
            self._note(expired)
            return expired, None
        runnable = _runnable(specification, self.network.input_dtype)
        try:
            answer, witness = verifier.decide(self.network, runnable, self.limits)
        except UnsupportedQuery as error:
            self.message = str(error)
            return Verdict.UNKNOWN, None
        self._note(answer.verdict)
        if answer.verdict is Verdict.ROBUST:
            self.arithmetics.append(answer.arithmetic or verifier.arithmetic)
            self.certificates.append(answer.certificate)
        self.message = answer.message or self.message
        return answer.verdict, self._solved(specification, witness)

    def _note(self, verdict: Verdict) -> None:
        self.timed_out |= verdict is Verdict.TIMEOUT
        if verdict is Verdict.MEMOUT:
            self.message = "stopped at the memory limit"

    def _solved(
        self, specification: Specification, witness: Witness | None
    ) -> ProblemResult | None:
        """The decision that a witness allows, once it is held against the file itself."""
        if witness is None:
            return None
        low, high = specification.region.box()
        inputs = np.clip(witness.input.astype(np.float64), low, high)
        if not np.array_equal(inputs.astype(witness.input.dtype), witness.input):
            return None
        if not self.problem.is_solved_by(inputs, witness.outputs):
            return None
        outputs = witness.outputs.astype(np.float64)
        return ProblemResult(Verification(Outcome.SAT, inputs.ravel(), outputs.ravel()), witness)


def _runnable(specification: Specification, dtype: np.dtype[np.floating]) -> Specification:
    """The specification with its box widened where no value of `dtype` lies between the bounds.

    Such a feature, typically one fixed to a decimal, takes the value that the decimal rounds to.
    Widening is safe: a proof on the wider box covers the narrower one.
    """
    low, high = specification.region.box()
    largest = float(np.finfo(dtype).max)
    if max(-low.min(), high.max()) > largest:
        raise SpecificationError(f"an input's bound is beyond {largest:g}, the largest {dtype}")
    least = low.astype(dtype)
    least = np.where(least < low, np.nextafter(least, np.inf, dtype=dtype), least)
    is_empty = least > high
    if not is_empty.any():
        return specification
    nearest = np.where(is_empty, low.astype(dtype), low)
    box = Box(np.minimum(low, nearest), np.maximum(high, np.where(is_empty, nearest, high)))
    return Specification(box, specification.requirement, specification.inputs)
