"""Tables for the terminal."""

from __future__ import annotations

import math

import numpy as np
from rich.table import Table
from rich.text import Text

from radii.distributions import Distribution

__all__ = ["instance_table", "summary_table"]


def summary_table(distribution: Distribution) -> Table:
    """One row a network: accuracy, the radii's quartiles, how tight and how costly."""
    table = Table(title="Robustness distributions", title_justify="left")
    table.add_column("network")
    for name in (
        "inputs",
        "correct",
        "lowest",
        "25 %",
        "median",
        "75 %",
        "gap",
        "missing",
        "s each",
    ):
        table.add_column(name, justify="right")
    for name, part in distribution.by_network().items():
        right = part.where(lambda m: m.correct) if part.correct.any() else None
        quartiles = [right.quantile(q) if right else (0.0, 0.0) for q in (0.0, 0.25, 0.5, 0.75)]
        table.add_row(
            Text(name),
            str(len(part)),
            str(int(part.correct.sum())),
            *(_interval(low, high) for low, high in quartiles),
            f"{_mean_gap(part):.4f}",
            str(sum(m.missing for m in part)),
            f"{np.mean([m.seconds for m in part]):.2f}",
        )
    table.caption = (
        "radii of correctly classified inputs, proven to witnessed; gap: mean width of a bracket"
    )
    table.caption_justify = "left"
    return table


def instance_table(distribution: Distribution) -> Table:
    """One row a bracket."""
    table = Table()
    table.add_column("network")
    for name in (
        "input",
        "label",
        "predicted",
        "target",
        "lower",
        "upper",
        "becomes",
        "queries",
        "s",
    ):
        table.add_column(name, justify="right")
    for m in distribution:
        table.add_row(
            Text(m.network),
            str(m.input),
            str(m.label),
            str(m.predicted),
            "" if m.target is None else str(m.target),
            f"{m.bracket.lower:.6g}",
            "none" if math.isinf(m.bracket.upper) else f"{m.bracket.upper:.6g}",
            "" if m.witness_class is None else str(m.witness_class),
            str(m.queries),
            f"{m.seconds:.2f}",
        )
    return table


def _interval(low: float, high: float) -> str:
    return f"{low:.4f}–{high:.4f}" if math.isfinite(high) else f"{low:.4f}–"


def _mean_gap(part: Distribution) -> float:
    widths = part.upper - part.lower
    finite = widths[np.isfinite(widths)]
    return float(finite.mean()) if finite.size else math.nan
