"""What `radii compare` says of groups: its tables and sentences, and the same for JSON and CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from radii.statistics import (
    CATALOGUE,
    Comparison,
    GroupComparison,
    StatisticUnit,
    inputs_with_radius,
)
from radii.views.tables._records import Cell, TableColumn, TableRecord, interval
from radii.views.tables._results import statistic_column

Row = dict[str, Any]

SHORT_TEST_NAMES = {
    "permutation of scores": "scores",
    "permutation of curves": "curves",
    "Kolmogorov-Smirnov": "KS",
    "Welch's t": "t",
    "Mann-Whitney": "M-W",
}

LEFT_OUT = (
    "left out: results without an answer, which have no value for curves, KS, t and M-W "
    "(of matched inputs those that either lacks); scores keep them as intervals"
)


def comparison_object(compared: GroupComparison, fits: Sequence[Row] = ()) -> dict[str, Any]:
    """All statistics, for JSON and for the page."""
    return {
        "by": compared.options.by,
        "inputs": compared.options.inputs,
        "level": compared.options.level,
        "summary": compared.summaries(),
        "comparisons": compared.pairs(),
        "spearman": compared.correlation_rows(),
        "quality": compared.qualities(),
        "fairness": compared.fairness_sentences(),
        "fits": list(fits),
    }


def comparison_rows(compared: GroupComparison, fits: Sequence[Row] = ()) -> dict[str, list[Row]]:
    """The same as flat rows, by the name of a CSV file."""
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
    return {
        "summary": summaries,
        "comparisons": compared.pair_rows(),
        "spearman": compared.correlation_rows(),
        "quality": compared.qualities(),
        "fits": list(fits),
    }


def comparison_parts(
    compared: GroupComparison, fits: Sequence[Row] = ()
) -> Iterator[TableRecord | str]:
    """Tables and sentences, in the order in which they are shown."""
    yield _group_table(compared)
    if compared.options.eps:
        yield _accuracy_table(compared)
    yield _test_table(compared)
    yield _effect_table(compared)
    yield "Who is more robust where? On these inputs:"
    yield from (f"  {pair.dominance}" for pair in compared.comparisons)
    yield "Among all inputs:"
    yield from (f"  {sentence}" for sentence in compared.confident)
    yield from compared.fairness_sentences()
    yield from _fit_sentences(fits)
    if compared.correlations is not None:
        yield _correlation_table(compared)
    yield _quality_table(compared)


def _group_table(compared: GroupComparison) -> TableRecord:
    """A row for each group."""
    rows = compared.summaries()
    has_unsolved = any(row["unsolved"] for row in rows)

    def radius(name: str) -> TableColumn:
        return TableColumn(name, lambda row: interval(row[f"{name}_lower"], row[f"{name}_upper"]))

    columns = [
        TableColumn(compared.options.by, lambda row: row["group"]),
        TableColumn("correct", lambda row: f"{row['correct']}/{row['inputs']}"),
        TableColumn("no answer", lambda row: row["unsolved"], is_shown=has_unsolved),
        *map(radius, ("lowest", "mean", "median")),
    ]
    note = f"radii of {inputs_with_radius(compared.distribution)}, proven–witnessed"
    if has_unsolved:
        note += f"; no answer: {CATALOGUE['without_answer'].about}"
    return _named_table("Summary", columns, rows, note)


def _accuracy_table(compared: GroupComparison) -> TableRecord:
    """For each group and eps, robust accuracy of these inputs, and below it of all inputs."""
    rows = compared.summaries()

    def at(place: int) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            share = row["robust_accuracy"][place]
            end = "?" if share["unsearched"] else f"{share['not_refuted']:.2f}"
            return f"{share['proven']:.2f}–{end}", f"({share['low']:.2f}–{share['high']:.2f})"

        return cell

    columns = [
        TableColumn(compared.options.by, lambda row: row["group"]),
        *(TableColumn(f"{eps:g}", at(place)) for place, eps in enumerate(compared.options.eps)),
    ]
    reasons = [share["unsearched"] for row in rows for share in row["robust_accuracy"]]
    note = (
        "share of all inputs, proven–not refuted; in brackets with "
        f"{100 * compared.options.level:g} % confidence, for each eps alone"
        + "".join(f"; ?: {why}" for why in dict.fromkeys(filter(None, reasons)))
    )
    return _named_table("Robust accuracy at eps", columns, rows, note)


def _test_table(compared: GroupComparison) -> TableRecord:
    """For each pair the p-values as they are, and below them after Holm's correction."""
    names = [test.test for test in compared.comparisons[0].all_tests]
    names = [*names[3:], *names[:3]]  # the tests that know of brackets and matching first
    left_out = any(any(pair.left_out) for pair in compared.comparisons)

    def p_values(name: str) -> TableColumn:
        def cell(row: tuple[int, Comparison]) -> Cell:
            (test,) = (test for test in row[1].all_tests if test.test == name)
            return _p(test.p_value), _p(compared.adjusted[name][row[0]])

        return TableColumn(SHORT_TEST_NAMES.get(name, name), cell)

    def inputs(row: tuple[int, Comparison]) -> Cell:
        one, two = row[1].inputs
        return str(one), "matched" if row[1].is_matched else str(two)

    columns = [
        TableColumn("pair", lambda row: row[1].names),
        TableColumn("p", lambda _: ("raw", "Holm")),
        TableColumn("inputs", inputs),
        TableColumn("left out", lambda row: tuple(map(str, row[1].left_out)), is_shown=left_out),
        *map(p_values, names),
    ]
    note = (
        "scores, curves: permutations of the brackets, which exchange those of one input where "
        "inputs are matched, and take equal radii to get equally wide brackets; "
        f"KS, t, M-W: on the {compared.options.side} sides, as if independent"
        + (f"; {LEFT_OUT}" if left_out else "")
    )
    rows = list(enumerate(compared.comparisons))
    return _named_table("Do they differ? p-values", columns, rows, note, keys=2)


