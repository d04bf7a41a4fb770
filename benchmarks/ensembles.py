"""The benchmark of "Robustness Verification for Classifier Ensembles", rebuilt: all of its Table 4.

The paper's own networks are not published, so its ensembles are trained anew: two digits (or signs)
at the same image size, the same number of classifiers of the same kinds, its points, eps and alpha.
As there, perturbed inputs need not be valid images. Methods run one after the other in this
process, on one thread, each with the same time limit a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ensembles_training import GIVE_WAY, PRIORITY, Task, networks_of, points_of
from benchmarks.literature.attackers import best_deterministic_attacker, uniform_attacker
from benchmarks.literature.baselines import BaselineReply, BaselineResult, reaches
from benchmarks.literature.milp import solve_milp
from benchmarks.literature.smt import solve_smt
from benchmarks.records import Options, Record
from benchmarks.tables import show
from radii.balls import Norm
from radii.ensembles import Ensemble, EnsembleStudy, Point

SHARED = Path(__file__).parents[2] / "shared" / "data"
BUDGET = 120.0
DOMAIN = (-1001.0, 1002.0)
"""So wide that no ball of the table is clipped."""

NOT_REPLAYED = "attack, not replayed"

OURS, MILP, MAX_MILP, SMT, UA, BDA = "ours", "MILP", "MaxMILP", "SMT", "UA", "BDA"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the paper's Table 4: its number, name, |C|, |A|, |X|, image side, alpha, eps."""

    number: int
    name: str
    classifiers: int
    attacks: int
    points: int
    side: int
    alpha: float
    eps: float

    @property
    def task(self) -> Task:
        if self.name == "traffic_signs":
            return Task(self.name, (GIVE_WAY, PRIORITY), self.side)
        first, second = (int(part) for part in self.name.split("_")[1:3])
        return Task(self.name, (first, second), self.side)


TABLE = tuple(
    Row(*values)
    for values in (
        (1, "mnist_0_1", 3, 2, 4, 7, 0.1, 1000),
        (2, "mnist_0_1", 3, 2, 4, 7, 0.2, 100),
        (3, "mnist_0_1", 3, 2, 4, 8, 0.3, 1000),
        (4, "mnist_0_1_2convs", 3, 2, 4, 8, 0.1, 1000),
        (5, "mnist_0_1_2convs", 3, 2, 4, 8, 0.2, 1000),
        (6, "mnist_0_1_2convs", 3, 2, 4, 8, 0.4, 100),
        (7, "mnist_0_1_2convs", 3, 2, 4, 8, 0.9, 100),
        (8, "mnist_0_1_2convs", 3, 3, 4, 8, 0.9, 100),
        (9, "mnist_0_1", 3, 2, 4, 8, 0.4, 1000),
        (10, "mnist_0_1", 3, 2, 4, 8, 0.9, 1000),
        (11, "mnist_0_1", 3, 3, 4, 8, 0.9, 60),
        (12, "mnist_0_1", 3, 4, 4, 8, 0.9, 60),
        (13, "mnist_3_6", 4, 2, 2, 8, 0.1, 150),
        (14, "mnist_3_6", 4, 2, 3, 8, 0.1, 150),
        (15, "mnist_4_5", 3, 2, 4, 10, 0.1, 1000),
        (16, "mnist_4_5", 3, 2, 4, 10, 0.2, 100),
        (17, "mnist_4_5", 3, 4, 4, 10, 0.3, 50),
        (18, "mnist_4_5", 3, 4, 4, 10, 0.9, 50),
        (19, "mnist_7_8", 3, 4, 4, 6, 0.1, 60),
        (20, "mnist_7_8", 3, 10, 4, 6, 0.1, 60),
        (21, "mnist_0_1", 3, 2, 4, 8, 0.9, 3.75),
        (22, "mnist_0_1", 3, 2, 4, 8, 1.0, 1000),
        (23, "mnist_0_1_3convs", 3, 2, 4, 8, 0.1, 1000),
        (24, "mnist_3_6", 2, 9, 2, 8, 1.0, 0.005),
        (25, "mnist_7_8", 3, 2, 4, 6, 1.0, 0.1),
        (26, "mnist_7_8", 3, 2, 4, 6, 0.9, 0.1),
        (27, "mnist_7_8", 3, 5, 4, 6, 0.9, 0.1),
        (28, "mnist_7_8", 3, 5, 4, 6, 0.9, 0.2),
        (29, "mnist_7_8", 3, 7, 4, 6, 0.9, 0.3),
        (30, "mnist_0_2", 3, 27, 4, 9, 1.0, 0.01),
        (31, "mnist_0_2", 3, 30, 4, 9, 1.0, 0.01),
        (32, "traffic_signs", 3, 1, 4, 10, 0.1, 1000),
        (33, "traffic_signs", 3, 2, 4, 10, 0.2, 1000),
        (34, "traffic_signs", 3, 2, 4, 10, 1.0, 0.01),
        (35, "traffic_signs", 3, 2, 4, 10, 1.0, 0.1),
        (36, "traffic_signs", 3, 2, 4, 10, 1.0, 0.2),
        (37, "traffic_signs", 3, 2, 4, 10, 1.0, 1),
        (38, "traffic_signs", 3, 2, 4, 10, 1.0, 2),
    )
)

