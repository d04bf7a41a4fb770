"""`radii compare`: the statistics between networks, or between the parts of each."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import add_json_flag, add_latex_flag, confidence_level, eps_values
from radii.cli._output import interval, number_or_dash, print_json, write_csv, writing
from radii.cli._sources import add_only_flag, add_part_flags, part_choice
from radii.errors import DataError
from radii.terminal import note

if TYPE_CHECKING:
    from rich.table import Table

    from radii.cli._tables import Cell
    from radii.statistics import Correlations, Distribution, GroupComparison, Run


SHORT_TEST_NAMES = {
    "permutation of scores": "scores",
    "permutation of curves": "curves",
    "Kolmogorov-Smirnov": "KS",
    "Welch's t": "t",
    "Mann-Whitney": "M-W",
}

NAMED_GROUPS = ("network", "class", "target", "split", "training")
"""What `--by` knows by name; everything else is a column of the data."""

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
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="DIR", help="the --out of a run, or a results file"
    )
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
    parser.add_argument("--eps", metavar="E[,E...]", help="also robust accuracy at these radii")
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
    parser.add_argument("--level", type=float, default=0.95, metavar="P", help="confidence (0.95)")
    parser.add_argument(
        "--permutations",
        type=int,
        default=4999,
        metavar="N",
        help="number of permutations in tests (4999)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the permutations (0)"
    )
    parser.add_argument(
        "--split", default="", help="split of the inputs, where the results do not name it"
    )
    parser.add_argument(
        "--distrust", action="store_true", help="drop published proofs that their row refutes"
    )
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
    from radii.cli._sources import note_arithmetics, note_checks, note_published, selected
    from radii.statistics import ComparisonOptions, compare_groups, fit_rows

    options = ComparisonOptions(
        by=args.by if args.by in NAMED_GROUPS else "group",
        eps=eps_values(args.eps),
        inputs=args.inputs,
        side=args.side,
        level=confidence_level(args.level),
        permutations=_count(args.permutations),
        seed=args.seed,
    )
    runs, distribution = _read(args)
    distribution = selected(distribution, args.only)
    compared = compare_groups(distribution, options, note=note)
    note_published(distribution)
    note_arithmetics(distribution)
    note_checks(distribution)
    fits = fit_rows(compared.groups, args.seed) if args.fit else []
    if args.csv is not None:
        _write_comparison(compared, fits, args.csv)
    if args.html is not None:
        _write_page(runs, {**_comparison_object(compared), "fits": fits}, args.html)
    if args.json:
        print_json({**_comparison_object(compared), "fits": fits})
    else:
        _print_comparison(compared, fits, as_latex=args.latex)
    return 0


def _read(args: argparse.Namespace) -> tuple[list[Run], Distribution]:
    """Runs for a page, where one is asked for, and the brackets of all."""
    from radii.cli._sources import read_distributions, read_runs
    from radii.statistics import Distribution, grouped

    if args.groups is not None and args.by in NAMED_GROUPS:
        raise DataError(f"--groups has no use without --by and one of its columns, not {args.by}")
    if args.html is None and args.by not in NAMED_GROUPS:
        runs = read_runs(
            args.places,
            split=args.split,
            distrust=args.distrust,
            joins_splits=True,
            choice=part_choice(args),
        )
        several = (grouped(run, args.by, args.groups) for run in runs)
        return [], Distribution.union(map(Distribution.from_run, several))
    if args.html is None:
        return [], read_distributions(
            args.places, split=args.split, distrust=args.distrust, choice=part_choice(args)
        )
    if args.only or args.by != "network":
        raise DataError("--html shows whole runs: leave out --only and --by")
    if args.html.is_dir():
        raise DataError(f"{args.html} is a directory: name a file with --html")
    runs = read_runs(
        args.places, split=args.split, distrust=args.distrust, choice=part_choice(args)
    )
    return runs, Distribution.union(map(Distribution.from_run, runs))


def _write_page(runs: Sequence[Run], statistics: dict[str, Any], path: Path) -> None:
    from radii.views import write_comparison

    write_comparison(runs, statistics, path)
    note(f"{path}: {path.stat().st_size / 1e3:.0f} kB, opens in any browser")


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
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            if rows:
                write_csv(pd.DataFrame(rows), folder / f"{name}.csv")


def _print_comparison(
    compared: GroupComparison, fits: list[dict[str, Any]], *, as_latex: bool
) -> None:
    from radii.cli._tables import console_for

    console = console_for(as_latex=as_latex, highlight=False)
    console.print(_group_table(compared))
    if compared.options.eps:
        console.print(_accuracy_table(compared))
    console.print(_test_table(compared))
    console.print(_effect_table(compared))
    console.print("Who is more robust where? On these inputs:")
    for pair in compared.comparisons:
        console.print(f"  {pair.dominance}")
    console.print("Among all inputs:")
    for sentence in compared.confident:
        console.print(f"  {sentence}")
    for sentence in (*compared.fairness_sentences(), *_fit_sentences(fits)):
        console.print(sentence)
    if compared.correlations is not None:
        console.print(_correlation_table(compared.correlations, compared.distribution))
    console.print(_quality_table(compared))


def _group_table(compared: GroupComparison) -> Table:
    """A row for each group."""
    from radii.statistics import inputs_with_radius

    summaries = compared.summaries()
    has_unsolved = any(row["unsolved"] for row in summaries)
    rows = [
        [
            row["group"],
            f"{row['correct']}/{row['inputs']}",
            *([str(row["unsolved"])] if has_unsolved else []),
            *(
                interval(row[f"{name}_lower"], row[f"{name}_upper"])
                for name in ("lowest", "mean", "median")
            ),
        ]
        for row in summaries
    ]
    columns = ("correct", *(["no answer"] if has_unsolved else []), "lowest", "mean", "median")
    caption = f"radii of {inputs_with_radius(compared.distribution)}, proven–witnessed"
    if has_unsolved:
        caption += "; no answer: nothing proven, nothing witnessed, so a radius may be any"
    return _named_table("Summary", (compared.options.by, *columns), rows, caption)


def _accuracy_table(compared: GroupComparison) -> Table:
    """For each group and eps, robust accuracy of these inputs, and below it of all inputs."""
    from radii.cli._tables import stacked

    rows = []
    endings = []
    for row in compared.summaries():
        shares = row["robust_accuracy"]
        cells = [
            stacked(
                f"{share['proven']:.2f}–"
                f"{'?' if share['unsearched'] else format(share['not_refuted'], '.2f')}",
                f"({share['low']:.2f}–{share['high']:.2f})",
            )
            for share in shares
        ]
        rows.append([row["group"], *cells])
        endings += [share["unsearched"] for share in shares if share["unsearched"]]
    caption = (
        "share of all inputs, proven–not refuted; in brackets with "
        f"{100 * compared.options.level:g} % confidence, for each eps alone"
        + "".join(f"; ?: {why}" for why in dict.fromkeys(endings))
    )
    columns = (compared.options.by, *(f"{eps:g}" for eps in compared.options.eps))
    return _named_table("Robust accuracy at eps", columns, rows, caption)


def _test_table(compared: GroupComparison) -> Table:
    """For each pair the p-values as they are, and below them after Holm's correction."""
    from radii.cli._tables import stacked

    order = [test.test for test in compared.comparisons[0].all_tests]
    order = [*order[3:], *order[:3]]  # the tests that know of brackets and matching first
    left_out = any(any(pair.left_out) for pair in compared.comparisons)
    rows = []
    for place, pair in enumerate(compared.comparisons):
        tests = {test.test: test for test in pair.all_tests}
        one, two = pair.inputs
        p_values = (
            stacked(_p(tests[name].p_value), _p(compared.adjusted[name][place])) for name in order
        )
        rows.append(
            [
                stacked(*pair.names),
                stacked("raw", "Holm"),
                stacked(f"{one}", "matched" if pair.is_matched else f"{two}"),
                *([stacked(*map(str, pair.left_out))] if left_out else []),
                *p_values,
            ]
        )
    caption = (
        "scores, curves: permutations of the brackets, which exchange those of one input where "
        "inputs are matched, and take equal radii to get equally wide brackets; "
        f"KS, t, M-W: on the {compared.options.side} sides, as if independent"
    )
    if left_out:
        caption += (
            "; left out: results without an answer, which have no value for curves, KS, t and M-W "
            "(of matched inputs those that either lacks); scores keep them as intervals"
        )
    names = [SHORT_TEST_NAMES.get(name, name) for name in order]
    columns = ("pair", "p", "inputs", *(["left out"] if left_out else []), *names)
    return _named_table("Do they differ? p-values", columns, rows, caption, keys=2)


