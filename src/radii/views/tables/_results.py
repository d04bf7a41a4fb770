"""What `radii show` says of runs: tables of networks and of instances, what the search cost and
what counterexamples change, and all of it as an object for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from radii.problem import Measurement, Result
from radii.statistics import (
    CATALOGUE,
    Distribution,
    Effort,
    NamedWitness,
    Run,
    Statistic,
    StatisticUnit,
    arithmetics,
    features_of,
    inputs_with_radius,
    missing_reasons,
    named_witnesses,
    proof_checks,
    question_of,
    statistics_of,
    theoretical_maximum,
)
from radii.store import StoredSettings, StudyStep
from radii.strategy import Question
from radii.views.page._findings import proof_clauses
from radii.views.tables._records import TableColumn, TableRecord

SHOWN_REASONS = 5
"""Reasons for missing answers below a table, the most frequent ones."""


def summary_table(distribution: Distribution, notes: Sequence[str] = ()) -> TableRecord:
    """For each network the statistics of the summary; `notes` stand below it.

    Where one eps was asked about, robust accuracy there stands for the quantiles of the radii. A
    count that is 0 for every network says nothing, and is left out.
    """
    parts, only = distribution.by_network(), distribution.only_eps
    plain = (StatisticUnit.BRACKET, StatisticUnit.SECONDS)
    shown = [
        one
        for one in CATALOGUE.values()
        if one.in_summary
        and (only is None or one.unit is not StatisticUnit.BRACKET)
        and (one.unit is not StatisticUnit.COUNT or any(map(one, parts.values())))
    ]
    inputs = inputs_with_radius(distribution)
    what = f"radii of {inputs}, proven–witnessed"
    if only is not None:
        what = f"share of all inputs, [proven, not refuted]; gaps are of {inputs}"
    abouts = (f"{one.title}: {one.about}" for one in shown if one.unit not in plain)

    def counts(row: tuple[str, Distribution]) -> str:
        """How many proofs in which arithmetic, as in `18 float, 2 real`."""
        strongest_first = reversed(arithmetics(row[1]).items())
        return ", ".join(f"{count} {name}" for name, count in strongest_first) or "none"

    columns = [
        TableColumn("network", lambda row: row[0]),
        TableColumn("correct", lambda row: f"{int(row[1].correct.sum())}/{len(row[1])}"),
        TableColumn(
            f"robust accuracy at {only or 0:g}",
            lambda row: str(row[1].robust_accuracy(only)),
            is_shown=only is not None,
        ),
        *map(statistic_column, shown),
        TableColumn("proofs", counts, is_shown=len(arithmetics(distribution)) > 1),
    ]
    return TableRecord(
        title="Robustness distributions",
        columns=columns,
        rows=list(parts.items()),
        notes=["; ".join([what, *abouts]), *proof_clauses(distribution), *notes],
        name_width=16,
    )


def statistic_column(one: Statistic) -> TableColumn:
    """Of rows with a name and its part of a distribution."""
    return TableColumn(one.title, lambda row: one.text(one(row[1])))


def instance_table(distribution: Distribution, notes: Sequence[str] = ()) -> TableRecord:
    """A row for each bracket; `notes` stand below it."""
    has_target = any(m.target is not None for m in distribution)
    columns = [
        TableColumn("network", lambda m: m.network),
        TableColumn("input", lambda m: m.input),
        TableColumn("label", lambda m: m.label),
        TableColumn("predicted", lambda m: m.predicted),
        TableColumn("target", lambda m: _or_blank(m.target), is_shown=has_target),
        TableColumn("lower", lambda m: m.bracket.lower, ".6g"),
        TableColumn(
            "upper", lambda m: "none" if math.isinf(m.bracket.upper) else f"{m.bracket.upper:.6g}"
        ),
        TableColumn("becomes", lambda m: _or_blank(m.witness_class)),
        TableColumn(
            "arithmetic",
            lambda m: _or_blank(m.arithmetic),
            is_shown=len(arithmetics(distribution)) > 1,
        ),
        TableColumn(
            "proof",
            lambda m: "" if m.proof is None else m.proof.value,
            is_shown=bool(proof_checks(distribution)),
        ),
        TableColumn("queries", lambda m: m.queries),
        TableColumn("s", lambda m: m.seconds, ".2f"),
    ]
    return TableRecord(
        title=None,
        columns=columns,
        rows=list(distribution),
        notes=[*proof_clauses(distribution), *notes],
        keys=2,
        name_width=8,
    )


def _or_blank(value: object) -> str:
    return "" if value is None else str(value)


def missing_notes(runs: Sequence[Run]) -> list[str]:
    """Why answers are missing, as lines below a table."""
    reasons = missing_reasons(record for run in runs for record in run.records)
    notes = [f"no answer: {reason}" for reason in reasons[:SHOWN_REASONS]]
    others = sum(reason.count for reason in reasons[SHOWN_REASONS:])
    return [*notes, f"and {others} for other reasons: --json has them"] if others else notes


def history_table(steps: Sequence[StudyStep]) -> TableRecord:
    """What was asked when, in local time."""

    def added(step: StudyStep) -> str:
        text = step.summary or step.settings.source or "the first inputs"
        return text if step.ended_at else f"{text} (unfinished)"

    def when(step: StudyStep) -> str:
        return f"{datetime.fromisoformat(step.asked_at).astimezone():%Y-%m-%d %H:%M}"

    columns = [TableColumn("when", when), TableColumn("added", added)]
    return TableRecord(title="What was asked", columns=columns, rows=steps, is_text=True)


def effort_tables(efforts: Mapping[str, Effort], settings: StoredSettings) -> list[TableRecord]:
    """Queries and seconds of an input that was searched; all queries. A row for each network."""
    name = TableColumn("network", lambda row: row[0])

    def count(title: str, field: str) -> TableColumn:
        return TableColumn(title, lambda row: getattr(row[1], field))

    def mean(title: str, field: str) -> TableColumn:
        return TableColumn(title, lambda row: row[1].mean(getattr(row[1], field)), ".2f")

    of_inputs = [
        name,
        count("inputs", "instances"),
        count("fewest", "fewest"),
        count("most", "most"),
        mean("mean", "queries"),
        mean("CPU s", "cpu_seconds"),
        mean("wall s", "wall_seconds"),
        mean("time-outs", "timeouts"),
    ]
    of_all = [
        name,
        count("queries", "queries"),
        count("time-outs", "timeouts"),
        count("memory-outs", "memouts"),
        count("missing", "missing"),
        count("cancelled", "cancelled"),
    ]
    note = "queries of an input: fewest, most, mean; then its mean seconds and time-outs"
    rows = list(efforts.items())
    return [
        TableRecord(
            title=_search_title(settings), columns=of_inputs, rows=rows, notes=[note], name_width=8
        ),
        TableRecord(title="All queries", columns=of_all, rows=rows, name_width=8),
    ]


def _search_title(settings: StoredSettings) -> str:
    """How it was searched, and what the theory says of that."""
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


# --- what counterexamples change


def change_sentences(run: Run) -> Iterator[str]:
    """A line for each counterexample: what it changes, and what stays."""
    named, words = _named(run), run.settings.class_text
    if not named:
        yield (
            f"{run.place}: no counterexample of features with names; data with a header, or "
            "--features, give them some"
        )
    for one in named.values():
        m = one.measurement
        where = f"{m.network.removesuffix('.onnx')}, input {m.input}"
        label, seen = words(m.label), words(m.witness_class)
        if m.bracket.upper == 0:
            yield f"{where}: class {label} is taken for {seen} without any change"
        else:
            yield f"{where} at {m.bracket.upper:.4g}: class {label} becomes {seen}: {one}"


def _named(run: Run) -> Mapping[Any, NamedWitness]:
    """What counterexamples change, by the names of features; nothing where they have none."""
    has_store = run.is_measured and run.place.is_dir()
    is_named = has_store and features_of(run.settings) is not None
    return named_witnesses(run.place) if is_named else {}


# --- objects for JSON


def results_object(runs: Sequence[Run], steps: Sequence[StudyStep] = ()) -> dict[str, Any]:
    """Everything that runs hold and what was asked when, with any disagreement."""
    return {
        "networks": [one for run in runs for one in _network_objects(run)],
        "history": [
            {
                "step": step.number,
                "asked_at": step.asked_at,
                "ended_at": step.ended_at,
                "added": step.summary,
                "settings": dict(step.described),
            }
            for step in steps
        ],
        "disagreements": disagreement_objects(runs),
    }


def disagreement_objects(runs: Sequence[Run]) -> list[dict[str, Any]]:
    return [
        {
            "network": run.columns["network"][row].item(),
            "input": run.columns["input"][row].item(),
            "disagreement": str(disagreement),
        }
        for run in runs
        for row, disagreement in run.disagreements
    ]


def _network_objects(run: Run) -> Iterator[dict[str, Any]]:
    """`arithmetic` is what was asked for; each proof has its own."""

    def changes(one: NamedWitness | None) -> dict[str, Any]:
        if one is None:
            return {"changes": None, "fixed": None}
        return {"changes": [change.flat() for change in one.changes], "fixed": list(one.fixed)}

    named, settings = _named(run), run.settings
    names = {record.facts.fingerprint: record.facts.network for record in run.records}
    pairs = zip(run.measurements, run.records, strict=False)
    unanswered = {question_of(measured): record.unanswered for measured, record in pairs}
    for part in Distribution.from_run(run).by_network().values():
        first = part.measurements[0]
        yield {
            "network": names.get(first.fingerprint, first.network),
            "fingerprint": first.fingerprint,
            "property": settings.text_of("property"),
            "norm": settings.text_of("norm"),
            "arithmetic": settings.text_of("arithmetic"),
            "shard": ", ".join(str(one.shard) for one in run.excerpts) or None,
            "unsolved": part.unsolved,
            "summary": statistics_of(part),
            "instances": [
                {
                    **_instance_object(m),
                    "unanswered": [
                        _reason_object(*each) for each in unanswered.get(question_of(m), ())
                    ],
                    **(changes(named.get(question_of(m))) if named else {}),
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
