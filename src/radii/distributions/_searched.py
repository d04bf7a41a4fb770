"""How far counterexamples were searched for: beyond it, "not refuted" means nothing.

The column `searched` holds, for each instance, the eps up to which somebody tried to refute it: 0
where no attempt was answered, NaN where that is not known, as of published files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from radii.distributions._distribution import Distribution


EPS_ROUNDING = 1e-9
"""Relative: 8/255 and the grid value that was written with as many decimals are the same eps."""


def within_search(distribution: Distribution) -> Distribution:
    """The brackets if all that nobody searched for were there: a counterexample just beyond.

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
