"""`radii show`: what an experiment found, as a table or as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import add_json_flag, add_latex_flag
from radii.cli._output import number_or_dash, print_json
from radii.cli._sources import add_part_flags, part_choice
from radii.errors import ExperimentError
from radii.terminal import note, say

if TYPE_CHECKING:
    from rich.table import Table

    from radii.problem import Measurement, Result
    from radii.statistics import Distribution, Effort, NamedWitness, Run, Statistic
    from radii.store import Store, StoredSettings, StudyStep
    from radii.strategy import Question


SHOWN_REASONS = 5
"""Reasons for missing answers below a table, the most frequent ones."""

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
    from radii.statistics import read, read_parts, read_store
    from radii.store import Store

    if args.directory.is_file() and args.statistics:
        raise ExperimentError(
            f"{args.directory}: --statistics needs the --out of a run; a table holds no queries"
        )
    choice = part_choice(args)
    if args.directory.is_file():
        results = read(args.directory)
        for sentence in results.notes:
            note(sentence)
        print_runs([results], as_json=args.json, as_latex=args.latex, instances=args.instances)
        return 0
    with Store.open(args.directory) as store:
        if args.statistics:
            results = read_store(store, choice)
            _print_statistics(results, as_json=args.json, as_latex=args.latex)
        elif args.counterexamples and not args.json:
            for results in read_parts(store, choice):
                _print_changes(results)
        else:
            runs, steps = read_parts(store, choice), store.steps()
            for sentence in (sentence for each in runs for sentence in each.notes):
                note(sentence)
            print_runs(
                runs,
                as_json=args.json,
                as_latex=args.latex,
                instances=args.instances,
                steps=steps,
            )
    return 0


def _print_statistics(results: Run, *, as_json: bool, as_latex: bool) -> None:
    """Print what the search cost, a row for each network."""
    from radii.statistics import Distribution, effort_of

    distribution = Distribution.from_run(results)
    efforts = {name: effort_of(part) for name, part in distribution.by_network().items()}
    if as_json:
        networks = [
            {"network": name, "statistics": dataclasses.asdict(effort)}
            for name, effort in efforts.items()
        ]
        print_json({"networks": networks})
        return
    from radii.cli._tables import console_for

    if len(efforts) > 1:
        efforts["all"] = effort_of(distribution)
    console_for(as_latex=as_latex).print(*_effort_tables(efforts, results.settings))


def print_store(store: Store, *, as_json: bool) -> None:
    """Print an experiment's distribution, and loudly any disagreement."""
    from radii.statistics import read_parts

    print_runs(read_parts(store), as_json=as_json, steps=store.steps() if as_json else ())


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
    from radii.statistics import Distribution

    disagreements = [
        {
            "network": results.columns["network"][row].item(),
            "input": results.columns["input"][row].item(),
            "disagreement": str(disagreement),
        }
        for results in runs
        for row, disagreement in results.disagreements
    ]
    if as_json:
        networks = [
            _network_object(part, results, named)
            for results in runs
            for named in [_named(results)]
            for part in Distribution.from_run(results).by_network().values()
        ]
        history = [_step_object(step) for step in steps]
        print_json({"networks": networks, "history": history, "disagreements": disagreements})
        return
    from radii.cli._tables import console_for

    console = console_for(as_latex=as_latex)
    shown = instance_table if instances else summary_table
    whole = Distribution.union(map(Distribution.from_run, runs))
    parts = [f"a part only: {excerpt}" for results in runs for excerpt in results.excerpts]
    console.print(shown(whole, [*parts, *(() if as_latex else _missing_notes(runs))]))
    if len(steps) > 1:
        console.print(_history_table(steps))
    for row in disagreements:
        console.print(
            f"DISAGREEMENT {row['network']} input {row['input']}: {row['disagreement']}",
            style="bold red",
        )


def _missing_notes(runs: Sequence[Run]) -> list[str]:
    """Why answers are missing, as lines below a table."""
    from radii.statistics import missing_reasons

    reasons = missing_reasons(record for results in runs for record in results.records)
    notes = [f"no answer: {reason}" for reason in reasons[:SHOWN_REASONS]]
    others = sum(reason.count for reason in reasons[SHOWN_REASONS:])
    return [*notes, f"and {others} for other reasons: --json has them"] if others else notes


def _named(results: Run) -> Mapping[Any, NamedWitness]:
    """What counterexamples change, by the names of features; nothing where they have none."""
    from radii.statistics import features_of, named_witnesses

    has_store = results.is_measured and results.place.is_dir()
    is_named = has_store and features_of(results.settings) is not None
    return named_witnesses(results.place) if is_named else {}


