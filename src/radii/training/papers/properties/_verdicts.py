"""How claims of the paper are judged: a rule for each case and seed, and a verdict over all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from radii.results import Float64
from radii.training.papers._steps import ClaimVerdict, StudyClaim

MARGIN = 0.01
"""By how much a share must exceed another to count as larger: one image of a hundred."""

RULE = (
    "How claims are judged: each by a rule on its numbers, in each of its cases (such as a data "
    "set) and for each seed on its own. Confirmed: it holds in all of them; refuted: in none; else "
    "it depends. A case in which a training has no room to change anything is not judged."
)


@dataclass(frozen=True, slots=True)
class CaseFinding:
    """What one case, such as a data set, says of a claim.

    `held`: does it hold, for each seed whose networks all learned something. `numbers` are means.
    `why_not` says why a case cannot be judged although all learned something.
    """

    held: tuple[bool, ...]
    numbers: str
    why_not: str = ""


def finding(holds: npt.ArrayLike, numbers: str, *needed: Float64) -> CaseFinding:
    """Of rules that hold or not by seed; seeds for which a `needed` number is NaN are left out."""
    known = np.all([np.isfinite(each) for each in needed], axis=0)
    return CaseFinding(tuple(np.asarray(holds, bool)[known].tolist()), numbers)


def judged(claim: str, place: str, cases: Mapping[str, CaseFinding]) -> StudyClaim:
    """Confirmed where it holds in all cases and seeds, refuted where in none, else it depends."""
    held = [holds for case in cases.values() for holds in case.held]
    verdict = ClaimVerdict.DEPENDS
    if not held:
        verdict = ClaimVerdict.OPEN
    elif all(held):
        verdict = ClaimVerdict.CONFIRMED
    elif not any(held):
        verdict = ClaimVerdict.REFUTED
    told = [f"{name}: {_told(case, verdict)}" for name, case in cases.items()]
    return StudyClaim(claim, place, verdict, "; ".join(told) or "no case of it was measured")


def _told(case: CaseFinding, verdict: ClaimVerdict) -> str:
    if not case.held and case.why_not:
        return f"{case.numbers} (not judged: {case.why_not})"
    if not case.held:
        return "not judged, a training learned nothing"
    if verdict is not ClaimVerdict.DEPENDS:
        return case.numbers
    if all(case.held):
        return f"{case.numbers} (holds)"
    if not any(case.held):
        return f"{case.numbers} (does not)"
    return f"{case.numbers} (holds for {sum(case.held)} of {len(case.held)} seeds)"


def percent(shares: float | Float64) -> str:
    """A share, or the mean over seeds of some, of which NaN are left out."""
    known = np.atleast_1d(np.asarray(shares, np.float64))
    known = known[np.isfinite(known)]
    return f"{100 * known.mean():.1f} %" if len(known) else "–"


def points(differences: Float64) -> str:
    """The mean over seeds of differences of shares, NaN left out: `+3.5 points`."""
    known = differences[np.isfinite(differences)]
    return f"{100 * known.mean():+.1f} points".replace("-", "−") if len(known) else "–"
