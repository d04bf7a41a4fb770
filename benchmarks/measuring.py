"""Brackets of published images by one method, on worker processes with one thread each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import published
from benchmarks.records import Options, Record
from radii.attacks import Attack, MinimumNorm
from radii.problem import Grid
from radii.runs import LocalWorkers, Toolbox, drive
from radii.strategy import AttackOnly, Binary, Case, Native, Schedule, ScheduleLimits, Search
from radii.verifiers import BranchAndBound, Verifier

GRID = Grid.parse("0.001:0.4:0.002")
TOGETHER = 16
"""Images attacked in one batch, as `radii run` does."""
QUERY_SHARE = 0.25
"""Of an instance's budget, for one query of a binary search: with all of it the first hard query,
at the middle of the grid, would be the last one, and the baseline needlessly weak."""


@dataclass(frozen=True, slots=True)
class Method:
    """A search, and the tools it uses."""

    name: str
    search: type[Search]
    verifier: Verifier | None = None
    attack: Attack | None = None
    seed: int = 0

    def timeout(self, budget: float) -> float:
        return QUERY_SHARE * budget if self.search is Binary else budget


NATIVE = Method("native", Native, BranchAndBound(), MinimumNorm())
BINARY = Method("binary search", Binary, BranchAndBound())
OTHER_ATTACK = Method("attack, another seed", AttackOnly, None, MinimumNorm(), seed=1)


def measured(
    method: Method, network: str, images: int, budget: float, options: Options
) -> list[Record]:
    """The bracket of each correctly classified image; what the log holds is not measured again."""
    net, log = published.network(network), options.log
    asked = published.instances(net, 0, images)
    todo = [i for i in asked if log.find(network, i.index, method.name, budget) is None]
    tools = Toolbox(
        {net.fingerprint: net}, method.attack, method.verifier, seed=method.seed, grid=GRID
    )
    cases = [
        Case(instance, method.search(GRID), batch=place // TOGETHER)
        for place, instance in enumerate(todo)
    ]

    def keep(case: Case) -> None:
        bracket = case.search.bracket
        record = log.add(
            Record(
                network=network,
                case=str(case.instance.index),
                method=method.name,
                budget=budget,
                seconds=case.spent,
                lower=bracket.lower,
                upper=bracket.upper if bracket.upper < float("inf") else None,
                answer=_missing(case.search),
            )
        )
        progress(record)

    with LocalWorkers(tools, options.jobs) as workers:
        drive(
            Schedule(cases, ScheduleLimits(timeout=method.timeout(budget), budget=budget)),
            workers,
            on_results=lambda _: None,
            on_finished=keep,
        )
    found = (log.find(network, i.index, method.name, budget) for i in asked)
    return [record for record in found if record is not None]


def _missing(search: Search) -> str:
    """The answers that could not be had, and why: an error must not pass for a hard instance."""
    missing = [r for r in search.answers.values() if r.verdict.is_missing and r.message]
    return "; ".join(sorted({f"{r.verdict}: {r.message}" for r in missing}))


def progress(record: Record) -> None:
    upper = "-" if record.upper is None else f"{record.upper:.5f}"
    print(
        f"  {record.network} {record.case}, {record.method}: {record.lower:.3f} to {upper} "
        f"in {record.seconds:.1f} s {record.answer}",
        file=sys.stderr,
        flush=True,
    )


def is_closed(record: Record, grid: Grid = GRID) -> bool:
    """No grid value lies between the two sides."""
    return _below(record, grid) >= _open_end(record, grid)


def width(record: Record) -> float:
    """Without a witness, up to the end of the grid."""
    return (GRID[len(GRID) - 1] if record.upper is None else record.upper) - record.lower


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _below(record: Record, grid: Grid) -> int:
    """How many grid values the lower side has passed."""
    count = grid.count_below(record.lower)
    return count + (count < len(grid) and grid[count] <= record.lower)


def _open_end(record: Record, grid: Grid) -> int:
    return len(grid) if record.upper is None else grid.count_below(record.upper)
