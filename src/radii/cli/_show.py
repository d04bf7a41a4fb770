"""`radii show`: what an experiment found, as a table or as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import add_json_flag
from radii.cli._output import interval, number_or_dash, print_json
from radii.errors import ExperimentError
from radii.terminal import note

if TYPE_CHECKING:
    from rich.table import Table

    from radii.cli._tables import Console
    from radii.distributions import Distribution
    from radii.results import Effort, Run
    from radii.store import Store, StoredSettings
    from radii.verdicts import Measurement


QUARTILES = {"lowest": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75}
NARROW_QUARTILES = {name: QUARTILES[name] for name in ("lowest", "median")}

DESCRIPTION = "A summary of each network, or every bracket."

EPILOG = """examples:
  radii show results
  radii show results --instances         a row for each input
  radii show results --statistics        queries, seconds and missing answers of the search
  radii show results --json
  radii show published.csv               a file in the published (VERONA) columns
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the --out of a run")
    parser.add_argument("--instances", action="store_true", help="a row for each input")
    parser.add_argument(
        "--statistics", action="store_true", help="what the search cost, as the paper's tables"
    )
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.results import read, read_store

    if args.directory.is_file() and args.statistics:
        raise ExperimentError(
            f"{args.directory}: --statistics needs the --out of a run; a table holds no queries"
        )
    results = read(args.directory) if args.directory.is_file() else read_store(args.directory)
    for sentence in results.notes:
        note(sentence)
    if args.statistics:
        _print_statistics(results, as_json=args.json)
    else:
        print_run(results, as_json=args.json, instances=args.instances)
    return 0


def _print_statistics(results: Run, *, as_json: bool) -> None:
    """Print what the search cost, a row for each network."""
    from radii.distributions import Distribution
    from radii.results import effort_of

    distribution = Distribution.from_run(results)
    efforts = {name: effort_of(part) for name, part in distribution.by_network().items()}
    if as_json:
        networks = [
            {"network": name, "statistics": dataclasses.asdict(effort)}
            for name, effort in efforts.items()
        ]
        print_json({"networks": networks})
        return
    from radii.cli._tables import Console

    if len(efforts) > 1:
        efforts["all"] = effort_of(distribution)
    Console().print(*_effort_tables(efforts, results.settings))


def print_store(store: Store, *, as_json: bool) -> None:
    """Print an experiment's distribution, and loudly any disagreement."""
    from radii.results import read_store

    print_run(read_store(store), as_json=as_json)


def print_run(results: Run, *, as_json: bool, instances: bool = False) -> None:
    """Print what was measured or read, and loudly any disagreement."""
    from radii.distributions import Distribution

    distribution = Distribution.from_run(results)
    disagreements = [
        {
            "network": results.columns["network"][row].item(),
            "input": results.columns["input"][row].item(),
            "disagreement": str(disagreement),
        }
        for row, disagreement in results.disagreements
    ]
    if as_json:
        arithmetic = results.settings.text_of("arithmetic")
        parts = distribution.by_network().values()
        networks = [_network_object(part, arithmetic) for part in parts]
        print_json({"networks": networks, "disagreements": disagreements})
        return
    from radii.cli._tables import Console

    console = Console()
    shown = instance_table if instances else summary_table
    console.print(shown(distribution, console))
    for row in disagreements:
        console.print(
            f"DISAGREEMENT {row['network']} input {row['input']}: {row['disagreement']}",
            style="bold red",
        )


def _network_object(part: Distribution, arithmetic: object) -> dict[str, Any]:
    """`arithmetic` is what the experiment asked for; each proof has its own."""
    first = part.measurements[0]
    return {
        "network": first.network,
        "fingerprint": first.fingerprint,
        "arithmetic": arithmetic,
        "unsolved": part.unsolved,
        "instances": [_instance_object(m) for m in part.measurements],
    }


def _instance_object(m: Measurement) -> dict[str, Any]:
    return {
        "input": m.input,
        "label": m.label,
        "predicted": m.predicted,
        "correct": m.correct,
        "target": m.target,
        "lower": m.bracket.lower,
        "upper": None if math.isinf(m.bracket.upper) else m.bracket.upper,
        "witness_class": m.witness_class,
        "seconds": round(m.seconds, 6),
        "cpu_seconds": None if m.cpu_seconds is None else round(m.cpu_seconds, 6),
        "queries": m.queries,
        "missing": m.missing,
        "cancelled": m.cancelled,
        "arithmetic": None if m.arithmetic is None else str(m.arithmetic),
    }


