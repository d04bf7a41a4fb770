"""The tables of `radii compare` for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from radii.cli.comparing import GroupComparison
from radii.cli.console import stacked
from radii.distributions import Correlations, Distribution, inputs_with_radius

SHORT_TEST_NAMES = {
    "permutation of scores": "scores",
    "permutation of curves": "curves",
    "Kolmogorov-Smirnov": "KS",
    "Welch's t": "t",
    "Mann-Whitney": "M-W",
}


def group_table(compared: GroupComparison) -> Table:
    """A row a group."""
    rows = compared.summaries()
    has_unsolved = any(row["unsolved"] for row in rows)
    columns = ("correct", *(["no answer"] if has_unsolved else []), "lowest", "mean", "median")
    table = _comparison_table("Summary", compared.options.by, columns)
    for row in rows:
        intervals = [
            _interval(row[f"{name}_lower"], row[f"{name}_upper"])
            for name in ("lowest", "mean", "median")
        ]
        unsolved = [str(row["unsolved"])] if has_unsolved else []
        correct = f"{row['correct']}/{row['inputs']}"
        table.add_row(row["group"], correct, *unsolved, *intervals)
    table.caption = f"radii of {inputs_with_radius(compared.distribution)}, proven–witnessed"
    if has_unsolved:
        table.caption += "; no answer: nothing proven, nothing witnessed, so a radius may be any"
    return table


def accuracy_table(compared: GroupComparison) -> Table:
    """A row a group, a column an eps: robust accuracy of these inputs, and below it of all."""
    columns = [f"{eps:g}" for eps in compared.options.eps]
    table = _comparison_table("Robust accuracy at eps", compared.options.by, columns)
    endings = []
    for row in compared.summaries():
        shares = [
            stacked(
                f"{share['proven']:.2f}–"
                f"{'?' if share['unsearched'] else format(share['not_refuted'], '.2f')}",
                f"({share['low']:.2f}–{share['high']:.2f})",
            )
            for share in row["robust_accuracy"]
        ]
        table.add_row(row["group"], *shares)
        endings += [share["unsearched"] for share in row["robust_accuracy"] if share["unsearched"]]
    table.caption = (
        "share of all inputs, proven–not refuted; in brackets with "
        f"{100 * compared.options.level:g} % confidence, for each eps alone"
        + "".join(f"; ?: {why}" for why in dict.fromkeys(endings))
    )
    return table


def test_table(compared: GroupComparison) -> Table:
    """A row a pair: p-values as they are, and below them after Holm's correction."""
    order = [test.test for test in compared.comparisons[0].all_tests]
    order = [*order[3:], *order[:3]]  # the tests that know of brackets and matching first
    names = [SHORT_TEST_NAMES.get(name, name) for name in order]
    left_out = any(any(found.left_out) for found in compared.comparisons)
    columns = ("inputs", *(["left out"] if left_out else []), "p", *names)
    table = _comparison_table("Do they differ? p-values", "pair", columns)
    for place, found in enumerate(compared.comparisons):
        tests = {test.test: test for test in found.all_tests}
        one, two = found.inputs
        table.add_row(
            stacked(*found.names),
            stacked(f"{one}", "matched" if found.is_matched else f"{two}"),
            *([stacked(*map(str, found.left_out))] if left_out else []),
            stacked("raw", "Holm"),
            *(
                stacked(_p(tests[name].p_value), _p(compared.adjusted[name][place]))
                for name in order
            ),
        )
    table.caption = (
        "scores, curves: permutations of the brackets, which exchange those of one input where "
        "inputs are matched, and take equal radii to get equally wide brackets; "
        f"KS, t, M-W: on the {compared.options.side} sides, as if independent"
    )
    if left_out:
        table.caption += (
            "; left out: results without an answer, which have no value for curves, KS, t and M-W "
            "(of matched inputs those that either lacks); scores keep them as intervals"
        )
    return table


def effect_table(compared: GroupComparison) -> Table:
    """A row a pair: how large the difference is, first minus second."""
    table = _comparison_table("How much?", "pair", ("Cliff's delta", "difference of means"))
    for found in compared.comparisons:
        delta, means = found.delta, found.means
        table.add_row(
            stacked(*found.names),
            stacked(
                f"{delta.least:+.2f} to {delta.most:+.2f}",
                f"({delta.low:+.2f} to {delta.high:+.2f})",
            ),
            "-"
            if math.isnan(means.proven)
            else stacked(f"{means.proven:+.4f}", f"({means.low:+.4f} to {means.high:+.4f})"),
        )
    table.caption = (
        "positive: the first has the larger radii; means are of proven sides; in brackets with "
        f"{100 * compared.options.level:g} % confidence"
    )
    if any(any(found.left_out) for found in compared.comparisons):
        table.caption += "; means leave out what the tests leave out, delta counts it as open"
    return table


def correlation_table(found: Correlations, distribution: Distribution) -> Table:
    """Spearman's coefficients; a star where they differ from 0 after Holm's correction."""
    columns = [str(place + 1) for place in range(len(found.networks))]
    table = _comparison_table("Are the same inputs hard? Spearman", "network", columns)
    for one, name in enumerate(found.networks):
        cells = []
        for two in range(len(found.networks)):
            value = found.coefficients[one, two]
            star = "*" if found.adjusted[one, two] < 0.05 else ""
            cells.append("-" if math.isnan(value) else f"{value:.2f}{star}")
        table.add_row(f"{one + 1} {name}", *cells)
    inputs = inputs_with_radius(distribution)
    table.caption = f"* p < 0.05 after Holm's correction; over {inputs} for both networks"
    if any(found.left_out):
        table.caption += f"; left out: {sum(found.left_out)} results without an answer"
    return table


def quality_table(compared: GroupComparison) -> Table:
    """A row a group: how tight the brackets are, what is missing, what it cost."""
    rows = compared.qualities()
    columns = {
        "gap": ("mean_gap", ".4f"),
        "largest": ("largest_gap", ".4f"),
        "open": ("without_witness", ".0%"),
        "unsolved": ("unsolved", ".0%"),
        "critical": ("critical", ".0%"),
        "missing": ("missing", "d"),
        "time-outs": ("timeouts", "d"),
        "s each": ("mean_seconds", ".2f"),
    }
    told = {
        name: (field, form)
        for name, (field, form) in columns.items()
        if any(_number_or_dash(row[field], form) != "-" for row in rows)
    }
    table = _comparison_table("Quality", compared.options.by, tuple(told))
    for row in rows:
        cells = [_number_or_dash(row[field], form) for field, form in told.values()]
        table.add_row(row["group"], *cells)
    table.caption = (
        f"of {inputs_with_radius(compared.distribution)}; gap: mean width of their brackets; "
        "open: without a witness; unsolved: without a proof, too"
        + ("; critical: an answer between the sides is missing" if "critical" in told else "")
    )
    return table


def _comparison_table(title: str, first: str, columns: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", caption_justify="left")
    table.add_column(first, overflow="fold", min_width=12)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _interval(low: float, high: float) -> str:
    return f"{low:.4f}–{high:.4f}" if math.isfinite(high) else f"{low:.4f}–none"


def _number_or_dash(value: float | None, form: str) -> str:
    return "-" if value is None or math.isnan(value) else format(value, form)


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"
