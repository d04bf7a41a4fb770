"""`radii run`: compute a distribution; run again to continue."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from radii.cli.options import add_experiment_flags, add_json_flag, cluster_from, experiment_from
from radii.errors import ExperimentError

__all__ = ["add_parser", "execute"]

EPILOG = """examples:
  radii run --network net.onnx --data digits:test[0:20] --domain 0:1 --out results
  radii run experiment.toml --out results --jobs 2
  radii run experiment.toml --out results          run again: continues where it stopped
  radii run experiment.toml --out results --ray auto        on the Ray cluster of this machine

experiment.toml:
  networks = ["net.onnx"]
  data = "digits:test[0:20]"
  domain = "0:1"
  grid = "0.01:0.5:0.01"
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="compute a robustness distribution",
        description="Find each input's bracket: proven below, witnessed above.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_experiment_flags(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the results go")
    add_json_flag(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.out is None:
        raise ExperimentError("--out is missing: name the directory for the results")
    return execute(args, args.out)


def execute(args: argparse.Namespace, out: Path | None, **fixed: str) -> int:
    """Run what the arguments describe, then print it; without `out`, nothing is kept."""
    from radii.cli.progress import ProgressBar
    from radii.cli.show import print_store
    from radii.experiments import default_jobs, prepare
    from radii.store import Store

    if args.jobs is not None and args.jobs < 1:
        raise ExperimentError(f"--jobs {args.jobs} must be at least 1")
    cluster = cluster_from(args)
    jobs = args.jobs or (0 if cluster else default_jobs())
    plan = prepare(experiment_from(args, **fixed))
    if (warning := plan.instances[0].property.warning) is not None:
        print(f"radii: {warning}", file=sys.stderr)
    with Store.in_memory() if out is None else Store.create_or_open(out) as store:
        try:
            with ProgressBar() as bar:
                plan.run(store, jobs=jobs, cluster=cluster, observer=bar)
        except KeyboardInterrupt:
            kept = "" if out is None else f"; what was found is in {out}, run again to continue"
            print(f"radii: interrupted{kept}", file=sys.stderr)
            return 130
        print_store(store, as_json=args.json)
        if args.json:  # who reads only the exit of a script should see it too
            for network, index, disagreement in store.disagreements():
                print(f"DISAGREEMENT {network} input {index}: {disagreement}", file=sys.stderr)
    return 0
