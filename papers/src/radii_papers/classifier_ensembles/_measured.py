"""A row of the benchmark by a method: measured once, kept in the study's folder as it ends.

An answer that was reached within a limit is the answer under any longer one; only what ran out of
time is tried again when a scale allows more.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from radii.ensembles import Ensemble, EnsembleStudy, Point
from radii.errors import StoreError, writing
from radii.problem import Norm
from radii_papers._steps import StudyScale, StudySettings
from radii_papers.baselines import BaselineProblem, run_baseline
from radii_papers.classifier_ensembles._networks import (
    EnsembleData,
    networks_of,
    points_of,
)
from radii_papers.classifier_ensembles._numbers import (
    BENCHMARK,
    EXCERPT,
    PAPER_SECONDS,
    BenchmarkRow,
)

GAME, MILP, MAX_MILP, SMT, UA, BDA = "game", "milp", "maxmilp", "smt", "ua", "bda"

LIMITS: dict[StudyScale, dict[str, float]] = {
    StudyScale.SMALL: dict.fromkeys((GAME, MILP, MAX_MILP, SMT, UA, BDA), 5.0),
    StudyScale.MACHINE: {**dict.fromkeys((GAME, MILP, MAX_MILP, UA, BDA), 30.0), SMT: 10.0},
    StudyScale.FULL: dict.fromkeys((GAME, MILP, MAX_MILP, SMT, UA, BDA), PAPER_SECONDS),
}
"""Wall seconds of a row, by scale and method: half an hour of one core on a machine."""

ROWS_OF_SMALL = EXCERPT

MEASURED_FILE = "measured.jsonl"


@dataclass(frozen=True, slots=True)
class MethodAnswer:
    """What a method answers for a row: `attack`, `robust` or `timeout`, by the method's own word.

    `lower` is what its attack attains when it is replayed on ONNX Runtime, `upper` what is proven
    (1 for all methods but the game). `is_replayed`: its attack reaches what it claims. `attacks`
    are the deterministic ones of its mix. Seconds are of the wall and of the CPU.
    """

    row: int
    method: str
    limit: float
    answer: str
    lower: float
    upper: float
    is_replayed: bool
    is_optimal: bool
    solver: str
    attacks: int
    seconds: float
    cpu_seconds: float

    @property
    def is_decided(self) -> bool:
        """There is an answer, and its attack, if it is one, holds on the networks."""
        return self.answer == "robust" or (self.answer == "attack" and self.is_replayed)

    def is_final(self, limit: float) -> bool:
        """More time would not change it, up to this limit."""
        is_cut_off = (
            self.method in (GAME, MAX_MILP) and self.answer == "attack" and not self.is_optimal
        )
        return self.limit >= limit or not (is_cut_off or self.answer == "timeout")


def rows_of(data: EnsembleData, settings: StudySettings) -> list[BenchmarkRow]:
    """The rows of a scale whose images are at hand."""
    rows = [row for row in BENCHMARK if data.has(row)]
    if settings.scale is StudyScale.SMALL:
        return [row for row in rows if row.number in ROWS_OF_SMALL]
    return rows


def measure(data: EnsembleData, settings: StudySettings, method: str) -> dict[int, MethodAnswer]:
    """A method's answers by the rows' numbers; those that are not kept are made."""
    limit = LIMITS[settings.scale][method]
    kept = _read(settings)
    found = {}
    for row in rows_of(data, settings):
        known = kept.get((row.number, method))
        if known is None or not known.is_final(limit):
            known = _answer(data, row, settings, method, limit)
            _keep(settings, known)
        found[row.number] = known
    return found


@lru_cache(maxsize=16)
def ensemble_of(data: EnsembleData, row: BenchmarkRow, settings: StudySettings) -> Ensemble:
    return Ensemble([network for network, _ in networks_of(data, row, settings)])


def _answer(
    data: EnsembleData, row: BenchmarkRow, settings: StudySettings, method: str, limit: float
) -> MethodAnswer:
    ensemble, points = ensemble_of(data, row, settings), points_of(data, row)
    began, cpu_began = time.perf_counter(), time.process_time()
    told = _by_game if method == GAME else _by_baseline
    answer = told(ensemble, points, row, method, limit)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    return dataclasses.replace(answer, seconds=seconds, cpu_seconds=cpu)


def _by_game(
    ensemble: Ensemble, points: Sequence[Point], row: BenchmarkRow, method: str, limit: float
) -> MethodAnswer:
    """The value as far as it can be had, not only until alpha is decided."""
    with EnsembleStudy.open(
        ensemble.networks,
        points,
        norm=Norm.L1,
        timeout=limit,
    ) as study:
        game = study.value(row.eps, budget=limit)
        attack = study.attack(game)
    answer = {True: "robust", False: "attack", None: "timeout"}[game.is_robust(row.alpha)]
    return MethodAnswer(
        row=row.number,
        method=method,
        limit=limit,
        answer=answer,
        lower=float(attack.value),
        upper=float(game.upper),
        is_replayed=True,
        is_optimal=game.is_exact,
        solver="radii",
        attacks=len(attack.probabilities),
        seconds=0.0,
        cpu_seconds=0.0,
    )


def _by_baseline(
    ensemble: Ensemble, points: Sequence[Point], row: BenchmarkRow, method: str, limit: float
) -> MethodAnswer:
    problem = BaselineProblem(
        ensemble,
        points,
        Norm.L1,
        row.eps,
        row.alpha,
        row.attacks,
        limit,
    )
    found = run_baseline(method, problem)
    return MethodAnswer(
        row=row.number,
        method=method,
        limit=limit,
        answer=found.reply.value,
        lower=0.0 if found.attack is None else float(found.attack.value),
        upper=1.0,
        is_replayed=found.is_replayed,
        is_optimal=found.is_optimal,
        solver=found.solver,
        attacks=0 if found.attack is None else sum(p > 0 for p in found.attack.probabilities),
        seconds=0.0,
        cpu_seconds=0.0,
    )


def _read(settings: StudySettings) -> dict[tuple[int, str], MethodAnswer]:
    """What is kept; of several answers of a row the last."""
    path = settings.folder.parent / MEASURED_FILE
    found = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            answer = MethodAnswer(**json.loads(line))
            found[answer.row, answer.method] = answer
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); remove it to make it again") from None
    return found


def _keep(settings: StudySettings, answer: MethodAnswer) -> None:
    path = settings.folder.parent / MEASURED_FILE
    with writing(path), path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(dataclasses.asdict(answer)) + "\n")
