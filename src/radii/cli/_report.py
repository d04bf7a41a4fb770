"""`radii report`: one self-contained interactive page about one or more experiments."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from radii.cli._options import add_open_flag, open_if_asked
from radii.cli._output import check_file
from radii.errors import InputError
from radii.processes import parse_size
from radii.runs import Option, OptionForm, OptionRefusal
from radii.terminal import say

DESCRIPTION = (
    "Write one HTML file with everything in it: summary, curves, every input with "
    "its counterexample. It opens in any browser and asks the network for nothing."
)

EPILOG = """examples:
  radii report results
  radii report standard adversarial -o comparison.html   networks of several runs side by side
  radii report published.csv -o published.html           a file in the published (VERONA) columns
  radii report results --note "Checked in May"           words of your own below the sentence
"""


def _size(value: Any) -> int:
    try:
        return 0 if str(value).strip() == "0" else parse_size(value)
    except InputError:
        raise OptionRefusal("must be a size, such as 64M, or 0") from None


PICTURES = Option(
    name="pictures",
    form=OptionForm("SIZE", _size, "int | str"),
    help="room for pictures of inputs and counterexamples, such as 64M, or 0 for none (16M); those "
    "with the smallest radii come first",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places",
        type=Path,
        nargs="+",
        metavar="DIR",
        help="the --out of radii run or radii ensemble, or a results file",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="the page (report.html)",
    )
    parser.add_argument(
        "--title", default="", metavar="TEXT", help="title of the page (default: the directories)"
    )
    parser.add_argument(
        "--note",
        action="append",
        default=[],
        metavar="TEXT",
        help="a paragraph of your own, below the first sentence; may be given several times",
    )
    PICTURES.add_to(parser, default="16M")
    add_open_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.views import make_payload, write_report

    check_file(args.output, "--output")
    payload = make_payload(
        args.places, title=args.title, own_notes=args.note, picture_bytes=args.pictures
    )
    write_report(payload, args.output)
    say(f"{args.output}: {args.output.stat().st_size / 1e6:.1f} MB, opens in any browser")
    open_if_asked(args, args.output)
    return 0
