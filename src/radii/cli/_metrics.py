"""`radii metrics`: constraint satisfaction, security and accuracy of networks, at each eps."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from radii import views
from radii.cli._options import (
    add_experiment_flags,
    add_json_flag,
    add_level_flag,
    check_files,
    cluster_from,
    confidence_level,
    eps_values,
    experiment_from,
)
from radii.cli._output import console_for, print_json, write_rows, writing
from radii.errors import DataError, ExperimentError
from radii.terminal import note

if TYPE_CHECKING:
    from radii.statistics import Metrics


FIRST = "networks data domain eps samples out csv json"

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
    add_experiment_flags(parser, without=("eps",))
    parser.add_argument(
        "--eps",
        dest="radii",
        required=True,
        metavar="E[,E...]",
        help="radii with commas, or a grid of them: 0.02:0.2:0.02, log:0.001:0.1:20",
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=1000,
        metavar="N",
        help="samples per ball for CAcc (1000); 0 leaves it out",
    )
    add_level_flag(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the brackets here")
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="write one row per network and eps"
    )
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    eps, level = _eps(args.radii), confidence_level(args.level)
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
        console = console_for(highlight=False)
        for part in views.metrics_parts(rows):
            console.print(part)
    return 0


def _eps(text: str) -> tuple[float, ...]:
    from radii.problem import Grid

    values = Grid.parse(text).values if ":" in text else eps_values(text)
    if not values:
        raise DataError("--eps names no radius: write 0.05,0.1 or 0.02:0.2:0.02")
    return tuple(dict.fromkeys(values))


def _measure_run(args: argparse.Namespace, eps: Sequence[float], level: float) -> list[Metrics]:
    """Of a run that is there already."""
    from radii.cli._gate import refuse_unfinished
    from radii.statistics import Distribution, measure_run

    names = {"networks": "network", "data": "data", "domain": "domain", "out": "out"}
    given = [flag for name, flag in names.items() if getattr(args, name)]
    if given:
        raise ExperimentError(f"{args.experiment} is a run already: --{given[0]} has no use there")
    refuse_unfinished(Distribution.from_store(args.experiment))
    feeding = {"mean": args.mean, "std": args.std}
    feeding = {name: value for name, value in feeding.items() if value is not None}
    return measure_run(args.experiment, eps, samples=args.samples, level=level, **feeding)


def _run_and_measure(args: argparse.Namespace, eps: Sequence[float], level: float) -> list[Metrics]:
    """Of what the flags describe: it is run first."""
    check_files(args)
    from radii.cli._progress import ProgressBar
    from radii.problem import Grid
    from radii.runs import default_jobs, prepare
    from radii.statistics import measure_plan
    from radii.store import Store

    is_free = args.grid is None and args.experiment is None
    fixed = {"grid": Grid.of_values(sorted(eps))} if is_free else {}
    cluster = cluster_from(args)
    plan = prepare(experiment_from(args, **fixed), args.out)
    with Store.in_memory() if args.out is None else Store.create_or_open(args.out) as store:
        with ProgressBar() as bar:
            jobs = args.jobs or (0 if cluster else default_jobs())
            plan.run(store, jobs=jobs, cluster=cluster, observer=bar)
        return measure_plan(plan, store, eps, samples=args.samples, level=level)


def _write_metrics(path: Path, rows: Sequence[Metrics]) -> None:
    with writing(path, DataError):
        flat = [row.flat() for row in rows]
        write_rows(path, list(flat[0]), (list(row.values()) for row in flat))
    note(f"{len(rows)} rows in {path}")
