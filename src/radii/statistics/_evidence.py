"""What the sides of brackets rest on: proofs, in which arithmetic and checked by whom; and how far
witnesses were sought.

The column `searched` holds, for each instance, the eps up to which somebody tried to refute it: 0
where no attempt was answered, NaN where that is not known, as of published files. Beyond it, "not
refuted" means nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.problem import STATUS_AFTER, STATUSES, Arithmetic, ProofStatus
from radii.statistics._columns import Array

if TYPE_CHECKING:
    from radii.statistics._distribution import Distribution


EPS_ROUNDING = 1e-9
"""Relative: 8/255 and the grid value that was written with as many decimals are the same eps."""


def arithmetics(distribution: Distribution) -> dict[Arithmetic, int]:
    """How many proofs there are in each arithmetic, the weakest first."""
    texts, counts = np.unique(distribution.column("arithmetic"), return_counts=True)
    proofs = {Arithmetic.parse(str(t)): int(n) for t, n in zip(texts, counts, strict=True) if t}
    return dict(sorted(proofs.items(), key=lambda each: each[0].strength))


def weakest_arithmetic(distribution: Distribution) -> Arithmetic | None:
    """That in which all proofs hold; None without proofs, or where one does not say its own.

    A proof in a stronger arithmetic is one in a weaker, too.
    """
    return (
        None if _without_arithmetic(distribution) else next(iter(arithmetics(distribution)), None)
    )


def proof_scope(distribution: Distribution) -> str:
    """One clause on what the proofs hold for; empty where that is not known."""
    counts = arithmetics(distribution)
    if not counts:
        return ""
    (weakest, _), *stronger = counts.items()
    total = sum(counts.values())
    clause = f"proofs hold {weakest.scope}"
    for place, (arithmetic, _) in enumerate(stronger, 1):
        count = sum(list(counts.values())[place:])
        clause += f", {count} of {total} also {arithmetic.scope}"
    if unknown := _without_arithmetic(distribution):
        clause += f"; {unknown} more do not say in which arithmetic"
    return clause


def ranked_arithmetics(texts: Array) -> tuple[Array, Array]:
    """Distinct texts from the weakest arithmetic to the strongest, and the place of each row's.

    An arithmetic that is not known is the weakest.
    """
    distinct = sorted(
        {str(text) for text in texts},
        key=lambda text: Arithmetic.parse(text).strength if text else (False, 0.0),
    )
    places = {text: place for place, text in enumerate(distinct)}
    return np.array(distinct), np.array([places[str(text)] for text in texts])


def ranked_statuses(texts: Array) -> tuple[Array, Array]:
    """What proofs can rest on, from no proof at all to the most, and the place of each row's."""
    ranked = ["", *(str(status) for status in STATUSES)]
    return np.array(ranked), np.array([ranked.index(str(text)) for text in texts])


def proof_statuses(distribution: Distribution) -> dict[ProofStatus, int]:
    """On what how many proofs of lower sides rest, the most trusted first."""
    counts = Counter(text for text in distribution.column("proof").tolist() if text)
    return {status: counts[status] for status in reversed(STATUSES) if counts[status]}


def proof_checks(distribution: Distribution) -> str:
    """One clause on who has checked the proofs, or on those that nobody can check.

    It is empty where every proof has a certificate, and no checker was asked yet.
    """
    counts = proof_statuses(distribution)
    if not counts.keys() & set(STATUS_AFTER.values()):
        return _without_certificate(counts.get(ProofStatus.BELIEVED, 0), sum(counts.values()))
    is_checked = distribution.column("proof") == ProofStatus.CHECKED
    checkers = sorted(set(distribution.column("checked_by")[is_checked].tolist()))
    words = {
        ProofStatus.CHECKED: f"checked by {' and '.join(checkers)}",
        ProofStatus.UNCHECKED: "certified and not checked yet",
        ProofStatus.UNREADABLE: "with a certificate that the checker cannot read",
        ProofStatus.BELIEVED: "believed",
        ProofStatus.FAILED: "REFUSED by the checker",
    }
    (status, count), *others = counts.items()
    which = f"all {count} proofs" if count > 1 else "the only proof"
    if others:
        which = f"{count} of {sum(counts.values())} proofs"
    clauses = [f"{which} {words[status]}", *(f"{count} {words[each]}" for each, count in others)]
    return ", ".join(clauses)


def _without_certificate(believed: int, proofs: int) -> str:
    """One clause on proofs of which no checker can be asked."""
    if not believed:
        return ""
    if proofs == 1:
        return "the only proof has no certificate: its prover is believed"
    which = f"{believed} of {proofs} proofs have no"
    if believed == proofs:
        which = f"none of the {proofs} proofs has a"
    return f"{which} certificate: their provers are believed"


def _without_arithmetic(distribution: Distribution) -> int:
    """How many lower sides above 0 do not say in which arithmetic they hold."""
    return int(np.sum((distribution.column("arithmetic") == "") & (distribution.lower > 0)))


def within_search(distribution: Distribution) -> Distribution:
    """The brackets as if each had a counterexample just beyond where the search for one ended.

    What this distribution has not refuted was searched for in vain, or is proven.
    """
    searched = distribution.column("searched")
    reach = np.maximum(searched * (1 + EPS_ROUNDING), distribution.lower)
    beyond = np.where(np.isnan(searched), np.inf, np.nextafter(reach, np.inf))
    return distribution.labelled(upper=np.minimum(distribution.upper, beyond))


def is_unsearched(distribution: Distribution, eps: float) -> npt.NDArray[np.bool_]:
    """Which instances are neither proven nor refuted at eps, nor searched that far."""
    return (distribution.upper > eps) & (within_search(distribution).upper <= eps)


def why_unsearched(distribution: Distribution, eps: float) -> str:
    """Half a sentence on where the search ended; empty if it went up to eps for every instance."""
    which = is_unsearched(distribution, eps)
    if not which.any():
        return ""
    ends = distribution.column("searched")[which]
    untried = int((ends == 0).sum())
    if untried:
        return (
            f"no search for counterexamples was answered for {untried} of {len(distribution)} "
            "inputs (time-outs or errors)"
        )
    return f"the search for counterexamples ended at {ends.min():g}"
