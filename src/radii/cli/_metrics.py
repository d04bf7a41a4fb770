"""`radii metrics`: constraint satisfaction, security and accuracy of networks, at each eps."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from radii import views
from radii.cli._options import (
    add_experiment_flags,
    add_json_flag,
    add_level_flag,
    check_files,
    cluster_from,
    eps_values,
    experiment_from,
    given,
)
from radii.cli._output import print_json, print_parts, write_rows, writing
from radii.errors import DataError, ExperimentError
from radii.runs import Option, whole
from radii.terminal import note

if TYPE_CHECKING:
    from radii.runs import Metrics


SAMPLES = Option(
    name="samples", form=whole(least=0), help="samples per ball for CAcc (1000); 0 leaves it out"
)

FIRST = "networks data domain eps samples out csv json"

DESCRIPTION = (
    "For how many inputs a property is proven, not refuted, and kept by random "
    "points, with confidence. Takes the flags of run, or the DIR of a run."
)

EPILOG = """measured at each eps, over all inputs:
  CSat  constraint satisfaction: proven for at least this share; undecided inputs are counted apart
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
        type=_radii,
        required=True,
        metavar="E[,E...]",
        help="radii with commas, or a grid of them: 0.02:0.2:0.02, log:0.001:0.1:20",
    )
    SAMPLES.add_to(parser, default=1000)
    add_level_flag(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the brackets here")
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="write one row per network and eps"
    )
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    is_run = args.experiment is not None and not args.experiment.is_file()
    rows = _measure_run(args) if is_run else _run_and_measure(args)
    flat = [row.flat() for row in rows]
    if args.csv is not None:
        with writing(args.csv):
            write_rows(args.csv, list(flat[0]), (list(row.values()) for row in flat))
        note(f"{len(rows)} rows in {args.csv}")
    if args.json:
        print_json({"metrics": flat})
    else:
        print_parts(views.metrics_parts(rows))
    return 0


def _radii(text: str) -> tuple[float, ...]:
    from radii.problem import Grid

    values = Grid.parse(text).values if ":" in text else eps_values(text)
    if not values:
        raise DataError("--eps names no radius: write 0.05,0.1 or 0.02:0.2:0.02")
    return tuple(dict.fromkeys(values))


def _measure_run(args: argparse.Namespace) -> list[Metrics]:
    """Of a run that is there already."""
    from radii.cli._gate import refuse_unfinished
    from radii.runs import measure_run
    from radii.statistics import Distribution

    names = {"networks": "network", "data": "data", "domain": "domain", "out": "out"}
    names |= {"mean": "mean", "std": "std"}
    for name in given(args, names):
        flag = names[name]
        raise ExperimentError(f"{args.experiment} is a run already: --{flag} has no use there")
    refuse_unfinished(Distribution.from_store(args.experiment))
    return measure_run(args.experiment, args.radii, samples=args.samples, level=args.level)


def _run_and_measure(args: argparse.Namespace) -> list[Metrics]:
    """Of what the flags describe: it is run first."""
    check_files(args)
    from radii.cli._progress import ProgressBar
    from radii.problem import Grid
    from radii.runs import default_jobs, measure_plan, prepare
    from radii.store import Store

    is_free = args.grid is None and args.experiment is None
    fixed = {"grid": Grid.of_values(sorted(args.radii))} if is_free else {}
    cluster = cluster_from(args)
    plan = prepare(experiment_from(args, **fixed), args.out)
    with Store.in_memory() if args.out is None else Store.create_or_open(args.out) as store:
        with ProgressBar() as bar:
            jobs = args.jobs or (0 if cluster else default_jobs())
            plan.run(store, jobs=jobs, cluster=cluster, observer=bar)
        return measure_plan(plan, store, args.radii, samples=args.samples, level=args.level)
