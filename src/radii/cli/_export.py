"""`radii export`: an experiment's brackets as CSV, Parquet, or the published (VERONA) columns."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._check import add_network_flag
from radii.cli._options import add_output_flag
from radii.cli._output import write_frame
from radii.cli._sources import add_part_flags, note_checks, part_choice
from radii.errors import StoreError
from radii.terminal import note, say

if TYPE_CHECKING:
    import pandas as pd

    from radii.statistics import Run


DESCRIPTION = "Write a row for each instance. Without a witness `upper` is inf (verona: empty)."

EPILOG = """examples:
  radii export results --format csv -o brackets.csv
  radii export results --format parquet -o brackets.parquet
  radii export results --format verona -o result_df.csv
  radii export results --format statistics -o summary.csv   a row for each network
  radii export results --format features -o changes.csv   what counterexamples change, by name
  radii export results --certificates proofs    a file for each proof, to check anywhere
"""


CHANGE_COLUMNS = [
    *("network", "input", "label", "becomes", "upper"),
    *("feature", "before", "after", "units"),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the --out of a run")
    parser.add_argument(
        "--format", choices=("csv", "parquet", "verona", "features", "statistics"), default="csv"
    )
    add_output_flag(parser)
    parser.add_argument(
        "--certificates",
        type=Path,
        metavar="FOLDER",
        help="instead: a file for each certificate, and the networks; for python -m radii_check",
    )
    add_network_flag(parser)
    add_part_flags(parser)


def run(args: argparse.Namespace) -> int:
    from radii.statistics import (
        Distribution,
        frame_of_columns,
        read_store,
        verona_frame,
    )

    if args.certificates is not None:
        return _export_certificates(args)

    results = read_store(args.directory, part_choice(args))
    if args.format == "features":
        frame = _changes_table(args.directory)
    elif args.format == "statistics":
        frame = _statistics_table(results)
    elif args.format == "verona":
        note_checks(Distribution.from_run(results))
        if left_out := int((~results.columns["correct"]).sum()):
            note(f"{left_out} misclassified inputs are left out, as in the published files")
        split = results.settings.split or ""
        frame = verona_frame(results.brackets, grid=results.grid, split=split)
    else:
        frame = frame_of_columns(results.columns)
    if args.format == "parquet" and args.output is None:
        raise StoreError("parquet is binary: name a file with --output")
    write_frame(frame, args.output, as_parquet=args.format == "parquet")
    return 0


def _export_certificates(args: argparse.Namespace) -> int:
    from radii.runs import export_certificates

    written = export_certificates(args.directory, args.certificates, networks=args.network)
    say(f"{written.folder}: {written.count} certificates; check them on any machine by")
    for name, files in written.files.items():
        if files:
            folder = written.folder / name
            say(f"  python -m radii_check {folder}/*.cert --network {folder}.onnx")
    return 0


def _statistics_table(results: Run) -> pd.DataFrame:
    """A row for each network with every statistic of the catalogue."""
    import pandas as pd

    from radii.statistics import Distribution, statistics_of

    parts = Distribution.from_run(results).by_network()
    return pd.DataFrame(
        [
            {"network": name, "inputs": len(part), **statistics_of(part)}
            for name, part in parts.items()
        ]
    )


def _changes_table(directory: Path) -> pd.DataFrame:
    """A row for each feature that a counterexample changes."""
    import pandas as pd

    from radii.statistics import named_witnesses

    rows = [
        {
            "network": one.measurement.network,
            "input": one.measurement.input,
            "label": one.measurement.label,
            "becomes": one.measurement.witness_class,
            "upper": one.measurement.bracket.upper,
            **change.flat(),
        }
        for one in named_witnesses(directory).values()
        for change in one.changes
    ]
    if not rows:
        note(
            f"{directory}: no counterexample of features with names; data with a header, or "
            "--features, give them some"
        )
    return pd.DataFrame(rows, columns=CHANGE_COLUMNS)