def _effect_table(compared: GroupComparison) -> Table:
    """For each pair how large the difference is, first minus second."""
    from radii.cli._tables import stacked

    rows = []
    for pair in compared.comparisons:
        delta, means = pair.delta, pair.means
        difference = stacked(f"{means.proven:+.4f}", f"±{means.error:.4f}")
        rows.append(
            [
                stacked(*pair.names),
                stacked(
                    f"{delta.least:+.2f} to {delta.most:+.2f}",
                    f"({delta.low:+.2f} to {delta.high:+.2f})",
                ),
                "-" if math.isnan(means.proven) else difference,
            ]
        )
    caption = (
        "positive: the first has the larger radii; delta in brackets with "
        f"{100 * compared.options.level:g} % confidence; means are of proven sides, ± their "
        "standard error"
    )
    if any(any(pair.left_out) for pair in compared.comparisons):
        caption += "; means leave out what the tests leave out, delta counts it as open"
    columns = ("pair", "Cliff's delta", "difference of means")
    return _named_table("How much?", columns, rows, caption)


def _correlation_table(correlations: Correlations, distribution: Distribution) -> Table:
    """Spearman's coefficients; a star where they differ from 0 after Holm's correction."""
    from radii.statistics import inputs_with_radius

    count = len(correlations.networks)
    rows = []
    for one, name in enumerate(correlations.networks):
        cells = []
        for two in range(count):
            star = "*" if correlations.adjusted[one, two] < 0.05 else ""
            value = correlations.coefficients[one, two]
            cells.append("-" if math.isnan(value) else f"{value:.2f}{star}")
        rows.append([f"{one + 1} {name}", *cells])
    inputs = inputs_with_radius(distribution)
    caption = f"* p < 0.05 after Holm's correction; over {inputs} for both networks"
    if any(correlations.left_out):
        caption += f"; left out: {sum(correlations.left_out)} results without an answer"
    columns = ("network", *(str(place + 1) for place in range(count)))
    return _named_table("Are the same inputs hard? Spearman", columns, rows, caption)


