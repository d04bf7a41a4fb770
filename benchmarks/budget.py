"""mnist_relu_3_50: a tenth of the full time by `--budget`'s agenda, and on instances in order.

Time is the CPU time of one thread, so that other work on the machine changes nothing. The full run
takes instances in order, as without a budget; its first tenth is the baseline, and the query that
was under way then counts as ended. The stricter baseline attacks all instances first as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from benchmarks import published
from benchmarks.measuring import GRID, TOGETHER
from benchmarks.records import Options, Record
from benchmarks.tables import show
from radii.attacks import MinimumNorm
from radii.networks import Network
from radii.problem import Result, weigh
from radii.runs import Inline, Toolbox, drive
from radii.strategy import (
    Agenda,
    BudgetAgenda,
    Case,
    Native,
    Question,
    QuestionKind,
    Schedule,
    ScheduleLimits,
    Task,
    total_width,
)
from radii.verifiers import BranchAndBound

NETWORK, IMAGES, BUDGET = "mnist_relu_3_50", 50, 20.0
TENTH = 0.1


class OnCpuTime(Inline):
    """An executor whose limits and durations are CPU seconds, so that other work does not matter.

    The driver beside it uses `time.process_time`.
    """

    def submit(self, task: Task) -> None:
        super().submit(replace(task, seconds=math.inf, cpu_seconds=task.seconds))

    def wait(self) -> tuple[Task, list[Result]]:
        task, results = super().wait()
        return task, [replace(result, seconds=result.cpu_seconds or 0.0) for result in results]


@dataclass(slots=True)
class Told:
    """What a run found, and when."""

    case: Case
    question: Question
    result: Result
    at: float


@dataclass(slots=True)
class Trace:
    """A run's answers in the order in which they came, in CPU seconds from its start."""

    cases: list[Case]
    told: list[Told] = field(default_factory=list)
    seconds: float = 0.0

    def width(self, told: Iterable[Told]) -> float:
        """Of all brackets together, with no more known than that."""
        known: dict[int, list[Result]] = {id(case): [] for case in self.cases}
        for one in told:
            known[id(one.case)].append(one.result)
        top = GRID[len(GRID) - 1]
        return total_width((weigh(results)[0] for results in known.values()), top)

    def until(self, seconds: float) -> list[Told]:
        """What was known then, and what the query that was under way found."""
        before = [one for one in self.told if one.at <= seconds]
        after = [one for one in self.told if one.at > seconds]
        return before + [one for one in after if one.at == after[0].at]

    def attacks_first(self, seconds: float) -> list[Told]:
        """As if all attacks had come first, and proofs in order with what was left."""
        attacks = [one for one in self.told if one.question.kind is QuestionKind.ATTACK]
        left, known = seconds - sum(one.result.seconds for one in attacks), attacks
        for one in self.told:
            if one.question.kind is not QuestionKind.ATTACK and left > 0:
                left -= one.result.seconds
                known = [*known, one]
        return known


def traced(net: Network, images: int, budget: float, agenda: Agenda) -> Trace:
    tools = Toolbox({net.fingerprint: net}, MinimumNorm(), BranchAndBound(), grid=GRID)
    asked = published.instances(net, 0, images)
    cases = [Case(one, Native(GRID), place // TOGETHER) for place, one in enumerate(asked)]
    trace, began = Trace(cases), time.process_time()

    def on_results(told: Iterable[tuple[Case, Question, Result]]) -> None:
        now = time.process_time() - began
        trace.told += [Told(*one, now) for one in told]

    drive(
        Schedule(cases, ScheduleLimits(timeout=budget), agenda, now=time.process_time()),
        OnCpuTime(tools),
        on_results=on_results,
        on_finished=lambda _: None,
        clock=time.process_time,
    )
    trace.seconds = time.process_time() - began
    return trace


def main(options: Options) -> None:
    if not published.is_here():
        return
    images, budget = options.images or IMAGES, options.budget or BUDGET
    net = published.network(NETWORK)
    traced(net, 1, 1.0, Agenda())  # what is loaded on first use belongs to neither
    full = traced(net, images, budget, Agenda())
    tenth = TENTH * full.seconds
    agenda = BudgetAgenda(tenth, timeout=budget, longest=budget)
    spent = traced(net, images, budget, agenda)
    widths = {
        "nothing": (0.0, full.width(())),
        "all of the time": (full.seconds, full.width(full.told)),
        "a tenth, in order": (tenth, full.width(full.until(tenth))),
        "a tenth, attacks first, then in order": (tenth, full.width(full.attacks_first(tenth))),
        "a tenth, --budget": (spent.seconds, spent.width(spent.told)),
    }
    ours = widths["a tenth, --budget"][1]
    for name, (seconds, width) in widths.items():
        options.log.add(
            Record(
                network=NETWORK,
                case=f"{images} images",
                method=name,
                budget=budget,
                cpu_seconds=seconds,
                answer=f"total width {width:.4f}",
            )
        )
    show(
        f"{NETWORK}, {len(full.cases)} of images 0-{images - 1}, "
        f"{budget:g} CPU s an instance at most",
        ("spent", "CPU s", "total width", "that of --budget times"),
        [
            (name, f"{seconds:.1f}", f"{width:.3f}", f"{width / ours:.2f}")
            for name, (seconds, width) in widths.items()
        ],
    )
