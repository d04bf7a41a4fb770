"""Tables for the terminal."""

from __future__ import annotations

import math

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from radii.distributions import Distribution, quality
from radii.distributions.summaries import whose

__all__ = ["instance_table", "summary_table"]


QUARTILES = {"lowest": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75}
FEWER = {name: QUARTILES[name] for name in ("lowest", "median")}


def summary_table(distribution: Distribution, console: Console) -> Table:
    """One row a network: how many, the radii's quantiles, how tight and how costly.

    All quartiles where the console is wide enough for them, else fewer.
    """
    whole = _summary(distribution, QUARTILES)
    unlimited = console.options.update(width=1000)
    is_wide = console.measure(whole, options=unlimited).maximum <= console.width
    return whole if is_wide else _summary(distribution, FEWER)


def _summary(distribution: Distribution, quantiles: dict[str, float]) -> Table:
    has_missing = any(m.missing for m in distribution)
    table = Table(box=SIMPLE_HEAD, title="Robustness distributions", title_justify="left")
    table.add_column("network", overflow="fold", min_width=16)
    for name in ("correct", *quantiles, "gap", *(["missing"] if has_missing else []), "s each"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, part in distribution.by_network().items():
        right = part.correctly_classified() if part.holds.any() else None
        shown = [_interval(*right.quantile(q)) if right else "-" for q in quantiles.values()]
        measured = quality(part)
        table.add_row(
            Text(name),
            f"{int(part.correct.sum())}/{len(part)}",
            *shown,
            _number(measured.mean_gap, ".4f"),
            *([str(sum(m.missing for m in part))] if has_missing else []),
            _number(measured.mean_seconds, ".2f"),
        )
    table.caption = (
        f"radii of {whose(distribution)}, proven–witnessed; gap: mean width of their brackets"
    )
    table.caption_justify = "left"
    return table


def instance_table(distribution: Distribution) -> Table:
    """One row a bracket."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("network", overflow="fold", min_width=8)
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


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def _interval(low: float, high: float) -> str:
    return f"{low:.4f}–{high:.4f}" if math.isfinite(high) else f"{low:.4f}–none"