QUALITY_COLUMNS = {
    "gap": ("mean_gap", ".4f"),
    "largest": ("largest_gap", ".4f"),
    "open": ("without_witness", ".0%"),
    "unsolved": ("unsolved", ".0%"),
    "critical": ("critical", ".0%"),
    "missing": ("missing", "d"),
    "time-outs": ("timeouts", "d"),
    "s each": ("mean_seconds", ".2f"),
}
"""A column's name, the field of `Quality` that it shows, and how."""


def _quality_table(compared: GroupComparison) -> Table:
    """For each group how tight the brackets are, what is missing, what it cost."""
    from radii.statistics import inputs_with_radius

    qualities = compared.qualities()
    shown = {
        name: (field, form)
        for name, (field, form) in QUALITY_COLUMNS.items()
        if any(number_or_dash(row[field], form) != "-" for row in qualities)
    }
    rows = [
        [row["group"], *(number_or_dash(row[field], form) for field, form in shown.values())]
        for row in qualities
    ]
    caption = (
        f"of {inputs_with_radius(compared.distribution)}; gap: mean width of their brackets; "
        "open: without a witness; unsolved: without a proof, too"
        + ("; critical: an answer between the sides is missing" if "critical" in shown else "")
    )
    return _named_table("Quality", (compared.options.by, *shown), rows, caption)


def _named_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], caption: str, keys: int = 1
) -> Table:
    from radii.cli._tables import table

    return table(title, columns, rows, name_width=12, caption=caption, keys=keys)


def _fit_sentences(rows: list[dict[str, Any]]) -> list[str]:
    """For each group the family of the smallest AIC, and what the tests say of every family."""
    sentences: list[str] = []
    for name in dict.fromkeys(row["group"] for row in rows):
        members = [row for row in rows if row["group"] == name]
        fitted = [row for row in members if row["aic"] is not None]
        if fitted:
            best = min(fitted, key=lambda row: float(row["aic"]))
            sentences.append(f"{name}: by AIC the best is the {best['fit']}.")
        else:
            sentences.append(f"{name}: no family can be fitted.")
        sentences += [f"  {row['verdict']}" for row in members]
    return sentences


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"
