"""What a search cost, for the terminal and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from radii.distributions import Distribution
from radii.results import Effort, effort_of, theoretical_maximum
from radii.store import StoredSettings

INPUT_COLUMNS = ("inputs", "fewest", "most", "mean", "CPU s", "wall s", "time-outs")
TOTAL_COLUMNS = ("queries", "time-outs", "memory-outs", "missing", "cancelled")


def effort_tables(distribution: Distribution, settings: StoredSettings) -> tuple[Table, Table]:
    """Queries and seconds of an input that was searched; all queries. A row a network."""
    each = _effort_table(_search_title(settings), INPUT_COLUMNS)
    each.caption = "queries of an input: fewest, most, mean; then its mean seconds and time-outs"
    total = _effort_table("All queries", TOTAL_COLUMNS)
    parts = distribution.by_network()
    efforts = {name: effort_of(part) for name, part in parts.items()}
    if len(parts) > 1:
        efforts["all"] = effort_of(distribution)
    for name, effort in efforts.items():
        each.add_row(name, *_input_cells(effort))
        total.add_row(name, *_total_cells(effort))
    return each, total


def _effort_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", caption_justify="left")
    table.add_column("network", overflow="fold", min_width=8)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def effort_object(part: Distribution) -> dict[str, Any]:
    """The same as JSON."""
    return dataclasses.asdict(effort_of(part))


def _search_title(settings: StoredSettings) -> str:
    """How it was searched, and what the theory says of that."""
    if settings.search is None:
        return "Effort"
    k, words = settings.k, [f"Effort of search {settings.search}"]
    if k is not None:
        words.append(f"k = {k}")
    if settings.search in ("k-binary", "binary") and settings.grid is not None:
        most = theoretical_maximum(len(settings.grid), k or 1)
        if most is not None:
            words.append(f"in theory at most {most} queries")
    return ", ".join(words)


def _input_cells(effort: Effort) -> list[str]:
    means = (effort.queries, effort.cpu_seconds, effort.wall_seconds, effort.timeouts)
    counts = (effort.instances, effort.fewest, effort.most)
    return [*map(str, counts), *(_seconds_or_dash(effort.mean(amount)) for amount in means)]


def _total_cells(effort: Effort) -> list[str]:
    counts = (effort.queries, effort.timeouts, effort.memouts, effort.missing, effort.cancelled)
    return [str(count) for count in counts]


def _seconds_or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
