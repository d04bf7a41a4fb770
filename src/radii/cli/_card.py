"""`radii card`: a section for a model card, in Markdown."""

from __future__ import annotations

import argparse

from radii.cli._options import add_eps_flag, add_level_flag, add_output_flag
from radii.cli._output import check_file, write_file
from radii.cli._sources import add_part_flags, add_places, part_choice
from radii.errors import StoreError
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
    add_eps_flag(parser, "radii in the table (default: three round ones per network)")
    add_level_flag(parser)
    add_output_flag(parser)
    add_part_flags(parser)


def run(args: argparse.Namespace) -> int:
    from radii.statistics import read
    from radii.views import card

    check_file(args.output, "--output")
    for place in args.places:
        if not place.exists():
            raise StoreError(f"{place}: no such file or directory")
    choice = part_choice(args)
    runs = [read(place, choice=choice) for place in args.places]
    text = card(runs, eps=args.eps, level=args.level)
    if args.output is None:
        say(*text.split("\n"))
    else:
        write_file(args.output, text + "\n")
    return 0