def summary_table(distribution: Distribution, console: Console) -> Table:
    """For each network how many, the radii's quantiles, how tight and how costly.

    All quartiles where the console is wide enough for them, else fewer.
    """
    from radii.cli._tables import has_room

    whole = _summary_rows(distribution, QUARTILES)
    return whole if has_room(whole, console) else _summary_rows(distribution, NARROW_QUARTILES)


def _summary_rows(distribution: Distribution, quantiles: dict[str, float]) -> Table:
    from radii.cli._tables import stacked, table
    from radii.distributions import arithmetics, inputs_with_radius, proof_scope, quality

    has_missing, has_unsolved = any(m.missing for m in distribution), distribution.unsolved > 0
    is_mixed = len(arithmetics(distribution)) > 1
    rows = []
    for name, part in distribution.by_network().items():
        right = part.correctly_classified() if part.holds.any() else None
        measured = quality(part)
        rows.append(
            [
                name,
                f"{int(part.correct.sum())}/{len(part)}",
                *([str(part.unsolved)] if has_unsolved else []),
                *(interval(*right.quantile(q)) if right else "-" for q in quantiles.values()),
                number_or_dash(measured.mean_gap, ".4f"),
                *([_counts(part)] if is_mixed else []),
                *([str(sum(m.missing for m in part))] if has_missing else []),
                number_or_dash(measured.mean_seconds, ".2f"),
            ]
        )
    unsolved, missing = ["no answer"] * has_unsolved, ["missing"] * has_missing
    proofs = ["proofs"] * is_mixed
    columns = ("network", "correct", *unsolved, *quantiles, "gap", *proofs, *missing, "s each")
    inputs = inputs_with_radius(distribution)
    caption = f"radii of {inputs}, proven–witnessed; gap: mean width of their brackets"
    if has_unsolved:
        caption += "; no answer: nothing proven, nothing witnessed, so a radius may be any"
    return table(
        "Robustness distributions",
        columns,
        rows,
        name_width=16,
        caption=stacked(*filter(None, (caption, proof_scope(distribution)))),
    )


def _counts(part: Distribution) -> str:
    """How many proofs in which arithmetic, as in `18 float, 2 real`."""
    from radii.distributions import arithmetics

    counts = reversed(arithmetics(part).items())
    return ", ".join(f"{count} {arithmetic}" for arithmetic, count in counts) or "none"


def instance_table(distribution: Distribution, console: Console) -> Table:
    """A row for each bracket; what it cost only where the console is wide enough."""
    from radii.cli._tables import has_room
    from radii.distributions import arithmetics

    cells = dict(INSTANCE_COLUMNS)
    if all(m.target is None for m in distribution):
        del cells["target"]
    if len(arithmetics(distribution)) < 2:
        del cells["arithmetic"]
    whole = _instance_rows(distribution, cells)
    if has_room(whole, console):
        return whole
    costs = ("queries", "s")
    return _instance_rows(distribution, {k: cell for k, cell in cells.items() if k not in costs})


INSTANCE_COLUMNS: dict[str, Callable[[Measurement], str]] = {
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


def _instance_rows(
    distribution: Distribution, cells: dict[str, Callable[[Measurement], str]]
) -> Table:
    from radii.cli._tables import table
    from radii.distributions import proof_scope

    rows = [[m.network, *(cell(m) for cell in cells.values())] for m in distribution]
    caption = proof_scope(distribution) or None
    return table(None, ("network", *cells), rows, name_width=8, caption=caption)


def _effort_tables(efforts: Mapping[str, Effort], settings: StoredSettings) -> tuple[Table, Table]:
    """Queries and seconds of an input that was searched; all queries. A row for each network."""
    from radii.cli._tables import table

    caption = "queries of an input: fewest, most, mean; then its mean seconds and time-outs"
    inputs = [[name, *_input_cells(effort)] for name, effort in efforts.items()]
    totals = [[name, *_total_cells(effort)] for name, effort in efforts.items()]
    return (
        table(
            _search_title(settings),
            ("network", "inputs", "fewest", "most", "mean", "CPU s", "wall s", "time-outs"),
            inputs,
            name_width=8,
            caption=caption,
        ),
        table(
            "All queries",
            ("network", "queries", "time-outs", "memory-outs", "missing", "cancelled"),
            totals,
            name_width=8,
        ),
    )


def _search_title(settings: StoredSettings) -> str:
    """How it was searched, and what the theory says of that."""
    from radii.results import theoretical_maximum

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
    return [*map(str, counts), *(number_or_dash(effort.mean(amount), ".2f") for amount in means)]


def _total_cells(effort: Effort) -> list[str]:
    counts = (effort.queries, effort.timeouts, effort.memouts, effort.missing, effort.cancelled)
    return [str(count) for count in counts]
