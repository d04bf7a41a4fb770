"""`radii show`: what an experiment found, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli.options import add_json_flag
from radii.errors import ExperimentError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.distributions import Distribution
    from radii.results import Run
    from radii.store import Store
    from radii.verdicts import Measurement


DESCRIPTION = "A summary a network, or every bracket."

EPILOG = """examples:
  radii show results
  radii show results --instances         one row an input
  radii show results --statistics        queries, seconds and missing answers of the search
  radii show results --json
  radii show published.csv               a file in the published (VERONA) columns
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the --out of a run")
    parser.add_argument("--instances", action="store_true", help="one row an input")
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
    for note in results.notes:
        say(f"radii: {note}", file=sys.stderr)
    if args.statistics:
        _print_statistics(results, as_json=args.json)
    else:
        print_run(results, as_json=args.json, instances=args.instances)
    return 0


def _print_statistics(results: Run, *, as_json: bool) -> None:
    """Print what the search cost, a row a network."""
    from radii.cli.console import Console
    from radii.cli.efforts import effort_object, effort_tables
    from radii.distributions import Distribution

    distribution = Distribution.from_run(results)
    if not as_json:
        Console().print(*effort_tables(distribution, results.settings))
        return
    networks = [
        {"network": name, "statistics": effort_object(part)}
        for name, part in distribution.by_network().items()
    ]
    json.dump({"networks": networks}, sys.stdout, indent=1)
    say("")


def print_store(store: Store, *, as_json: bool) -> None:
    """Print an experiment's distribution, and loudly any disagreement."""
    from radii.results import read_store

    print_run(read_store(store), as_json=as_json)


def print_run(results: Run, *, as_json: bool, instances: bool = False) -> None:
    """Print what was measured or read, and loudly any disagreement."""
    from radii.distributions import Distribution

    distribution = Distribution.from_run(results)
    arithmetic = results.settings.text_of("arithmetic")
    disagreements = [
        {
            "network": results.columns["network"][row].item(),
            "input": results.columns["input"][row].item(),
            "disagreement": str(disagreement),
        }
        for row, disagreement in results.disagreements
    ]
    if as_json:
        parts = distribution.by_network().values()
        networks = [_network_object(part, arithmetic) for part in parts]
        json.dump({"networks": networks, "disagreements": disagreements}, sys.stdout, indent=1)
        say("")
        return
    from radii.cli.console import Console
    from radii.cli.tables import instance_table, summary_table

    console = Console()
    if instances:
        console.print(instance_table(distribution, console))
    else:
        console.print(summary_table(distribution, console))
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
        "queries": m.queries,
        "missing": m.missing,
        "cancelled": m.cancelled,
        "arithmetic": None if m.arithmetic is None else str(m.arithmetic),
    }
