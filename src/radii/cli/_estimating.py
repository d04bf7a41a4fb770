"""What `radii run --estimate` prints: how long all would take, and how tight it would be."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from radii.experiments import PredictionInterval, RunEstimate, estimate, show_duration
from radii.terminal import say

if TYPE_CHECKING:
    from radii.experiments import Plan
    from radii.store import Store


def print_estimate(plan: Plan, store: Store, *, jobs: int, as_json: bool) -> None:
    """From the instances that are finished, whoever finished them."""
    from radii.cli._tables import Console

    names = {network.fingerprint: network.name for network in plan.networks}
    budget = plan.settings.budget
    limit = budget if budget < math.inf else plan.settings.proof_seconds()
    found = estimate(plan.cases(store), names, jobs=jobs, limit=limit, budget=budget)
    if as_json:
        json.dump(dataclasses.asdict(found), sys.stdout, indent=1)
        say("")
        return
    console = Console()
    console.print(_estimate_table(found))
    console.print(_sentence(found), highlight=False)


def _estimate_table(found: RunEstimate) -> Table:
    table = Table(box=SIMPLE_HEAD, title="What all inputs would give", title_justify="left")
    table.caption = f"in brackets: {found.confidence:.0%} of what the finished ones leave possible"
    table.caption_justify = "left"
    table.add_column("network", overflow="fold", min_width=8)
    for name in ("inputs", "finished", "closed", "mean width", "time left, one worker"):
        table.add_column(name, justify="right")
    for one in found.networks:
        table.add_row(
            one.network,
            str(one.inputs),
            str(one.finished + one.misclassified),
            _interval_text(one.closed, lambda share: f"{share:.0%}"),
            _interval_text(one.width, lambda width: f"{width:.3g}"),
            _interval_text(one.seconds, show_duration),
        )
    return table


def _interval_text(value: PredictionInterval, show: Callable[[float], str]) -> str:
    if value.low == value.high:
        return show(value.middle)
    return f"{show(value.middle)} ({show(value.low)} to {show(value.high)})"


def _sentence(found: RunEstimate) -> str:
    if found.seconds.high == 0:
        return "Nothing is left to do."
    workers = "one worker" if found.jobs == 1 else f"{found.jobs} workers"
    return (
        f"The rest takes about {_interval_text(found.seconds, show_duration)} with {workers}. "
        "Run again without --estimate: what was found is kept."
    )
