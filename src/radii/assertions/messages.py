"""What a check that fails says: the counts, and the inputs with their radii."""

from __future__ import annotations

from collections.abc import Iterable

from radii.assertions.checks import Check, Decision
from radii.brackets import Measurement

__all__ = ["failure_text"]

MOST_ROWS = 10
"""Of the inputs that are named; the counts are of all."""


def failure_text(check: Check) -> str:
    """Several lines, the first of which says it all."""
    rows = list(check.brackets)
    proven = [row for row in rows if row.bracket.lower >= check.eps]
    refuted = [row for row in rows if row.bracket.upper <= check.eps]
    rest = [row for row in rows if row.bracket.lower < check.eps < row.bracket.upper]
    tried = [row for row in rest if row.queries]
    untried = len(rest) - len(tried)
    lines = [
        f"{check.network} on {check.data} is {_word(check.decision)} at eps {check.eps:g}",
        f"  required  {check.requirement}",
        f"  found     {check.reason}",
        f"  inputs    {len(rows)}: {len(proven)} proven, {len(refuted)} refuted, "
        f"{len(tried)} undecided" + (f", {untried} not needed" if untried else ""),
        *([f"  proofs    {check.scope.removeprefix('proofs ')}"] if check.scope else []),
    ]
    refuted.sort(key=lambda row: row.bracket.upper)
    lines += _table("refuted by a counterexample within eps", map(_refuted, refuted), len(refuted))
    lines += _table("undecided", map(_undecided, tried), len(tried))
    if check.decision is Decision.UNDECIDED:
        lines.append(f"  to do     {_advice(check, len(tried))}")
    return "\n".join(lines)


def _word(decision: Decision) -> str:
    return "neither shown nor refuted to be robust" if decision is Decision.UNDECIDED else decision


def _table(title: str, rows: Iterable[str], count: int) -> list[str]:
    if not count:
        return []
    shown = [f"    {row}" for _, row in zip(range(MOST_ROWS), rows, strict=False)]
    more = [f"    and {count - MOST_ROWS} more"] if count > MOST_ROWS else []
    return [f"  {title}", *shown, *more]


def _refuted(row: Measurement) -> str:
    named = f"input {row.input}, label {row.label}:"
    if row.bracket.upper == 0:
        return f"{named} radius 0, is taken for {row.predicted} as it stands"
    became = "" if row.witness_class is None else f", where it is taken for {row.witness_class}"
    return f"{named} radius below {row.bracket.upper:.6g}{became}"


def _undecided(row: Measurement) -> str:
    why = "the time ran out" if row.timeouts else "no proof and no counterexample was found"
    return f"input {row.input}, label {row.label}: {why}"


def _advice(check: Check, undecided: int) -> str:
    if undecided:
        return (
            f"give proofs more time (timeout=, now {check.timeout:g} s an input) or another "
            "verifier (verifier=)"
        )
    return "give more inputs: the share of these is too close to what is required"
