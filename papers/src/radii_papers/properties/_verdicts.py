"""Cases of the paper's claims from numbers of each image and seed.

An array has a row for each seed and a column for each image; the row of a network that learned
nothing is NaN. Networks are ours, so nothing here decides a claim of the paper, unless they are
trained by every setting that it states (`--scale full`, Fashion-MNIST).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from radii.statistics import Float64
from radii_papers._evidence import (
    CaseOutcome,
    ClaimBasis,
    ClaimCase,
    ClaimInterval,
    unclear,
    within,
)
from radii_papers._intervals import mean_interval, tail_of
from radii_papers._steps import StudyScale, StudySettings
from radii_papers.properties._data import FASHION

HOW = (
    "the wider of a bootstrap over images and seeds, which all trainings share, and of Student's "
    "interval over seeds; Bonferroni over all cases and comparisons"
)

UNTRAINED = "a training learned nothing"
TIE = "a tie at 0 or 100 % leaves no room"


def basis_of(settings: StudySettings, data: str) -> ClaimBasis:
    """The ten traffic signs of the paper are not known, so these are always others."""
    is_theirs = settings.scale is StudyScale.FULL and data == FASHION
    return ClaimBasis.SETTINGS if is_theirs else ClaimBasis.OURS


def share_case(
    name: str,
    basis: ClaimBasis,
    values: Float64,
    of: int,
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> ClaimCase:
    """Of a mean share; limits are in per cent."""
    known = _known(values)
    if not len(known):
        return unclear(name, basis, 0, "–", UNTRAINED)
    interval = mean_interval(known.T, of, span=1.0).percent(".1f", least=0.0)
    images = known.shape[1]
    return within(
        name, basis, images, interval, above=above, below=below, seeds=len(known), unit=" %"
    )


def gain_case(
    name: str,
    basis: ClaimBasis,
    first: Float64,
    second: Float64,
    of: int,
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> ClaimCase:
    """Of the first share less the second, on the same images and seeds; limits are in points."""
    one, two = _known(first, second)
    if not len(one):
        return unclear(name, basis, 0, "–", UNTRAINED)
    before = f"{percent(one)} for {percent(two)}: "
    for end in (0.0, 1.0):
        if np.all(one == end) and np.all(two == end):
            return unclear(name, basis, one.shape[1], before.rstrip(": "), TIE, len(one))
    interval = mean_interval((one - two).T, of, span=1.0).percent("+.1f")
    return within(
        name, basis, one.shape[1], interval, above=above, below=below, seeds=len(one),
        unit=" points", before=before,
    )  # fmt: skip


def shares_case(
    name: str, basis: ClaimBasis, shares: Mapping[str, Float64], of: int, *, below: float
) -> ClaimCase:
    """Of a claim that each of several mean shares is below a limit, in per cent."""
    known = {title: values for title, values in shares.items() if len(_known(values))}
    if not known:
        return unclear(name, basis, 0, "–", UNTRAINED)
    cases = [
        (-_known(values).mean(), title, share_case(name, basis, values, len(known) * of,
                                                   below=below))
        for title, values in known.items()
    ]  # fmt: skip
    return least_favourable(cases)


def gains_case(
    name: str,
    basis: ClaimBasis,
    pairs: Mapping[str, tuple[Float64, Float64]],
    of: int,
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> ClaimCase:
    """Of a claim about the gain in each of several pairs, such as that one training is better than
    each of the others; limits are in points. What learned nothing is no rival."""
    known = {title: pair for title, pair in pairs.items() if len(_known(*pair)[0])}
    if not known:
        return unclear(name, basis, 0, "–", UNTRAINED)
    side = 1.0 if above > -math.inf else -1.0
    cases = []
    for title, (first, second) in known.items():
        one, two = _known(first, second)
        case = gain_case(name, basis, first, second, len(known) * of, above=above, below=below)
        cases.append((side * float((one - two).mean()), title, case))
    return least_favourable(cases)


WORST_FIRST = (CaseOutcome.FAILS, CaseOutcome.UNCLEAR, CaseOutcome.HOLDS)


def least_favourable(cases: Sequence[tuple[float, str, ClaimCase]]) -> ClaimCase:
    """One case of several comparisons, all of which a claim speaks of: that which speaks least for
    it. Each has how far it lies on the claim's side, and a title.

    No comparison is chosen before it is tested: the claim holds if it holds in all, and fails if it
    fails in one, so the intervals must hold for all at once.
    """
    _, title, worst = min(cases, key=lambda each: (WORST_FIRST.index(each[2].outcome), each[0]))
    seeds = min(case.seeds for _, _, case in cases)
    if len(cases) == 1:
        return dataclasses.replace(worst, shows=f"{title}, {worst.shows}")
    shows = f"{title}, the closest of {len(cases)}, {worst.shows}"
    return dataclasses.replace(worst, shows=shows, rule=f"{worst.rule} for all", seeds=seeds)


def seeds_case(
    name: str,
    basis: ClaimBasis,
    n: int,
    differences: Float64,
    of: int,
    *,
    above: float,
    shows: str,
) -> ClaimCase:
    """Of one difference a seed, by Student's interval; limits are in points."""
    from scipy.stats import t

    known = 100 * differences[np.isfinite(differences)]
    if len(known) < 2:
        return unclear(name, basis, n, shows, "too few seeds", len(known))
    reach = t.ppf(1 - tail_of(of), len(known) - 1) * known.std(ddof=1) / math.sqrt(len(known))
    interval = ClaimInterval(known.mean(), known.mean() - reach, known.mean() + reach, "+.1f")
    return within(
        name, basis, n, interval, above=above, seeds=len(known), unit=" points", before=f"{shows}: "
    )


def _known(*arrays: Float64) -> Float64:
    """The rows of seeds whose networks all learned; of several arrays, stacked."""
    learned = np.all([np.isfinite(each).all(axis=1) for each in arrays], axis=0)
    kept = [each[learned] for each in arrays]
    return kept[0] if len(kept) == 1 else np.stack(kept)


def percent(shares: npt.ArrayLike) -> str:
    """A share, or the mean of some, of which NaN are left out."""
    known = np.atleast_1d(np.asarray(shares, np.float64))
    known = known[np.isfinite(known)]
    return f"{100 * known.mean():.1f} %" if len(known) else "–"
