"""Tables about runs: what `--estimate` expects, and what an audit refuted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from radii.runs import ClaimStatus, Finding, show_duration
from radii.strategy import PredictionInterval, RunEstimate
from radii.views.tables._records import TableColumn, TableRecord

SHOWN_CLAIMS = 20
"""How many refuted claims are shown; the file of an audit has all."""


def estimate_parts(expected: RunEstimate) -> Iterator[TableRecord | str]:
    """What to expect of each network, and how long the rest takes."""
    yield _estimate_table(expected)
    if expected.seconds.high == 0:
        yield "Nothing is left to do."
        return
    workers = "one worker" if expected.jobs == 1 else f"{expected.jobs} workers"
    yield (
        f"The rest takes about {_interval_text(expected.seconds, show_duration)} with {workers}. "
        "Run again without --estimate: what was found is kept."
    )


def _estimate_table(expected: RunEstimate) -> TableRecord:
    note = f"in brackets: {expected.confidence:.0%} of what the finished ones leave possible"
    return TableRecord(
        title="What all inputs would give",
        columns=[
            TableColumn("network", lambda one: one.network),
            TableColumn("inputs", lambda one: one.inputs),
            TableColumn("finished", lambda one: one.finished + one.misclassified),
            TableColumn("closed", lambda one: _interval_text(one.closed, "{:.0%}".format)),
            TableColumn("mean width", lambda one: _interval_text(one.width, "{:.3g}".format)),
            TableColumn(
                "time left, one worker", lambda one: _interval_text(one.seconds, show_duration)
            ),
        ],
        rows=expected.networks,
        notes=[note],
        name_width=8,
    )


def _interval_text(value: PredictionInterval, show: Callable[[float], str]) -> str:
    if value.low == value.high:
        return show(value.middle)
    return f"{show(value.middle)} ({show(value.low)} to {show(value.high)})"


def audit_tables(results: Sequence[Finding]) -> list[TableRecord]:
    """The refuted claims that are off by the most, where there are any; and all by network."""
    refuted = _with_status(results, ClaimStatus.REFUTED)
    return [*([_refuted_table(refuted)] if refuted else []), _audit_table(results)]


def _audit_table(results: Sequence[Finding]) -> TableRecord:
    """For each network its claims, what became of them, and what the refuted ones had cost."""
    has_seconds = any(not math.isnan(finding.claim.seconds) for finding in results)
    networks = dict.fromkeys(finding.claim.network for finding in results)
    rows = [[one for one in results if one.claim.network == network] for network in networks]

    def count(status: ClaimStatus, title: str = "") -> TableColumn:
        is_shown = bool(title) or bool(_with_status(results, status))
        of = lambda mine: len(_with_status(mine, status))  # noqa: E731
        return TableColumn(title or status.value, of, is_shown=is_shown)

    def seconds(status: ClaimStatus, title: str) -> TableColumn:
        times = lambda mine: _seconds_range(_with_status(mine, status))  # noqa: E731
        return TableColumn(title, times, is_shown=has_seconds)

    def closest(mine: Sequence[Finding]) -> str:
        ratios = [finding.ratio for finding in _with_status(mine, ClaimStatus.REFUTED)]
        return f"{100 * min(ratios):.0f} %" if ratios else ""

    note = "closest: the witness nearest to its input, as a part of the claimed radius"
    return TableRecord(
        title="Audit",
        columns=[
            TableColumn("network", lambda mine: mine[0].claim.network),
            TableColumn("claims", len),
            count(ClaimStatus.REFUTED, "refuted"),
            TableColumn("closest", closest),
            count(ClaimStatus.MISCLASSIFIED),
            count(ClaimStatus.NOT_TRIED),
            seconds(ClaimStatus.REFUTED, "s refuted"),
            seconds(ClaimStatus.STANDS, "s standing"),
        ],
        rows=rows,
        notes=[f"{note}; s: published seconds, fewest–most" if has_seconds else note],
        name_width=16,
        no_wrap=False,
    )


def _refuted_table(refuted: Sequence[Finding]) -> TableRecord:
    worst = sorted(refuted, key=lambda finding: finding.ratio)
    note = f"the {SHOWN_CLAIMS} that are off by the most, of {len(worst)}"
    return TableRecord(
        title="Refuted claims",
        columns=[
            TableColumn("network", lambda one: one.claim.network),
            TableColumn("input", lambda one: one.claim.input),
            TableColumn("label", lambda one: one.instance.label),
            TableColumn(
                "target",
                lambda one: one.claim.target,
                is_shown=any(one.claim.target is not None for one in refuted),
            ),
            TableColumn("claimed", lambda one: one.claim.eps, ".4g"),
            TableColumn("broken at", lambda one: one.closest, ".4g"),
            TableColumn(
                "becomes", lambda one: "" if one.witness is None else str(one.witness.predicted)
            ),
            TableColumn("margin", lambda one: one.margin, ".2g"),
        ],
        rows=worst[:SHOWN_CLAIMS],
        notes=[note] if len(worst) > SHOWN_CLAIMS else [],
        name_width=16,
    )


def _with_status(results: Sequence[Finding], status: ClaimStatus) -> list[Finding]:
    return [finding for finding in results if finding.status is status]


def _seconds_range(results: Sequence[Finding]) -> str:
    times = [f.claim.seconds for f in results if not math.isnan(f.claim.seconds)]
    return f"{min(times):,.0f}–{max(times):,.0f}" if times else ""
