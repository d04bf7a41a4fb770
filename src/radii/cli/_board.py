"""`radii board`: a page that ranks many networks, for a team to publish."""

from __future__ import annotations

import argparse
from pathlib import Path

from radii.cli._options import add_eps_flag, add_json_flag, add_open_flag, open_if_asked
from radii.cli._output import check_file, print_json
from radii.cli._sources import add_places
from radii.terminal import note, say

DESCRIPTION = (
    "Write one HTML file that ranks networks by robust accuracy, each with what is proven and what "
    "is not refuted. It asks the network for nothing."
)

EPILOG = """examples:
  radii board results
  radii board standard adversarial --eps 8/255 --out board.html
  radii board standard adversarial published.csv --eps 0.01,0.05 --title "Digits"
  radii board results --json                          the same as JSON, on standard output

Networks measured on different data, or in another norm or property, get a table of their own.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_places(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("board.html"),
        metavar="FILE",
        help="the page (board.html)",
    )
    add_eps_flag(
        parser, "show robust accuracy at these eps; the first one ranks (about the median radius)"
    )
    parser.add_argument(
        "--title", default="", metavar="TEXT", help="title of the page (Leaderboard)"
    )
    add_open_flag(parser)
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.views import make_board, write_board

    check_file(args.out, "--out")
    board = make_board(args.places, eps=args.eps, title=args.title)
    for sentence in board.notes:
        note(sentence)
    if args.json:
        print_json(board)
        return 0
    write_board(board, args.out)
    count = sum(len(table.entries) for table in board.tables)
    networks = "1 network" if count == 1 else f"{count} networks"
    say(f"{args.out}: {networks}, {args.out.stat().st_size / 1e3:.0f} kB, opens in any browser")
    open_if_asked(args, args.out)
    return 0
