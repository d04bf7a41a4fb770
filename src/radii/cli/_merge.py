"""`radii merge`: the results of several directories, such as shards of one run, in one."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from radii.cli._options import add_json_flag
from radii.cli._output import print_json
from radii.errors import ExperimentError
from radii.terminal import note, say

DESCRIPTION = "Join the results of several directories in one, such as the shards of a run."

EPILOG = """examples:
  radii run experiment.toml --shard 1/2 --out shards/1     on one machine
  radii run experiment.toml --shard 2/2 --out shards/2     on another one
  radii merge shards/1 shards/2 --out results
  radii run experiment.toml --out results      goes on from there, if anything is missing
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="DIR", help="a directory of results"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="the directory for all results; it may hold some of them already",
    )
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.runs import merge

    if args.out is None:
        raise ExperimentError("--out is missing: name the directory for all results")
    merged = merge(args.places, args.out)
    count = merged.count
    if args.json:
        print_json(
            {
                **dataclasses.asdict(count),
                "excerpts": [str(each.shard) for each in merged.excerpts],
                "unfinished": [str(place) for place in merged.unfinished],
            }
        )
    else:
        say(
            f"{args.out}: {count.instances} instances ({count.new_instances} of them new), "
            f"{count.answers} answers ({count.new_answers} of them new)"
        )
    for place in merged.unfinished:
        note(f"{place}: its run has not ended; run it to its end and merge again")
    for excerpt in merged.excerpts:
        note(f"{args.out}: these are {excerpt}; merge the others, or run the experiment there")
    return 0
