"""Tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable

from rich.box import SIMPLE_HEAD
from rich.table import Table

from radii.cli.console import Console, stacked
from radii.distributions import Distribution, arithmetics, inputs_with_radius, proof_scope, quality
from radii.verdicts import Measurement

QUARTILES = {"lowest": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75}
NARROW_QUARTILES = {name: QUARTILES[name] for name in ("lowest", "median")}


def summary_table(distribution: Distribution, console: Console) -> Table:
    """One row a network: how many, the radii's quantiles, how tight and how costly.

    All quartiles where the console is wide enough for them, else fewer.
    """
    whole = _summary_rows(distribution, QUARTILES)
    return whole if _has_room(whole, console) else _summary_rows(distribution, NARROW_QUARTILES)


def _summary_rows(distribution: Distribution, quantiles: dict[str, float]) -> Table:
    has_missing, has_unsolved = any(m.missing for m in distribution), distribution.unsolved > 0
    is_mixed = len(arithmetics(distribution)) > 1
    table = Table(box=SIMPLE_HEAD, title="Robustness distributions", title_justify="left")
    table.add_column("network", overflow="fold", min_width=16)
    unsolved, missing = ["no answer"] * has_unsolved, ["missing"] * has_missing
    proofs = ["proofs"] * is_mixed
    for name in ("correct", *unsolved, *quantiles, "gap", *proofs, *missing, "s each"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, part in distribution.by_network().items():
        right = part.correctly_classified() if part.holds.any() else None
        shown = [_interval(*right.quantile(q)) if right else "-" for q in quantiles.values()]
        measured = quality(part)
        table.add_row(
            name,
            f"{int(part.correct.sum())}/{len(part)}",
            *([str(part.unsolved)] if has_unsolved else []),
            *shown,
            _number_or_dash(measured.mean_gap, ".4f"),
            *([_counts(part)] if is_mixed else []),
            *([str(sum(m.missing for m in part))] if has_missing else []),
            _number_or_dash(measured.mean_seconds, ".2f"),
        )
    inputs = inputs_with_radius(distribution)
    caption = f"radii of {inputs}, proven–witnessed; gap: mean width of their brackets"
    if has_unsolved:
        caption += "; no answer: nothing proven, nothing witnessed, so a radius may be any"
    table.caption = stacked(*filter(None, (caption, proof_scope(distribution))))
    table.caption_justify = "left"
    return table


def _counts(part: Distribution) -> str:
    """How many proofs in which arithmetic, as in `18 float, 2 real`."""
    counts = reversed(arithmetics(part).items())
    return ", ".join(f"{count} {arithmetic}" for arithmetic, count in counts) or "none"


def instance_table(distribution: Distribution, console: Console) -> Table:
    """One row a bracket; what it cost only where the console is wide enough."""
    cells = {
        "input": lambda m: str(m.input),
        "label": lambda m: str(m.label),
        "predicted": lambda m: str(m.predicted),
        "target": lambda m: "" if m.target is None else str(m.target),
        "lower": lambda m: f"{m.bracket.lower:.6g}",
        "upper": lambda m: "none" if math.isinf(m.bracket.upper) else f"{m.bracket.upper:.6g}",
        "becomes": lambda m: "" if m.witness_class is None else str(m.witness_class),
        "arithmetic": lambda m: "" if m.arithmetic is None else str(m.arithmetic),
        "queries": lambda m: str(m.queries),
        "s": lambda m: f"{m.seconds:.2f}",
    }
    if all(m.target is None for m in distribution):
        del cells["target"]
    if len(arithmetics(distribution)) < 2:
        del cells["arithmetic"]
    whole = _instances(distribution, cells)
    if _has_room(whole, console):
        return whole
    costs = ("queries", "s")
    return _instances(distribution, {k: cell for k, cell in cells.items() if k not in costs})


def _instances(distribution: Distribution, cells: dict[str, Callable[[Measurement], str]]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("network", overflow="fold", min_width=8)
    for name in cells:
        table.add_column(name, justify="right", no_wrap=True)
    for m in distribution:
        table.add_row(m.network, *(cell(m) for cell in cells.values()))
    table.caption, table.caption_justify = proof_scope(distribution) or None, "left"
    return table


def _has_room(table: Table, console: Console) -> bool:
    unlimited = console.options.update(width=1000)
    return console.measure(table, options=unlimited).maximum <= console.width


def _number_or_dash(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def _interval(low: float, high: float) -> str:
    return f"{low:.4f}–{high:.4f}" if math.isfinite(high) else f"{low:.4f}–none"