def _print_changes(results: Run) -> None:
    """A line for each counterexample: what it changes, and what stays."""
    named = _named(results)
    if not named:
        say(
            f"{results.place}: no counterexample of features with names; data with a header, or "
            "--features, give them some"
        )
    for one in named.values():
        m = one.measurement
        words = results.settings.class_text
        where = f"{m.network.removesuffix('.onnx')}, input {m.input}"
        label, seen = words(m.label), words(m.witness_class)
        if m.bracket.upper == 0:
            say(f"{where}: class {label} is taken for {seen} without any change")
        else:
            say(f"{where} at {m.bracket.upper:.4g}: class {label} becomes {seen}: {one}")


def _history_table(steps: Sequence[StudyStep]) -> Table:
    """What was asked when, in local time."""
    from datetime import datetime

    from radii.cli._tables import text_table

    rows = []
    for step in steps:
        when = datetime.fromisoformat(step.asked_at).astimezone()
        added = step.summary or step.settings.source or "the first inputs"
        rows.append((f"{when:%Y-%m-%d %H:%M}", added if step.ended_at else f"{added} (unfinished)"))
    return text_table("What was asked", ("when", "added"), rows)


def _step_object(step: StudyStep) -> dict[str, Any]:
    return {
        "step": step.number,
        "asked_at": step.asked_at,
        "ended_at": step.ended_at,
        "added": step.summary,
        "settings": dict(step.described),
    }


def _network_object(
    part: Distribution, results: Run, named: Mapping[Any, NamedWitness]
) -> dict[str, Any]:
    """`arithmetic` is what was asked for; each proof has its own."""
    from radii.statistics import question_of, statistics_of

    first, settings = part.measurements[0], results.settings
    names = {record.facts.fingerprint: record.facts.network for record in results.records}
    pairs = zip(results.measurements, results.records, strict=False)
    unanswered = {question_of(measured): record.unanswered for measured, record in pairs}
    return {
        "network": names.get(first.fingerprint, first.network),
        "fingerprint": first.fingerprint,
        "property": settings.text_of("property"),
        "norm": settings.text_of("norm"),
        "arithmetic": settings.text_of("arithmetic"),
        "shard": ", ".join(str(one.shard) for one in results.excerpts) or None,
        "unsolved": part.unsolved,
        "summary": statistics_of(part),
        "instances": [
            {
                **_instance_object(m),
                "unanswered": [
                    _reason_object(*each) for each in unanswered.get(question_of(m), ())
                ],
                **(_changes_object(named.get(question_of(m))) if named else {}),
            }
            for m in part.measurements
        ],
    }


def _reason_object(question: Question, result: Result) -> dict[str, Any]:
    """Why there is no answer, or one that falls short of what was asked for."""
    return {
        "kind": question.kind.value,
        "eps": question.eps,
        "ending": result.ending.value,
        "verifier": result.author,
        "message": result.message,
    }


def _changes_object(one: NamedWitness | None) -> dict[str, Any]:
    if one is None:
        return {"changes": None, "fixed": None}
    return {"changes": [change.flat() for change in one.changes], "fixed": list(one.fixed)}


def _instance_object(m: Measurement) -> dict[str, Any]:
    return {
        "input": m.input,
        "label": m.label,
        "predicted": m.predicted,
        "correct": m.correct,
        "target": m.target,
        "lower": m.bracket.lower,
        "upper": None if math.isinf(m.bracket.upper) else m.bracket.upper,
        "witness_class": m.witness_class,
        "seconds": round(m.seconds, 6),
        "cpu_seconds": None if m.cpu_seconds is None else round(m.cpu_seconds, 6),
        "queries": m.queries,
        "missing": m.missing,
        "cancelled": m.cancelled,
        "arithmetic": None if m.arithmetic is None else str(m.arithmetic),
        "proof": None if m.proof is None else m.proof.value,
        "checked_by": m.checked_by,
        "certificate": m.certificate,
    }


def summary_table(distribution: Distribution, notes: Sequence[str] = ()) -> Table:
    """For each network how many, how robust, how tight and how costly; `notes` stand below it."""
    from radii.cli._tables import stacked, table
    from radii.statistics import CATALOGUE, StatisticUnit, arithmetics, proof_checks, proof_scope

    parts, only = distribution.by_network(), distribution.only_eps
    is_mixed = len(arithmetics(distribution)) > 1
    known = [
        (one, [one(part) for part in parts.values()])
        for one in CATALOGUE.values()
        if one.in_summary and (only is None or one.unit is not StatisticUnit.BRACKET)
    ]
    # A count that is 0 for every network says nothing.
    shown = [each for each in known if each[0].unit is not StatisticUnit.COUNT or any(each[1])]
    rows = [
        [
            name,
            f"{int(part.correct.sum())}/{len(part)}",
            *([] if only is None else [str(part.robust_accuracy(only))]),
            *(one.text(values[place]) for one, values in shown),
            *([_counts(part)] if is_mixed else []),
        ]
        for place, (name, part) in enumerate(parts.items())
    ]
    robustness = [] if only is None else [f"robust accuracy at {only:g}"]
    titles = (*robustness, *(one.title for one, _ in shown), *["proofs"] * is_mixed)
    caption = _summary_caption(distribution, [one for one, _ in shown])
    return table(
        "Robustness distributions",
        ("network", "correct", *titles),
        rows,
        name_width=16,
        caption=stacked(
            *filter(None, (caption, proof_scope(distribution), proof_checks(distribution))), *notes
        ),
    )