Method = Callable[[Ensemble, list[Point], Row, float], tuple[str, float, float]]
"""(answer, value attained, value at most)."""


def ours(
    ensemble: Ensemble, points: list[Point], row: Row, seconds: float
) -> tuple[str, float, float]:
    """Until alpha is decided."""
    with EnsembleStudy.open(ensemble.networks, points, norm=Norm.L1, timeout=seconds) as study:
        found = study.value(row.eps, alpha=row.alpha, budget=seconds)
        answer = {True: "robust", False: "attack", None: "timeout"}[found.is_robust(row.alpha)]
        return answer, float(found.lower), float(found.upper)


def _told(outcome: BaselineResult) -> tuple[str, float, float]:
    value = 0.0 if outcome.played is None else float(outcome.played.value)
    return str(outcome.reply), value, 1.0


def milp(maximise: bool) -> Method:
    def run(
        ensemble: Ensemble, points: list[Point], row: Row, seconds: float
    ) -> tuple[str, float, float]:
        return _told(
            solve_milp(
                ensemble,
                points,
                norm=Norm.L1,
                eps=row.eps,
                alpha=row.alpha,
                attacks=row.attacks,
                seconds=seconds,
                maximise=maximise,
            )
        )

    return run


def smt(
    ensemble: Ensemble, points: list[Point], row: Row, seconds: float
) -> tuple[str, float, float]:
    return _told(
        solve_smt(
            ensemble,
            points,
            norm=Norm.L1,
            eps=row.eps,
            alpha=row.alpha,
            attacks=row.attacks,
            seconds=seconds,
        )
    )


def uniform(
    ensemble: Ensemble, points: list[Point], row: Row, seconds: float
) -> tuple[str, float, float]:
    return _told(uniform_attacker(ensemble, points, norm=Norm.L1, eps=row.eps, seconds=seconds))


def deterministic(
    ensemble: Ensemble, points: list[Point], row: Row, seconds: float
) -> tuple[str, float, float]:
    return _told(
        best_deterministic_attacker(ensemble, points, norm=Norm.L1, eps=row.eps, seconds=seconds)
    )


METHODS: dict[str, Method] = {
    OURS: ours,
    MILP: milp(maximise=False),
    MAX_MILP: milp(maximise=True),
    UA: uniform,
    BDA: deterministic,
    SMT: smt,
}


