"""Networks made to be fragile in floating point: how many proofs cover an input that breaks them.

For each network, verifier and arithmetic the largest proven value of a grid is measured, then a
search on ONNX Runtime looks for a break below it, one in other orders of summation looks for
executions that break, and one just above it says how close the proof came. In `float` nothing may
break below a proof; in `real` much does. Shards are ranges of seeds: `--seed 0:1000`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import product

from benchmarks.records import Options, Record
from benchmarks.soundness.families import FRAGILE_FAMILIES, fragile
from benchmarks.soundness.known import KNOWN_CASES, FragileCase
from benchmarks.soundness.search import find_break, find_break_in_orders
from benchmarks.tables import show
from radii.errors import UnsupportedQuery
from radii.problem import FLOAT, REAL, Arithmetic, Query, Verdict
from radii.verifiers import BranchAndBound, Enumeration, Limits, Milp, Verifier

SEEDS, BUDGET = range(20), 2.0
"""Networks of each family, and seconds a query."""
STEPS = 10
"""Values of the grid, up to where the trouble is."""
VERIFIERS: tuple[type[BranchAndBound | Milp | Enumeration], ...] = (
    BranchAndBound,
    Milp,
    Enumeration,
)
INSIDE, IN_ORDER, ABOVE = "inside", "in another order", "above"


def main(options: Options) -> None:
    seeds, budget = options.seeds or SEEDS, options.budget or BUDGET
    records = []
    for seed, family in product(seeds, (*KNOWN_CASES, *FRAGILE_FAMILIES)):
        records += measured(family, seed, budget, options)
    show(
        f"fragile networks, seeds {seeds.start} to {seeds.stop - 1}, {budget:g} s a query",
        (
            "family",
            "verifier",
            "networks",
            "proofs",
            "broken inside",
            "in another order",
            "break just above",
            "seconds",
        ),
        list(rows(records)),
    )


def measured(family: str, seed: int, budget: float, options: Options) -> list[Record]:
    """One record for each verifier and arithmetic that applies."""
    known = [r for r in options.log.records.values() if _is(r, family, seed, budget)]
    if known:
        return known
    case = fragile(family, seed)
    records = []
    for kind, arithmetic in product(VERIFIERS, (FLOAT, REAL)):
        verifier = kind(arithmetic=arithmetic)
        if verifier.unsupported(case.network, case.instance.norm, case.instance.kind) is None:
            record = examined(case, verifier, arithmetic, budget)
            if record is not None:
                records.append(options.log.add(record))
    return records


def _is(record: Record, family: str, seed: int, budget: float) -> bool:
    return (record.network, record.case, record.budget) == (family, str(seed), budget)


def examined(
    case: FragileCase, verifier: Verifier, arithmetic: Arithmetic, budget: float
) -> Record | None:
    """What is proven, and what breaks below and just above it; None where it is not decided."""
    started = time.perf_counter()
    try:
        place, queries = climbed(case, verifier, budget)
    except UnsupportedQuery:
        return None
    seconds = time.perf_counter() - started
    proven = place * case.eps / STEPS
    found: list[str] = []
    upper = None
    if place:
        inside = find_break(case.network, case.instance, proven, seed=case.seed)
        if inside is not None:
            found.append(INSIDE)
            upper = inside.distance
        elif arithmetic.is_float:
            other = find_break_in_orders(case.network, case.instance, proven, seed=case.seed)
            if other is not None:
                found.append(IN_ORDER)
                upper = other[1].distance
        if not found and place < STEPS:
            above = (place + 1) * case.eps / STEPS
            if find_break(case.network, case.instance, above, seed=case.seed) is not None:
                found.append(ABOVE)
    if arithmetic.is_float and {INSIDE, IN_ORDER} & set(found):
        who = f"{case.family} {case.seed}, {verifier.name} {arithmetic}"
        what = f"proven {proven:g}, broken {', '.join(found)} at {upper:.9g}"
        print(f"  BROKEN: {who}: {what}", file=sys.stderr, flush=True)
    return Record(
        network=case.family,
        case=str(case.seed),
        method=f"{verifier.name} {arithmetic}",
        budget=budget,
        seconds=seconds,
        lower=proven,
        upper=upper,
        answer=", ".join(found),
        queries=queries,
    )


def climbed(case: FragileCase, verifier: Verifier, budget: float) -> tuple[int, int]:
    """How many values of the grid are proven, by bisection; and the queries that it took."""
    proven, failed, queries = 0, STEPS + 1, 0
    while proven + 1 < failed:
        place = (proven + failed) // 2 if queries else STEPS
        queries += 1
        query = Query(case.instance, place * case.eps / STEPS)
        result = verifier.verify(case.network, query, Limits(seconds=budget))
        if result.verdict is Verdict.ROBUST:
            proven = place
        else:
            failed = place
    return proven, queries


def rows(records: list[Record]) -> Iterator[tuple[object, ...]]:
    for family, method in sorted({(r.network, r.method) for r in records}):
        mine = [r for r in records if (r.network, r.method) == (family, method)]
        counts = [sum(word in r.answer for r in mine) for word in (INSIDE, IN_ORDER, ABOVE)]
        proofs = sum(r.lower > 0 for r in mine)
        yield (family, method, len(mine), proofs, *counts, sum(r.seconds for r in mine))
