"""`radii card`: a section for a model card, in Markdown."""

from __future__ import annotations

import argparse

from radii.cli._options import add_level_flag, add_output_flag, confidence_level, eps_values
from radii.cli._output import writing
from radii.cli._sources import add_part_flags, add_places, part_choice
from radii.errors import DataError, StoreError
from radii.terminal import say

DESCRIPTION = (
    "What was measured about each network, in plain sentences and a table, with "
    "its limitations and how it was measured. Markdown."
)

EPILOG = """examples:
  radii card results
  radii card results --eps 0.01,0.02,8/255 -o ROBUSTNESS.md
  radii card results >> README.md
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_places(parser)
    parser.add_argument(
        "--eps",
        metavar="E[,E...]",
        help="radii in the table (default: three round ones per network)",
    )
    add_level_flag(parser)
    add_output_flag(parser)
    add_part_flags(parser)


def run(args: argparse.Namespace) -> int:
    from radii.statistics import read
    from radii.views import card

    eps, level = eps_values(args.eps), confidence_level(args.level)
    for place in args.places:
        if not place.exists():
            raise StoreError(f"{place}: no such file or directory")
    choice = part_choice(args)
    runs = [read(place, choice=choice) for place in args.places]
    text = card(runs, eps=eps, level=level)
    if args.output is None:
        say(*text.split("\n"))
        return 0
    if args.output.is_dir():
        raise DataError(f"{args.output} is a directory: name a file with --output")
    with writing(args.output):
        args.output.write_text(text + "\n", "utf-8")
    return 0
