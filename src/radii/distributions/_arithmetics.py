"""In which arithmetic the lower sides of a distribution are proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from radii.distributions._columns import Array
from radii.verdicts import Arithmetic

if TYPE_CHECKING:
    from radii.distributions._distribution import Distribution


def arithmetics(distribution: Distribution) -> dict[Arithmetic, int]:
    """How many proofs there are in each arithmetic, the weakest first."""
    texts, counts = np.unique(distribution.column("arithmetic"), return_counts=True)
    found = {Arithmetic.parse(str(t)): int(n) for t, n in zip(texts, counts, strict=True) if t}
    return dict(sorted(found.items(), key=lambda each: each[0].strength))


def weakest_arithmetic(distribution: Distribution) -> Arithmetic | None:
    """That in which all proofs hold; None without proofs, or where a claim does not tell its own.

    A proof in a stronger arithmetic is one in a weaker, too.
    """
    return (
        None if _without_arithmetic(distribution) else next(iter(arithmetics(distribution)), None)
    )


def proof_scope(distribution: Distribution) -> str:
    """One clause on what the proofs hold for; empty where nobody tells it."""
    counts = arithmetics(distribution)
    if not counts:
        return ""
    (weakest, _), *stronger = counts.items()
    total = sum(counts.values())
    said = f"proofs hold {weakest.scope}"
    for place, (arithmetic, _) in enumerate(stronger, 1):
        count = sum(list(counts.values())[place:])
        said += f", {count} of {total} also {arithmetic.scope}"
    if untold := _without_arithmetic(distribution):
        said += f"; {untold} more do not say in which arithmetic"
    return said


def ranked_arithmetics(texts: Array) -> tuple[Array, Array]:
    """Distinct texts from the weakest arithmetic to the strongest, and the place of each row's.

    Nothing told is weaker than anything.
    """
    distinct = sorted(
        {str(text) for text in texts},
        key=lambda text: Arithmetic.parse(text).strength if text else (False, 0.0),
    )
    places = {text: place for place, text in enumerate(distinct)}
    return np.array(distinct), np.array([places[str(text)] for text in texts])


def _without_arithmetic(distribution: Distribution) -> int:
    """Lower sides above 0 of which nobody says in which arithmetic they hold."""
    return int(np.sum((distribution.column("arithmetic") == "") & (distribution.lower > 0)))
