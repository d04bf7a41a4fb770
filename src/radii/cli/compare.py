"""`radii compare`: the statistics between networks, or between the parts of each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli.options import add_json_flag
from radii.cli.parsing import number
from radii.cli.sources import add_only_flag
from radii.errors import DataError, StoreError

if TYPE_CHECKING:
    from radii.cli.comparing import GroupComparison


DESCRIPTION = (
    "Compare networks pair by pair, or the classes, targets or splits of each: "
    "tests with Holm's correction, effect sizes, who is more robust at which eps."
)

EPILOG = """examples:
  radii compare standard adversarial
  radii compare results                              the networks of one run
  radii compare results published.csv --eps 0.01,0.02,0.05
  radii compare results --by class --eps 0.02        the classes of each network, and fairness
  radii compare train test --by split                training against testing inputs
  radii compare results --only class=3 --only class=5
  radii compare results --fit                        which parametric family describes the radii
  radii compare results --json
  radii compare results --csv tables                 summary, comparisons, spearman, quality
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="DIR", help="the --out of a run, or a results file"
    )
    parser.add_argument(
        "--by",
        choices=("network", "class", "target", "split", "training"),
        default="network",
        help="what is compared (network); others are compared within each network",
    )
    add_only_flag(parser)
    parser.add_argument("--eps", metavar="E[,E...]", help="also robust accuracy at these radii")
    parser.add_argument(
        "--inputs",
        choices=("correct", "all"),
        default="correct",
        help="on inputs that are classified correctly (default, as in the papers), or on all",
    )
    parser.add_argument(
        "--side", choices=("lower", "upper"), default="lower", help="for tests of one side (lower)"
    )
    parser.add_argument("--level", type=float, default=0.95, metavar="P", help="confidence (0.95)")
    parser.add_argument(
        "--permutations", type=int, default=4999, metavar="N", help="of the permutation tests"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the permutations (0)")
    parser.add_argument(
        "--split", default="", help="names the inputs of results that do not say it"
    )
    parser.add_argument(
        "--distrust", action="store_true", help="drop published proofs that their row refutes"
    )
    parser.add_argument(
        "--fit",
        action="store_true",
        help="also log-normal, normal, Weibull and gamma fits, with tests of each",
    )
    parser.add_argument("--csv", type=Path, metavar="DIR", help="write the tables there, as CSV")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.cli.comparing import ComparisonOptions, compare_groups
    from radii.cli.fitting import fit_rows
    from radii.cli.json_output import print_json
    from radii.cli.sources import note_arithmetics, note_published, read_distributions, selected

    options = ComparisonOptions(
        by=args.by,
        eps=eps_values(args.eps),
        inputs=args.inputs,
        side=args.side,
        level=confidence_level(args.level),
        permutations=_count(args.permutations),
        seed=args.seed,
    )
    distribution = read_distributions(args.places, split=args.split, distrust=args.distrust)
    distribution = selected(distribution, args.only)
    compared = compare_groups(distribution, options)
    note_published(distribution)
    note_arithmetics(distribution)
    fits = fit_rows(compared.groups, args.seed) if args.fit else []
    if args.csv is not None:
        _write_comparison(compared, fits, args.csv)
    if args.json:
        print_json({**_comparison_object(compared), "fits": fits})
    else:
        _print_comparison(compared, fits)
    return 0


def eps_values(text: str | None) -> tuple[float, ...]:
    """Radii from a flag such as 0.01,0.02 or 8/255."""
    found = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        try:
            value = number(part)
        except argparse.ArgumentTypeError as error:
            raise DataError(f"--eps {error}") from None
        if not 0 <= value < float("inf"):
            raise DataError(f"--eps {part.strip()} must be a finite number >= 0")
        found.append(value)
    return tuple(found)


def confidence_level(level: float) -> float:
    """A level from a flag, checked."""
    if not 0.5 <= level < 1:
        raise DataError(f"--level {level:g} is a confidence of at least 0.5 and below 1")
    return level


def _count(permutations: int) -> int:
    if not 19 <= permutations <= 1_000_000:
        raise DataError(f"--permutations {permutations} must be between 19 and 1000000")
    return permutations


def _comparison_object(compared: GroupComparison) -> dict[str, Any]:
    return {
        "by": compared.options.by,
        "inputs": compared.options.inputs,
        "level": compared.options.level,
        "summary": compared.summaries(),
        "comparisons": compared.pairs(),
        "spearman": compared.correlation_rows(),
        "quality": compared.qualities(),
        "fairness": compared.fairness_sentences(),
    }


def _write_comparison(compared: GroupComparison, fits: list[dict[str, Any]], folder: Path) -> None:
    import pandas as pd

    from radii.cli.csv_output import write_csv

    summaries = [
        {
            **{name: value for name, value in row.items() if name != "robust_accuracy"},
            **{
                f"{name} at {share['eps']:g}": share[name]
                for share in row["robust_accuracy"]
                for name in ("proven", "not_refuted", "low", "high")
            },
        }
        for row in compared.summaries()
    ]
    tables: dict[str, Sequence[dict[str, Any]]] = {
        "summary": summaries,
        "comparisons": compared.pair_rows(),
        "spearman": compared.correlation_rows(),
        "quality": compared.qualities(),
        "fits": fits,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            if rows:
                write_csv(pd.DataFrame(rows), folder / f"{name}.csv")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror or error})") from None


def _print_comparison(compared: GroupComparison, fits: list[dict[str, Any]]) -> None:
    from radii.cli import compare_tables as tables
    from radii.cli.console import Console
    from radii.cli.fitting import fit_sentences

    console = Console(highlight=False)
    console.print(tables.group_table(compared))
    if compared.options.eps:
        console.print(tables.accuracy_table(compared))
    console.print(tables.test_table(compared))
    console.print(tables.effect_table(compared))
    console.print("Who is more robust where? On these inputs:")
    for found in compared.comparisons:
        console.print(f"  {found.dominance}")
    console.print("Among all inputs:")
    for sentence in compared.confident:
        console.print(f"  {sentence}")
    for sentence in compared.fairness_sentences():
        console.print(sentence)
    for sentence in fit_sentences(fits):
        console.print(sentence)
    if compared.correlations is not None:
        console.print(tables.correlation_table(compared.correlations, compared.distribution))
    console.print(tables.quality_table(compared))
