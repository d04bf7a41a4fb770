"""`radii show`: what an experiment found, as a table or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from radii import statistics, views
from radii.cli._options import add_json_flag, add_latex_flag
from radii.cli._output import console_for, print_json
from radii.cli._sources import add_part_flags, brackets_of, part_choice
from radii.errors import ExperimentError
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii.statistics import Run
    from radii.store import Store, StudyStep


DESCRIPTION = "Print a summary of each network, or every bracket."

EPILOG = """examples:
  radii show results
  radii show results --instances         a row for each input
  radii show results --counterexamples   income +3 % (41200 to 42436); fixed: age
  radii show results --statistics        queries, seconds and missing answers of the search
  radii show results --latex             the table for a paper
  radii show results --json
  radii show results --norm linf         of results that have grown: only those in this norm
  radii show published.csv               a file in the published (VERONA) columns
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the --out of a run")
    parser.add_argument("--instances", action="store_true", help="a row for each input")
    parser.add_argument(
        "--counterexamples",
        action="store_true",
        help="what each counterexample changes, by the names of the features",
    )
    parser.add_argument(
        "--statistics",
        action="store_true",
        help="what the search cost: queries, seconds and missing answers",
    )
    add_part_flags(parser)
    add_json_flag(parser)
    add_latex_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.store import Store

    choice, is_file = part_choice(args), args.directory.is_file()
    if is_file and args.statistics:
        raise ExperimentError(
            f"{args.directory}: --statistics needs the --out of a run; a table holds no queries"
        )
    steps: Sequence[StudyStep] = ()
    if is_file:
        runs = [statistics.read(args.directory)]
    else:
        with Store.open(args.directory) as store:
            if args.statistics:
                _print_effort(statistics.read_store(store, choice), args)
                return 0
            runs, steps = statistics.read_parts(store, choice), store.steps()
    if args.counterexamples and not args.json and not is_file:
        for results in runs:
            say(*views.change_sentences(results))
        return 0
    for sentence in (sentence for each in runs for sentence in each.notes):
        note(sentence)
    print_runs(runs, as_json=args.json, as_latex=args.latex, instances=args.instances, steps=steps)
    return 0


def _print_effort(results: Run, args: argparse.Namespace) -> None:
    """Print what the search cost, a row for each network."""
    whole = statistics.Distribution.from_run(results)
    efforts = {name: statistics.effort_of(part) for name, part in whole.by_network().items()}
    if args.json:
        networks = [{"network": name, "statistics": one} for name, one in efforts.items()]
        print_json({"networks": networks})
        return
    if len(efforts) > 1:
        efforts["all"] = statistics.effort_of(whole)
    console_for(as_latex=args.latex).print(*views.effort_tables(efforts, results.settings))


def print_store(store: Store, *, as_json: bool) -> None:
    """Print an experiment's distribution, and loudly any disagreement."""
    steps = store.steps() if as_json else ()
    print_runs(statistics.read_parts(store), as_json=as_json, steps=steps)


def print_runs(
    runs: Sequence[Run],
    *,
    as_json: bool,
    as_latex: bool = False,
    instances: bool = False,
    steps: Sequence[StudyStep] = (),
) -> None:
    """Print what was measured or read, what was asked when, and loudly any disagreement.

    Brackets of several questions are of networks with different names: see `read_parts`.
    """
    if as_json:
        print_json(views.results_object(runs, steps))
        return
    console = console_for(as_latex=as_latex)
    table = views.instance_table if instances else views.summary_table
    whole = brackets_of(runs)
    notes = [f"a part only: {excerpt}" for results in runs for excerpt in results.excerpts]
    console.print(table(whole, [*notes, *(() if as_latex else views.missing_notes(runs))]))
    if len(steps) > 1:
        console.print(views.history_table(steps))
    for row in views.disagreement_objects(runs):
        console.print(
            f"DISAGREEMENT {row['network']} input {row['input']}: {row['disagreement']}",
            style="bold red",
        )
