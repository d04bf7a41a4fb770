"""`radii import`: published results as a table of brackets that every other command reads."""

from __future__ import annotations

import argparse
from pathlib import Path

from radii import views
from radii.cli._output import print_parts, write_frame
from radii.errors import DataError, StoreError
from radii.runs import NUMBER, Option
from radii.terminal import note, say

TABLE_SUFFIXES = (".csv", ".parquet")

DESCRIPTION = (
    "Turn published results into a table of brackets, a row for each instance, and say "
    "what in them cannot be taken at its word. What is imported are claims: nothing is "
    "replayed (radii audit does that)."
)

EPILOG = """examples:
  radii import result_df.csv -o published.csv
  radii import verona_experiment/ -o published.parquet      a folder of VERONA, with its queries
  radii import result_df.csv -o published.csv --largest-eps 0.399 --distrust
  radii show published.csv                                  also compare, report, plot, card, gate
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place", type=Path, metavar="FILE|FOLDER", help="a table, or the folder of an experiment"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="a .csv or .parquet file, to give to other commands instead of a directory",
    )
    parser.add_argument(
        "--distrust",
        action="store_true",
        help="drop proofs that their own row refutes, instead of keeping them as published",
    )
    Option(
        name="largest_eps",
        form=NUMBER,
        metavar="E",
        help="the end of the grid, which VERONA writes where it found no counterexample",
    ).add_to(parser)
    parser.add_argument("--split", default="", help="train or test, where the file does not say it")
    parser.add_argument(
        "--training",
        default="",
        help="how the networks were trained, where the file does not say it",
    )


def run(args: argparse.Namespace) -> int:
    from radii.statistics import Distribution, frame_of_columns, read

    if args.output.suffix not in TABLE_SUFFIXES or args.output.is_dir():
        raise DataError(f"{args.output}: an imported table ends in {' or '.join(TABLE_SUFFIXES)}")
    if not args.place.exists():
        raise StoreError(f"{args.place}: no such file or directory")
    imported = read(
        args.place,
        largest_eps=args.largest_eps,
        distrust=args.distrust,
        split=args.split,
        training=args.training,
    )
    for sentence in imported.notes:
        note(sentence)
    frame = frame_of_columns(imported.columns)
    write_frame(frame, args.output, as_parquet=args.output.suffix == ".parquet")
    print_parts([views.summary_table(Distribution.from_run(imported))])
    say(f"{args.output}: {len(frame)} brackets, as claimed; radii show {args.output}")
    return 0
