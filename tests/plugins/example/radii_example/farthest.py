"""`radii farthest DIR`: the inputs that are farthest from breaking, as a command of a package."""

from __future__ import annotations

import argparse
from pathlib import Path

from radii.statistics import read
from radii.terminal import say

DESCRIPTION = "The inputs of an experiment with the largest proven radii."

EPILOG = """examples:
  radii farthest results --count 3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="of radii run")
    parser.add_argument("--count", type=int, default=1, metavar="N", help="how many (1)")


def run(args: argparse.Namespace) -> int:
    columns = read(args.directory).columns
    order = columns["lower"].argsort()[::-1][: args.count]
    say(*(f"input {columns['input'][i]}: {columns['lower'][i]:g}" for i in order))
    return 0
