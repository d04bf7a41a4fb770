"""What `radii metrics` says: a table for each network, and what its shares are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from radii.problem import Arithmetic
from radii.runs import Metrics
from radii.statistics import Estimate
from radii.views.tables._records import TableColumn, TableRecord


def metrics_parts(rows: Sequence[Metrics]) -> Iterator[TableRecord | str]:
    """Tables and sentences, in the order in which they are shown."""
    for name in dict.fromkeys(row.network for row in rows):
        yield _metrics_table([row for row in rows if row.network == name])
    for network, why in dict.fromkeys((row.network, row.unsearched) for row in rows):
        if why:
            yield f"{network}: {why}; CSec is not known where it shows -."
    proven = dict.fromkeys((row.network, row.arithmetic) for row in rows if row.arithmetic)
    scopes: dict[str, list[str]] = {}
    for network, arithmetic in proven:
        scopes.setdefault(Arithmetic.parse(str(arithmetic)).scope, []).append(network)
    for scope, networks in scopes.items():
        whose = f" of {', '.join(networks)}" if len(scopes) > 1 else ""
        yield f"Proofs{whose} hold {scope}."
    by = ", CAcc by Chernoff and Hoeffding" if any(row.accuracy for row in rows) else ""
    yield (
        "open: neither proven nor refuted. Shares are of these inputs and, in parentheses, of all, "
        f"with {100 * rows[0].level:g} % confidence: CSat and CSec by Clopper and Pearson{by}."
    )


def _metrics_table(rows: Sequence[Metrics]) -> TableRecord:
    """One network, a row for each eps."""
    first = rows[0]
    return TableRecord(
        title=f"{first.network.removesuffix('.onnx')}: {first.property} on {first.inputs} inputs",
        columns=[
            TableColumn("eps", lambda row: row.eps, "g"),
            TableColumn("proven", lambda row: row.proven),
            TableColumn("open", lambda row: row.undecided),
            TableColumn("CSat %", lambda row: _percent(row.satisfaction)),
            TableColumn("CSec %", lambda row: _percent(row.security)),
            TableColumn(
                "CAcc %", lambda row: _percent(row.accuracy), is_shown=first.accuracy is not None
            ),
        ],
        rows=rows,
    )


def _percent(share: Estimate | None) -> str:
    if share is None:
        return "-"
    return f"{100 * share.value:.3g} ({100 * share.low:.0f}–{100 * share.high:.0f})"
