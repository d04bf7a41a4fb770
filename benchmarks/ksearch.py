"""mnist_nn: k-binary search for k = 1, 2, 4, 8, 16 beside attack-guided and native radius search.

Laid out as Tables 1 and 4 of the robustness distributions paper. Each of the k queries has a worker
process of its own and a limit of CPU time, as there: with fewer cores than k the wall time is that
of sharing them, and the CPU time is not.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks import published
from benchmarks.measuring import GRID, QUERY_SHARE, progress
from benchmarks.records import Options, Record
from benchmarks.tables import show
from radii.attacks import MinimumNorm
from radii.networks import Network
from radii.problem import Bracket, Instance, Measurement, Result, Verdict
from radii.runs import LocalWorkers, Toolbox, drive
from radii.statistics import Effort, effort_of, theoretical_maximum
from radii.strategy import (
    AttackGuided,
    Case,
    KBinary,
    Native,
    Question,
    Schedule,
    ScheduleLimits,
    Search,
)
from radii.verifiers import BranchAndBound

NETWORK, IMAGES, BUDGET = "mnist_nn", 20, 60.0
PARALLEL = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Method:
    """A search, and how many of its queries run at once."""

    name: str
    make: Callable[[], Search]
    k: int = 1


METHODS = (
    *(Method(f"k = {k}", partial(KBinary, GRID, k=k), k) for k in PARALLEL),
    Method("attack-guided", lambda: AttackGuided(GRID)),
    Method("native", lambda: Native(GRID)),
)


def main(options: Options) -> None:
    if not published.is_here():
        return
    images, budget = options.images or IMAGES, options.budget or BUDGET
    net = published.network(NETWORK)
    asked = published.instances(net, 0, images)
    found = {method: measured(method, net, asked, budget, options) for method in METHODS}
    efforts = {method: effort_of(map(_measurement, found[method])) for method in METHODS}
    query = QUERY_SHARE * budget
    print_each(f"{NETWORK}, images 0-{images - 1}, {query:g} CPU s a query", efforts)
    print_all(efforts)
    print(f"  {os.cpu_count()} cores; native: one search of at most {budget:g} CPU s an instance")
    lowers = [{round(r.lower, 6) for r in row} for row in zip(*found.values(), strict=True)]
    print(f"  the same lower side by every search on {sum(len(s) == 1 for s in lowers)} of them")


def measured(
    method: Method, net: Network, asked: list[Instance], budget: float, options: Options
) -> list[Record]:
    """One record an instance, one instance at a time; what the log holds is not measured again."""
    log, name = options.log, f"ksearch, {method.name}"
    todo = [i for i in asked if log.find(NETWORK, i.index, name, budget) is None]
    tools = Toolbox({net.fingerprint: net}, MinimumNorm(), BranchAndBound(), grid=GRID)
    with LocalWorkers(tools, method.k) as workers:
        for instance in todo:
            case, told = Case(instance, method.make(), batch=0), list[tuple[Question, Result]]()
            seconds = budget if method.name == "native" else QUERY_SHARE * budget
            drive(
                Schedule([case], ScheduleLimits(cpu_timeout=seconds)),
                workers,
                on_results=partial(_keep, told),
                on_finished=lambda _: None,
            )
            progress(log.add(_record(name, case, told, budget)))
    found = (log.find(NETWORK, i.index, name, budget) for i in asked)
    return [record for record in found if record is not None]


def _keep(
    told: list[tuple[Question, Result]], ended: Sequence[tuple[Case, Question, Result]]
) -> None:
    told.extend((question, result) for _, question, result in ended)


def _record(name: str, case: Case, told: list[tuple[Question, Result]], budget: float) -> Record:
    verdicts = [result.verdict for _, result in told]
    bracket = case.search.bracket
    return Record(
        network=NETWORK,
        case=str(case.instance.index),
        method=name,
        budget=budget,
        seconds=case.spent,
        lower=bracket.lower,
        upper=bracket.upper if bracket.upper < math.inf else None,
        cpu_seconds=sum(result.cpu_seconds or 0.0 for _, result in told),
        queries=len(told),
        cancelled=verdicts.count(Verdict.CANCELLED),
        timeouts=verdicts.count(Verdict.TIMEOUT),
        memouts=verdicts.count(Verdict.MEMOUT),
    )


def _measurement(record: Record) -> Measurement:
    return Measurement(
        network=record.network,
        fingerprint="",
        input=int(record.case),
        label=0,
        predicted=0,
        correct=True,
        property="one-to-any",
        target=None,
        bracket=Bracket(record.lower, math.inf if record.upper is None else record.upper),
        witness_class=None,
        seconds=record.seconds,
        queries=record.queries,
        missing=record.timeouts + record.memouts,
        cancelled=record.cancelled,
        timeouts=record.timeouts,
        memouts=record.memouts,
        cpu_seconds=record.cpu_seconds,
    )


def print_each(title: str, efforts: dict[Method, Effort]) -> None:
    """As Table 1: what an instance took."""
    rows: list[tuple[str, Callable[[Method, Effort], object]]] = [
        ("queries, theoretical maximum", lambda m, _: _theory(m)),
        ("queries, minimum", lambda _, e: e.fewest),
        ("queries, maximum", lambda _, e: e.most),
        ("queries, mean", lambda _, e: e.mean(e.queries)),
        ("CPU seconds, mean", lambda _, e: e.mean(e.cpu_seconds)),
        ("wall seconds, mean", lambda _, e: e.mean(e.wall_seconds)),
        ("time-outs, mean", lambda _, e: e.mean(e.timeouts)),
    ]
    heads = ("an instance", *(method.name for method in efforts))
    show(title, heads, [(name, *(of(m, e) for m, e in efforts.items())) for name, of in rows])


def print_all(efforts: dict[Method, Effort]) -> None:
    """As Table 4: all queries."""
    show(
        "all queries",
        ("search", "queries", "time-outs", "memory-outs", "cancelled"),
        [
            (method.name, e.queries, e.timeouts, e.memouts, e.cancelled)
            for method, e in efforts.items()
        ],
    )


def _theory(method: Method) -> int | None:
    is_k_binary = method.name.startswith("k = ")
    return theoretical_maximum(len(GRID), method.k) if is_k_binary else None