def _summary_caption(distribution: Distribution, shown: Sequence[Statistic]) -> str:
    """Which inputs are meant, and what the columns are whose titles do not say it."""
    from radii.statistics import StatisticUnit, inputs_with_radius

    inputs = inputs_with_radius(distribution)
    what = f"radii of {inputs}, proven–witnessed"
    if distribution.only_eps is not None:
        what = f"share of all inputs, [proven, not refuted]; gaps are of {inputs}"
    plain = (StatisticUnit.BRACKET, StatisticUnit.SECONDS)
    return "; ".join([what, *(f"{s.title}: {s.about}" for s in shown if s.unit not in plain)])


def _counts(part: Distribution) -> str:
    """How many proofs in which arithmetic, as in `18 float, 2 real`."""
    from radii.statistics import arithmetics

    counts = reversed(arithmetics(part).items())
    return ", ".join(f"{count} {arithmetic}" for arithmetic, count in counts) or "none"


INSTANCE_COLUMNS: dict[str, Callable[[Measurement], str]] = {
    "input": lambda m: str(m.input),
    "label": lambda m: str(m.label),
    "predicted": lambda m: str(m.predicted),
    "target": lambda m: "" if m.target is None else str(m.target),
    "lower": lambda m: f"{m.bracket.lower:.6g}",
    "upper": lambda m: "none" if math.isinf(m.bracket.upper) else f"{m.bracket.upper:.6g}",
    "becomes": lambda m: "" if m.witness_class is None else str(m.witness_class),
    "arithmetic": lambda m: "" if m.arithmetic is None else str(m.arithmetic),
    "proof": lambda m: "" if m.proof is None else m.proof.value,
    "queries": lambda m: str(m.queries),
    "s": lambda m: f"{m.seconds:.2f}",
}


def instance_table(distribution: Distribution, notes: Sequence[str] = ()) -> Table:
    """A row for each bracket; `notes` stand below it."""
    from radii.cli._tables import stacked, table
    from radii.statistics import arithmetics, proof_checks, proof_scope

    cells = dict(INSTANCE_COLUMNS)
    if all(m.target is None for m in distribution):
        del cells["target"]
    if len(arithmetics(distribution)) < 2:
        del cells["arithmetic"]
    if not proof_checks(distribution):
        del cells["proof"]
    rows = [[m.network, *(cell(m) for cell in cells.values())] for m in distribution]
    known = [*filter(None, (proof_scope(distribution), proof_checks(distribution))), *notes]
    caption = stacked(*known) if known else None
    return table(None, ("network", *cells), rows, name_width=8, caption=caption, keys=2)


def _effort_tables(efforts: Mapping[str, Effort], settings: StoredSettings) -> tuple[Table, Table]:
    """Queries and seconds of an input that was searched; all queries. A row for each network."""
    from radii.cli._tables import table

    caption = "queries of an input: fewest, most, mean; then its mean seconds and time-outs"
    inputs = [[name, *_input_cells(effort)] for name, effort in efforts.items()]
    totals = [[name, *_total_cells(effort)] for name, effort in efforts.items()]
    return (
        table(
            _search_title(settings),
            ("network", "inputs", "fewest", "most", "mean", "CPU s", "wall s", "time-outs"),
            inputs,
            name_width=8,
            caption=caption,
        ),
        table(
            "All queries",
            ("network", "queries", "time-outs", "memory-outs", "missing", "cancelled"),
            totals,
            name_width=8,
        ),
    )


def _search_title(settings: StoredSettings) -> str:
    """How it was searched, and what the theory says of that."""
    from radii.statistics import theoretical_maximum

    if settings.search is None:
        return "Effort"
    k, words = settings.k, [f"Effort of search {settings.search}"]
    if k is not None:
        words.append(f"k = {k}")
    if settings.search in ("k-binary", "binary") and settings.grid is not None:
        most = theoretical_maximum(len(settings.grid), k or 1)
        if most is not None:
            words.append(f"in theory at most {most} queries")
    return ", ".join(words)


def _input_cells(effort: Effort) -> list[str]:
    means = (effort.queries, effort.cpu_seconds, effort.wall_seconds, effort.timeouts)
    counts = (effort.instances, effort.fewest, effort.most)
    return [*map(str, counts), *(number_or_dash(effort.mean(amount), ".2f") for amount in means)]


def _total_cells(effort: Effort) -> list[str]:
    counts = (effort.queries, effort.timeouts, effort.memouts, effort.missing, effort.cancelled)
    return [str(count) for count in counts]
