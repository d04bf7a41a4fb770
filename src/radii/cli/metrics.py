"""`radii metrics`: constraint satisfaction, security and accuracy of networks, at each eps."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli.options import add_experiment_flags, add_json_flag, cluster_from, experiment_from
from radii.errors import DataError, ExperimentError
from radii.terminal import say

if TYPE_CHECKING:
    from rich.table import Table

    from radii.guarantees import Estimate, Metrics


DESCRIPTION = (
    "For how many inputs a property is proven, not refuted, and kept by random "
    "points, with confidence. Takes the flags of run, or the DIR of a run."
)

EPILOG = """measured at each eps, over all inputs:
  CSat  constraint satisfaction: proven for at least this share; what is undecided is told apart
  CSec  constraint security: the share for which no counterexample was found
  CAcc  constraint accuracy: the mean share of uniform samples of a ball that keep the property

examples:
  radii metrics --network net.onnx --data digits:test[0:50] --domain 0:1 --eps 0.05,0.1
  radii metrics --network net.onnx --data mnist:test[0:20] --domain 0:1 --property sr:delta=10 \\
      --eps 0.1 --out results
  radii metrics results --eps 0.02:0.2:0.02 --samples 0 --csv curves.csv    a run that is there
  radii metrics --network net.onnx --data mnist:test[0:20] --domain 0:1 --property lr:L=10 \\
      --search attack-only --eps 0.1                security only: nothing is proven
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_flags(parser)
    parser.add_argument(
        "--eps", required=True, metavar="E[,E...]", help="radii; or a grid START:STOP:STEP of them"
    )
    parser.add_argument(
        "--samples", type=int, default=1000, metavar="N", help="of each ball (1000); 0: no CAcc"
    )
    parser.add_argument("--level", type=float, default=0.95, metavar="P", help="confidence (0.95)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the brackets here")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a row a network and eps")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.cli.compare import confidence_level
    from radii.cli.json_output import print_json

    eps, level = _eps(args.eps), confidence_level(args.level)
    if args.samples < 0:
        raise ExperimentError(f"--samples {args.samples} must be at least 0")
    if args.experiment is not None and not args.experiment.is_file():
        rows = _measure_run(args, eps, level)
    else:
        rows = _run_and_measure(args, eps, level)
    if args.csv is not None:
        _write_metrics(args.csv, rows)
    if args.json:
        print_json({"metrics": [row.flat() for row in rows]})
    else:
        _print_metrics(rows)
    return 0


def _eps(text: str) -> tuple[float, ...]:
    from radii.cli.compare import eps_values
    from radii.queries import Grid

    found = Grid.parse(text).values if ":" in text else eps_values(text)
    if not found:
        raise DataError("--eps names no radius: write 0.05,0.1 or 0.02:0.2:0.02")
    return tuple(dict.fromkeys(found))


def _measure_run(args: argparse.Namespace, eps: Sequence[float], level: float) -> list[Metrics]:
    """Of a run that is there already."""
    from radii.cli.gate import refuse_unfinished
    from radii.distributions import Distribution
    from radii.guarantees import measure_run

    given = [name for name in ("network", "data", "domain", "out") if getattr(args, name)]
    if given:
        raise ExperimentError(f"{args.experiment} is a run already: --{given[0]} has no use there")
    refuse_unfinished(Distribution.from_store(args.experiment))
    numbers = {
        name: _parse_eps_values(name, getattr(args, name))
        for name in ("mean", "std")
        if getattr(args, name) is not None
    }
    return measure_run(args.experiment, eps, samples=args.samples, level=level, **numbers)


def _parse_eps_values(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ExperimentError(f"--{name} '{text}' must be numbers, one or one a channel") from None


def _run_and_measure(args: argparse.Namespace, eps: Sequence[float], level: float) -> list[Metrics]:
    """Of what the flags describe: it is run first."""
    from radii.cli.progress import ProgressBar
    from radii.experiments import default_jobs, prepare
    from radii.guarantees import grid_through, measure_plan
    from radii.store import Store

    if args.jobs is not None and args.jobs < 1:
        raise ExperimentError(f"--jobs {args.jobs} must be at least 1")
    is_free = args.grid is None and args.experiment is None
    fixed = {"grid": str(grid_through(eps))} if is_free else {}
    cluster = cluster_from(args)
    plan = prepare(experiment_from(args, **fixed))
    with Store.in_memory() if args.out is None else Store.create_or_open(args.out) as store:
        with ProgressBar() as bar:
            jobs = args.jobs or (0 if cluster else default_jobs())
            plan.run(store, jobs=jobs, cluster=cluster, observer=bar)
        return measure_plan(plan, store, eps, samples=args.samples, level=level)


def _write_metrics(path: Path, rows: Sequence[Metrics]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0].flat()))
            writer.writeheader()
            writer.writerows(row.flat() for row in rows)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from None
    say(f"radii: {len(rows)} rows in {path}", file=sys.stderr)


def _print_metrics(rows: Sequence[Metrics]) -> None:
    from radii.cli.console import Console
    from radii.verdicts import Arithmetic

    console = Console()
    for name in dict.fromkeys(row.network for row in rows):
        console.print(_metrics_table([row for row in rows if row.network == name]))
    for why in dict.fromkeys((row.network, row.unsearched) for row in rows if row.unsearched):
        console.print(
            f"{why[0]}: {why[1]}; CSec is not known where it shows -.",
            highlight=False,
        )
    proven = dict.fromkeys((row.network, row.arithmetic) for row in rows if row.arithmetic)
    scopes = dict.fromkeys(Arithmetic.parse(str(told)).scope for _, told in proven)
    for scope in scopes:
        those = [name for name, told in proven if Arithmetic.parse(str(told)).scope == scope]
        whose = f" of {', '.join(those)}" if len(scopes) > 1 else ""
        console.print(f"Proofs{whose} hold {scope}.", markup=False, highlight=False)
    by = ", CAcc by Chernoff and Hoeffding" if any(row.accuracy for row in rows) else ""
    console.print(
        "open: neither proven nor refuted. Shares are of these inputs and, in parentheses, of all, "
        f"with {100 * rows[0].level:g} % confidence: CSat and CSec by Clopper and Pearson{by}.",
        highlight=False,
    )


def _metrics_table(rows: Sequence[Metrics]) -> Table:
    """One network: a row an eps."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    first = rows[0]
    title = f"{first.network}: {first.property} on {first.inputs} inputs"
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    accuracy = [] if first.accuracy is None else ["CAcc %"]
    for name in ("eps", "proven", "open", "CSat %", "CSec %", *accuracy):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        counts = (row.proven, row.undecided)
        estimates = [row.satisfaction, row.security, *([row.accuracy] if row.accuracy else [])]
        table.add_row(f"{row.eps:g}", *map(str, counts), *map(_percent, estimates))
    return table


def _percent(told: Estimate | None) -> str:
    if told is None:
        return "-"
    return f"{100 * told.value:.3g} ({100 * told.low:.0f}–{100 * told.high:.0f})"
