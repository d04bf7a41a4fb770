"""What a search cost, for the terminal and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from radii.distributions import Distribution
from radii.effort import Effort, effort_of, theoretical_maximum
from radii.queries import Grid

__all__ = ["effort_object", "effort_tables"]

PER_INPUT = ("inputs", "fewest", "most", "mean", "CPU s", "wall s", "time-outs")
IN_ALL = ("queries", "time-outs", "memory-outs", "missing", "cancelled")


def effort_tables(
    distribution: Distribution, experiment: Mapping[str, Any] | None
) -> tuple[Table, Table]:
    """Queries and seconds of an input that was searched; all queries. A row a network."""
    each = _table(_title(experiment), PER_INPUT)
    each.caption = "queries of an input: fewest, most, mean; then its mean seconds and time-outs"
    total = _table("All queries", IN_ALL)
    parts = distribution.by_network()
    efforts = {name: effort_of(part) for name, part in parts.items()}
    if len(parts) > 1:
        efforts["all"] = effort_of(distribution)
    for name, effort in efforts.items():
        each.add_row(name, *_of_an_input(effort))
        total.add_row(name, *_in_all(effort))
    return each, total


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", caption_justify="left")
    table.add_column("network", overflow="fold", min_width=8)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def effort_object(part: Distribution) -> dict[str, Any]:
    """The same as JSON."""
    return dataclasses.asdict(effort_of(part))


def _title(experiment: Mapping[str, Any] | None) -> str:
    """How it was searched, and what the theory says of that."""
    if experiment is None or "search" not in experiment:
        return "Effort"
    k, words = experiment.get("k"), [f"Effort of search {experiment['search']}"]
    if k is not None:
        words.append(f"k = {k}")
    if experiment["search"] in ("k-binary", "binary"):
        values = len(Grid.parse(experiment["grid"]))
        most = theoretical_maximum(values, k or 1)
        if most is not None:
            words.append(f"in theory at most {most} queries")
    return ", ".join(words)


def _of_an_input(effort: Effort) -> list[str]:
    means = (effort.queries, effort.cpu_seconds, effort.wall_seconds, effort.timeouts)
    counts = (effort.instances, effort.fewest, effort.most)
    return [*map(str, counts), *(_number(effort.mean(amount)) for amount in means)]


def _in_all(effort: Effort) -> list[str]:
    counts = (effort.queries, effort.timeouts, effort.memouts, effort.missing, effort.cancelled)
    return [str(count) for count in counts]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
