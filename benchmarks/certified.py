"""Random networks of all families, norms and arithmetics: do writer and checker agree?

Every proof must come with a certificate that is accepted; every tenth is checked in ball arithmetic
as well; and none may be accepted for an eps at which a counterexample is known.
"""

from __future__ import annotations

from collections import Counter

import torch

from benchmarks.records import Options, Record
from benchmarks.soundness.certified import CertifiedCase, certified_cases
from benchmarks.tables import show

SEEDS = range(1000)
EXACT_EACH = 10
"""Every one of so many is checked in ball arithmetic as well."""
METHOD, BUDGET = "certified", 20.0


def main(options: Options) -> None:
    torch.set_num_threads(1)
    seeds = options.seeds or SEEDS
    records = [_measured(seed, options) for seed in seeds]
    families = Counter(record.network for record in records)
    show(
        f"certificates of random networks, seeds {seeds.start} to {seeds.stop - 1}",
        ("family", "networks", "proofs", "with a certificate", "problems", "largest kB"),
        [
            (family, *_row([r for r in records if r.network == family]))
            for family in sorted(families)
        ],
    )


def _measured(seed: int, options: Options) -> Record:
    known = [r for r in options.log.records.values() if r.case.split()[0] == str(seed)]
    if known:
        return known[0]
    (case,) = certified_cases(range(seed, seed + 1), exact=seed % EXACT_EACH == 0)
    if case.problem:
        print(f"  {case}", flush=True)
    return options.log.add(_record(case))


def _record(case: CertifiedCase) -> Record:
    return Record(
        network=str(case.family),
        case=f"{case.seed} {case.norm.value} {case.arithmetic}",
        method=METHOD,
        budget=BUDGET,
        lower=case.lower,
        answer=case.problem,
        peak_bytes=case.bytes,
    )


def _row(records: list[Record]) -> tuple[object, ...]:
    proofs = [record for record in records if record.lower > 0]
    stated = [record for record in proofs if record.peak_bytes]
    largest = max((record.peak_bytes for record in stated), default=0) / 1000
    return len(records), len(proofs), len(stated), sum(bool(r.answer) for r in records), largest
