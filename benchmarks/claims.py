"""Networks made to be fragile in floating point: does a checked certificate cover a broken input?

Native proves the largest value of a grid that it can, in `float` and in `real`. Certificates of the
first kind must be accepted; those of the second are relabelled, so that they claim to hold for
floats, which many of them do not. Whatever the checker accepts is searched for an input that breaks
it, on ONNX Runtime and in other orders of summation. Shards are ranges of seeds: `--seed 0:100`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from benchmarks.records import Log, Options, Record
from benchmarks.soundness.certified import is_accepted, with_claim
from benchmarks.soundness.families import FRAGILE_FAMILIES, fragile
from benchmarks.soundness.known import KNOWN_CASES, FragileCase
from benchmarks.soundness.search import find_break, find_break_in_orders
from benchmarks.tables import show
from radii.errors import UnsupportedQuery
from radii.problem import FLOAT, REAL, Arithmetic, Query
from radii.verifiers import BranchAndBound, Limits

SEEDS, SECONDS, STEPS = range(5), 2.0, 10
"""Networks of each family, seconds a query, and values of the grid up to where the trouble is."""

ACCEPTED, REFUSED, BROKEN, NONE = "accepted", "refused", "broken", "no certificate"


@dataclass(frozen=True, slots=True)
class FragileClaim:
    """A certificate that claims to hold for floats; `proven` says in what it was proven.

    `is_broken` where a search found an input within eps that breaks the claim: then it must have
    been refused.
    """

    family: str
    seed: int
    proven: Arithmetic
    eps: float
    answer: str
    is_broken: bool

    @property
    def is_wrong(self) -> bool:
        return self.answer == ACCEPTED and self.is_broken


def main(options: Options) -> None:
    seeds, budget = options.seeds or SEEDS, options.budget or SECONDS
    records = []
    for seed, family in product(seeds, (*KNOWN_CASES, *FRAGILE_FAMILIES)):
        known = [r for r in options.log.records.values() if _is(r, family, seed, budget)]
        records += known or _measured(family, seed, budget, options.log)
    records = [record for record in records if record.lower > 0]
    show(
        f"claims about fragile networks, seeds {seeds.start} to {seeds.stop - 1}",
        ("proven in", "claims", "accepted", "broken", "accepted and broken", "no certificate"),
        list(_rows(records)),
    )


def _measured(family: str, seed: int, budget: float, log: Log) -> list[Record]:
    claims = [_record(claim, budget) for claim in fragile_claims(family, seed, budget)]
    nothing = Record(network=family, case=str(seed), method="none", budget=budget)
    return [log.add(record) for record in claims or [nothing]]


def fragile_claims(family: str, seed: int, seconds: float = SECONDS) -> Iterator[FragileClaim]:
    """What is proven in floats, and what is proven in real arithmetic and said of floats."""
    case = fragile(family, seed)
    for proven in (FLOAT, REAL):
        verifier = BranchAndBound(arithmetic=proven, certificates=True)
        if verifier.unsupported(case.network, case.instance.norm, case.instance.kind) is None:
            yield from _claims(case, verifier, seconds)


def _claims(case: FragileCase, verifier: BranchAndBound, seconds: float) -> Iterator[FragileClaim]:
    """From the largest value down to the first that is accepted, or refused without a break."""
    for place in range(STEPS, 0, -1):
        eps = place * case.eps / STEPS
        try:
            query = Query(case.instance, eps)
            result = verifier.verify(case.network, query, Limits(seconds=seconds))
        except UnsupportedQuery:
            return
        if result.proof is None:
            continue
        answer = NONE
        if result.proof.certificate is not None:
            claimed = with_claim(result.proof.certificate, arithmetic=str(FLOAT))
            answer = ACCEPTED if is_accepted(claimed, case.network) else REFUSED
        claim = FragileClaim(
            case.family, case.seed, verifier.arithmetic, eps, answer, _is_broken(case, eps)
        )
        yield claim
        if not (answer == REFUSED and claim.is_broken):
            return


def _is_broken(case: FragileCase, eps: float) -> bool:
    if find_break(case.network, case.instance, eps, seed=case.seed) is not None:
        return True
    return find_break_in_orders(case.network, case.instance, eps, seed=case.seed) is not None


def _is(record: Record, family: str, seed: int, budget: float) -> bool:
    return (record.network, record.case, record.budget) == (family, str(seed), budget)


def _record(claim: FragileClaim, budget: float) -> Record:
    if claim.is_wrong:
        print(f"  WRONG: {claim}", flush=True)
    return Record(
        network=claim.family,
        case=str(claim.seed),
        method=f"{claim.proven} {claim.eps:.9g}",
        budget=budget,
        lower=claim.eps,
        answer=claim.answer,
        expected=BROKEN if claim.is_broken else "",
    )


def _rows(records: list[Record]) -> Iterator[tuple[object, ...]]:
    for proven in sorted({record.method.split()[0] for record in records}):
        mine = [record for record in records if record.method.split()[0] == proven]
        accepted = [record for record in mine if record.answer == ACCEPTED]
        yield (
            proven,
            len(mine),
            len(accepted),
            sum(record.expected == BROKEN for record in mine),
            sum(record.expected == BROKEN for record in accepted),
            sum(record.answer == NONE for record in mine),
        )