def _effect_table(compared: GroupComparison) -> TableRecord:
    """For each pair how large the difference is, first minus second."""

    def delta(pair: Comparison) -> Cell:
        d = pair.delta
        return f"{d.least:+.2f} to {d.most:+.2f}", f"({d.low:+.2f} to {d.high:+.2f})"

    def means(pair: Comparison) -> Cell:
        difference = pair.means
        if math.isnan(difference.proven):
            return "-"
        return f"{difference.proven:+.4f}", f"±{difference.error:.4f}"

    columns = [
        TableColumn("pair", lambda pair: pair.names),
        TableColumn("Cliff's delta", delta),
        TableColumn("difference of means", means),
    ]
    note = (
        "positive: the first has the larger radii; delta in brackets with "
        f"{100 * compared.options.level:g} % confidence; means are of proven sides, ± their "
        "standard error"
    )
    if any(any(pair.left_out) for pair in compared.comparisons):
        note += "; means leave out what the tests leave out, delta counts it as open"
    return _named_table("How much?", columns, compared.comparisons, note)


def _correlation_table(compared: GroupComparison) -> TableRecord:
    """Spearman's coefficients; a star where they differ from 0 after Holm's correction."""
    known = compared.correlations
    assert known is not None
    count = len(known.networks)

    def with_other(two: int) -> TableColumn:
        def cell(one: int) -> Cell:
            value, star = known.coefficients[one, two], known.adjusted[one, two] < 0.05
            return "-" if math.isnan(value) else f"{value:.2f}{'*' if star else ''}"

        return TableColumn(str(two + 1), cell)

    name = TableColumn("network", lambda one: f"{one + 1} {known.networks[one]}")
    inputs = inputs_with_radius(compared.distribution)
    note = f"* p < 0.05 after Holm's correction; over {inputs} for both networks"
    if any(known.left_out):
        note += f"; left out: {sum(known.left_out)} results without an answer"
    title = "Are the same inputs hard? Spearman"
    columns = [name, *map(with_other, range(count))]
    return _named_table(title, columns, range(count), note)


def _quality_table(compared: GroupComparison) -> TableRecord:
    """For each group how tight the brackets are, what is missing, what it cost: the statistics of
    the catalogue but for radii, where any group has something to say."""
    groups = compared.groups.values()
    shown = [
        one
        for one in CATALOGUE.values()
        if one.unit is not StatisticUnit.BRACKET
        and any(one.text(one(part)) not in ("-", "0") for part in groups)
    ]
    columns = [TableColumn(compared.options.by, lambda row: row[0]), *map(statistic_column, shown)]
    inputs = inputs_with_radius(compared.distribution)
    plain = (StatisticUnit.COUNT, StatisticUnit.SECONDS)
    abouts = (f"{one.title}: {one.about}" for one in shown if one.unit not in plain)
    note = "; ".join([f"of {inputs}", *abouts])
    return _named_table("Quality", columns, list(compared.groups.items()), note)


def _named_table(
    title: str, columns: Sequence[TableColumn], rows: Sequence[Any], note: str, keys: int = 1
) -> TableRecord:
    return TableRecord(
        title=title, columns=columns, rows=rows, notes=[note], name_width=12, keys=keys
    )


def _fit_sentences(rows: Sequence[Row]) -> Iterator[str]:
    """For each group the family of the smallest AIC, and what the tests say of every family."""
    for name in dict.fromkeys(row["group"] for row in rows):
        members = [row for row in rows if row["group"] == name]
        fitted = [row for row in members if row["aic"] is not None]
        if fitted:
            best = min(fitted, key=lambda row: float(row["aic"]))
            yield f"{name}: by AIC the best is the {best['fit']}."
        else:
            yield f"{name}: no family can be fitted."
        yield from (f"  {row['verdict']}" for row in members)


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"