def main(options: Options) -> None:
    if not SHARED.is_dir():
        print(f"skipped: the traffic signs are not at {SHARED}")
        return
    budget = options.budget or BUDGET
    rows = TABLE[: options.images] if options.images else TABLE
    found: dict[tuple[int, str], Record] = {}
    ensembles: dict[tuple[Task, int], tuple[Ensemble, float]] = {}
    for name, method in METHODS.items():
        for row in rows:
            key = row.task, row.classifiers
            if key not in ensembles:
                networks = networks_of(*key, DOMAIN, SHARED)
                worst = min(accuracy for _, accuracy in networks)
                ensembles[key] = Ensemble([network for network, _ in networks]), worst
            points = points_of(row.task, row.points, SHARED)
            known = options.log.find(row.name, row.number, name, budget)
            found[row.number, name] = known or options.log.add(
                _measured(name, method, ensembles[key][0], points, row, budget)
            )
    _show(rows, found, ensembles, budget)


def is_not_replayed(record: Record, row: Row) -> bool:
    """A solver's attack that does not reach alpha when it is replayed on ONNX Runtime."""
    is_for_alpha = record.method in (MILP, MAX_MILP, SMT)
    return (
        is_for_alpha
        and record.answer == BaselineReply.ATTACK
        and not reaches(record.lower, row.alpha)
    )


def _measured(
    name: str, method: Method, ensemble: Ensemble, points: list[Point], row: Row, budget: float
) -> Record:
    started, cpu = time.perf_counter(), time.process_time()
    answer, lower, upper = method(ensemble, points, row, budget)
    record = Record(
        network=row.name,
        case=str(row.number),
        method=name,
        budget=budget,
        seconds=time.perf_counter() - started,
        cpu_seconds=time.process_time() - cpu,
        lower=lower,
        upper=upper,
        answer=answer,
    )
    told = NOT_REPLAYED if is_not_replayed(record, row) else f"{answer:8s} {lower:.4f}"
    print(f"  {row.number:2d} {name:8s} {told} {record.seconds:.1f} s", flush=True)
    return record


def _show(
    rows: tuple[Row, ...],
    found: dict[tuple[int, str], Record],
    ensembles: dict[tuple[Task, int], tuple[Ensemble, float]],
    budget: float,
) -> None:
    def cells(row: Row, method: str) -> tuple[str, float]:
        record = found[row.number, method]
        known = {"robust": "robust", "timeout": "-TO-"}
        if is_not_replayed(record, row):
            return f"{NOT_REPLAYED} ({record.lower:.3f})", record.seconds
        return known.get(record.answer, f"{record.lower:.3f}"), record.seconds

    show(
        f"Table 4 of the paper, {budget:g} s a row and method, one thread; wall seconds",
        (
            *("ID", "name", "alpha", "eps", "accuracy", "ours", "value in", "s"),
            *("MILP", "s", "MaxMILP", "s", "SMT", "s", "UA", "BDA"),
        ),
        [
            (
                row.number,
                f"{row.name} {row.side}x{row.side}",
                row.alpha,
                float(row.eps),
                ensembles[row.task, row.classifiers][1],
                found[row.number, OURS].answer,
                f"[{found[row.number, OURS].lower:.3f}, {found[row.number, OURS].upper:.3f}]",
                found[row.number, OURS].seconds,
                *cells(row, MILP),
                *cells(row, MAX_MILP),
                *cells(row, SMT),
                found[row.number, UA].lower,
                found[row.number, BDA].lower,
            )
            for row in rows
        ],
    )
    for method in METHODS:
        records = [found[row.number, method] for row in rows]
        decided = sum(record.answer != "timeout" for record in records)
        broken = sum(is_not_replayed(found[row.number, method], row) for row in rows)
        note = f", {broken} by attacks that do not replay" if broken else ""
        wall, cpu = sum(r.seconds for r in records), sum(r.cpu_seconds for r in records)
        told = f"decided {decided} of {len(rows)}{note}"
        print(f"  {method:8s} {told} in {wall:.1f} s ({cpu:.1f} s CPU)")
    ratio = sum(found[row.number, MILP].seconds for row in rows) / sum(
        found[row.number, OURS].seconds for row in rows
    )
    print(f"  MILP / ours, all rows, time-outs counted as the limit: {ratio:.1f}")
