"""Cases of the paper's claims from numbers of each image and seed.

An array has a row for each seed and a column for each image; the row of a network that learned
nothing is NaN. Networks are ours, so nothing here decides a claim of the paper, unless they are
trained by every setting that it states (`--scale full`, Fashion-MNIST).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from radii.results import Float64
from radii_papers._evidence import (
    CLAIM_LEVEL,
    ClaimBasis,
    ClaimCase,
    ClaimInterval,
    unclear,
    within,
)
from radii_papers._intervals import mean_interval
from radii_papers._steps import StudyScale, StudySettings
from radii_papers.properties._data import FASHION

HOW = "bootstrap over images and seeds, which all trainings share; Bonferroni"

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


def seeds_case(
    name: str, basis: ClaimBasis, n: int, differences: Float64, *, above: float, shows: str
) -> ClaimCase:
    """Of one difference a seed, by Student's interval; limits are in points."""
    from scipy.stats import t

    known = 100 * differences[np.isfinite(differences)]
    if len(known) < 2:
        return unclear(name, basis, n, shows, "too few seeds", len(known))
    reach = t.ppf(1 - CLAIM_LEVEL / 2, len(known) - 1) * known.std(ddof=1) / math.sqrt(len(known))
    interval = ClaimInterval(known.mean(), known.mean() - reach, known.mean() + reach, "+.1f")
    return within(
        name, basis, n, interval, above=above, seeds=len(known), unit=" points", before=f"{shows}: "
    )


def best_of(arrays: Sequence[Float64]) -> Float64:
    """The one with the largest mean; what learned nothing is no rival."""
    means = [_known(each).mean() if len(_known(each)) else -math.inf for each in arrays]
    return arrays[int(np.argmax(means))]


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
