"""How good a distribution is: gaps, missing answers, unsolved inputs, and what it cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions._columns import NO_NUMBER, Array

if TYPE_CHECKING:
    import pandas as pd

    from radii.distributions._distribution import Distribution


@dataclass(frozen=True, slots=True)
class Quality:
    """The measures of the papers' tables. Shares and gaps are over the inputs that `holds` counts:
    correctly classified ones, or with another property those at which it holds as they stand.

    An input is `unsolved` if nothing is proven and nothing witnessed. The `mean_gap` is over inputs
    with a witness; NaN if there is none. A `critical` termination is a missing answer between
    `lower` and `upper`. Where it is not known at which eps answers were missing, inputs with any
    count, and `is_critical_exact` is false; where not even that is known, the share is of the other
    inputs. What a file does not tell is None, or NaN for numbers of which there are parts.
    """

    inputs: int
    correct: int
    mean_gap: float
    largest_gap: float
    critical: float
    is_critical_exact: bool
    unsolved: float
    without_witness: float
    queries: int | None
    missing: int | None
    timeouts: int | None
    memouts: int | None
    total_seconds: float
    mean_seconds: float
    cpu_seconds: float


def quality(distribution: Distribution) -> Quality:
    right = distribution.holds
    lower, upper = distribution.lower[right], distribution.upper[right]
    gaps = (upper - lower)[np.isfinite(upper)]
    critical = distribution.column("critical")[right]
    is_exact = bool(np.all(critical != NO_NUMBER))
    seconds = distribution.column("seconds")
    counts = {
        name: int(distribution.column(name).sum())
        for name in ("queries", "missing", "timeouts", "memouts")
    }
    are_told = counts["queries"] > 0
    if are_told:
        critical = np.where(critical == NO_NUMBER, distribution.column("missing")[right], critical)
    critical = critical[critical != NO_NUMBER]
    return Quality(
        inputs=len(distribution),
        correct=int(right.sum()),
        mean_gap=float(gaps.mean()) if gaps.size else math.nan,
        largest_gap=float(gaps.max()) if gaps.size else math.nan,
        critical=_mean_share(critical > 0),
        is_critical_exact=is_exact,
        unsolved=_mean_share(distribution.is_unsolved[right]),
        without_witness=_mean_share(np.isinf(upper)),
        queries=counts["queries"] if are_told else None,
        missing=counts["missing"] if are_told else None,
        timeouts=counts["timeouts"] if are_told else None,
        memouts=counts["memouts"] if are_told else None,
        total_seconds=float(seconds.sum()),
        mean_seconds=float(seconds.mean()),
        cpu_seconds=float(distribution.column("cpu_seconds").sum()),
    )


def quality_table(distribution: Distribution) -> pd.DataFrame:
    """One row a network and split."""
    import dataclasses

    import pandas as pd

    rows = [
        {"network": network, "split": split or "", **dataclasses.asdict(quality(part))}
        for (network, split), part in distribution.group_by("network", "split").items()
    ]
    return pd.DataFrame(rows)


def _mean_share(which: Array) -> float:
    return float(which.mean()) if which.size else math.nan
