"""A tenth of the full time on a demo network, in CPU seconds: the machine may be busy."""

from __future__ import annotations

import math
import time

import pytest

from radii import datasets, demo
from radii.attacks import MinimumNorm
from radii.balls import Norm
from radii.execution import Agenda, Case, Toolbox, drive
from radii.networks import Network
from radii.planning import Spending, total_width
from radii.queries import Grid, Instance
from radii.search import Native
from radii.selection import select
from radii.testing.cpu_time import OnCpuTime
from radii.verifiers import BranchAndBound

GRID, LIMIT = Grid.parse("0.005:0.5:0.005"), 3.0


class CutOff(Agenda):
    """Instances in order, until the time is over."""

    def __init__(self, seconds: float) -> None:
        self.end = time.process_time() + seconds

    def is_over(self) -> bool:
        return time.process_time() >= self.end


def width_after(net: Network, instances: list[Instance], agenda: Agenda) -> tuple[float, float]:
    """The total width, and the seconds it took."""
    tools = Toolbox({net.fingerprint: net}, MinimumNorm(), BranchAndBound(), grid=GRID)
    cases = [Case(one, Native(GRID), place // 4) for place, one in enumerate(instances)]
    began = time.process_time()
    drive(
        cases,
        OnCpuTime(tools),
        timeout=LIMIT,
        budget=math.inf,
        on_results=lambda _: None,
        on_finished=lambda _: None,
        agenda=agenda,
    )
    took = time.process_time() - began
    return total_width((case.search.bracket for case in cases), GRID[len(GRID) - 1]), took


@pytest.mark.slow
def test_a_tenth_of_the_time_leaves_half_of_what_it_leaves_in_order() -> None:
    net = demo.load_network("cnn-adversarial")
    data = datasets.load("digits", split="test").first(32)
    instances = [
        one for one in select(net, data, property="one-to-any", norm=Norm.LINF) if one.holds
    ]
    width_after(net, instances[:1], Agenda())  # loads what is loaded on first use
    full, seconds = width_after(net, instances, Agenda())
    ordered, _ = width_after(net, instances, CutOff(seconds / 10))
    agenda = Spending(seconds / 10, timeout=LIMIT, longest=LIMIT, clock=time.process_time)
    spent, took = width_after(net, instances, agenda)
    assert took < seconds / 5, "it ends soon after its time"
    assert full <= spent < ordered / 2
