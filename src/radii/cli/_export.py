"""`radii export`: an experiment's brackets as CSV, Parquet, or the published (VERONA) columns."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._output import write_csv, writing
from radii.errors import StoreError
from radii.terminal import note

if TYPE_CHECKING:
    import pandas as pd

    from radii.results import Run


DESCRIPTION = "Write a row for each instance. Without a witness `upper` is inf (verona: empty)."

EPILOG = """examples:
  radii export results --format csv -o brackets.csv
  radii export results --format parquet -o brackets.parquet
  radii export results --format verona -o result_df.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the --out of a run")
    parser.add_argument("--format", choices=("csv", "parquet", "verona"), default="csv")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: standard output"
    )


def run(args: argparse.Namespace) -> int:
    from radii.results import frame_of_columns, read_store

    results = read_store(args.directory)
    is_published = args.format == "verona"
    frame = _verona_table(results) if is_published else frame_of_columns(results.columns)
    if args.format == "parquet" and args.output is None:
        raise StoreError("parquet is binary: name a file with --output")
    with writing(args.output):
        if args.format == "parquet":
            frame.to_parquet(args.output, index=False)
        else:
            write_csv(frame, args.output or sys.stdout)
    return 0


def _verona_table(results: Run) -> pd.DataFrame:
    from radii.results import verona_frame

    left_out = int((~results.columns["correct"]).sum())
    if left_out:
        note(f"{left_out} misclassified inputs are left out, as in the published files")
    return verona_frame(results.measurements, grid=results.grid, split=results.settings.split or "")
