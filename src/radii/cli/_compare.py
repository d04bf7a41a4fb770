"""`radii compare`: the statistics between networks, or between the parts of each."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii import statistics, views
from radii.cli._options import (
    add_eps_flag,
    add_json_flag,
    add_latex_flag,
    add_level_flag,
    add_options,
)
from radii.cli._output import check_file, print_json, print_parts, write_csv, writing
from radii.cli._sources import (
    add_claim_flags,
    add_only_flag,
    add_part_flags,
    add_places,
    brackets_of,
    note_arithmetics,
    note_checks,
    note_published,
    part_choice,
    read_runs,
    selected,
)
from radii.errors import DataError
from radii.runs import Option, whole
from radii.terminal import note

if TYPE_CHECKING:
    from radii.statistics import Distribution, Run


NAMED_GROUPS = ("network", "class", "target", "split", "training")
"""What `--by` knows by name; everything else is a column of the data."""

PERMUTATIONS = Option(
    name="permutations",
    form=whole(least=19, below=2**20),
    help="number of permutations in tests (4999)",
)

FIRST = "by only eps inputs fit csv html json latex"

DESCRIPTION = (
    "Compare networks pair by pair, or the classes, targets or splits of each: "
    "tests with Holm's correction, effect sizes, who is more robust at which eps."
)

EPILOG = """examples:
  radii compare standard adversarial
  radii compare results                              the networks of one run
  radii compare results published.csv --eps 0.01,0.02,0.05
  radii compare results --by class --eps 0.02        the classes of each network, and fairness
  radii compare results --by sex --groups people.csv    groups by a column of the data
  radii compare train test --by split                training against testing inputs
  radii compare results --only class=3 --only class=5
  radii compare results --fit                        which parametric family describes the radii
  radii compare standard adversarial --html compare.html    a page, every input side by side
  radii compare results --latex                      the tables for a paper
  radii compare results --json
  radii compare results --csv tables                 summary, comparisons, spearman, quality
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_places(parser)
    parser.add_argument(
        "--by",
        metavar="NAME",
        default="network",
        help="what is compared: network (default); within each network class, target, split, "
        "training, or a column of the data by its name",
    )
    parser.add_argument(
        "--groups",
        type=Path,
        metavar="FILE.csv",
        help="table with that column, a row for each input of the data; default: the features",
    )
    add_only_flag(parser)
    add_eps_flag(parser, "also robust accuracy at these radii")
    parser.add_argument(
        "--inputs",
        choices=("correct", "all"),
        default="correct",
        help="compare on correctly classified inputs (default, as in the papers), or on all",
    )
    parser.add_argument(
        "--side",
        choices=("lower", "upper"),
        default="lower",
        help="which side of the brackets one-sided tests use (lower)",
    )
    add_level_flag(parser)
    PERMUTATIONS.add_to(parser, default=4999)
    add_options(parser, seed={"default": 0, "help": "seed of the permutations (0)"})
    add_claim_flags(parser)
    parser.add_argument(
        "--fit",
        action="store_true",
        help="also log-normal, normal, Weibull and gamma fits, with tests of each",
    )
    parser.add_argument(
        "--csv", type=Path, metavar="DIR", help="write the tables to this folder, as CSV"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write a page that shows inputs side by side"
    )
    add_part_flags(parser)
    add_json_flag(parser)
    add_latex_flag(parser)


def run(args: argparse.Namespace) -> int:
    options = statistics.ComparisonOptions(
        by=args.by if args.by in NAMED_GROUPS else "group",
        eps=args.eps,
        inputs=args.inputs,
        side=args.side,
        level=args.level,
        permutations=args.permutations,
        seed=args.seed,
    )
    runs, distribution = _read(args)
    distribution = selected(distribution, args.only)
    compared = statistics.compare_groups(distribution, options, note=note)
    note_published(distribution)
    note_arithmetics(distribution)
    note_checks(distribution)
    fits = statistics.fit_rows(compared.groups, args.seed) if args.fit else []
    if args.csv is not None:
        _write_tables(views.comparison_rows(compared, fits), args.csv)
    if args.html is not None:
        views.write_comparison(runs, views.comparison_object(compared, fits), args.html)
        note(f"{args.html}: {args.html.stat().st_size / 1e3:.0f} kB, opens in any browser")
    if args.json:
        print_json(views.comparison_object(compared, fits))
    else:
        print_parts(views.comparison_parts(compared, fits), as_latex=args.latex)
    return 0


def _read(args: argparse.Namespace) -> tuple[list[Run], Distribution]:
    """Runs for a page, where one is asked for, and the brackets of all."""
    is_grouped = args.by not in NAMED_GROUPS
    if args.groups is not None and not is_grouped:
        raise DataError(f"--groups has no use without --by and one of its columns, not {args.by}")
    if args.html is not None and (args.only or args.by != "network"):
        raise DataError("--html shows whole runs: leave out --only and --by")
    check_file(args.html, "--html")
    runs = read_runs(
        args.places,
        split=args.split,
        distrust=args.distrust,
        joins_splits=args.html is None,
        choice=part_choice(args),
    )
    if is_grouped:
        runs = [statistics.grouped(run, args.by, args.groups) for run in runs]
    return runs, brackets_of(runs)


def _write_tables(tables: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    import pandas as pd

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            if rows:
                write_csv(pd.DataFrame(rows), folder / f"{name}.csv")
