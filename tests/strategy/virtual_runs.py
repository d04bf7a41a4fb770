"""Runs on a virtual clock: attacks and proofs that take as long as they are told to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from radii.problem import Domain, Grid, Instance, Norm, OneToAny, Proof, Result, Verdict, Witness
from radii.runs import Executor, drive
from radii.strategy import (
    Agenda,
    Case,
    Native,
    Question,
    QuestionKind,
    Schedule,
    ScheduleLimits,
    Task,
)

GRID = Grid.parse("mnist")
TOP = GRID[len(GRID) - 1]


@dataclass(slots=True)
class Hardness:
    """An instance whose radius is known; `seconds` prove half of it, and the rest by doublings."""

    radius: float
    seconds: float
    attack_seconds: float = 0.1

    def proven_in(self, seconds: float) -> float:
        """Nothing below `seconds`, half of the radius with them, all of it with eight times."""
        doublings = math.log2(max(seconds / self.seconds, 1e-9))
        return self.radius * min(1.0, (3 + doublings) / 6) if doublings >= 0 else 0.0


def instance(place: int, network: str = "n", *, holds: bool = True) -> Instance:
    return Instance(
        network=network,
        index=place,
        input=np.array([0.5, 0.1], np.float32),
        label=0,
        outputs=np.array([1.0, 0.0] if holds else [0.0, 1.0]),
        property=OneToAny(),
        norm=Norm.LINF,
        domain=Domain(np.float64(0), np.float64(1)),
    )


class Virtual(Executor):
    """One task at a time, on a clock that only `wait` moves."""

    def __init__(self, hardness: Sequence[Hardness]) -> None:
        self.now = 0.0
        self.hardness = hardness
        self.task: Task | None = None

    @property
    def has_room(self) -> bool:
        return self.task is None

    def submit(self, task: Task) -> None:
        self.task = task

    def cancel(self, task: Task) -> None:
        raise AssertionError("nothing is implied here")

    def wait(self) -> tuple[Task, list[Result]]:
        assert self.task is not None
        task, self.task = self.task, None
        return task, [self._answer(task, query.instance.index, query.eps) for query in task.queries]

    def _answer(self, task: Task, place: int, eps: float) -> Result:
        hard = self.hardness[place]
        if task.kind is QuestionKind.ATTACK:
            took = min(hard.attack_seconds, task.seconds)
            self.now += took
            if took < hard.attack_seconds:
                return Result(Verdict.TIMEOUT, eps, "virtual attack", "1", took)
            found = Witness(np.zeros(2), hard.radius, 1, np.zeros(2), "virtual")
            return Result(Verdict.NOT_ROBUST, eps, "virtual attack", "1", took, witness=found)
        took = min(8 * hard.seconds, task.seconds)
        self.now += took
        below = GRID.count_below(hard.proven_in(took) * (1 - 1e-9))
        if below == 0:
            return Result(Verdict.TIMEOUT, eps, "virtual", "1", took)
        proven = GRID[below - 1]
        return Result(Verdict.ROBUST, proven, "virtual", "1", took, Proof(proven, 1e-6))

    def close(self) -> None:
        self.task = None


@dataclass(slots=True)
class Run:
    """Searches of instances that are so hard, kept between calls of `go`."""

    hardness: Sequence[Hardness]
    networks: Sequence[str] = ()
    cases: list[Case] = field(default_factory=list)
    told: list[tuple[Case, Question, Result]] = field(default_factory=list)
    finished: list[Case] = field(default_factory=list)
    executor: Virtual = field(init=False)

    def __post_init__(self) -> None:
        self.executor = Virtual(self.hardness)

    def go(self, agenda: Agenda, timeout: float = 64.0) -> None:
        """Go on from what was told before, as a run that is started again."""
        before = self.told
        networks = self.networks or ["n"] * len(self.hardness)
        self.cases = [
            Case(instance(place, network), Native(GRID), batch=place // 16)
            for place, network in enumerate(networks)
        ]
        known = {case.instance.index: case for case in self.cases}
        for case, question, result in before:
            known[case.instance.index].search.tell(question, result)
            known[case.instance.index].spent += result.seconds
        self.finished = []
        limits, now = ScheduleLimits(timeout=timeout), self.executor.now
        drive(
            Schedule(self.cases, limits, agenda, now=now),
            self.executor,
            on_results=self.told.extend,
            on_finished=self.finished.append,
            clock=lambda: self.executor.now,
        )

    def asked(self, place: int, kind: QuestionKind = QuestionKind.RADIUS) -> list[float | None]:
        """What the tries of an instance were allowed, in order."""
        mine = [(c, q, r) for c, q, r in self.told if c.instance.index == place]
        return [result.allowed_seconds for _, question, result in mine if question.kind is kind]
